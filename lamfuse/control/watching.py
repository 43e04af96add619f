"""A watcher's end of the control socket, for programs with an event loop.

One task reads (:meth:`Watching.run`); others ask and wait for their own reply. Events go to the
function that was given, in order. Nothing here shows or answers anything by itself.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Final, TypeVar

import trio

from lamfuse.control import wire
from lamfuse.core.approval import Scope
from lamfuse.core.errors import NotRunningError, RefusedError

__all__ = ["Watching"]

_RECEIVE_BYTES: Final = 65536
_ReplyT = TypeVar("_ReplyT", bound=wire.Reply)


class Watching:
    """A conversation over *connection* (just dialled), which belongs to it from now on.

    *tell* gets each event, in the task that runs :meth:`run`, and must not wait.
    """

    def __init__(self, connection: socket.socket, tell: Callable[[wire.Event], None]) -> None:
        self._stream = trio.SocketStream(trio.socket.from_stdlib_socket(connection))
        self._tell = tell
        self._lines = wire.Lines(wire.MAX_REPLY_BYTES)
        self._sending = trio.Lock()
        self._waiting: dict[int, trio.MemorySendChannel[wire.Reply]] = {}
        self._seq = 0
        self._is_greeted = False

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Say hello, then read until the daemon ends, which raises :class:`NotRunningError`.

        Reports started when the daemon has said hello. Raises :class:`RefusedError` when it does
        not talk to us. The connection is closed at the end.
        """
        async with self._stream:
            await self._send(wire.Hello(version=wire.VERSION))
            while True:
                for line in self._lines.feed(await self._receive()):
                    message = wire.decode_from_server(line)
                    if not isinstance(message, wire.Hello):
                        self._take(message)
                    elif self._is_greeted or message.version != wire.VERSION:
                        raise wire.WireError("not the hello of this version")
                    else:
                        self._is_greeted = True
                        task_status.started()

    async def watch(self) -> None:
        """Attach: events come from now on."""
        await self._ask(wire.WatchRequest(seq=self._next()), wire.WatchReply)

    async def show(self, question_id: str) -> wire.QuestionView | None:
        """Say that a question is in front of a person now, and get it as it is."""
        request = wire.ShowRequest(seq=self._next(), id=question_id)
        return (await self._ask(request, wire.ShowReply)).question

    async def answer(
        self, question_id: str, *, allow: bool, scope: Scope | None
    ) -> wire.AnswerReply:
        """Answer a question and return what became of it."""
        request = wire.AnswerRequest(seq=self._next(), id=question_id, allow=allow, scope=scope)
        return await self._ask(request, wire.AnswerReply)

    def _next(self) -> int:
        self._seq += 1
        return self._seq

    async def _ask(self, request: wire.Request, expected: type[_ReplyT]) -> _ReplyT:
        send, receive = trio.open_memory_channel[wire.Reply](1)
        self._waiting[request.seq] = send
        try:
            await self._send(request)
            async with receive:
                reply = await receive.receive()
        finally:
            self._waiting.pop(request.seq, None)
            send.close()
        if isinstance(reply, wire.Failure):
            raise RefusedError(reply.message)
        if not isinstance(reply, expected):
            raise wire.WireError(f"not the reply to {type(request).__name__}")
        return reply

    async def _send(self, message: wire.FromClient) -> None:
        try:
            async with self._sending:
                await self._stream.send_all(wire.encode(message))
        except trio.BrokenResourceError:
            # The daemon may have said why before it closed: the reader finds out.
            return
        except trio.ClosedResourceError as error:
            raise NotRunningError("the conversation has ended") from error

    async def _receive(self) -> bytes:
        try:
            data = bytes(await self._stream.receive_some(_RECEIVE_BYTES))
        except trio.BrokenResourceError:
            data = b""
        if not data:
            raise NotRunningError("the daemon ended the conversation")
        return data

    def _take(self, message: wire.Reply | wire.Event) -> None:
        if isinstance(message, wire.AskedEvent | wire.ChangedEvent):
            self._tell(message)
            return
        waiting = self._waiting.get(message.seq)
        if waiting is not None:
            waiting.send_nowait(message)
        elif isinstance(message, wire.Failure):
            raise RefusedError(message.message)
        else:
            raise wire.WireError(f"a reply that nobody asked for: {type(message).__name__}")
