"""The only place that makes system calls on files.

Every function acts on descriptors: ``(dirfd, name)`` with a single component as name, or an
O_PATH descriptor. Nothing here follows a symbolic link, and nothing here decides anything. Errors
are OSError with the errno of the kernel. A returned descriptor belongs to the caller.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
from collections.abc import Iterator

from lamfuse.tree.statx import Stat, fstat, identity, raise_errno, stat_at

__all__ = [
    "EXCHANGE",
    "NOREPLACE",
    "NOT_READABLE",
    "Stat",
    "chmod",
    "chown",
    "close",
    "create",
    "duplicate",
    "fstat",
    "get_xattr",
    "has_access",
    "identity",
    "link",
    "list_names",
    "list_xattrs",
    "make_directory",
    "make_node",
    "make_symlink",
    "open_beneath",
    "open_directory",
    "open_here",
    "open_path",
    "open_root",
    "read",
    "read_cached",
    "read_link",
    "read_setting",
    "real_path",
    "remove_directory",
    "remove_xattr",
    "rename",
    "reopen",
    "reopen_directory",
    "scan",
    "set_times",
    "set_xattr",
    "stat_at",
    "statvfs",
    "sync",
    "truncate",
    "unlink",
    "write",
]

NOREPLACE = 1
EXCHANGE = 2

#: Errors that say that something may not be looked at, or is gone already.
NOT_READABLE = frozenset({errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.ESTALE})

_AT_EMPTY_PATH = 0x1000
_OPENAT2 = 437  # the same on every architecture; Linux 5.6
_RESOLVE_HERE = 0x01 | 0x04 | 0x08  # NO_XDEV, NO_SYMLINKS, BENEATH
_UTIME_OMIT = (1 << 30) - 2

_libc = ctypes.CDLL(None, use_errno=True)
_renameat2 = _libc.renameat2
_renameat2.argtypes = (
    ctypes.c_int,
    ctypes.c_char_p,
    ctypes.c_int,
    ctypes.c_char_p,
    ctypes.c_uint,
)
_utimensat = _libc.utimensat
_utimensat.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int)


def open_root(path: bytes) -> int:
    """Open the directory *path* once, as the anchor of everything below it (links are followed)."""
    return os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)


def open_path(dirfd: int, name: bytes) -> int:
    """Open *name* in *dirfd* as an O_PATH descriptor; a link is opened itself."""
    return os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dirfd)


def open_directory(dirfd: int, name: bytes) -> int:
    """Open the directory *name* in *dirfd* as an O_PATH descriptor; ENOTDIR for anything else."""
    return os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=dirfd)


def open_beneath(root: int, relative: bytes) -> int:
    """Open *relative* below *root* as an O_PATH descriptor.

    Component by component, following no link.
    """
    fd = os.dup(root)
    try:
        for name in relative.split(b"/") if relative else ():
            deeper = open_path(fd, name)
            os.close(fd)
            fd = deeper
    except BaseException:
        os.close(fd)
        raise
    return fd


def open_here(root: int, relative: bytes) -> int:
    """Open the directory *relative* below *root* as an O_PATH descriptor; empty: *root* itself.

    Follows no link (ELOOP) and enters no other file system (EXDEV): one that hangs could block.
    """
    how = struct.pack("=QQQ", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, 0, _RESOLVE_HERE)
    fd: int = _libc.syscall(_OPENAT2, root, relative or b".", how, len(how))
    if fd < 0:
        raise_errno()
    return fd


def reopen(fd: int, flags: int) -> int:
    """Open the very object behind the O_PATH descriptor *fd* for use; a link gives ELOOP."""
    return os.open(b"/proc/self/fd/%d" % fd, flags | os.O_CLOEXEC)


def reopen_directory(fd: int) -> int:
    """Open the directory behind the O_PATH descriptor *fd* for listing and syncing."""
    return os.open(b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=fd)


def real_path(fd: int) -> bytes:
    """Return where the object behind *fd* is right now.

    For an unlinked object the kernel adds " (deleted)": look at st_nlink first.
    """
    return os.readlink(b"/proc/self/fd/%d" % fd)


def duplicate(fd: int) -> int:
    """Return another descriptor of the same object."""
    return os.dup(fd)


def close(fd: int) -> None:
    """Close *fd*."""
    os.close(fd)


def list_names(dirfd: int) -> list[bytes]:
    """Return the names in the directory behind the O_PATH descriptor *dirfd*."""
    fd = reopen_directory(dirfd)
    try:
        return [os.fsencode(name) for name in os.listdir(fd)]
    finally:
        os.close(fd)


def scan(dirfd: int) -> Iterator[tuple[bytes, int, int]]:
    """Yield (name, type, inode number) for each entry of the directory behind *dirfd*.

    The type is S_IFDIR, S_IFLNK or S_IFREG, which here stands for everything else.
    """
    fd = reopen_directory(dirfd)
    try:
        with os.scandir(fd) as entries:
            for entry in entries:
                kind = stat.S_IFREG
                if entry.is_symlink():
                    kind = stat.S_IFLNK
                elif entry.is_dir(follow_symlinks=False):
                    kind = stat.S_IFDIR
                yield os.fsencode(entry.name), kind, entry.inode()
    finally:
        os.close(fd)


def read_link(fd: int) -> bytes:
    """Return the target of the link behind the O_PATH descriptor *fd*."""
    return os.readlink(b"", dir_fd=fd)


def has_access(fd: int, mode: int) -> bool:
    """Tell whether this process may access the object behind *fd* in *mode* (os.R_OK, ...)."""
    return os.access(b"/proc/self/fd/%d" % fd, mode, effective_ids=True)


def statvfs(fd: int) -> os.statvfs_result:
    """Return the figures of the file system that *fd* is on."""
    return os.fstatvfs(fd)


def create(dirfd: int, name: bytes, flags: int, mode: int) -> int:
    """Create the regular file *name* with O_EXCL and open it with *flags*."""
    wanted = flags | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(name, wanted, mode, dir_fd=dirfd)


def make_directory(dirfd: int, name: bytes, mode: int) -> None:
    """Create the directory *name*."""
    os.mkdir(name, mode, dir_fd=dirfd)


def make_symlink(dirfd: int, name: bytes, target: bytes) -> None:
    """Create the symbolic link *name*."""
    os.symlink(target, name, dir_fd=dirfd)


def make_node(dirfd: int, name: bytes, mode: int) -> None:
    """Create the FIFO, socket or empty regular file *name*; *mode* holds the type."""
    os.mknod(name, mode, 0, dir_fd=dirfd)


def link(fd: int, dirfd: int, name: bytes) -> None:
    """Give the object behind the O_PATH descriptor *fd* one more name."""
    os.link(b"/proc/self/fd/%d" % fd, name, dst_dir_fd=dirfd, follow_symlinks=True)


def unlink(dirfd: int, name: bytes) -> None:
    """Remove the name of something that is not a directory."""
    os.unlink(name, dir_fd=dirfd)


def remove_directory(dirfd: int, name: bytes) -> None:
    """Remove the empty directory *name*."""
    os.rmdir(name, dir_fd=dirfd)


def rename(old_dirfd: int, old: bytes, new_dirfd: int, new: bytes, flags: int) -> None:
    """Rename, with NOREPLACE or EXCHANGE."""
    if _renameat2(old_dirfd, old, new_dirfd, new, flags):
        raise_errno()


def chmod(fd: int, mode: int) -> None:
    """Set the permission bits of the object behind *fd*; EOPNOTSUPP for a link."""
    os.chmod(b"/proc/self/fd/%d" % fd, mode)


def chown(fd: int, uid: int, gid: int) -> None:
    """Set owner and group (-1: leave) of the very object behind *fd*, link or not."""
    if _libc.fchownat(fd, b"", ctypes.c_uint(uid & 0xFFFFFFFF), ctypes.c_uint(gid & 0xFFFFFFFF),
                      _AT_EMPTY_PATH):  # fmt: skip
        raise_errno()


def set_times(fd: int, atime_ns: int | None, mtime_ns: int | None) -> None:
    """Set the times (nanoseconds; None: leave) of the very object behind *fd*, link or not."""
    times = b"".join(
        struct.pack("=qq", 0, _UTIME_OMIT)
        if value is None
        else struct.pack("=qq", *divmod(value, 1_000_000_000))
        for value in (atime_ns, mtime_ns)
    )
    if _utimensat(fd, b"", times, _AT_EMPTY_PATH):
        raise_errno()


def sync(fd: int, *, data_only: bool) -> None:
    """Return once the content of *fd* has reached the disk.

    And its attributes, unless *data_only*.
    """
    if data_only:
        os.fdatasync(fd)
    else:
        os.fsync(fd)


def truncate(fd: int, size: int) -> None:
    """Cut or extend the file behind the writable descriptor *fd*."""
    os.ftruncate(fd, size)


def read(fd: int, size: int, offset: int) -> bytes:
    """Read at most *size* bytes; fewer only at the end of the file."""
    chunks = []
    while size > 0 and (chunk := os.pread(fd, size, offset)):
        chunks.append(chunk)
        size -= len(chunk)
        offset += len(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def read_setting(path: bytes) -> bytes:
    """Return what a file of /proc or /sys says, which is never longer than a page."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 4096)
    finally:
        os.close(fd)


def read_cached(fd: int, size: int, offset: int) -> bytes | None:
    """Read what :func:`read` would, if the page cache has all of it; else None, without waiting."""
    buffer = bytearray(size)
    try:
        got = os.preadv(fd, [buffer], offset, os.RWF_NOWAIT)
    except OSError as error:
        if error.errno in {errno.EAGAIN, errno.EOPNOTSUPP}:
            return None
        raise
    if got == size:
        return bytes(buffer)
    # The cache had a part of it, or the file ends here: to the kernel a short answer is the end.
    if offset + got < os.fstat(fd).st_size:
        return None
    return bytes(memoryview(buffer)[:got])


def write(fd: int, data: bytes, offset: int, *, append: bool) -> int:
    """Write *data* at *offset*, or at the very end with *append*; returns how much was written."""
    return os.pwritev(fd, [data], offset, os.RWF_APPEND if append else 0)


def _magic(fd: int) -> bytes:
    return b"/proc/self/fd/%d" % fd


def get_xattr(fd: int, name: bytes) -> bytes:
    """Return an extended attribute of the object behind *fd*."""
    return os.getxattr(_magic(fd), name)


def list_xattrs(fd: int) -> list[bytes]:
    """Return the names of the extended attributes of the object behind *fd*."""
    return [os.fsencode(name) for name in os.listxattr(_magic(fd))]


def set_xattr(fd: int, name: bytes, value: bytes) -> None:
    """Set an extended attribute of the object behind *fd*."""
    os.setxattr(_magic(fd), name, value)


def remove_xattr(fd: int, name: bytes) -> None:
    """Remove an extended attribute of the object behind *fd*."""
    os.removexattr(_magic(fd), name)
