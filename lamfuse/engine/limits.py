"""The bounds of open questions: how long each lives, and how many there may be."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds the questions of one daemon; times are in seconds.

    ``shown_timeout_s`` counts from being shown, ``total_timeout_s`` from being asked; the earlier
    ends it. With ``wait_for_cli`` a question that no channel can show stays open for the command
    line. The calls that wait are bounded as well, since any number of them may join one question.
    """

    shown_timeout_s: float = 60.0
    total_timeout_s: float = 110.0
    wait_for_cli: bool = False
    open_in_session: int = 16
    open_in_all: int = 64
    waiting_in_session: int = 64
    waiting_in_all: int = 128
    poll_s: float = 0.05
