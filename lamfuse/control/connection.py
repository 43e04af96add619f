"""One client of the control socket: lines in, messages out, each with its limits in bytes and time.

It carries messages and knows nothing of what they mean.
"""

from __future__ import annotations

from typing import Final

import trio

from lamfuse.control import wire
from lamfuse.core.errors import LamfuseError

__all__ = ["HELLO_TIMEOUT_S", "SEND_TIMEOUT_S", "Connection", "DroppedError"]

#: Seconds until a client must have said hello, and must have read what was sent to it.
HELLO_TIMEOUT_S: Final = 5.0
SEND_TIMEOUT_S: Final = 10.0

_RECEIVE_BYTES: Final = 65536


class DroppedError(LamfuseError):
    """The client was too slow."""


class Connection:
    """One connection: lines in, messages out, each with its time limit."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self._lines = wire.Lines(wire.MAX_REQUEST_BYTES)
        self._received: list[bytes] = []
        self._sending = trio.Lock()

    async def greet(self) -> bool:
        """Exchange hellos; returns False when the client speaks another version, or nothing."""
        with trio.move_on_after(HELLO_TIMEOUT_S):
            hello = await self.receive()
            if hello is None:
                return False
            if not isinstance(hello, wire.Hello):
                raise wire.WireError("the first line must be a hello")
            if hello.version != wire.VERSION:
                text = (
                    f"The daemon speaks version {wire.VERSION} of the protocol, this command"
                    f" version {hello.version}. Unmount with the lamfuse that mounted, then mount"
                    " again."
                )
                await self.send(wire.Failure(code=wire.FailureCode.VERSION, message=text))
                return False
            await self.send(wire.Hello(version=wire.VERSION))
            return True
        return False

    async def receive(self) -> wire.FromClient | None:
        """Return the next message, or None at the end; raises :class:`wire.WireError`."""
        while not self._received:
            data = await self.stream.receive_some(_RECEIVE_BYTES)
            if not data:
                if not self._lines.is_clean:
                    raise wire.WireError("the last line has no end")
                return None
            self._received = self._lines.feed(bytes(data))
        return wire.decode_from_client(self._received.pop(0))

    async def send(self, message: wire.FromServer) -> None:
        """Send one message; a client that does not read it in time is dropped."""
        line = wire.encode(message)
        if len(line) > wire.MAX_REPLY_BYTES:
            seq = getattr(message, "seq", 0)
            text = (
                f"the reply would be {len(line)} bytes long; ask for one question at a time (show)"
            )
            line = wire.encode(wire.Failure(seq=seq, code=wire.FailureCode.TOO_LONG, message=text))
        with trio.move_on_after(SEND_TIMEOUT_S) as limit:
            async with self._sending:
                await self.stream.send_all(line)
        if limit.cancelled_caught:
            # Part of a line may be out: nothing more can be said on this connection.
            await trio.aclose_forcefully(self.stream)
            raise DroppedError("it does not read")
