"""The connection to a bus: where it is, who may answer, and that every wait ends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from lamfuse.core.errors import ChannelLost
from lamfuse.notify.bus import Bus, BusError, Peer, connect, session_address, system_address
from tests.notify.private_bus import Client, PrivateBus, Unhandled, on_bus, private_bus


class Echo(Client):
    """Answers with what it was sent, or with what the method's name asks for."""

    async def handle(
        self, interface: str, member: str, body: tuple[Any, ...]
    ) -> tuple[str, tuple[Any, ...]]:
        match member:
            case "Echo":
                return "s", body
            case "Nothing":
                return "", ()
        raise Unhandled


@asynccontextmanager
async def connected(private: PrivateBus) -> AsyncIterator[Bus]:
    bus = await connect(private.address)
    async with trio.open_nursery() as nursery:
        await nursery.start(bus.run)
        yield bus
        nursery.cancel_scope.cancel()


@pytest.fixture
async def private(short_dir: Path) -> AsyncIterator[PrivateBus]:
    async with private_bus(short_dir) as private:
        yield private


async def test_a_call_is_answered(private: PrivateBus) -> None:
    async with connected(private) as bus, on_bus(private.address, Echo) as echo:
        peer = Peer(echo.name, "/", "test.Echo")

        assert await bus.call(peer, "Echo", "s", ("hello",), expects="s") == ("hello",)
        assert await bus.call(peer, "Nothing") == ()


@pytest.mark.parametrize(
    ("member", "expects", "kind", "why"),
    [
        pytest.param("Echo", "u", ChannelLost, "signature 's'", id="other-signature"),
        pytest.param("Echo", "", ChannelLost, "signature 's'", id="more-than-expected"),
        pytest.param("Nothing", "s", ChannelLost, "signature ''", id="less-than-expected"),
        pytest.param("Unheard", "s", BusError, "UnknownMethod", id="error"),
    ],
)
async def test_an_answer_of_another_kind_is_none(
    private: PrivateBus, member: str, expects: str, kind: type[ChannelLost], why: str
) -> None:
    async with connected(private) as bus, on_bus(private.address, Echo) as echo:
        peer = Peer(echo.name, "/", "test.Echo")
        with pytest.raises(kind, match=why):
            await bus.call(peer, member, "s", ("hello",), expects=expects)


@pytest.mark.requirement("H17")
async def test_whoever_leaves_is_answered_for_by_the_bus(private: PrivateBus) -> None:
    async with connected(private) as bus, on_bus(private.address, Echo) as echo:
        echo.is_mute = True
        peer = Peer(echo.name, "/", "test.Echo")
        problems: list[BusError] = []

        async def call() -> None:
            with pytest.raises(BusError) as caught:
                await bus.call(peer, "Echo", "s", ("hello",), expects="s")
            problems.append(caught.value)

        with trio.fail_after(4):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(call)
                while not echo.heard or echo.heard[-1].body != ("hello",):
                    await echo.heard_more()
                await echo.connection.aclose()

        assert problems[0].name == "org.freedesktop.DBus.Error.NoReply"


@pytest.mark.requirement("H17")
async def test_silence_has_an_end(private: PrivateBus) -> None:
    async with connected(private) as bus, on_bus(private.address, Echo) as echo:
        echo.is_mute = True
        with pytest.raises(ChannelLost, match=r"no answer to Echo within 0\.1 s"):
            await bus.call(Peer(echo.name, "/", "test.Echo"), "Echo", timeout_s=0.1)


async def test_nobody_is_started_for_a_call(private: PrivateBus) -> None:
    service = "[D-BUS Service]\nName=test.Started\nExec=/bin/false\n"
    (private.services / "started.service").write_text(service)
    async with connected(private) as bus:
        await bus.call_bus("ReloadConfig", "", ())
        with pytest.raises(BusError) as caught:
            await bus.call(Peer("test.Started", "/", "test.Echo"), "Echo")

    assert caught.value.name.endswith((".NameHasNoOwner", ".ServiceUnknown"))


@pytest.mark.requirement("H17")
async def test_on_a_lost_bus_nothing_waits(private: PrivateBus) -> None:
    async with connected(private) as bus:
        private.end()
        with trio.fail_after(4):
            await bus.lost.wait()
        with pytest.raises(ChannelLost, match="the bus is lost"):
            await bus.call_bus("ListNames", "", (), expects="as")
        private.restart()


async def test_what_is_said_in_an_error_is_made_visible() -> None:
    await trio.lowlevel.checkpoint()

    assert str(BusError("a.b", "no\x1b[2J\n")) == r"a.b: no\x1b[2J\n"


@pytest.mark.parametrize(
    ("variable", "has_socket", "found"),
    [
        pytest.param("unix:path=/a/bus", True, "unix:path=/a/bus", id="told"),
        pytest.param("", True, "unix:path={runtime}/bus", id="in-the-runtime-folder"),
        pytest.param(None, True, "unix:path={runtime}/bus", id="not-told"),
        pytest.param(None, False, None, id="nowhere"),
    ],
)
def test_where_the_session_bus_is(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    variable: str | None,
    has_socket: bool,
    found: str | None,
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    if variable is not None:
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", variable)
    if has_socket:
        (tmp_path / "bus").touch()

    assert session_address() == (found.format(runtime=tmp_path) if found else None)


def test_where_the_system_bus_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DBUS_SYSTEM_BUS_ADDRESS", raising=False)
    assert system_address() == "unix:path=/run/dbus/system_bus_socket"
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/a/bus")
    assert system_address() == "unix:path=/a/bus"
