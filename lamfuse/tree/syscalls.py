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
import threading
from collections.abc import Iterator
from typing import NamedTuple

from lamfuse.core.target import Identity

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
    "open_path",
    "open_root",
    "read",
    "read_cached",
    "read_link",
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
_AT_SYMLINK_NOFOLLOW = 0x100
_AT_NO_AUTOMOUNT = 0x800
_STATX_WANTED = 0x7FF | 0x800 | 0x1000  # basic, birth time, mount id
_STATX_MNT_ID = 0x1000
_STATX = struct.Struct("=IIQIIIHxxQQQQ qIi qIi qIi qIi IIII Q 104x")
_HANDLE_BYTES = 128
_UTIME_OMIT = (1 << 30) - 2

_libc = ctypes.CDLL(None, use_errno=True)
_statx = _libc.statx
_statx.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_char_p)
_renameat2 = _libc.renameat2
_renameat2.argtypes = (
    ctypes.c_int,
    ctypes.c_char_p,
    ctypes.c_int,
    ctypes.c_char_p,
    ctypes.c_uint,
)
_name_to_handle_at = _libc.name_to_handle_at
_name_to_handle_at.argtypes = (
    ctypes.c_int,
    ctypes.c_char_p,
    ctypes.c_char_p,
    ctypes.POINTER(ctypes.c_int),
    ctypes.c_int,
)
_utimensat = _libc.utimensat
_utimensat.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int)


class Stat(NamedTuple):
    """What statx tells of an object.

    Times are nanoseconds; ``mount`` is the mount id (0: unknown).
    """

    mode: int
    links: int
    uid: int
    gid: int
    rdev: int
    size: int
    blocks: int
    block_size: int
    atime_ns: int
    mtime_ns: int
    ctime_ns: int
    birth_ns: int
    dev: int
    ino: int
    mount: int


class _Buffers(threading.local):
    """One statx buffer a thread: the call releases the interpreter lock."""

    def __init__(self) -> None:
        self.statx = ctypes.create_string_buffer(_STATX.size)


_buffers = _Buffers()


def _raise_errno() -> None:
    number = ctypes.get_errno()
    raise OSError(number, os.strerror(number))


def _statx_call(dirfd: int, name: bytes, flags: int) -> Stat:
    buffer = _buffers.statx
    if _statx(dirfd, name, flags | _AT_NO_AUTOMOUNT, _STATX_WANTED, buffer):
        _raise_errno()
    (
        mask, block_size, _attributes, links, uid, gid, mode, ino, size, blocks, _attr_mask,
        asec, ansec, _1, bsec, bnsec, _2, csec, cnsec, _3, msec, mnsec, _4,
        rmajor, rminor, dmajor, dminor, mount,
    ) = _STATX.unpack(buffer)  # fmt: skip
    return Stat(
        mode,
        links,
        uid,
        gid,
        os.makedev(rmajor, rminor) if rmajor or rminor else 0,
        size,
        blocks,
        block_size,
        asec * 1_000_000_000 + ansec,
        msec * 1_000_000_000 + mnsec,
        csec * 1_000_000_000 + cnsec,
        bsec * 1_000_000_000 + bnsec,
        (dmajor << 32) | dminor,
        ino,
        mount if mask & _STATX_MNT_ID else 0,
    )


def stat_at(dirfd: int, name: bytes) -> Stat:
    """Return what *name* in *dirfd* is, without following a link."""
    return _statx_call(dirfd, name, _AT_SYMLINK_NOFOLLOW)


def fstat(fd: int) -> Stat:
    """Return what the open descriptor *fd* (O_PATH or not) refers to."""
    return _statx_call(fd, b"", _AT_EMPTY_PATH)


def identity(fd: int, stat: Stat) -> Identity:
    """Return the identity of the object behind *fd*; *stat* is its fresh stat.

    The file handle of the kernel holds the inode generation: a number that is used again differs.
    """
    buffer = ctypes.create_string_buffer(8 + _HANDLE_BYTES)
    struct.pack_into("=Ii", buffer, 0, _HANDLE_BYTES, 0)
    mount = ctypes.c_int()
    generation = b""
    if not _name_to_handle_at(fd, b"", buffer, ctypes.byref(mount), _AT_EMPTY_PATH):
        size, kind = struct.unpack_from("=Ii", buffer, 0)
        generation = struct.pack("=i", kind) + buffer.raw[8 : 8 + size]
    return Identity(stat.dev, stat.ino, stat.birth_ns, generation)


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
        _raise_errno()


def chmod(fd: int, mode: int) -> None:
    """Set the permission bits of the object behind *fd*; EOPNOTSUPP for a link."""
    os.chmod(b"/proc/self/fd/%d" % fd, mode)


def chown(fd: int, uid: int, gid: int) -> None:
    """Set owner and group (-1: leave) of the very object behind *fd*, link or not."""
    if _libc.fchownat(fd, b"", ctypes.c_uint(uid & 0xFFFFFFFF), ctypes.c_uint(gid & 0xFFFFFFFF),
                      _AT_EMPTY_PATH):  # fmt: skip
        _raise_errno()


def set_times(fd: int, atime_ns: int | None, mtime_ns: int | None) -> None:
    """Set the times (nanoseconds; None: leave) of the very object behind *fd*, link or not."""
    times = b"".join(
        struct.pack("=qq", 0, _UTIME_OMIT)
        if value is None
        else struct.pack("=qq", *divmod(value, 1_000_000_000))
        for value in (atime_ns, mtime_ns)
    )
    if _utimensat(fd, b"", times, _AT_EMPTY_PATH):
        _raise_errno()


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
