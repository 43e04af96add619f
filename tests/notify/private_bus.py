"""A message bus of the test's own, and clients on it that do what they please.

The bus has the policy of a session bus as it is shipped: everybody may send anything to anybody.
"""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import trio
from jeepney import (
    DBusAddress,
    HeaderFields,
    Message,
    MessageFlag,
    MessageType,
    new_error,
    new_method_call,
    new_method_return,
    new_signal,
)
from jeepney.io.trio import DBusConnection, open_dbus_connection

__all__ = ["Client", "PrivateBus", "Unhandled", "on_bus", "private_bus"]

CONFIG = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:path={place}/bus</listen>
  <auth>EXTERNAL</auth>
  <servicedir>{place}/services</servicedir>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
"""
DBUS = DBusAddress("/org/freedesktop/DBus", "org.freedesktop.DBus", "org.freedesktop.DBus")


class PrivateBus:
    """A running dbus-daemon; *services* holds what it may start."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.address = f"unix:path={place}/bus"
        self.services = place / "services"
        self.services.mkdir(exist_ok=True)
        config = place / "bus.conf"
        config.write_text(CONFIG.format(place=place))
        self._config = config
        self.process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            ["dbus-daemon", f"--config-file={self._config}", "--nofork", "--print-address"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert process.stdout is not None
        assert process.stdout.readline(), "the bus did not start"
        return process

    def restart(self) -> None:
        """End the bus, and start another one in its place."""
        self.end()
        (self.place / "bus").unlink(missing_ok=True)
        self.process = self._start()

    def end(self) -> None:
        """End the bus at once."""
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@asynccontextmanager
async def private_bus(place: Path) -> AsyncIterator[PrivateBus]:
    """Run a bus below *place*."""
    bus = PrivateBus(place)
    try:
        yield bus
    finally:
        bus.end()
        await trio.lowlevel.checkpoint()


class Unhandled(Exception):  # noqa: N818 - it is no error of the test
    """A method that a client does not have."""


class Client:
    """Somebody on the bus. A subclass says in :meth:`handle` what it answers."""

    def __init__(self, connection: DBusConnection) -> None:
        self.connection = connection
        self.name: str = connection.unique_name
        self.heard: list[Message] = []
        self.is_mute = False
        self._serials = itertools.count(1_000_000)
        self._replies: dict[int, Message] = {}
        self._stirred = trio.Event()

    async def run(self) -> None:
        """Answer until the connection ends."""
        try:
            while True:
                message = await self.connection.receive()
                self.heard.append(message)
                kind = message.header.message_type
                if kind is MessageType.method_call:
                    if not self.is_mute:
                        await self._answer(message)
                elif kind is not MessageType.signal:
                    self._replies[message.header.fields[HeaderFields.reply_serial]] = message
                self.stir()
        except (trio.EndOfChannel, trio.BrokenResourceError, trio.ClosedResourceError):
            return

    async def _answer(self, message: Message) -> None:
        fields = message.header.fields
        try:
            signature, body = await self.handle(
                fields.get(HeaderFields.interface, ""), fields[HeaderFields.member], message.body
            )
            reply = new_method_return(message, signature or None, body)
        except Unhandled:
            reply = new_error(message, "org.freedesktop.DBus.Error.UnknownMethod")
        if not message.header.flags & MessageFlag.no_reply_expected:
            await self.connection.send(reply)

    async def handle(
        self, interface: str, member: str, body: tuple[Any, ...]
    ) -> tuple[str, tuple[Any, ...]]:
        """Answer a call with signature and body."""
        raise Unhandled

    def stir(self) -> None:
        """Wake those who wait for something to be heard."""
        self._stirred.set()
        self._stirred = trio.Event()

    async def heard_more(self) -> None:
        """Wait until something was heard."""
        await self._stirred.wait()

    async def call_bus(self, member: str, signature: str, body: tuple[Any, ...]) -> Message:
        """Call the bus and return its reply."""
        return await self.call(DBUS, member, signature, body)

    async def call(
        self, address: DBusAddress, member: str, signature: str = "", body: tuple[Any, ...] = ()
    ) -> Message:
        serial = next(self._serials)
        message = new_method_call(address, member, signature or None, body)
        with trio.fail_after(10):
            await self.connection.send(message, serial=serial)
            while serial not in self._replies:
                await self.heard_more()
        return self._replies.pop(serial)

    async def own(self, name: str, flags: int = 0) -> None:
        """Take a name: flag 1 lets others take it over, 2 takes it over."""
        reply = await self.call_bus("RequestName", "su", (name, flags))
        assert reply.body == (1,), f"{name} was not to be had: {reply.body}"

    async def disown(self, name: str) -> None:
        await self.call_bus("ReleaseName", "s", (name,))

    async def emit(
        self,
        path: str,
        interface: str,
        member: str,
        signature: str,
        body: tuple[Any, ...],
        *,
        to: str | None = None,
    ) -> None:
        """Send a signal, to everybody or to one."""
        message = new_signal(DBusAddress(path, interface=interface), member, signature, body)
        if to is not None:
            message.header.fields[HeaderFields.destination] = to
        await self.connection.send(message)


_Client = TypeVar("_Client", bound=Client)


@asynccontextmanager
async def on_bus(address: str, kind: type[_Client]) -> AsyncIterator[_Client]:
    """Have a client on the bus, answering."""
    async with trio.open_nursery() as nursery:
        connection = await open_dbus_connection(address)
        async with connection:
            client = kind(connection)
            nursery.start_soon(client.run)
            yield client
            nursery.cancel_scope.cancel()
