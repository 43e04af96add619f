"""Descriptors of directories, in a bounded cache.

A directory is opened through its parent, component by component, without following a link, and it
is checked to be the object that the kernel means. Who needs a descriptor for longer than until the
next call makes a duplicate.
"""

from __future__ import annotations

import errno
from collections import OrderedDict

from lamfuse.tree import syscalls
from lamfuse.tree.inodes import Inode

__all__ = ["Directories"]


class Directories:
    """The cache. *anchors* maps inodes to descriptors that are never closed here.

    Home, extra roots.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._anchors: dict[Inode, int] = {}
        self._open: OrderedDict[Inode, int] = OrderedDict()

    def add_anchor(self, inode: Inode, fd: int) -> None:
        """Let *fd* stand for *inode* for good; it now belongs to the cache."""
        self._anchors[inode] = fd

    def is_anchor(self, inode: Inode) -> bool:
        """Whether *inode* is home or an extra root."""
        return inode in self._anchors

    def fd(self, inode: Inode) -> int:
        """Return a descriptor of the directory *inode*, good until the next call of this method.

        Raises ESTALE when the directory is no longer where it was seen, ENOTDIR when it is none.
        """
        known = self._known(inode)
        if known is not None:
            return known
        chain = [inode]
        while True:
            parent = chain[-1].parent
            if parent is None or len(chain) > _DEEPEST:
                raise OSError(errno.ESTALE, "the directory is in no known place")
            fd = self._known(parent)
            if fd is not None:
                break
            chain.append(parent)
        for step in reversed(chain):
            fd = self._open_step(fd, step)
        return fd

    def forget(self, inode: Inode) -> None:
        """Close the descriptor of *inode*, if there is one."""
        fd = self._open.pop(inode, None)
        if fd is not None:
            syscalls.close(fd)

    def forget_all(self) -> None:
        """Close every descriptor that was only kept for the next use."""
        for fd in self._open.values():
            syscalls.close(fd)
        self._open.clear()

    def close(self) -> None:
        """Close everything, the anchors too."""
        for fd in (*self._open.values(), *self._anchors.values()):
            syscalls.close(fd)
        self._open.clear()
        self._anchors.clear()

    def _known(self, inode: Inode) -> int | None:
        fd = self._anchors.get(inode)
        if fd is not None:
            return fd
        fd = self._open.get(inode)
        if fd is not None:
            self._open.move_to_end(inode)
        return fd

    def _open_step(self, dirfd: int, inode: Inode) -> int:
        try:
            fd = syscalls.open_directory(dirfd, inode.name)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise OSError(errno.ESTALE, "the directory is no longer there") from error
        try:
            seen = syscalls.fstat(fd)
            if not inode.is_object(seen):
                raise OSError(errno.ESTALE, "another directory has that name now")
        except BaseException:
            syscalls.close(fd)
            raise
        inode.mount = seen.mount
        self._open[inode] = fd
        while len(self._open) > self._capacity:
            _, oldest = self._open.popitem(last=False)
            syscalls.close(oldest)
        return fd


#: A path of 4,096 bytes has at most 2,048 components; a longer chain is a loop in the table.
_DEEPEST = 2100
