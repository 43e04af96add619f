"""Bounded looks at content and at what is below a directory, for questions and for renames.

Everything here may take long and is meant to run in a thread, on descriptors that the caller
holds open meanwhile. Each look has a bound, and says so when it met it.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator
from contextlib import closing, suppress
from typing import NamedTuple

from lamfuse.core import paths
from lamfuse.core.target import Below, FileId, Stamp
from lamfuse.tree import syscalls

__all__ = ["count_lines", "leading_climb", "list_files", "look_below"]

#: Line counts are bounded work: bigger files are only measured in bytes.
_COUNTED_BYTES = 4 * 1024 * 1024
_BINARY_PROBE = 8192
_CHUNK = 1 << 18
#: Files that are counted for the text of a folder question.
_COUNTED_FILES = 10_000
#: Entries that are looked through before a directory is renamed.
_BELOW = 50_000
#: Entries of a directory that are compared with what was born in the turn.
_STAMPED = 2_000


def count_lines(fd: int) -> int | None:
    """Return the number of lines of the regular file behind *fd*.

    O_PATH, None if it is not counted.

    Binary files (a NUL in the first 8 KB), files over 4 MB and unreadable ones are not counted. A
    last line without newline counts.
    """
    try:
        if syscalls.fstat(fd).size > _COUNTED_BYTES:
            return None
        opened = syscalls.reopen(fd, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        lines, offset, last = 0, 0, b"\n"
        while chunk := syscalls.read(opened, _CHUNK, offset):
            if not offset and b"\0" in chunk[:_BINARY_PROBE]:
                return None
            lines += chunk.count(b"\n")
            offset += len(chunk)
            last = chunk[-1:]
            if offset > _COUNTED_BYTES:
                return None
        return lines + (last != b"\n")
    except OSError:
        return None
    finally:
        syscalls.close(opened)


def list_files(fd: int) -> frozenset[FileId] | None:
    """Return everything in and below *fd* that is no directory; None: too many.

    Directories that cannot be read, and other file systems, are not looked into.
    """
    files: set[FileId] = set()
    with closing(_entries(fd, skips=True)) as entries:
        for seen, entry in enumerate(entries, start=1):
            if seen > _COUNTED_FILES:
                return None
            if entry.kind == stat.S_IFDIR:
                continue
            with suppress(FileNotFoundError):  # gone meanwhile
                there = syscalls.stat_at(entry.dirfd, entry.name)
                files.add((there.dev, there.ino, there.birth_ns))
    return frozenset(files)


def look_below(fd: int) -> Below:
    """Return everything below the directory behind *fd*, as far as the bound allows.

    Directories that cannot be read, and other file systems, make the result incomplete: what is in
    them is not known.
    """
    relative: list[bytes] = []
    directories: set[bytes] = set()
    inodes: set[int] = set()
    stamps: set[Stamp] = set()
    links: list[tuple[int, bytes]] = []
    complete = False
    with closing(_entries(fd, skips=False)) as entries, suppress(OSError):
        for entry in entries:
            relative.append(entry.path)
            inodes.add(entry.ino)
            if len(relative) <= _STAMPED:
                stamps.add(_stamp(entry))
            if len(relative) > _BELOW:
                break
            if entry.kind == stat.S_IFDIR:
                directories.add(entry.path)
            elif entry.kind == stat.S_IFLNK:
                links.append((entry.path.count(b"/"), _target(entry.dirfd, entry.name)))
        else:
            complete = True
    return Below(
        tuple(relative),
        frozenset(directories),
        frozenset(inodes),
        complete,
        climb=max((0, *(leading_climb(target) - depth for depth, target in links))),
        absolute=frozenset(target for _, target in links if target.startswith(b"/")),
        winds=any(_winds(target) for _, target in links),
        stamps=frozenset(stamps) if len(relative) <= _STAMPED else None,
    )


def leading_climb(target: bytes) -> int:
    """Return how many ``..`` a relative link target begins with; 0 for an absolute one."""
    if target.startswith(b"/"):
        return 0
    count = 0
    for component in target.split(b"/"):
        if component == b"..":
            count += 1
        elif component not in {b"", b"."}:
            break
    return count


def _stamp(entry: _Entry) -> Stamp:
    seen = syscalls.stat_at(entry.dirfd, entry.name)
    file_id = seen.dev, seen.ino, seen.birth_ns
    return (file_id, -1, -1) if stat.S_ISDIR(seen.mode) else (file_id, seen.ctime_ns, seen.size)


def _winds(target: bytes) -> bool:
    """Whether a relative target has ``..`` behind a name: the view shows it from its top."""
    if target.startswith(b"/"):
        return False
    named = [name for name in target.split(b"/") if name not in {b"", b"."}]
    return b".." in named[leading_climb(target) :]


class _Entry(NamedTuple):
    """An entry below a directory: ``path`` from there, ``dirfd`` and ``name`` where it stands."""

    path: bytes
    dirfd: int
    name: bytes
    kind: int
    ino: int


def _entries(fd: int, *, skips: bool) -> Generator[_Entry, None, None]:
    """Yield what is in and below the directory behind *fd*, with one directory open at a time.

    With *skips* whatever cannot be entered below it is left out, else the OSError is raised.
    """
    pending = [b""]
    while pending:
        prefix = pending.pop()
        try:
            dirfd = syscalls.open_here(fd, prefix)
        except OSError as error:
            if not (skips and prefix and error.errno in _NOT_ENTERED):
                raise
            continue
        try:
            for name, kind, ino in syscalls.scan(dirfd):
                path = paths.join(prefix, name) if prefix else name
                if kind == stat.S_IFDIR:
                    pending.append(path)
                yield _Entry(path, dirfd, name, kind, ino)
        except PermissionError:
            if not (skips and prefix):
                raise
        finally:
            syscalls.close(dirfd)


def _target(dirfd: int, name: bytes) -> bytes:
    fd = syscalls.open_path(dirfd, name)
    try:
        return syscalls.read_link(fd)
    finally:
        syscalls.close(fd)


_NOT_ENTERED = syscalls.NOT_READABLE | {errno.EXDEV, errno.ELOOP, errno.ENAMETOOLONG}
