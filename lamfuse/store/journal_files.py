"""Reading the journal: its files in order, its lines, and what is wrong with them.

Nothing is ever written here, so that a person can look at a journal that is being written to.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass

from lamfuse.core.errors import JournalError
from lamfuse.core.records import Chain, Entry, RecordError, decode

__all__ = [
    "Line",
    "Verification",
    "is_current",
    "last_entry",
    "rotated_files",
    "verify",
    "walk",
]

_BLOCK = 64 * 1024


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the journal: its file, its number there (from 1), what it holds, what is wrong.

    ``entry`` is None where the line cannot be read; ``problem`` is empty where nothing is wrong.
    """

    file: bytes
    number: int
    entry: Entry | None
    problem: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What a look at the whole journal found: whole records, the head hash, and the damage.

    ``damaged`` counts the damaged lines and ``damage`` is the first of them. Lines cut off at the
    very end, and a rewrite by the same user, cannot be seen here: compare ``count`` and ``head``
    with those noted elsewhere.
    """

    count: int
    head: str
    files: tuple[bytes, ...]
    damaged: int = 0
    damage: Line | None = None


def rotated_files(path: bytes) -> list[bytes]:
    """Return the files that were set aside from the journal at *path*, oldest first."""
    parent, base = os.path.split(path)
    pattern = re.compile(re.escape(base) + rb"\.([1-9][0-9]{0,8})")
    found = [match for name in os.listdir(parent) if (match := pattern.fullmatch(name))]
    found.sort(key=lambda match: int(match[1]))
    return [parent + b"/" + match[0] for match in found]


def walk(path: bytes) -> Iterator[Line]:
    """Yield every line of the journal at *path*, oldest first; raises JournalError.

    What is appended after the start is left out.
    """
    yield from _walk(Chain(), _snapshot(path))


def verify(path: bytes) -> Verification:
    """Look at every line of the journal at *path*; a missing one holds nothing. JournalError."""
    chain = Chain()
    files = _snapshot(path)
    problems = [line for line in _walk(chain, files) if line.problem]
    return Verification(
        count=chain.count,
        head=chain.head,
        files=tuple(file for file, _ in files),
        damaged=len(problems),
        damage=problems[0] if problems else None,
    )


def is_current(fd: int, path: bytes) -> bool:
    """Whether *path* still leads to the open file: another process may have set it aside."""
    ours = os.fstat(fd)
    try:
        named = os.lstat(path)
    except FileNotFoundError:
        return False
    return (named.st_dev, named.st_ino) == (ours.st_dev, ours.st_ino)


def last_entry(fd: int, size: int) -> tuple[Entry | None, bytes, int]:
    """Return the last whole entry within the first *size* bytes of *fd*, and what stands after it.

    That is (entry or None, the bytes of a last line without newline, where they begin). Lines that
    cannot be read are stepped over.
    """
    torn, end = b"", size
    for offset, line in _backwards(fd, size):
        if offset + len(line) == size and not line.endswith(b"\n"):
            torn, end = line, offset
            continue
        try:
            return decode(line), torn, end
        except RecordError:
            continue
    return None, torn, end


def _backwards(fd: int, size: int) -> Iterator[tuple[int, bytes]]:
    """Yield (offset, line) from the last line to the first."""
    rest, start = b"", size
    while start > 0:
        step = min(_BLOCK, start)
        start -= step
        rest = os.pread(fd, step, start) + rest
        while (cut := rest.rfind(b"\n", 0, -1)) >= 0:
            yield start + cut + 1, rest[cut + 1 :]
            rest = rest[: cut + 1]
    if rest:
        yield 0, rest


def _snapshot(path: bytes) -> list[tuple[bytes, int]]:
    """Return (file, size) of all files of the journal, at a moment when nobody writes."""
    fd = -1
    try:
        fd = _open_locked(path)
        present = [(path, os.fstat(fd).st_size)] if fd >= 0 else []
        older = rotated_files(path) if os.path.isdir(os.path.dirname(path)) else []
        return [*((file, os.stat(file).st_size) for file in older), *present]
    except OSError as error:
        raise _unreadable(path, error) from error
    finally:
        if fd >= 0:
            os.close(fd)


def _open_locked(path: bytes) -> int:
    """Open the journal and keep writers out until it is closed; -1 when there is none."""
    while True:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            return -1
        try:
            _check_is_file(fd, path)
            fcntl.flock(fd, fcntl.LOCK_SH)
            if is_current(fd, path):
                return fd
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)  # it was set aside while we waited


def _check_is_file(fd: int, path: bytes) -> None:
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        raise JournalError(f"The journal {os.fsdecode(path)} is not a file.")


def _walk(chain: Chain, files: list[tuple[bytes, int]]) -> Iterator[Line]:
    for path, size in files:
        try:
            with open(path, "rb", opener=_open) as file:
                left, number = size, 0
                while left > 0 and (line := file.readline(left)):
                    left -= len(line)
                    number += 1
                    yield Line(path, number, *chain.follow(line))
        except OSError as error:
            raise _unreadable(path, error) from error


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC)


def _unreadable(path: bytes, error: OSError) -> JournalError:
    return JournalError(f"The journal {os.fsdecode(path)} cannot be read: {error.strerror}.")
