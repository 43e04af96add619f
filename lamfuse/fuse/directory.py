"""Listing: every entry with its attributes, hidden names left out.

The names are read when a reading begins (and again when it begins anew); the number of an entry
is its place in that list, so nothing is reported twice and nothing that stays is skipped.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence

import pyfuse3

from lamfuse.fuse.context import Mounted
from lamfuse.fuse.virtual import NAME
from lamfuse.tree import syscalls
from lamfuse.tree.handles import DirectoryHandle
from lamfuse.tree.inodes import Inode

__all__ = ["opendir", "readdir", "sync_directory"]

_DOTS = (b".", b"..")


def opendir(mounted: Mounted, nodeid: int, session: str) -> pyfuse3.FileHandleT:
    """Open a visible directory that the daemon may read."""
    inode = mounted.tree.inode(nodeid)
    if inode not in mounted.virtual:
        fd, _ = mounted.view.directory(inode)
        syscalls.close(syscalls.reopen_directory(fd))
    return pyfuse3.FileHandleT(mounted.handles.add(DirectoryHandle(inode, session)))


def readdir(mounted: Mounted, fh: int, start: int, token: pyfuse3.ReaddirToken) -> None:
    """Report entries from number *start* on, until the kernel's buffer is full."""
    handle = mounted.handles.directory(fh)
    names = handle.names
    if start == 0 or names is None:
        names = handle.names = _names(mounted, handle.inode)
    if handle.inode in mounted.virtual:
        _reply_virtual(mounted, handle, names, start, token)
    else:
        _reply(mounted, handle, names, start, token)


def _names(mounted: Mounted, inode: Inode) -> list[bytes]:
    if inode in mounted.virtual:
        return [*_DOTS, *mounted.virtual.names(inode)]
    fd, _ = mounted.view.directory(inode)
    names = [*_DOTS, *syscalls.list_names(fd)]
    if inode.nodeid == pyfuse3.ROOT_INODE:
        names = [name for name in names if name != NAME]
        names.append(NAME)
    return names


def _reply(
    mounted: Mounted,
    handle: DirectoryHandle,
    names: Sequence[bytes],
    start: int,
    token: pyfuse3.ReaddirToken,
) -> None:
    view, inodes, parent = mounted.view, mounted.tree.inodes, handle.inode
    dirfd, directory = view.directory(parent)
    for number in range(start, len(names)):
        name = names[number]
        if name in _DOTS:
            entry = _dot(mounted, parent, name, handle.session)
            if not pyfuse3.readdir_reply(token, pyfuse3.FileNameT(name), entry, number + 1):
                return
            continue
        if name == NAME and parent.nodeid == pyfuse3.ROOT_INODE:
            inode = mounted.virtual.top
            entry = mounted.attributes(inode, mounted.virtual.stat(inode, handle.session))
        else:
            try:
                seen = view.entry_stat(parent, dirfd, directory, name)
            except OSError as error:
                if error.errno not in syscalls.NOT_READABLE:
                    raise
                continue  # hidden, or gone since the names were read
            inode, entry = mounted.entry(parent, name, seen, dirfd, directory)
        if not pyfuse3.readdir_reply(token, pyfuse3.FileNameT(name), entry, number + 1):
            inodes.drop_unknown(inode)
            return
        inode.lookups += 1


def _reply_virtual(
    mounted: Mounted,
    handle: DirectoryHandle,
    names: Sequence[bytes],
    start: int,
    token: pyfuse3.ReaddirToken,
) -> None:
    virtual = mounted.virtual
    for number in range(start, len(names)):
        name = names[number]
        is_dot = name in _DOTS
        if is_dot:
            entry = _dot(mounted, handle.inode, name, handle.session)
        else:
            inode = virtual.lookup(handle.inode, name)
            entry = _stand_in(mounted, inode, handle.session)
        if not pyfuse3.readdir_reply(token, pyfuse3.FileNameT(name), entry, number + 1):
            return
        if not is_dot:
            inode.lookups += 1


def _dot(mounted: Mounted, inode: Inode, name: bytes, session: str) -> pyfuse3.EntryAttributes:
    """Return the attributes for ``.`` or ``..``; the kernel counts no lookup for them."""
    if name == b"..":
        if inode in mounted.virtual:
            inode = mounted.virtual.parent(inode)
        elif inode.parent is not None:
            inode = inode.parent
    return _stand_in(mounted, inode, session)


def _stand_in(mounted: Mounted, inode: Inode, session: str) -> pyfuse3.EntryAttributes:
    if inode in mounted.virtual:
        return mounted.attributes(inode, mounted.virtual.stat(inode, session))
    return mounted.attributes(inode, syscalls.fstat(mounted.tree.directories.fd(inode)))


def sync_directory(mounted: Mounted, fh: int) -> int:
    """Return a descriptor (the caller's to close) on which the directory can be synced, -1.

    Nothing to do.
    """
    handle = mounted.handles.directory(fh)
    if handle.inode in mounted.virtual:
        return -1
    try:
        fd, _ = mounted.view.directory(handle.inode)
        return syscalls.reopen_directory(fd)
    except OSError as error:
        if error.errno in {errno.ESTALE, errno.ENOENT}:
            return -1  # removed: nothing of it is left to be synced
        raise
