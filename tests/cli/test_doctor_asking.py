"""What the doctor finds about asking a person: the desktop, the channels, the kernel's patience."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Self

import msgspec
import pytest
import trio

from lamfuse.cli.probes import asking, notifications, talk
from lamfuse.cli.probes.finding import Finding, Level
from lamfuse.cli.probes.machine import Done
from lamfuse.cli.probes.notifications import Pressed, Seen, Trial
from lamfuse.cli.probes.subject import Subject
from lamfuse.cli.probes.talk import Said
from lamfuse.control import wire
from lamfuse.core.errors import ChannelLost
from lamfuse.notify.popup import ARMING_S
from lamfuse.store.config import Approval
from tests.cli.fake_machine import FakeMachine, must_be_useful, only
from tests.control.fake_backend import make_status
from tests.notify.fake_notifications import NOTIFICATIONS, FakeServer
from tests.notify.private_bus import on_bus, private_bus

pytestmark = pytest.mark.requirement("L8")

ADDRESS = "unix:path=/nowhere"
SERVER = Seen(name="KDE", version="6", capabilities=("actions", "body"), has_buttons=True)


def desktop(seen: Seen, machine: FakeMachine | None = None) -> tuple[list[Finding], Seen | None]:
    found, usable = asking.desktop(machine or FakeMachine(), ADDRESS, lambda _address: seen)
    for finding in found:
        must_be_useful(finding)
    return found, usable


# --- the desktop


def test_a_server_with_buttons_is_well() -> None:
    found, usable = desktop(SERVER)

    assert {finding.level for finding in found} == {Level.OK}
    assert usable == SERVER
    assert only(found, "asking.server").what.endswith("KDE 6 (it can do: actions, body).")


def test_without_a_session_bus_there_is_a_note() -> None:
    (found,), usable = asking.desktop(FakeMachine(), None, lambda _address: SERVER)

    assert (found.check, found.level, usable) == ("asking.bus", Level.NOTE, None)
    must_be_useful(found)


def test_a_mute_bus_is_a_note() -> None:
    def ask(_address: str) -> Seen:
        raise ChannelLost("the bus did not let us in within 3 s")

    (found,), usable = asking.desktop(FakeMachine(), ADDRESS, ask)

    assert (found.check, found.level, usable) == ("asking.bus", Level.NOTE, None)
    assert "did not let us in" in found.what
    must_be_useful(found)


@pytest.mark.parametrize(
    ("seen", "check", "words", "is_usable"),
    [
        pytest.param(Seen(), "asking.server", "No notification server runs", False, id="none"),
        pytest.param(
            replace(SERVER, capabilities=("body\x1b",)), "asking.server",
            "has no buttons (it can do: body\\x1b)", False, id="no-actions",
        ),
        pytest.param(
            replace(SERVER, has_buttons=False), "asking.server", "in a menu only", True, id="menu"
        ),
        pytest.param(
            replace(SERVER, is_quiet=True), "asking.quiet", "shows nothing then", False, id="quiet"
        ),
        pytest.param(
            replace(SERVER, is_locked=True), "asking.locked", "screen is locked", False, id="locked"
        ),
    ],
)  # fmt: skip
def test_what_keeps_a_question_from_the_screen_is_a_note(
    seen: Seen, check: str, words: str, is_usable: bool
) -> None:
    found, usable = desktop(seen)

    finding = only(found, check)
    assert finding.level is Level.NOTE
    assert words in finding.what
    assert (usable is not None) is is_usable


def test_a_server_that_the_bus_can_start_is_well() -> None:
    found, usable = desktop(Seen(can_start=True))

    assert {finding.level for finding in found} == {Level.OK}
    assert usable is not None


@pytest.mark.parametrize(
    ("name", "said", "is_quiet"),
    [
        pytest.param("gnome-shell", Done(0, "false\n"), True, id="gnome-quiet"),
        pytest.param("gnome-shell", Done(0, "true\n"), False, id="gnome"),
        pytest.param("gnome-shell", Done(1, "", "no schema"), False, id="gnome-unknown"),
        pytest.param("xfce4-notifyd", Done(0, "true\n"), True, id="xfce-quiet"),
        pytest.param("xfce4-notifyd", Done(None), False, id="xfce-mute"),
        pytest.param("KDE", Done(0, "true\n"), False, id="another"),
    ],
)
def test_do_not_disturb_in_the_settings_is_a_note_and_questions_are_shown(
    name: str, said: Done, is_quiet: bool
) -> None:
    machine = FakeMachine(
        programs={"gsettings", "xfconf-query"}, said={"gsettings": said, "xfconf-query": said}
    )

    found, usable = desktop(replace(SERVER, name=name), machine)

    assert only(found, "asking.quiet").level is (Level.NOTE if is_quiet else Level.OK)
    assert usable is not None


def test_a_setting_that_cannot_be_read_is_not_asked_for() -> None:
    machine = FakeMachine()

    assert not notifications.does_not_disturb(machine, "gnome-shell")
    assert machine.ran == []


# --- channels


def status(*, ready: bool, watchers: int = 0) -> wire.Status:
    channels = (wire.ChannelView(name="terminal", ready=ready),)
    return msgspec.structs.replace(make_status(), channels=channels, watchers=watchers)


@pytest.mark.parametrize(
    ("approval", "told", "seen", "level", "words"),
    [
        pytest.param(Approval(), status(ready=True), None, Level.OK, "by: terminal", id="ready"),
        pytest.param(
            Approval(), status(ready=False, watchers=2), None, Level.OK, "lamfuse watch", id="watch"
        ),
        pytest.param(
            Approval(), status(ready=False), SERVER, Level.PROBLEM, "Nobody can be asked", id="none"
        ),
        pytest.param(
            Approval(wait_for_cli=True), status(ready=False), None, Level.OK, "pending", id="cli"
        ),
        pytest.param(
            Approval(), None, SERVER, Level.OK, "desktop, terminal (with", id="would-be-both"
        ),
        pytest.param(
            Approval(channels=("program",), program=("/bin/x",)), None, None, Level.OK,
            "by: program", id="would-be-a-program",
        ),
        pytest.param(
            Approval(channels=("desktop",)), None, None, Level.NOTE, "could ask nobody",
            id="would-be-nobody",
        ),
    ],
)  # fmt: skip
def test_whether_anybody_can_be_asked_now(
    approval: Approval, told: wire.Status | None, seen: Seen | None, level: Level, words: str
) -> None:
    found = asking.readiness(approval, told, seen)

    assert found.level is level
    assert words in found.what
    must_be_useful(found)


@pytest.mark.parametrize("mode", [0o700, 0o600, None])
def test_the_program_that_asks_has_to_be_one(tmp_path: Path, mode: int | None) -> None:
    place = tmp_path / "ask"
    if mode is not None:
        place.touch()
        place.chmod(mode)

    found = asking.program(bytes(place))

    assert found.level is (Level.OK if mode == 0o700 else Level.PROBLEM)
    must_be_useful(found)


def test_a_directory_is_no_program(tmp_path: Path) -> None:
    assert asking.program(bytes(tmp_path)).level is Level.PROBLEM


# --- the kernel's patience


@pytest.mark.parametrize(
    ("most", "usual", "total", "level", "words"),
    [
        pytest.param("0", "0", 110.0, Level.OK, "no limit", id="none"),
        pytest.param(None, None, 110.0, Level.OK, "no limit", id="kernel-without"),
        pytest.param("300", "0", 110.0, Level.OK, "at most 110 s", id="far"),
        pytest.param("100", "0", 110.0, Level.NOTE, "waits 80 s, not 110 s", id="near"),
        pytest.param("1", "0", 110.0, Level.NOTE, "after 15 s of waiting", id="least"),
        pytest.param("0", "100", 110.0, Level.PROBLEM, "may wait 110 s", id="usual"),
        pytest.param("0", "200", 110.0, Level.OK, "at most 110 s", id="usual-far"),
        pytest.param("200", "20", 110.0, Level.PROBLEM, "after 20 s", id="usual-below-most"),
        pytest.param("20", "100", 110.0, Level.NOTE, "waits 16 s", id="most-below-usual"),
    ],
)
def test_a_question_is_over_before_the_kernel_loses_patience(
    most: str | None, usual: str | None, total: float, level: Level, words: str
) -> None:
    limits = {"max_request_timeout": most, "default_request_timeout": usual}
    texts = {f"/proc/sys/fs/fuse/{name}": value for name, value in limits.items() if value}

    found = asking.waiting(FakeMachine(texts=texts), Approval(total_timeout_s=total))

    assert found.level is level
    assert words in found.what
    must_be_useful(found)


# --- all of it


def test_what_is_configured_is_looked_at(
    person: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(talk, "status_of", lambda _socket: Said())
    config = tmp_path / "c.toml"
    config.write_text('[approval]\nchannels = ["program"]\nprogram = ["/bin/true"]\n')
    config.chmod(0o600)

    found = list(asking.look(Subject(FakeMachine(), config_file=bytes(config))))

    checks = ["asking.desktop", "asking.program", "asking.channels", "asking.kernel_limit"]
    assert [finding.check for finding in found] == checks
    assert {finding.level for finding in found} == {Level.OK}


def test_a_mute_daemon_is_not_judged_twice(person: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(talk, "status_of", lambda _socket: Said(fault="mute"))

    checks = {finding.check for finding in asking.look(Subject(FakeMachine()))}

    assert checks == {"asking.bus", "asking.kernel_limit"}


# --- with a real bus

Change = Callable[[FakeServer], None]
PersonAct = Callable[[FakeServer], Awaitable[None]]


class Desktop:
    """A bus with a server on it, in a thread of its own.

    *change* sets the server up (without it there is none), *person* is who sits in front of it.
    """

    def __init__(self, place: Path, change: Change | None, person: PersonAct | None = None) -> None:
        self.address = f"unix:path={place}/bus"
        self._place = place
        self._change = change
        self._person = person
        self._ready = threading.Event()
        self._thread = threading.Thread(target=trio.run, args=(self._serve,))
        self.posted: list[str] = []

    async def _serve(self) -> None:
        with trio.CancelScope() as self._scope:
            self._token = trio.lowlevel.current_trio_token()
            async with private_bus(self._place) as bus, on_bus(bus.address, FakeServer) as server:
                if self._change is not None:
                    self._change(server)
                    await server.own(NOTIFICATIONS)
                self._ready.set()
                try:
                    if self._person is not None:
                        await self._person(server)
                    await trio.sleep_forever()
                finally:
                    self.posted = [f"{popup.title} {popup.body}" for popup in server.posted]

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(15)
        return self

    def __exit__(self, *_: object) -> None:
        trio.from_thread.run_sync(self._scope.cancel, trio_token=self._token)
        self._thread.join(15)


def nowhere() -> None:
    return None


def nothing(server: FakeServer) -> None:
    """Leave the server as it is."""


def stays_mute(server: FakeServer) -> None:
    server.is_mute = True


def pauses(server: FakeServer) -> None:
    server.server_name, server.is_paused = "dunst", True


async def waits_and_presses(server: FakeServer, button: str) -> None:
    popup = await server.shown()
    await trio.sleep(ARMING_S * 1.3)
    await server.press(popup, button)


async def allows(server: FakeServer) -> None:
    await waits_and_presses(server, "once")


async def declines(server: FakeServer) -> None:
    await waits_and_presses(server, "deny")


async def dismisses(server: FakeServer) -> None:
    popup = await server.shown()
    await server.close(popup.number, 2)


async def only_looks(server: FakeServer) -> None:
    await server.shown()


async def lets_it_expire(server: FakeServer) -> None:
    popup = await server.shown()
    await server.close(popup.number, 1)


def test_a_real_server_is_asked_and_gets_no_notification(short_dir: Path) -> None:
    with Desktop(short_dir, nothing) as there:
        seen = notifications.look(there.address, nowhere)

    assert seen == Seen("fake", "1.0", ("actions", "body"), has_buttons=True)
    assert seen.shows
    assert there.posted == []


def test_a_server_that_pauses_says_so(short_dir: Path) -> None:
    with Desktop(short_dir, pauses) as there:
        seen = notifications.look(there.address, nowhere)

    assert (seen.is_quiet, seen.has_buttons, seen.shows) == (True, False, False)


def test_a_bus_without_a_server_starts_none(short_dir: Path) -> None:
    with Desktop(short_dir, None) as there:
        seen = notifications.look(there.address, nowhere)

    assert seen == Seen()
    assert not seen.shows


def test_a_mute_server_is_no_absent_one(short_dir: Path) -> None:
    with (
        Desktop(short_dir, stays_mute) as there,
        pytest.raises(ChannelLost, match="server does not answer"),
    ):
        notifications.look(there.address, nowhere)


def test_no_bus_is_a_lost_channel(short_dir: Path) -> None:
    with pytest.raises(ChannelLost, match="no connection to the bus"):
        notifications.look(f"unix:path={short_dir}/absent", nowhere)


def try_out(there: Desktop, seconds: float = 10.0) -> Trial:
    return notifications.ask_person(b"/home/lam", lambda: there.address, nowhere, seconds)


@pytest.fixture
def bus_without_server(short_dir: Path) -> Iterator[Desktop]:
    with Desktop(short_dir, None) as there:
        yield there


def test_a_test_question_without_a_server_is_lost(bus_without_server: Desktop) -> None:
    trial = try_out(bus_without_server)

    assert trial.pressed is Pressed.LOST
    assert "no notification server" in trial.why


@pytest.mark.parametrize(
    ("person_act", "pressed"),
    [
        pytest.param(allows, Pressed.ALLOW, id="allow"),
        pytest.param(declines, Pressed.DECLINE, id="decline"),
        pytest.param(dismisses, Pressed.DECLINE, id="dismissed"),
        pytest.param(only_looks, Pressed.NOTHING, id="nothing"),
        pytest.param(lets_it_expire, Pressed.LOST, id="expired"),
    ],
)
def test_what_becomes_of_a_test_question_is_told(
    short_dir: Path, person_act: PersonAct, pressed: Pressed
) -> None:
    with Desktop(short_dir, nothing, person_act) as there:
        trial = try_out(there, 2.0)

    assert trial.pressed is pressed
    (shown,) = there.posted
    assert shown.startswith("Do you see this? [test] ")
    assert "nothing is changed" in shown


@pytest.mark.parametrize(
    ("trial", "level", "words"),
    [
        pytest.param(
            Trial(Pressed.ALLOW, 2.04), Level.OK, "You pressed Allow, after 2.0", id="yes"
        ),
        pytest.param(Trial(Pressed.DECLINE, 2.0), Level.OK, "Decline or closed it", id="decline"),
        pytest.param(Trial(Pressed.NOTHING, 60.0), Level.PROBLEM, "within 60 s", id="nothing"),
        pytest.param(
            Trial(Pressed.LOST, 1.0, "the screen is locked"), Level.PROBLEM, "locked", id="lost"
        ),
    ],
)
def test_what_was_pressed_is_said(trial: Trial, level: Level, words: str) -> None:
    found = asking.judge_trial(trial)

    assert found.level is level
    assert words in found.what
    must_be_useful(found)
