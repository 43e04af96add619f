"""The desktop channel: what it shows, what counts as an answer, and what never does."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import trio

from lamfuse.core.approval import Answer, Question, Scope
from lamfuse.notify.desktop import Desktop
from lamfuse.notify.popup import ARMING_S as REAL_ARMING_S
from tests.contract.notifier import Asking, Desk, NotifierContract
from tests.notify.desktop_rig import ARMING_S, Rig, ended, rig_on, standing
from tests.notify.fake_notifications import NOTIFICATIONS, FakeServer
from tests.notify.private_bus import PrivateBus, on_bus


@pytest.fixture
async def rig(short_dir: Path, nursery: trio.Nursery) -> AsyncIterator[Rig]:
    async with rig_on(short_dir, nursery) as rig:
        await rig.start()
        yield rig


#: Long enough that a busy machine still answers before it is over.
SLOW_S = 0.6


@pytest.fixture
async def slow_rig(short_dir: Path, nursery: trio.Nursery) -> AsyncIterator[Rig]:
    async with rig_on(short_dir, nursery, arming_s=SLOW_S) as rig:
        await rig.start()
        yield rig


class DesktopDesk(Desk):
    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.notifier = rig.desktop

    async def answer(self, question: Question, *, allow: bool, scope: Scope | None) -> None:
        await trio.sleep(ARMING_S * 1.2)
        key = str(scope or question.default) if allow else "deny"
        await self.rig.server.press(self.rig.server.posted[-1], key)

    async def garbage(self, question: Question) -> None:
        await self.rig.server.invoke(self.rig.server.posted[-1].number, "default")

    async def end(self, question: Question) -> None:
        await self.rig.server.close(self.rig.server.posted[-1].number, 1)

    async def is_withdrawn(self, question: Question) -> bool:
        await self.rig.server.withdrawn(self.rig.server.posted[-1].number)
        return True


class TestDesktop(NotifierContract):
    garbage_ends = False

    @pytest.fixture
    def desk(self, rig: Rig) -> DesktopDesk:
        return DesktopDesk(rig)

    # Three buttons at most: a no, the plain yes, and the widest one.
    @pytest.mark.requirement("H4")
    @pytest.mark.parametrize("scope", [None, Scope.FILE, Scope.FOLDER])
    async def test_a_yes_has_the_scope_that_was_chosen(
        self, desk: Desk, ask: Callable[[], Awaitable[Asking]], scope: Scope | None
    ) -> None:
        await super().test_a_yes_has_the_scope_that_was_chosen(desk, ask, scope)


async def test_the_notification_is_as_grave_as_there_is_and_stays(rig: Rig) -> None:
    _, popup = await rig.ask()

    assert popup.title == "Overwrite? [k7f2]"
    assert popup.body.splitlines() == [
        "~/Downloads/report.md",
        "/home/lam/Downloads/report.md",
        "Replaces 1,240 bytes, 40 lines.",
        "by python3.12 (pid 4411), session claude-1 · declines in 57 s · 2 more waiting",
    ]
    assert list(popup.actions.values()) == [
        "Decline",
        "Allow",
        "Allow folder this turn (3 files in it)",
    ]
    assert popup.timeout == 0
    assert popup.replaces == 0
    assert popup.hints == {
        "urgency": ("y", 2),
        "resident": ("b", True),
        "transient": ("b", False),
        "category": ("s", "x-lamfuse.approval"),
        "desktop-entry": ("s", "lamfuse"),
    }


@pytest.mark.requirement("H17")
@pytest.mark.parametrize(
    ("reason", "said"),
    [
        pytest.param(1, "expired", id="expired"),
        pytest.param(2, None, id="dismissed"),
        pytest.param(3, "by a program", id="closed-by-a-call"),
        pytest.param(4, "closed", id="undefined"),
        pytest.param(77, "nobody knows why", id="unheard-of"),
    ],
)
async def test_of_all_ends_only_a_dismissal_is_a_no(
    rig: Rig, reason: int, said: str | None
) -> None:
    asking, popup = await rig.ask()
    await rig.server.close(popup.number, reason)
    await ended(asking)

    if said is None:
        assert asking.answer == Answer(allow=False, channel="desktop")
    else:
        assert asking.answer is None
        assert said in str(asking.lost)


@pytest.mark.parametrize("order", ["click-first", "close-first"])
async def test_the_first_thing_that_happens_counts(rig: Rig, order: str) -> None:
    asking, popup = await rig.ask()
    if order == "click-first":
        await rig.server.press(popup, "file")
        await rig.server.close(popup.number, 2)
    else:
        await rig.server.close(popup.number, 2)
        await rig.server.press(popup, "file")
    await ended(asking)

    assert asking.answer is not None
    assert asking.answer.allow is (order == "click-first")


def test_the_arming_delay_is_what_the_tests_of_it_stand_for() -> None:
    assert REAL_ARMING_S == 0.7


@pytest.mark.requirement("H4")
async def test_a_yes_that_comes_too_fast_is_asked_again_with_other_keys(slow_rig: Rig) -> None:
    asking = slow_rig.ask_soon()
    first = await slow_rig.server.shown(1)
    await slow_rig.server.press(first, "file")
    second = await slow_rig.server.shown(2)
    await slow_rig.server.press(second, "folder")  # the delay begins anew
    third = await slow_rig.server.shown(3)

    assert not asking.ended.is_set()
    assert slow_rig.server.closed == [first.number, second.number]
    assert "too fast to count. Please look again (1)." in second.body
    assert "(2)" in third.body
    assert not set(first.actions) & set(second.actions)
    assert not set(second.actions) & set(third.actions)

    await trio.sleep(SLOW_S * 1.2)
    await slow_rig.server.invoke(third.number, first.key("file"))  # the key of an earlier attempt
    await slow_rig.server.press(first, "file")  # an earlier attempt itself
    await slow_rig.settled()
    assert not asking.ended.is_set()
    await slow_rig.server.press(third, "file")
    await ended(asking)

    assert asking.answer == Answer(allow=True, scope=Scope.FILE, channel="desktop")
    assert asking.times_shown == 1


async def test_a_no_counts_at_once(rig: Rig) -> None:
    asking = rig.ask_soon()
    await rig.server.press(await rig.server.shown(), "deny")
    await ended(asking)

    assert asking.answer == Answer(allow=False, channel="desktop")


@pytest.mark.requirement("H17")
async def test_a_server_that_always_allows_at_once_is_given_up(slow_rig: Rig) -> None:
    asking = slow_rig.ask_soon()
    for count in range(1, 11):
        await slow_rig.server.press(await slow_rig.server.shown(count), "file")
    await ended(asking)

    assert asking.answer is None
    assert "faster than any person" in str(asking.lost)
    assert len(slow_rig.server.closed) == 10


@pytest.mark.requirement("H17")
async def test_one_notification_at_a_time(rig: Rig) -> None:
    first, _ = await rig.ask()
    second = rig.ask_soon()
    await rig.settled()
    assert len(rig.server.posted) == 1

    await rig.server.press(rig.server.posted[0], "deny")
    await ended(first)
    await rig.server.shown(2)

    assert rig.server.closed == [rig.server.posted[0].number]
    assert not second.ended.is_set()


async def test_an_answered_notification_is_taken_away(rig: Rig) -> None:
    asking, popup = await rig.ask()
    await rig.server.press(popup, "file")
    await ended(asking)

    await rig.server.withdrawn(popup.number)


@pytest.mark.requirement("L4")
async def test_withdrawn_before_the_server_has_told_its_number(rig: Rig) -> None:
    rig.server.held = trio.Event()
    asking = rig.ask_soon()
    popup = await rig.server.shown()
    asking.scope.cancel()
    await ended(asking)
    assert not asking.shown.is_set()
    assert rig.server.closed == []

    rig.server.held.set()

    await rig.server.withdrawn(popup.number)


async def test_at_the_end_of_the_channel_nothing_stays_on_screen(rig: Rig) -> None:
    asking, popup = await rig.ask()
    rig.running.cancel()
    await ended(asking)

    assert asking.lost is not None
    await rig.server.withdrawn(popup.number)


@pytest.mark.requirement("H17")
async def test_a_server_without_actions_is_not_used(short_dir: Path, nursery: trio.Nursery) -> None:
    async with rig_on(short_dir, nursery) as rig:
        rig.server.capabilities = ["body", "body-markup"]
        await rig.start()

        assert not rig.desktop.is_ready()
        assert rig.desktop.report().trouble == "fake cannot show buttons"
        asking = await ended(rig.ask_soon())
        assert "cannot show buttons" in str(asking.lost)
        assert rig.server.posted == []


@pytest.mark.parametrize("name", ["dunst", "mako"])
async def test_where_there_are_no_buttons_the_command_is_named(
    short_dir: Path, nursery: trio.Nursery, name: str
) -> None:
    async with rig_on(short_dir, nursery) as rig:
        rig.server.server_name = name
        await rig.start()
        _, popup = await rig.ask()

        assert "To answer: lamfuse allow k7f2, or deny" in popup.body.splitlines()
        assert next(iter(popup.actions.values())) == "Decline"


async def test_gnome_shell_makes_one_line_of_the_text_so_it_gets_one(
    short_dir: Path, nursery: trio.Nursery
) -> None:
    async with rig_on(short_dir, nursery) as rig:
        rig.server.server_name = "gnome-shell"
        await rig.start()
        _, popup = await rig.ask()

        assert "\n" not in popup.body
        assert popup.body.startswith("~/Downloads/report.md \u2215 /home/lam")


@pytest.mark.requirement("H17")
async def test_with_gnome_shell_itself_the_question_goes(
    short_dir: Path, nursery: trio.Nursery
) -> None:
    async with rig_on(short_dir, nursery) as rig:
        rig.server.server_name = "gnome-shell"
        await rig.rogue.own("org.gnome.Shell")
        await rig.start()
        asking, _ = await rig.ask()
        await rig.rogue.disown("org.gnome.Shell")
        await ended(asking)

        assert str(asking.lost) == "GNOME Shell is gone"


class TestServersThatFail:
    pytestmark = pytest.mark.requirement("H17")

    async def test_the_server_leaves(self, rig: Rig) -> None:
        asking, _ = await rig.ask()
        await rig.server.disown(NOTIFICATIONS)
        await ended(asking)

        assert str(asking.lost) == "the notification server is gone"
        assert not rig.desktop.is_ready()
        assert rig.desktop.report().trouble == "no notification server"

    async def test_another_one_asks_the_next_question(self, rig: Rig) -> None:
        asking, popup = await rig.ask()
        async with on_bus(rig.bus.address, FakeServer) as other:
            await other.own(NOTIFICATIONS, 2)  # taken over while the question stands
            await ended(asking)
            assert str(asking.lost) == "the notification server is gone"
            await rig.server.withdrawn(popup.number)  # by the old one, on whose screen it stands

            following = rig.ask_soon()
            shown = await other.shown()
            assert shown.number == popup.number  # numbers begin anew
            await rig.server.press(popup, "file")  # what the old one says is nothing
            await trio.sleep(ARMING_S * 1.2)
            await other.press(shown, "deny")
            await ended(following)

        assert following.answer == Answer(allow=False, channel="desktop")

    async def test_it_is_killed_while_it_takes_the_question(self, rig: Rig) -> None:
        rig.server.held = trio.Event()
        asking = rig.ask_soon()
        await rig.server.shown()
        await rig.server.connection.aclose()
        await ended(asking)

        assert asking.answer is None
        assert not asking.shown.is_set()

    async def test_it_says_no_number(self, rig: Rig) -> None:
        rig.server.notify_signature = "s"
        asking = await ended(rig.ask_soon())

        assert "signature" in str(asking.lost)

    async def test_it_is_mute(self, short_dir: Path, nursery: trio.Nursery) -> None:
        async with rig_on(short_dir, nursery) as rig:
            rig.server.is_mute = True
            began = trio.current_time()
            await rig.start()

            assert trio.current_time() - began < 4.0
            assert rig.desktop.report().server is None

    async def test_it_takes_the_question_too_late(self, rig: Rig) -> None:
        rig.server.held = trio.Event()
        asking = await ended(rig.ask_soon())
        assert str(asking.lost) == "no answer to Notify within 5 s"
        assert not asking.shown.is_set()

        rig.server.held.set()

        await rig.server.withdrawn(rig.server.posted[0].number)

    async def test_it_takes_nothing_back(self, rig: Rig) -> None:
        asking, _ = await rig.ask()
        rig.server.is_mute = True
        began = trio.current_time()
        asking.scope.cancel()
        await ended(asking)

        assert trio.current_time() - began < 1.5

    async def test_there_is_none(self, short_dir: Path, nursery: trio.Nursery) -> None:
        async with rig_on(short_dir, nursery, owns=False) as rig:
            await rig.start()

            assert not rig.desktop.is_ready()
            assert "no notification server" in str((await ended(rig.ask_soon())).lost)

            await rig.server.own(NOTIFICATIONS)
            await rig.until_ready()
            await rig.ask()

    async def test_it_is_to_be_started_and_fails(
        self, short_dir: Path, nursery: trio.Nursery
    ) -> None:
        async with rig_on(short_dir, nursery, owns=False) as rig:
            service = f"[D-BUS Service]\nName={NOTIFICATIONS}\nExec=/bin/false\n"
            (rig.bus.services / "fails.service").write_text(service)
            await rig.rogue.call_bus("ReloadConfig", "", ())
            await rig.start()

            assert rig.desktop.is_ready()
            asking = await ended(rig.ask_soon())
            assert asking.lost is not None
            assert not rig.desktop.is_ready()  # not at once again


class TestBusesThatFail:
    pytestmark = pytest.mark.requirement("H17")

    async def test_the_bus_is_killed(self, rig: Rig) -> None:
        asking, _ = await rig.ask()
        rig.bus.end()
        await ended(asking)

        assert str(asking.lost) == "the session bus is lost"
        assert not rig.desktop.is_ready()
        rig.bus.restart()

    async def test_the_next_bus_is_found(self, rig: Rig) -> None:
        asking, _ = await rig.ask()
        rig.bus.restart()
        await ended(asking)
        async with on_bus(rig.bus.address, FakeServer) as server:
            await server.own(NOTIFICATIONS)
            await rig.until_ready()
            following = rig.ask_soon()
            await server.press(await server.shown(), "deny")
            await ended(following)

        assert following.answer == Answer(allow=False, channel="desktop")

    async def test_without_a_bus_nothing_is_asked(self, nursery: trio.Nursery) -> None:
        desktop = Desktop(b"/home/lam", standing, address=lambda: None)
        await nursery.start(desktop.run)

        assert not desktop.is_ready()
        assert desktop.report().trouble == "there is no session bus"
        nursery.cancel_scope.cancel()

    @pytest.mark.parametrize(
        "address",
        ["", "nonsense", "tcp:host=localhost,port=1", "unix:path=/no/such/bus", "unix:tmpdir=/"],
    )
    async def test_an_address_that_leads_nowhere(self, nursery: trio.Nursery, address: str) -> None:
        desktop = Desktop(b"/home/lam", standing, address=lambda: address)
        await nursery.start(desktop.run)

        assert not desktop.is_ready()
        assert desktop.report().trouble
        nursery.cancel_scope.cancel()

    @pytest.mark.parametrize("says", [b"", b"REJECTED EXTERNAL\r\n", b"OK 1\r\nOK 2\r\n"])
    async def test_a_socket_that_is_no_bus(
        self, short_dir: Path, nursery: trio.Nursery, says: bytes
    ) -> None:
        async def serve(stream: trio.SocketStream) -> None:
            async with stream:
                await stream.receive_some()
                await stream.send_all(says)

        await self._serve(short_dir, nursery, serve)
        desktop = Desktop(b"/home/lam", standing, address=lambda: f"unix:path={short_dir}/bus")
        await nursery.start(desktop.run)

        assert "no connection" in desktop.report().trouble
        nursery.cancel_scope.cancel()

    async def test_a_mute_socket_is_left_in_time(
        self, short_dir: Path, nursery: trio.Nursery
    ) -> None:
        async def serve(stream: trio.SocketStream) -> None:
            async with stream:
                await trio.sleep_forever()

        await self._serve(short_dir, nursery, serve)
        desktop = Desktop(b"/home/lam", standing, address=lambda: f"unix:path={short_dir}/bus")
        began = trio.current_time()
        await nursery.start(desktop.run)

        assert trio.current_time() - began < 4.0
        assert "did not let us in within 3 s" in desktop.report().trouble
        nursery.cancel_scope.cancel()

    async def test_a_bus_that_falls_silent(self, rig: Rig) -> None:
        asking, _ = await rig.ask()
        _stop(rig.bus)
        try:
            began = trio.current_time()
            asking.scope.cancel()
            await ended(asking)
            following = await ended(rig.ask_soon())
            took = trio.current_time() - began
        finally:
            _go_on(rig.bus)

        assert following.answer is None
        assert "no answer" in str(following.lost)
        assert took < 3.0

    @staticmethod
    async def _serve(
        place: Path,
        nursery: trio.Nursery,
        serve: Callable[[trio.SocketStream], Awaitable[None]],
    ) -> None:
        listening = trio.socket.socket(trio.socket.AF_UNIX)
        await listening.bind(f"{place}/bus")
        listening.listen()
        nursery.start_soon(trio.serve_listeners, serve, [trio.SocketListener(listening)])


def _stop(bus: PrivateBus) -> None:
    bus.process.send_signal(signal.SIGSTOP)


def _go_on(bus: PrivateBus) -> None:
    bus.process.send_signal(signal.SIGCONT)
