"""What an object is: statx, and the identity that outlives names and inode numbers.

Both are read through ctypes, since Python has neither. Nothing here follows a link.
"""

from __future__ import annotations

import ctypes
import os
import struct
import threading
from typing import NamedTuple

from lamfuse.core.target import Identity

__all__ = ["Stat", "fstat", "identity", "raise_errno", "stat_at"]

_AT_EMPTY_PATH = 0x1000
_AT_SYMLINK_NOFOLLOW = 0x100
_AT_NO_AUTOMOUNT = 0x800
_STATX_WANTED = 0x7FF | 0x800 | 0x1000  # basic, birth time, mount id
_STATX_MNT_ID = 0x1000
_STATX = struct.Struct("=IIQIIIHxxQQQQ qIi qIi qIi qIi IIII Q 104x")
_HANDLE_BYTES = 128

_libc = ctypes.CDLL(None, use_errno=True)
_statx = _libc.statx
_statx.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_char_p)
_name_to_handle_at = _libc.name_to_handle_at
_name_to_handle_at.argtypes = (
    ctypes.c_int,
    ctypes.c_char_p,
    ctypes.c_char_p,
    ctypes.POINTER(ctypes.c_int),
    ctypes.c_int,
)


def raise_errno() -> None:
    """Raise the OSError of the C call that just failed."""
    number = ctypes.get_errno()
    raise OSError(number, os.strerror(number))


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


def _statx_call(dirfd: int, name: bytes, flags: int) -> Stat:
    buffer = _buffers.statx
    if _statx(dirfd, name, flags | _AT_NO_AUTOMOUNT, _STATX_WANTED, buffer):
        raise_errno()
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
