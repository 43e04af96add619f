"""The directory ``.lamfuse`` at the root of the view: virtual and read-only.

It holds texts that are made when they are opened, and below ``roots/`` the extra roots at their
absolute paths. Nothing in it can be changed, whatever the write roots are.
"""

from __future__ import annotations

import errno
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from lamfuse.core import paths
from lamfuse.tree.inodes import Inode
from lamfuse.tree.resolve import Tree
from lamfuse.tree.syscalls import Stat

__all__ = ["NAME", "ROOTS", "Texts", "Virtual", "VirtualHandle"]

NAME = b".lamfuse"
ROOTS = b"roots"


@dataclass(frozen=True, slots=True)
class Texts:
    """What the files of ``.lamfuse`` say; ``refusals`` depends on the session that reads."""

    readme: Callable[[], bytes]
    policy: Callable[[], bytes]
    refusals: Callable[[str], bytes]


@dataclass(slots=True, eq=False)
class _Directory:
    inode: Inode
    parent: Inode
    children: dict[bytes, Inode] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class VirtualHandle:
    """An open text of ``.lamfuse``, as it was when it was opened."""

    content: bytes


class Virtual:
    """The virtual part of a mount, owned by *uid* and *gid*."""

    def __init__(self, tree: Tree, texts: Texts, uid: int, gid: int) -> None:
        self._tree = tree
        self._uid = uid
        self._gid = gid
        self._born_ns = time.time_ns()
        self._directories: dict[Inode, _Directory] = {}
        self._files: dict[Inode, Callable[[str], bytes]] = {}
        self.top = self._directory(tree.inodes.root)
        self._file(self.top, b"README.md", lambda _: texts.readme())
        self._file(self.top, b"policy.json", lambda _: texts.policy())
        self._file(self.top, b"refusals", texts.refusals)
        self._roots = self._child_directory(self.top, ROOTS)

    def add_root(self, path: bytes, fd: int, seen: Stat) -> Inode:
        """Show the extra root *path* below ``roots/``; *fd* then belongs to the tree.

        One that lies in another extra root is found there.
        """
        parent = self._roots
        *above, name = paths.components(path)
        for component in above:
            parent = self._child_directory(parent, component)
            if parent not in self._directories:
                break
        inode = self._tree.inodes.seen(seen, parent, name)
        inode.lookups += 1  # ours: it is never forgotten
        self._tree.directories.add_anchor(inode, fd)
        if parent in self._directories:
            self._directories[parent].children[name] = inode
        return inode

    def __contains__(self, inode: Inode) -> bool:
        """Whether *inode* is virtual itself (an extra root is not)."""
        return inode in self._directories or inode in self._files

    def lookup(self, parent: Inode, name: bytes) -> Inode:
        """Return the entry *name* of the virtual directory *parent*.

        ENOENT or ENOTDIR otherwise.
        """
        directory = self._directories.get(parent)
        if directory is None:
            raise NotADirectoryError(errno.ENOTDIR, "not a directory")
        child = directory.children.get(name)
        if child is None:
            raise FileNotFoundError(errno.ENOENT, "no such text")
        return child

    def names(self, inode: Inode) -> list[bytes]:
        """Return the names in the virtual directory *inode*; ENOTDIR for a text."""
        directory = self._directories.get(inode)
        if directory is None:
            raise NotADirectoryError(errno.ENOTDIR, "not a directory")
        return list(directory.children)

    def parent(self, inode: Inode) -> Inode:
        """Return the directory that holds the virtual directory *inode*."""
        return self._directories[inode].parent

    def open(self, inode: Inode, session: str) -> VirtualHandle:
        """Return an open text for a reader of *session*; EISDIR for a directory."""
        text = self._files.get(inode)
        if text is None:
            raise IsADirectoryError(errno.EISDIR, "a directory")
        return VirtualHandle(text(session))

    def stat(self, inode: Inode, session: str) -> Stat:
        """Return what *inode* looks like to a reader of *session*."""
        if inode in self._directories:
            return self._stat(stat.S_IFDIR | 0o555, inode.ino, 0)
        return self._stat(stat.S_IFREG | 0o444, inode.ino, len(self._files[inode](session)))

    def _directory(self, parent: Inode) -> Inode:
        inode = self._tree.inodes.made_up(self._stat(stat.S_IFDIR | 0o555, 0, 0))
        self._directories[inode] = _Directory(inode, parent)
        return inode

    def _child_directory(self, parent: Inode, name: bytes) -> Inode:
        children = self._directories[parent].children
        if name not in children:
            children[name] = self._directory(parent)
        return children[name]

    def _file(self, parent: Inode, name: bytes, text: Callable[[str], bytes]) -> None:
        inode = self._tree.inodes.made_up(self._stat(stat.S_IFREG | 0o444, 0, 0))
        self._files[inode] = text
        self._directories[parent].children[name] = inode

    def _stat(self, mode: int, ino: int, size: int) -> Stat:
        born = self._born_ns
        return Stat(
            mode=mode, links=1, uid=self._uid, gid=self._gid, rdev=0, size=size, blocks=0,
            block_size=4096, atime_ns=born, mtime_ns=born, ctime_ns=born, birth_ns=born, dev=0,
            ino=ino, mount=0,
        )  # fmt: skip
