"""The inodes that the kernel knows, by lookup count.

A record says what the kernel may still refer to: which object (device, inode number), and under
which (parent, name) it was seen. It holds no descriptor of its own: files are opened through
their parent when needed, and directories through a bounded cache
(:mod:`lamfuse.tree.directories`).

Node ids. The node id of an object is its own inode number, so that tools which remember inode
numbers (git does) see the real ones. Where that number is taken by an object of another device,
or is one of the two that FUSE reserves, it gets a number from a range of its own. When an inode
number is used again by another object, the record becomes that object and has another generation,
which makes the kernel drop what it knew.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator

from lamfuse.core.errors import InternalError
from lamfuse.tree.syscalls import Stat

__all__ = ["Inode", "Inodes"]

ROOT = 1
#: Node ids that are made up start here: no file system in use numbers its inodes up there.
_OWN_NUMBERS = 1 << 62
_RESERVED = frozenset({0, ROOT})


class Inode:
    """One object that the kernel knows.

    ``parent``/``name`` is where it was seen last; ``others`` holds further names of the same
    object. ``lookups`` counts what the kernel has not forgotten yet. ``handles`` are the open
    handles on it. ``size`` is the size that the kernel was last told. ``verified`` is the real
    path at which a directory was found to be visible; it is dropped when the rules change.
    """

    __slots__ = (
        "birth_ns",
        "dev",
        "generation",
        "handles",
        "ino",
        "kind",
        "lookups",
        "mount",
        "name",
        "nodeid",
        "others",
        "parent",
        "size",
        "verified",
    )

    def __init__(self, nodeid: int, generation: int, seen: Stat) -> None:
        self.nodeid = nodeid
        self.dev = seen.dev
        self.ino = seen.ino
        self.lookups = 0
        self.handles: list[object] | None = None
        self.become(seen, generation)

    def become(self, seen: Stat, generation: int) -> None:
        """Stand for another object with the same number from now on."""
        self.generation = generation
        self.kind = stat.S_IFMT(seen.mode)
        self.birth_ns = seen.birth_ns
        self.mount = seen.mount
        self.size = seen.size
        self.verified: bytes | None = None
        self.parent: Inode | None = None
        self.name = b""
        self.others: set[tuple[Inode, bytes]] | None = None

    def is_object(self, seen: Stat) -> bool:
        """Tell whether *seen* is this very object."""
        return (
            self.ino == seen.ino
            and self.dev == seen.dev
            and self.kind == stat.S_IFMT(seen.mode)
            and self.birth_ns == seen.birth_ns
        )

    @property
    def is_directory(self) -> bool:
        """Whether it is a directory."""
        return self.kind == stat.S_IFDIR

    def names(self) -> Iterator[tuple[Inode, bytes]]:
        """Yield every (parent, name) under which the object was seen, the latest first.

        Names may be dropped meanwhile: it is what they are now that is gone through.
        """
        known = [] if self.parent is None else [(self.parent, self.name)]
        yield from (*known, *(self.others or ()))

    def add_name(self, parent: Inode, name: bytes) -> None:
        """Remember that the object was seen as *name* in *parent*.

        A directory has one place only.
        """
        if self.parent is parent and self.name == name:
            return
        if self.parent is not None and not self.is_directory:
            if self.others is None:
                self.others = set()
            self.others.add((self.parent, self.name))
            self.others.discard((parent, name))
        self.parent = parent
        self.name = name

    def drop_name(self, parent: Inode, name: bytes) -> None:
        """Forget that the object was seen as *name* in *parent*."""
        if self.others is not None:
            self.others.discard((parent, name))
        if self.parent is parent and self.name == name:
            if self.others:
                self.parent, self.name = self.others.pop()
            else:
                self.parent, self.name = None, b""
        if not self.others:
            self.others = None


class Inodes:
    """The table. *root* is the stat of the directory that the mount shows."""

    def __init__(self, root: Stat) -> None:
        self._device = root.dev
        self._by_ino: dict[int, Inode] = {}
        self._by_key: dict[tuple[int, int], Inode] = {}
        self._by_nodeid: dict[int, Inode] = {}
        self._next_number = _OWN_NUMBERS
        self._generation = 1
        self.root = Inode(ROOT, 0, root)
        self.root.lookups = 1
        self._enter(self.root)

    def __len__(self) -> int:
        """Return how many objects the kernel knows."""
        return len(self._by_nodeid)

    def __iter__(self) -> Iterator[Inode]:
        """Yield every inode that the kernel knows."""
        return iter(tuple(self._by_nodeid.values()))

    def get(self, nodeid: int) -> Inode | None:
        """Return the inode with *nodeid*, or None for one that the kernel should not know."""
        return self._by_nodeid.get(nodeid)

    def find(self, dev: int, ino: int) -> Inode | None:
        """Return the known inode of an object, or None."""
        if dev == self._device:
            return self._by_ino.get(ino)
        return self._by_key.get((dev, ino))

    def seen(self, stat: Stat, parent: Inode, name: bytes) -> Inode:
        """Return the inode for what was just seen as *name* in *parent*; counts no lookup."""
        inode = self.find(stat.dev, stat.ino)
        if inode is None:
            inode = self._new(stat)
        elif not inode.is_object(stat):
            self._generation += 1
            inode.become(stat, self._generation)
        inode.add_name(parent, name)
        return inode

    def made_up(self, stat: Stat) -> Inode:
        """Return a new inode that stands for no file.

        It can be looked up, and is never forgotten.
        """
        inode = Inode(self._own_number(), 0, stat)
        inode.lookups = 1
        self._by_nodeid[inode.nodeid] = inode
        return inode

    def forget(self, nodeid: int, count: int) -> Inode | None:
        """Take *count* lookups off; returns the inode when the kernel knows it no longer."""
        inode = self._by_nodeid.get(nodeid)
        if inode is None or nodeid == ROOT:
            return None
        if count > inode.lookups:
            raise InternalError(f"inode {nodeid}: {count} forgotten of {inode.lookups}")
        inode.lookups -= count
        if inode.lookups or inode.handles:
            return None
        self.remove(inode)
        return inode

    def drop_unknown(self, inode: Inode) -> None:
        """Take *inode* out again if the kernel was not told of it after all."""
        if not inode.lookups and not inode.handles:
            self.remove(inode)

    def remove(self, inode: Inode) -> None:
        """Take *inode* out of the table."""
        if self._by_nodeid.get(inode.nodeid) is inode:
            del self._by_nodeid[inode.nodeid]
        self._drop_key(inode)

    def _new(self, stat: Stat) -> Inode:
        nodeid = stat.ino
        if nodeid in _RESERVED or nodeid >= _OWN_NUMBERS or nodeid in self._by_nodeid:
            nodeid = self._own_number()
        inode = Inode(nodeid, self._generation, stat)
        self._enter(inode)
        return inode

    def _own_number(self) -> int:
        self._next_number += 1
        return self._next_number

    def _enter(self, inode: Inode) -> None:
        self._by_nodeid[inode.nodeid] = inode
        if inode.dev == self._device:
            self._by_ino[inode.ino] = inode
        else:
            self._by_key[inode.dev, inode.ino] = inode

    def _drop_key(self, inode: Inode) -> None:
        if self.find(inode.dev, inode.ino) is inode:
            if inode.dev == self._device:
                del self._by_ino[inode.ino]
            else:
                del self._by_key[inode.dev, inode.ino]
