"""From an inode to descriptors: the one place that resolves.

A :class:`Target` is what an operation acts on: the descriptor of the directory, the name in it,
and an O_PATH descriptor of the object that stands there. Real paths are read from the kernel at
that moment, so a rename made by anybody in between is seen. No policy here.
"""

from __future__ import annotations

import errno
import stat
from collections import OrderedDict
from types import TracebackType
from typing import Self

from lamfuse.core import paths
from lamfuse.core.target import FileKind, Subject
from lamfuse.tree import syscalls
from lamfuse.tree.directories import Directories
from lamfuse.tree.inodes import Inode, Inodes
from lamfuse.tree.syscalls import Stat

__all__ = ["Target", "Tree", "kind_of"]

_KINDS = {
    stat.S_IFREG: FileKind.FILE,
    stat.S_IFDIR: FileKind.DIRECTORY,
    stat.S_IFLNK: FileKind.SYMLINK,
    stat.S_IFIFO: FileKind.FIFO,
    stat.S_IFSOCK: FileKind.SOCKET,
}
#: A path of 4,096 bytes has at most 2,048 components; a longer chain is a loop in the table.
_DEEPEST = 2100
_STALE = "it is no longer where it was seen"


def kind_of(mode: int) -> FileKind:
    """Return the kind of object that *mode* stands for."""
    return _KINDS.get(stat.S_IFMT(mode), FileKind.DEVICE)


class Target:
    """(dirfd, name) and the object there, held open. ``fd`` is -1 where nothing stands.

    ``dirfd`` is -1 for an object that was reached through an open handle and has no name any more.
    Closes its descriptors when the ``with`` block ends.
    """

    __slots__ = ("dirfd", "fd", "inode", "name")

    def __init__(self, dirfd: int, name: bytes, fd: int, inode: Inode | None) -> None:
        self.dirfd = dirfd
        self.name = name
        self.fd = fd
        self.inode = inode

    def __enter__(self) -> Self:
        """Hold the descriptors."""
        return self

    def __exit__(
        self,
        exception: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close them."""
        for fd in (self.dirfd, self.fd):
            if fd >= 0:
                syscalls.close(fd)
        self.dirfd = self.fd = -1

    def path(self) -> bytes:
        """Return the real path of the name, as it is now."""
        if self.dirfd < 0:
            return syscalls.real_path(self.fd)
        return paths.join(syscalls.real_path(self.dirfd), self.name)

    def stat(self) -> Stat:
        """Return what the held object is now."""
        return syscalls.fstat(self.fd)

    def stands(self) -> bool:
        """Whether the name still leads to the held object (or, without one, to nothing).

        What is held without a name stands.
        """
        if self.dirfd < 0:
            return True
        try:
            there = syscalls.stat_at(self.dirfd, self.name)
        except FileNotFoundError:
            return self.fd < 0
        if self.fd < 0:
            return False
        held = self.stat()
        return (held.dev, held.ino) == (there.dev, there.ino)

    def refresh(self) -> None:
        """Look at the name again, and hold what stands there now."""
        if self.dirfd < 0:
            return
        if self.fd >= 0:
            syscalls.close(self.fd)
            self.fd = -1
        try:
            self.fd = syscalls.open_path(self.dirfd, self.name)
        except FileNotFoundError:
            self.fd = -1

    def subject(self, names: tuple[bytes, ...] = ()) -> Subject:
        """Describe the object (or the free name) as it is now.

        *names* are its other known names.
        """
        path = self.path()
        parent = None
        if self.dirfd >= 0:
            parent = syscalls.identity(self.dirfd, syscalls.fstat(self.dirfd))
        if self.fd < 0:
            return Subject(path, parent=parent)
        seen = self.stat()
        return Subject(
            path,
            kind_of(seen.mode),
            syscalls.identity(self.fd, seen),
            parent,
            seen.size,
            seen.mtime_ns,
            seen.ctime_ns,
            seen.links,
            other_names=tuple(name for name in names if name != path),
            unlinked=seen.links == 0,
        )


class Tree:
    """The backing tree as the kernel's node ids name it.

    *home* is an O_PATH descriptor of the directory that the mount shows; it belongs to the tree.
    At most *open_directories* directories and *nameless* objects without a name are held open.
    """

    def __init__(self, home: int, *, open_directories: int, nameless: int) -> None:
        self.home = home
        self.inodes = Inodes(syscalls.fstat(home))
        self.directories = Directories(open_directories)
        self._most_nameless = nameless
        self._nameless: OrderedDict[Inode, int] = OrderedDict()
        self.directories.add_anchor(self.inodes.root, home)

    def inode(self, nodeid: int) -> Inode:
        """Return the inode *nodeid*; ESTALE for one that is not known."""
        inode = self.inodes.get(nodeid)
        if inode is None:
            raise OSError(errno.ESTALE, _STALE)
        return inode

    def directory_path(self, inode: Inode) -> bytes:
        """Return where the directory *inode* really is now."""
        return syscalls.real_path(self.directories.fd(inode))

    def shown_path(self, inode: Inode) -> bytes | None:
        """Return where the kernel takes the directory *inode* to be; None when that is unknown.

        It is another place than the real one after a move that was not made through the view.
        """
        names: list[bytes] = []
        while not self.directories.is_anchor(inode):
            if inode.parent is None or len(names) > _DEEPEST:
                return None
            names.append(inode.name)
            inode = inode.parent
        return paths.join(self.directory_path(inode), b"/".join(reversed(names)))

    def entry(self, parent: Inode, name: bytes) -> Target:
        """Return the target for *name* in *parent*, whether or not something stands there."""
        dirfd = syscalls.duplicate(self.directories.fd(parent))
        target = Target(dirfd, name, -1, parent)
        try:
            target.refresh()
        except BaseException:
            target.__exit__(None, None, None)
            raise
        return target

    def directory(self, inode: Inode) -> Target:
        """Return the target for the directory *inode* itself, with the place where it was found.

        An anchor has no place.
        """
        fd = syscalls.duplicate(self.directories.fd(inode))
        target = Target(-1, inode.name, fd, inode)
        try:
            if inode.parent is not None and not self.directories.is_anchor(inode):
                target.dirfd = syscalls.duplicate(self.directories.fd(inode.parent))
        except BaseException:
            target.__exit__(None, None, None)
            raise
        return target

    def known_paths(self, inode: Inode) -> tuple[bytes, ...]:
        """Return the real paths of every known name that still leads to *inode*."""
        found = []
        for parent, name in inode.names():
            try:
                dirfd = self.directories.fd(parent)
                seen = syscalls.stat_at(dirfd, name)
            except OSError as error:
                if error.errno not in _NOT_THERE:
                    raise
            else:
                if inode.is_object(seen):
                    found.append(paths.join(syscalls.real_path(dirfd), name))
                    continue
            inode.drop_name(parent, name)
        return tuple(found)

    def keep_nameless(self, inode: Inode, fd: int) -> None:
        """Hold an object whose last name was removed, for those who still have it open.

        *fd* stays the caller's. The kernel opens FIFOs and directories without a handle of ours.
        """
        if inode in self._nameless:
            return
        self._nameless[inode] = syscalls.duplicate(fd)
        while len(self._nameless) > self._most_nameless:
            syscalls.close(self._nameless.popitem(last=False)[1])

    def nameless(self, inode: Inode) -> int | None:
        """Return a descriptor of an object that has no name any more, if it is held."""
        fd = self._nameless.get(inode)
        if fd is not None and self.inodes_match(inode, fd):
            return fd
        return None

    def inodes_match(self, inode: Inode, fd: int) -> bool:
        """Whether *fd* still refers to the object that *inode* stands for."""
        return inode.is_object(syscalls.fstat(fd))

    def forget(self, inode: Inode) -> None:
        """Let go of what is held for an inode that the kernel knows no longer."""
        self.directories.forget(inode)
        fd = self._nameless.pop(inode, None)
        if fd is not None:
            syscalls.close(fd)

    def close(self) -> None:
        """Close every descriptor of the tree."""
        self.directories.close()
        for fd in self._nameless.values():
            syscalls.close(fd)
        self._nameless.clear()


_NOT_THERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ESTALE})
