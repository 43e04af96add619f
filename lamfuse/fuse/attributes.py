"""Attributes for the kernel, from what the backing tree says."""

from __future__ import annotations

import stat

import pyfuse3

from lamfuse.tree.inodes import Inode
from lamfuse.tree.syscalls import Stat

__all__ = ["TIMEOUT_S", "fill"]

#: How long the kernel may answer by itself: changes made outside the mount show within this time.
TIMEOUT_S = 1.0


def fill(inode: Inode, seen: Stat, link_size: int | None = None) -> pyfuse3.EntryAttributes:
    """Return the attributes of *inode* as *seen*; the kernel is told its size here, so it is noted.

    Everything is real, but for the link count of a directory (1: not every entry is shown) and
    the size of a link (*link_size*: what readlink returns).
    """
    entry = pyfuse3.EntryAttributes()
    entry.st_ino = pyfuse3.InodeT(inode.nodeid)
    entry.generation = inode.generation
    entry.entry_timeout = TIMEOUT_S
    entry.attr_timeout = TIMEOUT_S
    entry.st_mode = pyfuse3.ModeT(seen.mode)
    entry.st_nlink = 1 if stat.S_ISDIR(seen.mode) else seen.links
    entry.st_uid = seen.uid
    entry.st_gid = seen.gid
    entry.st_rdev = seen.rdev
    entry.st_size = seen.size if link_size is None else link_size
    entry.st_blksize = seen.block_size
    entry.st_blocks = seen.blocks
    entry.st_atime_ns = seen.atime_ns
    entry.st_mtime_ns = seen.mtime_ns
    entry.st_ctime_ns = seen.ctime_ns
    entry.st_birthtime_ns = seen.birth_ns
    inode.size = seen.size
    return entry
