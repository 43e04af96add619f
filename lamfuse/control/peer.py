"""Who may speak on the control socket: a process of the same person, outside every sandbox.

The peer must have our user id and live in our user, pid and mount namespace, so that nobody inside
``lamfuse run`` (or another sandbox that got hold of the socket) can answer questions.
A process that does not let itself be examined (not dumpable) is refused: its namespaces cannot be
known. Nothing here trusts a number twice: the peer is held by a pidfd while its namespaces are
read, so that a process that took over its number cannot be examined in its place.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import struct
from dataclasses import dataclass
from typing import Final, Protocol

__all__ = ["NAMESPACES", "Connection", "Peer", "examine", "refusal"]

#: The namespaces that must be ours.
NAMESPACES: Final = ("user", "pid", "mnt")

#: asm-generic/socket.h, since Linux 6.5; the socket module of Python 3.11 does not name it.
_SO_PEERPIDFD: Final = 77

_UCRED: Final = struct.Struct("iII")


class Connection(Protocol):
    """A connected Unix socket, of the standard library or of trio."""

    def getsockopt(self, level: int, optname: int, buflen: int, /) -> bytes:
        """Return the option, of at most *buflen* bytes."""
        ...


@dataclass(frozen=True, slots=True)
class Peer:
    """What the kernel says about the other end: ids, and the namespaces as (dev, ino) by name.

    ``namespaces`` is None where it could not be read; ``why`` says why, in words.
    ``held`` tells whether the kernel gave a descriptor for the peer itself (not just for its
    number).
    """

    pid: int
    uid: int
    namespaces: dict[str, tuple[int, int]] | None
    why: str = ""
    held: bool = False


def refusal(connection: Connection) -> str | None:
    """Return why the peer of *connection* may not speak, or None when it may."""
    return _judge(examine(connection), os.getuid(), _namespaces(os.getpid()))


def examine(connection: Connection) -> Peer:
    """Look at the peer of a connected Unix socket; never raises for what the peer is or does."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    pid, uid, _gid = _UCRED.unpack(raw)
    if pid <= 0:
        # The kernel translates the number into our pid namespace: 0 means it has none here.
        return Peer(pid, uid, None, "it lives outside our pid namespace")
    try:
        pidfd, held = _hold(connection, pid)
    except OSError as exc:
        return Peer(pid, uid, None, _words(exc))
    try:
        try:
            namespaces = _namespaces(pid)
        except OSError as exc:
            return Peer(pid, uid, None, _words(exc), held)
        if _has_ended(pidfd):
            return Peer(pid, uid, None, "it has ended", held)
        return Peer(pid, uid, namespaces, held=held)
    finally:
        os.close(pidfd)


def _judge(peer: Peer, uid: int, namespaces: dict[str, tuple[int, int]]) -> str | None:
    """Compare a peer with ourselves."""
    if peer.uid != uid:
        return f"it belongs to another user (uid {peer.uid})"
    if peer.namespaces is None:
        return peer.why
    for name in NAMESPACES:
        if peer.namespaces[name] != namespaces[name]:
            return f"it is in another {name} namespace (a sandbox or a container)"
    return None


def _hold(connection: Connection, pid: int) -> tuple[int, bool]:
    """Return a pidfd of the peer (owned by the caller) and whether it is the connection's own.

    Without SO_PEERPIDFD the number is opened: if it was taken over before that, the process that is
    examined is not the peer, which the uid and the private directory of the socket still bound.
    """
    try:
        raw = connection.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD, struct.calcsize("i"))
    except OSError as exc:
        if exc.errno not in {errno.ENOPROTOOPT, errno.EINVAL}:
            raise
        return os.pidfd_open(pid), False
    (pidfd,) = struct.unpack("i", raw)
    return pidfd, True


def _has_ended(pidfd: int) -> bool:
    """Tell whether the process behind *pidfd* has ended: a pidfd is readable from then on."""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(0))


def _namespaces(pid: int) -> dict[str, tuple[int, int]]:
    found = {name: os.stat(f"/proc/{pid}/ns/{name}") for name in NAMESPACES}
    return {name: (status.st_dev, status.st_ino) for name, status in found.items()}


def _words(exc: OSError) -> str:
    if exc.errno in {errno.ESRCH, errno.ENOENT}:
        return "it has ended"
    if exc.errno in {errno.EACCES, errno.EPERM}:
        return (
            "it does not let itself be examined (not dumpable), so its namespaces cannot be known"
        )
    return f"it cannot be examined: {exc.strerror}"
