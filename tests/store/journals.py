"""Records to write, and ways to look at a journal, for the tests of it."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lamfuse.core.operations import Operation
from lamfuse.core.records import (
    Basis,
    IntentRecord,
    StartRecord,
)
from lamfuse.store.journal import FileJournal
from lamfuse.store.journal_files import walk

__all__ = ["INTENT", "START", "broken", "closing", "content", "file_size_limit", "fill", "kinds"]

START = StartRecord("1.0", 7, b"/home/lam")
INTENT = IntentRecord("s", 1, Operation.UNLINK, (b"/home/lam/a",), Basis.ANSWER, question="k7f2")


@contextmanager
def closing(journal: FileJournal) -> Iterator[FileJournal]:
    try:
        yield journal
    finally:
        journal.close()


def kinds(path: bytes) -> list[str]:
    """Return the kinds of all records, and ``?`` for a line that cannot be read."""
    return [
        type(line.entry.record).__name__.removesuffix("Record").lower() if line.entry else "?"
        for line in walk(path)
    ]


def broken(journal: FileJournal) -> bool:
    """Ask anew: a type checker takes it for a value that never changes."""
    return journal.is_broken


def content(path: bytes) -> bytes:
    return Path(os.fsdecode(path)).read_bytes()


def fill(journal: FileJournal) -> None:
    """Append until it raises."""
    for _ in range(1000):
        journal.append(INTENT)


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Let no file of this process grow over *size* bytes: a full disk without a disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
