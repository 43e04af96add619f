"""Bounded looks at content and at what is below a directory, for questions and for renames.

Everything here may take long and is meant to run in a thread, on descriptors that the caller
holds open meanwhile. Each look has a bound, and says so when it met it.
"""

from __future__ import annotations

import os
import stat

from lamfuse.core import paths
from lamfuse.core.target import Below
from lamfuse.tree import syscalls

__all__ = ["count_files", "count_lines", "leading_climb", "look_below"]

#: Line counts are bounded work: bigger files are only measured in bytes.
_COUNTED_BYTES = 4 * 1024 * 1024
_BINARY_PROBE = 8192
_CHUNK = 1 << 18
#: Files that are counted for the text of a folder question.
_COUNTED_FILES = 10_000
#: Entries that are looked through before a directory is renamed.
_BELOW = 50_000


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


def count_files(fd: int) -> int | None:
    """Return how many entries that are no directories are in and below *fd*; None: too many."""
    count = seen = 0
    pending = [syscalls.duplicate(fd)]
    try:
        while pending:
            dirfd = pending.pop()
            try:
                for name, kind, _ in syscalls.scan(dirfd):
                    seen += 1
                    count += kind != stat.S_IFDIR
                    if seen > _COUNTED_FILES:
                        return None
                    if kind == stat.S_IFDIR:
                        _push(pending, dirfd, name)
            finally:
                syscalls.close(dirfd)
        return count
    finally:
        for dirfd in pending:
            syscalls.close(dirfd)


def look_below(fd: int) -> Below:
    """Return everything below the directory behind *fd*, as far as the bound allows.

    Directories that cannot be read make the result incomplete: what is in them is not known.
    """
    relative: list[bytes] = []
    directories: set[bytes] = set()
    inodes: set[int] = set()
    climb = 0
    pending: list[tuple[bytes, int]] = [(b"", syscalls.duplicate(fd))]
    try:
        while pending:
            prefix, dirfd = pending.pop()
            try:
                for name, kind, ino in syscalls.scan(dirfd):
                    path = paths.join(prefix, name) if prefix else name
                    relative.append(path)
                    inodes.add(ino)
                    if len(relative) > _BELOW:
                        return _incomplete(relative, directories, inodes, climb)
                    if kind == stat.S_IFDIR:
                        directories.add(path)
                        pending.append((path, syscalls.open_directory(dirfd, name)))
                    elif kind == stat.S_IFLNK:
                        depth = path.count(b"/")
                        climb = max(climb, leading_climb(_target(dirfd, name)) - depth)
            except OSError:
                return _incomplete(relative, directories, inodes, climb)
            finally:
                syscalls.close(dirfd)
        return Below(tuple(relative), frozenset(directories), frozenset(inodes), climb=climb)
    finally:
        for _, dirfd in pending:
            syscalls.close(dirfd)


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


def _incomplete(
    relative: list[bytes], directories: set[bytes], inodes: set[int], climb: int
) -> Below:
    return Below(tuple(relative), frozenset(directories), frozenset(inodes), False, climb)  # noqa: FBT003 - the field is named in Below


def _push(pending: list[int], dirfd: int, name: bytes) -> None:
    """Open a directory that is to be walked; one that cannot be opened is not counted into."""
    try:
        pending.append(syscalls.open_directory(dirfd, name))
    except OSError as error:
        if error.errno not in syscalls.NOT_READABLE:
            raise


def _target(dirfd: int, name: bytes) -> bytes:
    fd = syscalls.open_path(dirfd, name)
    try:
        return syscalls.read_link(fd)
    finally:
        syscalls.close(fd)
