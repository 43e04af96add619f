"""The socket as a file: made where only its owner can reach it, replaced only when nobody listens.

All of it happens below a descriptor of the directory, under a lock, so that two daemons that start
at once cannot take each other's socket away. Nothing here reads or writes the socket.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import socket
import stat
from typing import Final

from lamfuse.core.errors import RefusedError

__all__ = ["BACKLOG", "listen", "open_private", "remove"]

#: Connections that may wait to be accepted.
BACKLOG: Final = 32

_log = logging.getLogger(__name__)


def open_private(directory: bytes) -> int:
    """Return a descriptor of *directory*, made if need be, which must belong to us alone."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(directory, 0o700)
    dirfd = os.open(  # noqa: TID251 - our own runtime directory
        directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    )
    status = os.fstat(dirfd)
    if status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & 0o077:
        os.close(dirfd)
        raise RefusedError(
            f"{os.fsdecode(directory)} must belong to you alone (mode 0700); somebody else made it."
            " Remove it and try again."
        )
    return dirfd


def listen(dirfd: int, name: bytes) -> socket.socket:
    """Bind and listen at *name*, under a lock that keeps two daemons from doing so at once."""
    # By descriptor: sun_path holds 107 bytes, and the directory cannot be swapped in between.
    address = b"/proc/self/fd/%d/%s" % (dirfd, name)
    fcntl.flock(dirfd, fcntl.LOCK_EX)
    try:
        if _is_listened_at(address):
            raise RefusedError(
                "a lamfuse daemon for this home is running already (see: lamfuse status)"
            )
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=dirfd)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            listening.bind(address)
            # Before listen: until then nobody can connect.
            os.chmod(name, 0o600, dir_fd=dirfd)
            listening.listen(BACKLOG)
        except BaseException:
            listening.close()
            raise
        return listening
    finally:
        fcntl.flock(dirfd, fcntl.LOCK_UN)


def _is_listened_at(address: bytes) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(0)
        try:
            probe.connect(address)
        except OSError as exc:
            # EAGAIN: somebody listens, but its queue is full. ENOTSOCK/EPROTOTYPE cannot be ours.
            return exc.errno == errno.EAGAIN
        return True


def remove(dirfd: int, name: bytes, made: os.stat_result) -> None:
    """Remove our socket, but not one that took its place."""
    fcntl.flock(dirfd, fcntl.LOCK_EX)
    try:
        now = os.stat(name, dir_fd=dirfd, follow_symlinks=False)
        if (now.st_dev, now.st_ino) == (made.st_dev, made.st_ino):
            os.unlink(name, dir_fd=dirfd)
    except FileNotFoundError:
        _log.info("the control socket was removed by somebody else")
    finally:
        fcntl.flock(dirfd, fcntl.LOCK_UN)
