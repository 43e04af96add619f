"""Requests by hand, and a policy to put them to, for the tests of the core and of the gate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lamfuse.core.operations import TABLE, Operation, Verb
from lamfuse.core.policy import Policy
from lamfuse.core.roots import Roots
from lamfuse.core.rules import Denylist
from lamfuse.core.runs_later import RunsLater
from lamfuse.core.standing import StandingRule, StandingRules
from lamfuse.core.target import Below, Caller, FileKind, Identity, Request, Subject

__all__ = [
    "DOWNLOADS",
    "HOME",
    "MAKES",
    "PARENT",
    "SESSION",
    "act",
    "directory",
    "file",
    "free",
    "identity",
    "make_policy",
    "rule",
]

HOME = b"/home/u"
DOWNLOADS = HOME + b"/Downloads"
SESSION = "claude-1"
READ_ROOTS = (b"/srv/docs",)
WRITE_ROOTS = (DOWNLOADS, HOME + b"/Documents/Lam Agent", b"/srv/out")
OWN = (HOME + b"/.local/state/lamfuse", HOME + b"/.config/lamfuse", HOME + b"/view")
PARENT = Identity(1, 2, 3, b"g")

#: What each operation that creates makes.
MAKES: dict[Operation, FileKind] = {
    Operation.CREATE: FileKind.FILE,
    Operation.MKDIR: FileKind.DIRECTORY,
    Operation.SYMLINK: FileKind.SYMLINK,
    Operation.MKNOD: FileKind.FIFO,
    Operation.LINK: FileKind.FILE,
}


def make_policy(
    *,
    person: Sequence[str] = ("secrets/", "*.kdbx"),
    write: Sequence[bytes] = WRITE_ROOTS,
    read: Sequence[bytes] = READ_ROOTS,
    standing: Sequence[StandingRule] = (),
    link_ok: Sequence[bytes] = (b"/usr", b"/bin"),
    rename_over: str = "ask",
    runs_later: Sequence[str] = (),
) -> Policy:
    return Policy(
        HOME,
        Denylist(HOME, person, OWN),
        Roots(HOME, read, write),
        RunsLater(HOME, runs_later),
        StandingRules(standing),
        link_ok=link_ok,
        rename_over=rename_over,
    )


def rule(*patterns: str, verbs: Sequence[Verb] = tuple(Verb), allow: bool = True) -> StandingRule:
    return StandingRule(patterns, frozenset(verbs), allow, " ".join(patterns), HOME)


def free(path: bytes) -> Subject:
    """Describe a name under which nothing stands."""
    return Subject(path, parent=PARENT)


def identity(ino: int) -> Identity:
    return Identity(1, ino, ino * 7, b"g%d" % ino)


def file(
    path: bytes,
    ino: int = 10,
    *,
    names: Sequence[bytes] = (),
    links: int | None = None,
    size: int = 100,
    kind: FileKind = FileKind.FILE,
) -> Subject:
    """Describe a file that stands there; *names* are its other known names."""
    return Subject(
        path,
        kind,
        identity(ino),
        PARENT,
        size,
        mtime_ns=5,
        ctime_ns=6,
        links=1 + len(names) if links is None else links,
        other_names=tuple(names),
    )


def directory(path: bytes, ino: int = 20, *, below: Below | None = None) -> Subject:
    """Describe a directory that stands there."""
    return replace(file(path, ino, kind=FileKind.DIRECTORY, links=2), below=below)


def act(
    operation: Operation,
    *subjects: Subject,
    makes: FileKind | None = None,
    session: str = SESSION,
    truncates: bool = False,
    detail: str = "",
    target: bytes = b"",
) -> Request:
    """Make a request of *operation* on *subjects*, a subject for each path that it has."""
    assert len(subjects) == (2 if TABLE[operation].two_paths else 1)
    return Request(
        operation,
        session,
        Caller(41, 40, b"/usr/bin/python3"),
        subjects,
        makes=makes or MAKES.get(operation),
        target=target,
        truncates=truncates,
        detail=detail,
    )
