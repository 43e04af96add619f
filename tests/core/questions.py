"""Questions and refusals by hand, for the tests of their wording."""

from __future__ import annotations

from dataclasses import replace

from lamfuse.core.approval import Offer, Text
from lamfuse.core.roots import Roots
from lamfuse.core.target import Below, FileKind, Request, Subject
from lamfuse.core.wording import describe
from tests.core import acts
from tests.core.acts import DOWNLOADS, HOME

__all__ = [
    "DAYS",
    "DRAFT",
    "NEW",
    "NOTES",
    "NOW",
    "REPORT",
    "ROOTS",
    "SECOND",
    "SHADOW",
    "file",
    "folder",
    "text",
]

NOW = 10**18
SECOND = 1_000_000_000
DAYS = 86400 * SECOND
REPORT = DOWNLOADS + b"/report.md"

ROOTS = Roots(HOME, (b"/srv/docs",), (DOWNLOADS, b"/srv/out"))
#: In a write root, in home only, and outside.
DRAFT, NEW = DOWNLOADS + b"/draft.md", DOWNLOADS + b"/new.md"
NOTES = HOME + b"/Documents/notes.md"
SHADOW = b"/etc/shadow"


def file(
    path: bytes = REPORT,
    *,
    size: int = 1240,
    lines: int | None = 40,
    age: int = 3 * DAYS,
    names: tuple[bytes, ...] = (),
    links: int | None = None,
    kind: FileKind = FileKind.FILE,
) -> Subject:
    """Describe a file that was changed *age* nanoseconds before now."""
    subject = acts.file(path, names=names, links=links, size=size, kind=kind)
    return replace(subject, lines=lines, mtime_ns=NOW - age)


def folder(path: bytes, *below: bytes) -> Subject:
    """Describe a folder that was changed a day before now."""
    found = Below(below) if below else None
    return replace(acts.directory(path, below=found), mtime_ns=NOW - DAYS)


def text(
    request: Request,
    *,
    runs_later: tuple[bytes, ...] = (),
    offers: tuple[Offer, ...] = (),
    new_folders: tuple[bytes, ...] = (),
) -> Text:
    """Put *request* into words as question ``k7f2``."""
    return describe(
        request,
        HOME,
        NOW,
        question_id="k7f2",
        runs_later=runs_later,
        offers=offers,
        new_folders=new_folders,
    )
