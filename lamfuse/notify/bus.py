"""One connection to a message bus, with a reader of its own that believes nobody but the bus.

Whoever is on the bus can send us anything. A reply counts only from the one who was asked, under
its number and with the signature that belongs there; what a signal says is for those who listen,
who get to know its true sender. Messages are handled in the order in which they came, inside the
reader, so that nothing overtakes a reply. Every wait has an end. This module must not know what is
asked over the bus.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import trio
from jeepney import DBusAddress, HeaderFields, Message, MessageFlag, MessageType, new_method_call
from jeepney.auth import BEGIN, Authenticator
from jeepney.bus import get_connectable_addresses
from jeepney.io.trio import DBusConnection

from lamfuse.core.errors import ChannelLost
from lamfuse.core.names import show_text

__all__ = [
    "BUS_NAME",
    "CALL_S",
    "CONNECT_S",
    "Bus",
    "BusError",
    "Peer",
    "Received",
    "connect",
    "session_address",
    "system_address",
]

#: Seconds to connect and be let in: a socket that nobody serves takes the bytes and stays mute.
CONNECT_S = 3.0
#: Seconds for an answer to a call.
CALL_S = 5.0
BUS_NAME = "org.freedesktop.DBus"
_BUS_PATH = "/org/freedesktop/DBus"

_log = logging.getLogger(__name__)


class BusError(ChannelLost):
    """A call was answered with an error; *name* is the error's name on the bus."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(show_text(f"{name}: {text}" if text else name))
        self.name = name


@dataclass(frozen=True, slots=True)
class Peer:
    """An object of somebody on the bus, with the interface that is meant.

    *name* must be a unique name, or the bus: only then is it known who has to answer.
    """

    name: str
    path: str
    interface: str


@dataclass(frozen=True, slots=True)
class Received:
    """A signal. *sender* is a unique name that the bus vouches for; all else is what was sent."""

    sender: str
    path: str
    interface: str
    member: str
    signature: str
    body: tuple[Any, ...]


@dataclass(slots=True, eq=False)
class _Call:
    """A call that waits for its reply; ``late`` takes one that nobody waits for any more."""

    peer: str
    expects: str
    arrived: Callable[[tuple[Any, ...]], None] | None
    late: Callable[[tuple[Any, ...]], None] | None
    done: trio.Event = field(default_factory=trio.Event)
    body: tuple[Any, ...] = ()
    error: ChannelLost | None = None
    is_abandoned: bool = False


def session_address() -> str | None:
    """Return the address of the person's session bus, or None."""
    address = os.environ.get("DBUS_SESSION_BUS_ADDRESS")
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if not address and runtime.startswith("/") and os.path.exists(f"{runtime}/bus"):
        address = f"unix:path={runtime}/bus"
    return address or None


def system_address() -> str | None:
    """Return the address of the system bus."""
    default = "unix:path=/run/dbus/system_bus_socket"
    return os.environ.get("DBUS_SYSTEM_BUS_ADDRESS") or default


async def connect(address: str) -> Bus:
    """Connect to the bus at *address*; raises ChannelLost within :data:`CONNECT_S`."""
    try:
        with trio.fail_after(CONNECT_S):
            stream = await _open(address)
            try:
                return await _greet(stream)
            except BaseException:
                stream.socket.close()
                raise
    except trio.TooSlowError:
        raise ChannelLost(f"the bus did not let us in within {CONNECT_S:g} s") from None
    except (
        OSError,
        ValueError,
        RuntimeError,
        trio.BrokenResourceError,
        trio.EndOfChannel,
    ) as error:
        raise ChannelLost(f"no connection to the bus: {show_text(str(error))}") from error


async def _open(address: str) -> trio.SocketStream:
    problem: OSError | None = None
    for place in get_connectable_addresses(address):
        try:
            return await trio.open_unix_socket(place)
        except OSError as error:
            problem = error
    assert problem is not None  # jeepney raises when there is nothing to connect to
    raise problem


async def _greet(stream: trio.SocketStream) -> Bus:
    """Authenticate and say hello; the answer to that names us."""
    authenticator = Authenticator(inc_null_byte=False)
    await stream.send_all(b"\0")
    for line in authenticator:
        await stream.send_all(line)
        said = await stream.receive_some()
        if not said:  # jeepney would ask for ever
            raise trio.EndOfChannel
        authenticator.feed(said)
    await stream.send_all(BEGIN)
    connection = DBusConnection(stream.socket)
    serial = next(connection.outgoing_serial)
    hello = new_method_call(DBusAddress(_BUS_PATH, BUS_NAME, BUS_NAME), "Hello")
    await connection.send(hello, serial=serial)
    while True:
        reply = await connection.receive()
        if reply.header.fields.get(HeaderFields.reply_serial) == serial:
            break
    if reply.header.message_type is not MessageType.method_return:
        raise ValueError("the bus did not greet back")
    connection.unique_name = reply.body[0]
    return Bus(connection)


class Bus:
    """A bus we are on. :meth:`run` must be running for anything to be answered.

    ``listeners`` are called with each signal, in the reader: they must neither wait nor raise.
    ``lost`` is set once the connection has ended.
    """

    def __init__(self, connection: DBusConnection) -> None:
        self.unique_name: str = connection.unique_name
        self.listeners: list[Callable[[Received], None]] = []
        self.lost = trio.Event()
        self._connection = connection
        self._calls: dict[int, _Call] = {}
        self._posting: trio.Nursery | None = None
        self._has_complained = False

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Read until the connection ends or this is cancelled; then it is closed."""
        try:
            async with trio.open_nursery() as nursery:
                self._posting = nursery
                task_status.started()
                await self._read()
                nursery.cancel_scope.cancel()
        finally:
            self._posting = None
            self._end()

    async def aclose(self) -> None:
        """Close a connection that is not run."""
        self._end()
        await trio.lowlevel.checkpoint()

    async def call(
        self,
        peer: Peer,
        member: str,
        signature: str = "",
        body: tuple[Any, ...] = (),
        *,
        expects: str = "",
        timeout_s: float = CALL_S,
        arrived: Callable[[tuple[Any, ...]], None] | None = None,
        late: Callable[[tuple[Any, ...]], None] | None = None,
    ) -> tuple[Any, ...]:
        """Call a method and return its reply, whose signature has to be *expects*.

        *arrived* gets the reply inside the reader, before any message that came after it; *late*
        gets one that comes after the wait was given up. Nobody is started for the call. Raises
        BusError for an error, ChannelLost for silence and for the end of the connection.
        """
        if self.lost.is_set():
            raise ChannelLost("the bus is lost")
        call = _Call(peer.name, expects, arrived, late)
        serial = next(self._connection.outgoing_serial)
        self._calls[serial] = call
        try:
            with trio.move_on_after(timeout_s):
                await self._send(_message(peer, member, signature, body), serial)
                await call.done.wait()
        finally:
            if not call.done.is_set():
                call.is_abandoned = True
                if late is None:
                    del self._calls[serial]
        if call.error is not None:
            raise call.error
        if not call.done.is_set():
            raise ChannelLost(f"no answer to {member} within {timeout_s:g} s")
        return call.body

    async def call_bus(
        self,
        member: str,
        signature: str,
        body: tuple[Any, ...],
        *,
        expects: str = "",
        timeout_s: float = CALL_S,
        arrived: Callable[[tuple[Any, ...]], None] | None = None,
    ) -> tuple[Any, ...]:
        """Call the bus itself, as :meth:`call` does."""
        return await self.call(
            Peer(BUS_NAME, _BUS_PATH, BUS_NAME), member, signature, body,
            expects=expects, timeout_s=timeout_s, arrived=arrived,
        )  # fmt: skip

    async def listen(self, **parts: str) -> None:
        """Ask the bus for the signals with these *parts*.

        Others can be sent to us all the same, so listeners look again.
        """
        rule = ",".join(f"{key}='{value}'" for key, value in {"type": "signal", **parts}.items())
        await self.call_bus("AddMatch", "s", (rule,))

    def post(self, peer: Peer, member: str, signature: str, body: tuple[Any, ...]) -> None:
        """Call a method soon, without an answer; this may be done inside the reader."""
        if self._posting is not None:
            message = _message(peer, member, signature, body)
            message.header.flags |= MessageFlag.no_reply_expected
            self._posting.start_soon(self._send_quietly, message)

    def is_from_bus(self, signal: Received) -> bool:
        """Tell whether a signal is the bus's own."""
        return (signal.sender, signal.path, signal.interface) == (BUS_NAME, _BUS_PATH, BUS_NAME)

    # --- sending ---

    async def _send(self, message: Message, serial: int) -> None:
        try:
            await self._connection.send(message, serial=serial)
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise ChannelLost("the bus is lost") from error

    async def _send_quietly(self, message: Message) -> None:
        try:
            with trio.move_on_after(CALL_S):
                await self._send(message, next(self._connection.outgoing_serial))
        except ChannelLost as error:
            _log.debug("not sent: %s", error)

    # --- the reader ---

    async def _read(self) -> None:
        try:
            while True:
                self._take(await self._connection.receive())
        except (trio.EndOfChannel, trio.BrokenResourceError, trio.ClosedResourceError):
            _log.info("the bus has closed the connection")
        except Exception:  # noqa: BLE001 - an edge: what cannot be read ends the connection, no more
            _log.exception("the bus sent what cannot be read")

    def _take(self, message: Message) -> None:
        fields = message.header.fields
        if message.header.message_type is MessageType.signal:
            signal = Received(
                fields.get(HeaderFields.sender, ""),
                fields.get(HeaderFields.path, ""),
                fields.get(HeaderFields.interface, ""),
                fields.get(HeaderFields.member, ""),
                fields.get(HeaderFields.signature, ""),
                tuple(message.body),
            )
            for listener in tuple(self.listeners):
                listener(signal)
        elif HeaderFields.reply_serial in fields:
            self._take_reply(message)

    def _take_reply(self, message: Message) -> None:
        fields = message.header.fields
        serial = fields[HeaderFields.reply_serial]
        call = self._calls.get(serial)
        if call is None:
            return
        is_error = message.header.message_type is MessageType.error
        # The bus answers for one that has gone.
        answering = {call.peer, BUS_NAME} if is_error else {call.peer}
        sender = fields.get(HeaderFields.sender, "")
        if sender not in answering or fields.get(HeaderFields.destination) != self.unique_name:
            self._complain(f"a reply in the name of {call.peer} came from {sender}")
            return
        del self._calls[serial]
        self._settle(call, message, is_error=is_error)

    def _settle(self, call: _Call, message: Message, *, is_error: bool) -> None:
        fields = message.header.fields
        signature = fields.get(HeaderFields.signature, "")
        body = tuple(message.body)
        if is_error:
            text = body[0] if signature.startswith("s") else ""
            call.error = BusError(fields.get(HeaderFields.error_name, ""), text)
        elif signature != call.expects:
            call.error = ChannelLost(f"a reply has the signature {signature!r}")
        elif call.is_abandoned:
            if call.late is not None:
                call.late(body)
        else:
            call.body = body
            if call.arrived is not None:
                call.arrived(body)
        call.done.set()

    def _complain(self, text: str) -> None:
        """Log a forgery; one line for all, since whoever sends one can send many."""
        if not self._has_complained:
            self._has_complained = True
            _log.warning("%s; ignored, as are further ones", text)

    def _end(self) -> None:
        self._connection.socket.close()
        self.lost.set()
        for call in self._drained():
            call.error = ChannelLost("the bus is lost")
            call.done.set()

    def _drained(self) -> Iterator[_Call]:
        while self._calls:
            yield self._calls.popitem()[1]


def _message(peer: Peer, member: str, signature: str, body: tuple[Any, ...]) -> Message:
    address = DBusAddress(peer.path, peer.name, peer.interface)
    message = new_method_call(address, member, signature or None, body)
    message.header.flags |= MessageFlag.no_auto_start
    return message
