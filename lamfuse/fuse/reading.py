"""The handlers that change nothing: two thirds of all requests.

For them the straight line is one lookup of a descriptor, one look at its path, and one system call.
"""

from __future__ import annotations

import errno
import os
import stat

import pyfuse3
import trio

from lamfuse.fuse.context import Mounted
from lamfuse.fuse.examination import is_writable
from lamfuse.fuse.virtual import NAME, VirtualHandle
from lamfuse.tree import syscalls
from lamfuse.tree.handles import FileHandle
from lamfuse.tree.inodes import Inode

__all__ = [
    "access",
    "forget",
    "getattr_of",
    "getxattr",
    "listxattr",
    "lookup",
    "open_for_reading",
    "read",
    "readlink",
    "statfs",
]

_CAPABILITY = b"security.capability"


def lookup(mounted: Mounted, nodeid: int, name: bytes, session: str) -> pyfuse3.EntryAttributes:
    """Return the attributes of the visible entry *name*; counts one lookup."""
    parent = mounted.tree.inode(nodeid)
    if parent in mounted.virtual:
        return _virtual_entry(mounted, mounted.virtual.lookup(parent, name), session)
    if nodeid == pyfuse3.ROOT_INODE and name == NAME:
        return _virtual_entry(mounted, mounted.virtual.top, session)
    dirfd, directory, seen = mounted.view.child(parent, name)
    inode, entry = mounted.entry(parent, name, seen, dirfd, directory)
    inode.lookups += 1
    return entry


def _virtual_entry(mounted: Mounted, inode: Inode, session: str) -> pyfuse3.EntryAttributes:
    if inode in mounted.virtual:
        entry = mounted.attributes(inode, mounted.virtual.stat(inode, session))
    else:
        fd, _ = mounted.view.directory(inode)
        entry = mounted.attributes(inode, syscalls.fstat(fd))
    inode.lookups += 1
    return entry


def forget(mounted: Mounted, pairs: list[tuple[int, int]]) -> None:
    """Take lookups off; what the kernel knows no longer is dropped."""
    for nodeid, count in pairs:
        inode = mounted.tree.inodes.forget(nodeid, count)
        if inode is not None:
            mounted.tree.forget(inode)


def getattr_of(mounted: Mounted, nodeid: int, session: str) -> pyfuse3.EntryAttributes:
    """Return the attributes of a visible object, or of one that is only held open any more."""
    inode = mounted.tree.inode(nodeid)
    if inode in mounted.virtual:
        return mounted.attributes(inode, mounted.virtual.stat(inode, session))
    try:
        dirfd, directory, name, seen = mounted.view.locate(inode)
    except OSError as error:
        if error.errno != errno.ESTALE:
            raise
        mounted.refuse_hidden(inode)
        fd = mounted.nameless(inode)
        if fd is None:
            raise
        return mounted.attributes(inode, syscalls.fstat(fd))
    return mounted.attributes(inode, seen, (dirfd, directory, name))


def readlink(mounted: Mounted, nodeid: int) -> bytes:
    """Return what the link says in the view; EACCES where following it would leave the view."""
    inode = mounted.tree.inode(nodeid)
    if stat.S_ISREG(inode.kind) or inode.is_directory:
        raise OSError(errno.ESTALE, "not a link any more")
    dirfd, directory, name, _ = mounted.view.locate(inode)
    text = mounted.view.link_text(inode, dirfd, directory, name)
    if text is None:
        raise PermissionError(errno.EACCES, "the link leads out of the view")
    return text


def open_for_reading(
    mounted: Mounted, nodeid: int, flags: int, session: str, tid: int
) -> pyfuse3.FileInfo:
    """Open a visible file for reading, by the descriptor that was judged."""
    inode = mounted.tree.inode(nodeid)
    if inode in mounted.virtual:
        number = mounted.handles.add(mounted.virtual.open(inode, session))
        return pyfuse3.FileInfo(fh=pyfuse3.FileHandleT(number), direct_io=True)
    mounted.handles.check_room()
    handle = FileHandle(inode, _reader(mounted, inode), flags, session, -1, tid, mounted.view.rules)
    number = mounted.handles.add(handle)
    return pyfuse3.FileInfo(fh=pyfuse3.FileHandleT(number))


def _reader(mounted: Mounted, inode: Inode) -> int:
    try:
        with mounted.view.open_visible(inode) as target:
            if target.stat().links:
                return syscalls.reopen(target.fd, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        if error.errno != errno.ESTALE:
            raise
    return mounted.reader_of_replaced(inode)


async def read(mounted: Mounted, fh: int, offset: int, size: int) -> bytes:
    """Read from an open file: from the page cache at once, from the disk in a thread."""
    handle = mounted.handles.get(fh)
    if isinstance(handle, VirtualHandle):
        return handle.content[offset : offset + size]
    file = mounted.handles.file(fh)
    if file.rules != mounted.view.rules:
        _recheck(mounted, file)
    cached = syscalls.read_cached(file.fd, size, offset)
    if cached is not None:
        return cached
    return await trio.to_thread.run_sync(syscalls.read, file.fd, size, offset)


def _recheck(mounted: Mounted, file: FileHandle) -> None:
    """After a reload: a handle on what is hidden now reads nothing any more."""
    if syscalls.fstat(file.fd).links and not mounted.view.policy.is_readable(
        syscalls.real_path(file.fd), is_dir=False
    ):
        raise PermissionError(errno.EACCES, "hidden since it was opened")
    file.rules = mounted.view.rules


def statfs(mounted: Mounted) -> pyfuse3.StatvfsData:
    """Return the figures of home's file system."""
    figures = syscalls.statvfs(mounted.tree.home)
    result = pyfuse3.StatvfsData()
    for name in (
        "f_bsize", "f_frsize", "f_blocks", "f_bfree", "f_bavail", "f_files", "f_ffree", "f_favail",
        "f_namemax",
    ):  # fmt: skip
        setattr(result, name, getattr(figures, name))
    return result


def getxattr(mounted: Mounted, nodeid: int, name: bytes) -> bytes:
    """Return an extended attribute.

    The capability that the kernel asks for at each write is none.
    """
    inode = mounted.tree.inode(nodeid)
    if name == _CAPABILITY or inode in mounted.virtual:
        raise OSError(errno.ENODATA, "no such attribute")
    with mounted.open_object(inode) as target:
        return syscalls.get_xattr(target.fd, name)


def listxattr(mounted: Mounted, nodeid: int) -> list[bytes]:
    """Return the names of the extended attributes of a visible object."""
    inode = mounted.tree.inode(nodeid)
    if inode in mounted.virtual:
        return []
    with mounted.open_object(inode) as target:
        return syscalls.list_xattrs(target.fd)


def access(mounted: Mounted, nodeid: int, mode: int) -> bool:
    """Tell the truth: EROFS for writing outside the write roots.

    Else what the backing kernel says.
    """
    inode = mounted.tree.inode(nodeid)
    if inode in mounted.virtual:
        if mode & os.W_OK:
            raise OSError(errno.EROFS, "virtual")
        return inode.is_directory or not mode & os.X_OK
    with mounted.open_object(inode) as target:
        nameless = target.dirfd < 0 and not inode.is_directory
        if mode & os.W_OK and not nameless and not is_writable(mounted.view.policy, target.path()):
            raise OSError(errno.EROFS, "not in a write root")
        return syscalls.has_access(target.fd, mode)
