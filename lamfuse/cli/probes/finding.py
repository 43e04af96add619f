"""A finding: what was seen, why it matters, and how to mend it. A value, and nothing else."""

from __future__ import annotations

import enum

import msgspec

__all__ = ["Finding", "Level", "note", "ok", "problem"]


class Level(enum.StrEnum):
    """How bad it is: only a problem makes the doctor fail."""

    OK = "ok"
    NOTE = "note"
    PROBLEM = "problem"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was looked at.

    ``check`` names it for programs, the same in every run. ``what`` and ``remedy`` hold no name
    that was not made visible. ``lacking``: without it nothing can be mounted on this machine.
    """

    check: str
    level: Level
    what: str
    why: str
    remedy: str = ""
    lacking: bool = False


def ok(check: str, what: str, why: str) -> Finding:
    """Return a finding that asks for nothing."""
    return Finding(check=check, level=Level.OK, what=what, why=why)


def note(check: str, what: str, why: str, remedy: str) -> Finding:
    """Return a finding that the person should know of."""
    return Finding(check=check, level=Level.NOTE, what=what, why=why, remedy=remedy)


def problem(check: str, what: str, why: str, remedy: str, *, lacking: bool = False) -> Finding:
    """Return a finding that has to be mended."""
    return Finding(
        check=check, level=Level.PROBLEM, what=what, why=why, remedy=remedy, lacking=lacking
    )
