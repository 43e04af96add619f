"""The notification server of the session bus: what it is, and a test question that it shows.

The first is only asked for, never started. Do-not-disturb has no common name: some servers tell it
on the bus, some desktops in their settings, others not at all.
"""

from __future__ import annotations

import enum
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import trio

from lamfuse.cli.probes.machine import Machine
from lamfuse.core.approval import Answer, Offer, Question, Scope, Text
from lamfuse.core.errors import ChannelLost
from lamfuse.core.operations import Operation
from lamfuse.core.target import Caller, FileKind, Request, Subject
from lamfuse.engine.open_questions import Standing
from lamfuse.notify import bus, notifications
from lamfuse.notify.bus import Bus
from lamfuse.notify.desktop import Desktop
from lamfuse.notify.screen import Screen, is_saver_active

__all__ = ["ASK_S", "Pressed", "Seen", "Trial", "ask_person", "does_not_disturb", "look"]

#: Seconds that the test question stands, as a real one does.
ASK_S: Final = 60.0
_SETTING_S: Final = 3.0
_ID: Final = "test"
#: Name of a server -> the command that reads its setting, and the answer that means quiet.
_SETTINGS: Final[dict[str, tuple[Sequence[str], str]]] = {
    "gnome-shell": (
        ("gsettings", "get", "org.gnome.desktop.notifications", "show-banners"),
        "false",
    ),
    "xfce4-notifyd": (("xfconf-query", "-c", "xfce4-notifyd", "-p", "/do-not-disturb"), "true"),
}

Address = Callable[[], str | None]


@dataclass(frozen=True, slots=True)
class Seen:
    """What is on the bus; all names are made visible. ``name`` is empty where no server runs.

    ``can_start``: the bus starts one when a notification is posted. ``is_quiet``: it shows nothing
    at present. ``has_buttons``: its buttons are on the notification, not in a menu.
    """

    name: str = ""
    version: str = ""
    capabilities: tuple[str, ...] = ()
    has_buttons: bool = False
    can_start: bool = False
    is_quiet: bool = False
    is_locked: bool = False

    @property
    def has_actions(self) -> bool:
        """Whether a notification can be answered at all."""
        return "actions" in self.capabilities

    @property
    def shows(self) -> bool:
        """Whether a question could be shown and answered now."""
        there = self.has_actions if self.name else self.can_start
        return there and not self.is_quiet and not self.is_locked


def look(address: str, system: Address = bus.system_address) -> Seen:
    """Look on the bus at *address*; raises ChannelLost where the bus or the server is mute."""
    return trio.run(_look, address, system)


async def _look(address: str, system: Address) -> Seen:
    connection = await bus.connect(address)
    found: Seen | ChannelLost = ChannelLost("the bus is lost")
    screen = Screen(_sleep, address=system)
    async with trio.open_nursery() as nursery:
        await nursery.start(connection.run)
        await nursery.start(screen.run)
        try:
            found = await _ask(connection, is_locked=screen.is_locked)
        except ChannelLost as error:
            found = error  # raised outside, where no group is made of it
        nursery.cancel_scope.cancel()
    if isinstance(found, ChannelLost):
        raise found
    return found


async def _ask(connection: Bus, *, is_locked: bool) -> Seen:
    present = notifications.Notifications(connection)
    await present.begin()
    is_locked = is_locked or await is_saver_active(connection)
    server = present.server
    if server is None:
        name = (notifications.NOTIFICATIONS,)
        (runs,) = await connection.call_bus("NameHasOwner", "s", name, expects="b")
        if runs:
            raise ChannelLost("the notification server does not answer")
        return Seen(can_start=present.is_ready, is_locked=is_locked)
    return Seen(
        name=server.name,
        version=server.version,
        capabilities=tuple(sorted(server.capabilities)),
        has_buttons=server.traits.buttons,
        is_quiet=await present.is_quiet(server),
        is_locked=is_locked,
    )


def _sleep() -> None:
    """Take note that the machine sleeps: nothing stands that would have to be refused."""


def does_not_disturb(machine: Machine, name: str) -> bool:
    """Tell whether the settings of the server *name* keep ordinary notifications back."""
    if name not in _SETTINGS:
        return False
    command, quiet = _SETTINGS[name]
    if machine.find(command[0]) is None:
        return False
    done = machine.run(command, _SETTING_S)
    return done.code == 0 and done.out.strip() == quiet


# --- a test question


class Pressed(enum.Enum):
    """What became of the test question."""

    ALLOW = "allow"
    DECLINE = "decline"
    NOTHING = "nothing"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Trial:
    """How the test question ended, after how many seconds, and for LOST why."""

    pressed: Pressed
    seconds: float
    why: str = ""


def ask_person(
    home: bytes, address: Address, system: Address = bus.system_address, seconds: float = ASK_S
) -> Trial:
    """Show a test question as the desktop channel shows every one, and wait for what is pressed."""
    return trio.run(_ask_person, home, address, system, seconds)


async def _ask_person(home: bytes, address: Address, system: Address, seconds: float) -> Trial:
    started = trio.current_time()

    def standing(_question: Question) -> Standing:
        return Standing(seconds - (trio.current_time() - started), 0)

    answer: Answer | None = None
    lost = ""
    async with trio.open_nursery() as nursery:
        screen = Screen(_sleep, address=system)
        await nursery.start(screen.run)
        desktop = Desktop(home, standing, screen=screen, address=address)
        await nursery.start(desktop.run)
        with trio.move_on_after(seconds):
            try:
                answer = await desktop.ask(_question(home), _sleep)
            except ChannelLost as error:
                lost = str(error)
        nursery.cancel_scope.cancel()
    took = trio.current_time() - started
    if lost:
        return Trial(Pressed.LOST, took, lost)
    if answer is None:
        return Trial(Pressed.NOTHING, took)
    return Trial(Pressed.ALLOW if answer.allow else Pressed.DECLINE, took)


def _question(home: bytes) -> Question:
    """Return a question about nothing: no file has anything to do with it."""
    subject = Subject(home, FileKind.DIRECTORY)
    request = Request(Operation.CHMOD, "lamfuse doctor", Caller(pid=os.getpid()), (subject,))
    body = ("A test about nothing in ~.", "Whatever you press, nothing is changed.")
    return Question(
        id=_ID,
        request=request,
        text=Text(f"Do you see this? [{_ID}]", body),
        offers=(Offer(Scope.ONCE),),
        default=Scope.ONCE,
        created=time.monotonic(),
    )
