"""The daemon's end of the control socket.

It carries requests to a :class:`Backend` and replies back, and keeps clients from harming each
other: a slow, mute or broken one is dropped and never blocks another. It knows nothing about files
or policy, and it never answers a question by itself.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
from collections.abc import Callable
from typing import Final, Protocol, assert_never

import msgspec
import trio

from lamfuse.control import listener, peer, wire
from lamfuse.control.connection import Connection, DroppedError
from lamfuse.core.approval import Scope
from lamfuse.core.errors import InternalError

__all__ = [
    "IDLE_TIMEOUT_S",
    "MAX_CONNECTIONS",
    "Backend",
    "serve",
]

#: More people than this do not sit at one home; a loop that leaks connections does.
MAX_CONNECTIONS: Final = 32

#: Seconds after which a client that asks for nothing is let go; watchers are exempt.
IDLE_TIMEOUT_S: Final = 60.0

_log = logging.getLogger(__name__)


class Backend(Protocol):
    """What the daemon does for its clients.

    Replies are filled in without ``seq`` (the server sets it). An exception from a method is logged
    with its traceback and becomes a failure for that client alone.
    """

    async def status(self) -> wire.Status:
        """Say how the daemon is."""
        ...

    async def pending(self) -> tuple[wire.QuestionView, ...]:
        """Return the open questions, oldest first; that alone does not count as showing them."""
        ...

    async def show(self, question_id: str) -> wire.QuestionView | None:
        """Return an open question and mark it as shown to a person; None when there is none."""
        ...

    async def answer(
        self, question_id: str, *, allow: bool, scope: Scope | None, channel: str
    ) -> wire.AnswerReply:
        """Answer a question for *channel* (``"cli"`` or ``"watch"``) and say what became of it."""
        ...

    async def resume(self, session: str | None) -> wire.SessionReply:
        """Close the breaker of *session* (None: of all)."""
        ...

    async def turn(self, session: str | None) -> wire.SessionReply:
        """Begin a new turn of *session* (None: of all), as a person's own act."""
        ...

    async def reload(self) -> wire.ReloadReply:
        """Read the configuration again; a bad one leaves the old in force."""
        ...

    def stopping(self) -> wire.UnmountReply:
        """Describe what an unmount would end; called right before :meth:`unmount`."""
        ...

    async def unmount(self) -> None:
        """Begin the orderly end; the reply has been sent. It may be cancelled."""
        ...

    def watch(
        self,
    ) -> contextlib.AbstractAsyncContextManager[trio.MemoryReceiveChannel[wire.Event]]:
        """Attach a watcher for as long as the context lasts.

        The channel gives an :class:`wire.AskedEvent` for each question that is to be put to the
        person now (those that stand already at the start as well) and a :class:`wire.ChangedEvent`
        for each change after it. The backend must not wait for a watcher: it sends with
        ``send_nowait`` and closes the channel of one that does not keep up, which drops that
        client.
        """
        ...


async def serve(
    path: bytes,
    backend: Backend,
    *,
    judge: Callable[[peer.Connection], str | None] = peer.refusal,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Listen at *path* until cancelled; reports started once clients can connect.

    The socket is 0600 in a directory that must be ours alone. One that is left over is replaced,
    one that somebody listens at is not: raises :class:`lamfuse.core.errors.RefusedError`. *judge*
    says why a peer may not speak (None: it may). The socket is removed at the end.
    """
    directory, name = os.path.split(path)
    dirfd = listener.open_private(directory)
    try:
        listening = await trio.to_thread.run_sync(listener.listen, dirfd, name)
        made = os.stat(name, dir_fd=dirfd, follow_symlinks=False)
        try:
            accepting = trio.SocketListener(trio.socket.from_stdlib_socket(listening))
            service = _Service(backend, judge)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(trio.serve_listeners, service.serve_client, [accepting])
                task_status.started()
        finally:
            listener.remove(dirfd, name, made)
    finally:
        os.close(dirfd)


class _Service:
    """Counts the clients, judges them, and keeps what goes wrong with one from the others."""

    def __init__(self, backend: Backend, judge: Callable[[peer.Connection], str | None]) -> None:
        self._backend = backend
        self._judge = judge
        self._connected = 0

    async def serve_client(self, stream: trio.SocketStream) -> None:
        """Serve one client to its end; what it breaks, it breaks for itself."""
        self._connected += 1
        try:
            async with stream:
                await self._admit(Connection(stream))
        except* (trio.BrokenResourceError, trio.ClosedResourceError, DroppedError) as group:
            _log.debug("a client of the control socket went: %s", group.exceptions)
        except* wire.WireError as group:
            _log.debug("a client of the control socket sent garbage: %s", group.exceptions)
        except* Exception:  # noqa: BLE001 - an edge: one client must not take the daemon down
            _log.exception("a fault of our own while serving the control socket")
        finally:
            self._connected -= 1

    async def _admit(self, client: Connection) -> None:
        if self._connected > MAX_CONNECTIONS:
            text = f"{MAX_CONNECTIONS} commands are connected already; try again later"
            await client.send(wire.Failure(code=wire.FailureCode.BUSY, message=text))
            return
        why = self._judge(client.stream.socket)
        if why is not None:
            _log.warning("refused a process at the control socket: %s", why)
            text = f"The daemon does not talk to this process: {why}."
            await client.send(wire.Failure(code=wire.FailureCode.PEER, message=text))
            return
        try:
            if await client.greet():
                await _Conversation(client, self._backend).run()
        except* wire.WireError as group:
            text = "; ".join(str(error) for error in group.exceptions)
            await client.send(wire.Failure(code=wire.FailureCode.MALFORMED, message=text))
            raise


class _Conversation:
    """The requests of one client, answered in order, with events in between once it watches."""

    def __init__(self, connection: Connection, backend: Backend) -> None:
        self._connection = connection
        self._backend = backend
        self._watching = False

    async def run(self) -> None:
        """Answer until the client ends the conversation or has been silent for too long."""
        async with trio.open_nursery() as nursery:
            await self._answer_all(nursery)
            nursery.cancel_scope.cancel()

    async def _answer_all(self, nursery: trio.Nursery) -> None:
        while True:
            request: wire.FromClient | None = None
            with trio.move_on_after(math.inf if self._watching else IDLE_TIMEOUT_S):
                request = await self._connection.receive()
            match request:
                case None:
                    return
                case wire.Hello():
                    raise wire.WireError("hello is said once")
                case wire.WatchRequest() if self._watching:
                    raise wire.WireError("this connection watches already")
                case wire.WatchRequest(seq=seq):
                    self._watching = True
                    await nursery.start(self._pass_events_on, seq)
                case wire.UnmountRequest(seq=seq):
                    reply = msgspec.structs.replace(self._backend.stopping(), seq=seq)
                    await self._connection.send(reply)
                    await self._backend.unmount()
                case _:
                    await self._connection.send(await self._reply(request))

    async def _pass_events_on(
        self, seq: int, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        async with self._backend.watch() as events:
            await self._connection.send(wire.WatchReply(seq=seq))
            task_status.started()
            async for event in events:
                await self._connection.send(event)
        raise DroppedError("it does not keep up with the events")

    async def _reply(self, request: wire.Request) -> wire.Reply:
        """Return the reply to *request*; a fault of the backend is a failure of this request."""
        try:
            reply = await self._ask_backend(request)
        except Exception:  # noqa: BLE001 - an edge: the client is told, the daemon goes on
            _log.exception("a fault of our own while serving %s", type(request).__name__)
            text = "A fault of the daemon; its log has the details."
            reply = wire.Failure(code=wire.FailureCode.INTERNAL, message=text)
        return msgspec.structs.replace(reply, seq=request.seq)

    async def _ask_backend(self, request: wire.Request) -> wire.Reply:
        backend = self._backend
        match request:
            case wire.StatusRequest():
                return wire.StatusReply(status=await backend.status())
            case wire.PendingRequest():
                return wire.PendingReply(questions=await backend.pending())
            case wire.ShowRequest(id=question_id):
                return wire.ShowReply(question=await backend.show(question_id))
            case wire.AnswerRequest(id=question_id, allow=allow, scope=scope):
                channel = "watch" if self._watching else "cli"
                return await backend.answer(question_id, allow=allow, scope=scope, channel=channel)
            case wire.ResumeRequest(session=session):
                return await backend.resume(session)
            case wire.TurnRequest(session=session):
                return await backend.turn(session)
            case wire.ReloadRequest():
                return await backend.reload()
            case wire.UnmountRequest() | wire.WatchRequest():
                raise InternalError(f"{type(request).__name__} is not answered here")
            case _:
                assert_never(request)
