"""Lock, screen savers, do not disturb and sleep: who cannot see a question is not asked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import trio
from jeepney import HeaderFields

from lamfuse.core.approval import Answer
from lamfuse.notify.screen import Screen
from tests.notify.desktop_rig import Rig, ended, rig_on
from tests.notify.fake_logind import LOGIND, FakeLogind, FakeSaver
from tests.notify.private_bus import Client, PrivateBus, on_bus, private_bus

pytestmark = pytest.mark.requirement("H17")


@dataclass
class Office:
    """A system bus with logind, and the screen that follows it."""

    bus: PrivateBus
    logind: FakeLogind
    screen: Screen
    sleeps: list[float] = field(default_factory=list)

    async def until(self, condition: Callable[[], bool]) -> None:
        with trio.fail_after(10):
            while not condition():  # noqa: ASYNC110 - what a signal has done has no event
                await trio.sleep(0.01)


@pytest.fixture
async def office(short_dir: Path, nursery: trio.Nursery) -> AsyncIterator[Office]:
    place = short_dir / "system"
    place.mkdir()
    async with private_bus(place) as bus, on_bus(bus.address, FakeLogind) as logind:
        await logind.own(LOGIND)
        sleeps: list[float] = []
        screen = Screen(
            lambda: sleeps.append(trio.current_time()), address=lambda: bus.address, again_s=0.05
        )
        yield Office(bus, logind, screen, sleeps)
        nursery.cancel_scope.cancel()


async def test_a_lock_is_known_from_the_start(office: Office, nursery: trio.Nursery) -> None:
    office.logind.is_locked = True
    await nursery.start(office.screen.run)

    assert office.screen.is_known
    assert office.screen.is_locked


async def test_a_lock_is_followed(office: Office, nursery: trio.Nursery) -> None:
    await nursery.start(office.screen.run)
    assert not office.screen.is_locked

    await office.logind.lock(locked=True)
    await office.until(lambda: office.screen.is_locked)
    await office.logind.lock(locked=False)
    await office.until(lambda: not office.screen.is_locked)


@pytest.mark.parametrize("begins", [True, False], ids=["goes-to-sleep", "wakes"])
async def test_sleep_is_told(office: Office, nursery: trio.Nursery, *, begins: bool) -> None:
    await nursery.start(office.screen.run)
    await office.logind.sleep(begins=begins)

    await office.until(lambda: len(office.sleeps) == 1)


async def test_others_cannot_send_anybody_to_sleep_or_lock(
    office: Office, nursery: trio.Nursery
) -> None:
    await nursery.start(office.screen.run)
    caller = office.logind.heard[-1].header.fields[HeaderFields.sender]
    async with on_bus(office.bus.address, FakeLogind) as rogue:
        for to in (None, caller):
            await rogue.sleep(begins=True, to=to)
        await rogue.lock(locked=True)
    await office.logind.sleep(begins=True, path="/")
    await office.logind.sleep(begins=True, interface="org.freedesktop.Other")
    looked = office.logind.looked
    await office.logind.lock(locked=False)  # behind all that
    await office.until(lambda: office.logind.looked > looked)

    assert office.sleeps == []
    assert not office.screen.is_locked


async def test_without_a_session_nothing_is_locked(office: Office, nursery: trio.Nursery) -> None:
    office.logind.session = "/"
    office.logind.is_locked = True
    await nursery.start(office.screen.run)

    assert not office.screen.is_known
    assert not office.screen.is_locked


async def test_logind_may_come_later_and_go(office: Office, nursery: trio.Nursery) -> None:
    await office.logind.disown(LOGIND)
    office.logind.is_locked = True
    await nursery.start(office.screen.run)
    assert not office.screen.is_known

    await office.logind.own(LOGIND)
    await office.until(lambda: office.screen.is_locked)
    await office.logind.disown(LOGIND)
    await office.until(lambda: not office.screen.is_locked)


async def test_the_system_bus_may_be_restarted(office: Office, nursery: trio.Nursery) -> None:
    office.logind.is_locked = True
    await nursery.start(office.screen.run)
    office.bus.restart()
    await office.until(lambda: not office.screen.is_known)
    async with on_bus(office.bus.address, FakeLogind) as logind:
        await logind.own(LOGIND)
        await office.until(lambda: office.screen.is_known)
        await logind.sleep(begins=True)
        await office.until(lambda: len(office.sleeps) == 1)


@pytest.mark.parametrize("address", [None, "unix:path=/no/such/bus"])
async def test_without_a_system_bus_nothing_is_known(
    nursery: trio.Nursery, address: str | None
) -> None:
    screen = Screen(lambda: None, address=lambda: address)
    await nursery.start(screen.run)

    assert not screen.is_known
    assert not screen.is_locked
    nursery.cancel_scope.cancel()


class TestTheDesktopBehindIt:
    @pytest.fixture
    async def rig(
        self, short_dir: Path, nursery: trio.Nursery, office: Office
    ) -> AsyncIterator[Rig]:
        await nursery.start(office.screen.run)
        place = short_dir / "session"
        place.mkdir()
        async with rig_on(place, nursery, screen=office.screen) as rig:
            await rig.start()
            yield rig

    async def test_behind_a_lock_nothing_is_shown(self, rig: Rig, office: Office) -> None:
        await office.logind.lock(locked=True)
        await office.until(lambda: not rig.desktop.is_ready())

        assert rig.desktop.report().trouble == "the screen is locked"
        assert str((await ended(rig.ask_soon())).lost) == "the screen is locked"
        assert rig.server.posted == []

        await office.logind.lock(locked=False)
        await office.until(rig.desktop.is_ready)
        await rig.ask()

    async def test_a_lock_takes_the_question_away(self, rig: Rig, office: Office) -> None:
        asking, popup = await rig.ask()
        await office.logind.lock(locked=True)
        await ended(asking)

        assert str(asking.lost) == "the screen is locked"
        await rig.server.withdrawn(popup.number)

    @pytest.mark.parametrize(
        "name",
        [
            "org.gnome.ScreenSaver",
            "org.freedesktop.ScreenSaver",
            "org.mate.ScreenSaver",
            "org.cinnamon.ScreenSaver",
            "org.xfce.ScreenSaver",
        ],
    )
    async def test_a_screen_saver_is_a_lock(self, rig: Rig, name: str) -> None:
        async with on_bus(rig.bus.address, FakeSaver) as saver:
            await saver.own(name)
            asking, popup = await rig.ask()
            saver.is_active = True
            await ended(asking)
            assert str(asking.lost) == "the screen is locked"
            await rig.server.withdrawn(popup.number)

            assert str((await ended(rig.ask_soon())).lost) == "the screen is locked"
        assert len(rig.server.posted) == 1

    @pytest.mark.parametrize("is_mute", [False, True], ids=["knows-no-such-call", "mute"])
    async def test_a_screen_saver_that_does_not_tell_covers_nothing(
        self, rig: Rig, *, is_mute: bool
    ) -> None:
        async with on_bus(rig.bus.address, Client) as saver:
            await saver.own("org.freedesktop.ScreenSaver")
            saver.is_mute = is_mute
            asking, popup = await rig.ask()
            await rig.server.press(popup, "deny")
            await ended(asking)

        assert asking.answer == Answer(allow=False, channel="desktop")

    async def test_dunst_that_is_paused_shows_nothing(
        self, short_dir: Path, nursery: trio.Nursery
    ) -> None:
        place = short_dir / "dunst"
        place.mkdir()
        async with rig_on(place, nursery) as rig:
            rig.server.server_name = "dunst"
            await rig.start()
            asking, popup = await rig.ask()
            rig.server.is_paused = True
            await ended(asking)
            assert "do not disturb" in str(asking.lost)
            await rig.server.withdrawn(popup.number)

            assert "do not disturb" in str((await ended(rig.ask_soon())).lost)
            assert len(rig.server.posted) == 1
