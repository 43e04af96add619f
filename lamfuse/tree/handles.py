"""Open files and directories, by the number that the kernel got for them.

A handle owns its descriptor. A write handle remembers what it was opened under (the epoch of its
session's ledger): when that is over, the next write has to be decided again.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass

from lamfuse.tree import syscalls
from lamfuse.tree.inodes import Inode

__all__ = ["DirectoryHandle", "FileHandle", "Handles"]


@dataclass(slots=True, eq=False)
class FileHandle:
    """An open file. ``session`` and ``tid`` are who opened it; ``epoch`` -1 means revoked.

    ``rules`` is the generation of the rules under which its content was last found visible;
    ``path`` is where the file was when its writing was allowed.
    """

    inode: Inode
    fd: int
    flags: int
    session: str
    epoch: int
    tid: int = 0
    rules: int = 0
    path: bytes = b""

    @property
    def writes(self) -> bool:
        """Whether it was opened for writing."""
        return self.flags & os.O_ACCMODE != os.O_RDONLY

    @property
    def maps(self) -> bool:
        """Whether a mapping that is written to can stand on it."""
        return self.flags & os.O_ACCMODE in {os.O_RDWR, os.O_ACCMODE}

    @property
    def appends(self) -> bool:
        """Whether every write of the caller goes to the end."""
        return bool(self.flags & os.O_APPEND)


@dataclass(slots=True, eq=False)
class DirectoryHandle:
    """An open directory, who opened it, and the names in it when the reading began.

    None: it has not begun.
    """

    inode: Inode
    session: str
    names: list[bytes] | None = None


class Handles:
    """All open handles of a mount: files (*most* of them), directories, and whatever else."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._files = 0
        self._handles: dict[int, object] = {}
        self._next = 1

    def __len__(self) -> int:
        """Return how many handles are open."""
        return len(self._handles)

    def check_room(self) -> None:
        """Raise ENFILE where no further file can be opened: the rest needs descriptors as well."""
        if self._files >= self._most:
            raise OSError(errno.ENFILE, "too many files are open in the view")

    def get(self, number: int) -> object:
        """Return the open handle *number*."""
        return self._handles[number]

    def add(self, handle: object) -> int:
        """Enter *handle* and return its number."""
        number = self._next
        self._next += 1
        self._handles[number] = handle
        if isinstance(handle, FileHandle):
            self._files += 1
            if handle.inode.handles is None:
                handle.inode.handles = []
            handle.inode.handles.append(handle)
        return number

    def file(self, number: int) -> FileHandle:
        """Return the open file *number*; KeyError or TypeError would be our own bug."""
        handle = self._handles[number]
        if not isinstance(handle, FileHandle):
            raise TypeError(f"handle {number} is not a file")
        return handle

    def directory(self, number: int) -> DirectoryHandle:
        """Return the open directory *number*."""
        handle = self._handles[number]
        if not isinstance(handle, DirectoryHandle):
            raise TypeError(f"handle {number} is not a directory")
        return handle

    def release(self, number: int) -> object:
        """Take the handle out and close its descriptor."""
        handle = self._handles.pop(number)
        if isinstance(handle, FileHandle):
            self._files -= 1
            if handle.inode.handles is not None:
                handle.inode.handles.remove(handle)
                handle.inode.handles = handle.inode.handles or None
            syscalls.close(handle.fd)
        return handle

    def writers(self) -> Iterator[FileHandle]:
        """Yield every file that is open for writing."""
        for handle in tuple(self._handles.values()):
            if isinstance(handle, FileHandle) and handle.writes:
                yield handle

    def of(self, inode: Inode) -> Iterator[FileHandle]:
        """Yield the open files on *inode*."""
        for handle in inode.handles or ():
            if isinstance(handle, FileHandle):
                yield handle

    def close(self) -> None:
        """Close every descriptor."""
        for number in tuple(self._handles):
            self.release(number)
