"""A command's end of the control socket: plain, blocking, without trio.

It carries typed requests and replies. It renders nothing, and a failure that the daemon reports
becomes an exception of :mod:`lamfuse.core.errors`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
import struct
from types import TracebackType
from typing import Final, Self, TypeVar

from lamfuse.control import wire
from lamfuse.core.approval import Scope
from lamfuse.core.errors import NotRunningError, RefusedError

__all__ = ["Client", "connect", "dial", "is_running"]

#: Seconds to wait for a reply. The daemon answers at once; a reload walks what the kernel has
#: cached.
REPLY_TIMEOUT_S: Final = 30.0

_RECEIVE_BYTES: Final = 65536
_UCRED: Final = struct.Struct("iII")
_ReplyT = TypeVar("_ReplyT", bound=wire.Reply)


def connect(path: bytes) -> Client:
    """Connect to the daemon that listens at *path* and say hello.

    Raises :class:`NotRunningError` when nobody listens and :class:`RefusedError` when the daemon
    does not talk to us.
    """
    client = Client(dial(path))
    try:
        client.greet()
    except BaseException:
        client.close()
        raise
    return client


def dial(path: bytes) -> socket.socket:
    """Return a connection to whoever listens at *path*; nothing has been said on it yet."""
    connection = _open(path)
    if connection is None:
        raise NotRunningError("no lamfuse daemon runs for this home. Start one with: lamfuse mount")
    return connection


def is_running(path: bytes) -> bool:
    """Tell whether somebody listens at *path*."""
    connection = _open(path)
    if connection is None:
        return False
    connection.close()
    return True


def _open(path: bytes) -> socket.socket | None:
    """Connect a socket, by the descriptor of its directory (sun_path holds 107 bytes only)."""
    directory, name = os.path.split(path)
    try:
        dirfd = os.open(  # noqa: TID251 - our own runtime directory
            directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
        )
    except (FileNotFoundError, NotADirectoryError):
        return None
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(REPLY_TIMEOUT_S)
        connection.connect(b"/proc/self/fd/%d/%s" % (dirfd, name))
    except OSError as exc:
        connection.close()
        if exc.errno in {errno.ENOENT, errno.ECONNREFUSED, errno.ENOTDIR}:
            return None
        raise RefusedError(f"the control socket cannot be reached: {exc.strerror}") from exc
    finally:
        os.close(dirfd)
    return connection


class Client:
    """A conversation with the daemon. Use it as a context manager, or close it."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lines = wire.Lines(wire.MAX_REPLY_BYTES)
        self._received: list[bytes] = []
        self._events: list[wire.Event] = []
        self._seq = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the conversation."""
        self._connection.close()

    def fileno(self) -> int:
        """Return the descriptor, to wait for events with; look at :attr:`has_event` first."""
        return self._connection.fileno()

    @property
    def daemon_pid(self) -> int:
        """The process that listens."""
        raw = self._connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
        pid, _uid, _gid = _UCRED.unpack(raw)
        return int(pid)

    def greet(self) -> None:
        """Exchange hellos."""
        self._send(wire.Hello(version=wire.VERSION))
        message = self._receive()
        if isinstance(message, wire.Failure):
            raise RefusedError(message.message)
        if not isinstance(message, wire.Hello) or message.version != wire.VERSION:
            raise RefusedError("the daemon speaks another version of the protocol; mount again")

    # --- requests

    def status(self) -> wire.Status:
        """Ask how the daemon is."""
        return self._ask(wire.StatusRequest(seq=self._next()), wire.StatusReply).status

    def pending(self) -> tuple[wire.QuestionView, ...]:
        """Return the open questions, oldest first."""
        return self._ask(wire.PendingRequest(seq=self._next()), wire.PendingReply).questions

    def show(self, question_id: str) -> wire.QuestionView | None:
        """Return one open question; it counts as shown from now on."""
        return self._ask(
            wire.ShowRequest(seq=self._next(), id=question_id), wire.ShowReply
        ).question

    def answer(
        self, question_id: str, *, allow: bool, scope: Scope | None = None
    ) -> wire.AnswerReply:
        """Answer a question and return what became of it."""
        request = wire.AnswerRequest(seq=self._next(), id=question_id, allow=allow, scope=scope)
        return self._ask(request, wire.AnswerReply)

    def resume(self, session: str | None) -> wire.SessionReply:
        """Close the breaker of a session, or of all."""
        return self._ask(wire.ResumeRequest(seq=self._next(), session=session), wire.SessionReply)

    def turn(self, session: str | None) -> wire.SessionReply:
        """Begin a new turn for a session, or for all."""
        return self._ask(wire.TurnRequest(seq=self._next(), session=session), wire.SessionReply)

    def reload(self) -> wire.ReloadReply:
        """Have the configuration read again."""
        return self._ask(wire.ReloadRequest(seq=self._next()), wire.ReloadReply)

    def unmount(self, timeout_s: float) -> wire.UnmountReply:
        """Have the daemon end, and wait until its process has.

        Raises :class:`RefusedError` when it takes longer than *timeout_s*.
        """
        pidfd = -1
        with contextlib.suppress(ProcessLookupError):
            pidfd = os.pidfd_open(self.daemon_pid)
        try:
            reply = self._ask(wire.UnmountRequest(seq=self._next()), wire.UnmountReply)
            if pidfd >= 0 and not _wait_for(pidfd, timeout_s):
                raise RefusedError(f"the daemon has not ended within {timeout_s:.0f} s")
            return reply
        finally:
            if pidfd >= 0:
                os.close(pidfd)

    # --- events

    def watch(self) -> None:
        """Attach as a watcher: :meth:`next_event` gives the events from now on."""
        self._ask(wire.WatchRequest(seq=self._next()), wire.WatchReply)

    @property
    def has_event(self) -> bool:
        """Whether something was received already: do not wait for the descriptor then."""
        return bool(self._events or self._received)

    def next_event(self) -> wire.Event:
        """Wait for the next event; raises :class:`NotRunningError` when the daemon ends."""
        if self._events:
            return self._events.pop(0)
        self._connection.settimeout(None)
        try:
            message = self._receive()
        finally:
            self._connection.settimeout(REPLY_TIMEOUT_S)
        if isinstance(message, wire.AskedEvent | wire.ChangedEvent):
            return message
        if isinstance(message, wire.Failure):
            raise RefusedError(message.message)
        raise wire.WireError(f"a reply that nobody asked for: {type(message).__name__}")

    # --- lines

    def _next(self) -> int:
        self._seq += 1
        return self._seq

    def _ask(self, request: wire.Request, expected: type[_ReplyT]) -> _ReplyT:
        self._send(request)
        while True:
            message = self._receive()
            if isinstance(message, wire.AskedEvent | wire.ChangedEvent):
                self._events.append(message)
            elif isinstance(message, wire.Failure):
                raise RefusedError(message.message)
            elif isinstance(message, expected) and message.seq == request.seq:
                return message
            else:
                raise wire.WireError(f"not the reply to {type(request).__name__}")

    def _send(self, message: wire.FromClient) -> None:
        try:
            self._connection.sendall(wire.encode(message))
        except (BrokenPipeError, ConnectionResetError):
            # The daemon may have said why before it closed: reading tells.
            return
        except TimeoutError as exc:
            raise RefusedError("the daemon does not read what is sent to it") from exc

    def _receive(self) -> wire.FromServer:
        while not self._received:
            try:
                data = self._connection.recv(_RECEIVE_BYTES)
            except TimeoutError as exc:
                raise RefusedError("the daemon does not answer") from exc
            except ConnectionResetError:
                data = b""
            if not data:
                raise NotRunningError("the daemon ended the conversation")
            self._received = self._lines.feed(data)
        return wire.decode_from_server(self._received.pop(0))


def _wait_for(pidfd: int, timeout_s: float) -> bool:
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(timeout_s * 1000))
