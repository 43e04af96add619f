"""The notification server of a desktop: who it is, and the one popup that it shows for us.

The owner of the well-known name is pinned by its unique name, which the bus gives and nobody can
forge; a new owner is a new server, and what the old one showed is lost. Signals are judged inside
the reader of the bus. Nothing here is a yes but a click on a button of the very popup that stands.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import trio

from lamfuse.core.approval import Answer
from lamfuse.core.errors import ChannelLost
from lamfuse.core.names import show_text
from lamfuse.notify.bus import CONNECT_S, Bus, BusError, Peer, Received
from lamfuse.notify.popup import ARMING_S, Click, Popup, Traits

__all__ = ["NOTIFICATIONS", "Notifications", "Posted", "Server"]

NOTIFICATIONS = "org.freedesktop.Notifications"
PATH = "/org/freedesktop/Notifications"
_GNOME_SHELL = "org.gnome.Shell"
#: Seconds for the bus to start a server, and after a failure before that is tried again.
_START_S = 5.0
_START_AGAIN_S = 30.0
#: Seconds to take a popup away.
_WITHDRAW_S = 1.0
#: These take actions, and show them in a menu only.
_WITHOUT_BUTTONS = frozenset({"dunst", "mako"})
#: These make one line of the text.
_WITHOUT_LINES = frozenset({"gnome-shell"})
#: What is seen of a do-not-disturb under which not even the gravest notification is shown.
_QUIET = {"dunst": ("org.dunstproject.cmd0", "paused")}
_CRITICAL = 2
_DISMISSED = 2
_CLOSED = {
    1: "the notification expired",
    3: "the notification was closed by a program",
    4: "the notification was closed",
}

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Server:
    """A notification server. What it says of itself is made visible."""

    owner: str
    name: str
    version: str
    capabilities: frozenset[str]

    @property
    def has_actions(self) -> bool:
        """Whether a notification can be answered at all."""
        return "actions" in self.capabilities

    @property
    def traits(self) -> Traits:
        """What matters for the text."""
        return Traits(
            buttons=self.name not in _WITHOUT_BUTTONS,
            markup="body-markup" in self.capabilities,
            lines=self.name not in _WITHOUT_LINES,
        )


@dataclass(slots=True, eq=False)
class Posted:
    """One popup on its way to the screen or on it, and what became of it; the first thing counts.

    ``answer`` is a person's, ``hasty`` a yes that came too fast, ``lost`` why it no longer stands.
    """

    popup: Popup
    server: Server
    arming_s: float
    number: int | None = None
    since: float = math.inf
    answer: Answer | None = None
    hasty: bool = False
    lost: str = ""
    #: The server has taken it down by itself.
    is_down: bool = False
    done: trio.Event = field(default_factory=trio.Event)

    def click(self, key: str) -> None:
        """Take a click on the button *key*."""
        click = self.popup.judge(key, trio.current_time() - self.since, self.arming_s)
        if click is Click.UNKNOWN or self.done.is_set():
            _log.info("the notification server tells of %s", Click.UNKNOWN.value)
            return
        self.hasty = click is Click.HASTY
        self.answer = self.popup.answers[key] if click is Click.ANSWER else None
        self.done.set()

    def closed(self, reason: int) -> None:
        """Take the end of the popup: dismissed by the person is a no, all else is no answer."""
        self.is_down = True
        if reason == _DISMISSED and not self.done.is_set():
            self.answer = next(answer for answer in self.popup.answers.values() if not answer.allow)
            self.done.set()
        else:
            self.lose(_CLOSED.get(reason, "the notification was closed, nobody knows why"))

    def lose(self, why: str) -> None:
        """Note that the popup no longer stands in front of a person."""
        if not self.done.is_set():
            self.lost = why
            self.done.set()


class Notifications:
    """The notification server on *bus*, whoever it is at the moment."""

    def __init__(self, bus: Bus, *, arming_s: float = ARMING_S) -> None:
        self.server: Server | None = None
        self._bus = bus
        self._arming_s = arming_s
        self._owner = ""
        self._can_start = False
        self._start_again = -math.inf
        self._posted: Posted | None = None
        self._has_complained = False
        bus.listeners.append(self._on_signal)

    @property
    def is_ready(self) -> bool:
        """Whether a popup that can be answered could be posted, as far as is known."""
        if self.server is not None:
            return self.server.has_actions
        if self._owner:
            return True
        return self._can_start and trio.current_time() >= self._start_again

    async def begin(self) -> None:
        """Listen, and look who is the server; nobody is started. Raises ChannelLost."""
        for name in (NOTIFICATIONS, _GNOME_SHELL):
            await self._bus.listen(
                sender="org.freedesktop.DBus",
                interface="org.freedesktop.DBus",
                member="NameOwnerChanged",
                arg0=name,
            )
        await self._bus.listen(sender=NOTIFICATIONS, interface=NOTIFICATIONS, path=PATH)
        (startable,) = await self._bus.call_bus("ListActivatableNames", "", (), expects="as")
        self._can_start = NOTIFICATIONS in startable
        try:
            await self._find_owner()
            with trio.move_on_after(CONNECT_S):  # it is asked again when it is needed
                await self._ask_who_it_is()
        except ChannelLost as error:
            _log.info("no notification server yet: %s", error)

    async def ensure(self) -> Server:
        """Return the server, started if need be; raises ChannelLost when there is none.

        Nor does one count that cannot show actions, or that shows nothing at present.
        """
        if not self._owner:
            await self._start()
        server = self.server or await self._ask_who_it_is()
        if not server.has_actions:
            raise ChannelLost(f"{server.name} cannot show buttons")
        if await self.is_quiet(server):
            raise ChannelLost(f"{server.name} is set to show nothing (do not disturb)")
        return server

    async def is_quiet(self, server: Server) -> bool:
        """Tell whether *server* holds back even what is critical, where it lets us know."""
        if server.name not in _QUIET:
            return False
        peer = Peer(server.owner, PATH, "org.freedesktop.DBus.Properties")
        try:
            (value,) = await self._bus.call(peer, "Get", "ss", _QUIET[server.name], expects="v")
        except BusError:  # it does not tell
            return False
        return bool(value == ("b", True))

    async def post(self, server: Server, popup: Popup) -> Posted:
        """Post *popup* and return it once *server* has taken it; raises ChannelLost.

        A popup of before must have been withdrawn. One that is taken too late is closed then.
        """
        posted = self._posted = Posted(popup, server, self._arming_s)

        def take(body: tuple[Any, ...]) -> None:
            posted.number, posted.since = body[0], trio.current_time()

        def close(body: tuple[Any, ...]) -> None:
            self._bus.post(_peer(server), "CloseNotification", "u", (body[0],))

        arguments = (
            "lamfuse", 0, "dialog-warning", popup.title, popup.body, popup.actions,
            {
                "urgency": ("y", _CRITICAL),
                "resident": ("b", True),
                "transient": ("b", False),
                "category": ("s", "x-lamfuse.approval"),
                "desktop-entry": ("s", "lamfuse"),
            },
            0,
        )  # fmt: skip
        await self._bus.call(
            _peer(server), "Notify", "susssasa{sv}i", arguments,
            expects="u", arrived=take, late=close,
        )  # fmt: skip
        return posted

    async def withdraw(self) -> None:
        """Take the present popup off the screen, within a second and whatever happens.

        It is the server that shows it who is told, also when that has lost its name.
        """
        posted, self._posted = self._posted, None
        if posted is None or posted.number is None or posted.is_down:
            return
        with trio.CancelScope(shield=True):
            try:
                await self._bus.call(
                    _peer(posted.server), "CloseNotification", "u", (posted.number,),
                    timeout_s=_WITHDRAW_S,
                )  # fmt: skip
            except ChannelLost as error:
                # It may stand on, and it answers nothing: its keys are no longer ours.
                _log.info("a notification may still be on screen: %s", error)

    def lose(self, why: str) -> None:
        """Give up the popup that stands."""
        if self._posted is not None:
            self._posted.lose(why)

    # --- who the server is ---

    async def _start(self) -> None:
        if not self._can_start or trio.current_time() < self._start_again:
            raise ChannelLost("there is no notification server")
        try:
            await self._bus.call_bus(
                "StartServiceByName", "su", (NOTIFICATIONS, 0), expects="u", timeout_s=_START_S
            )
            await self._find_owner()
        except ChannelLost:
            self._start_again = trio.current_time() + _START_AGAIN_S
            raise

    async def _find_owner(self) -> None:
        def take(body: tuple[Any, ...]) -> None:
            self._change_owner(body[0])

        await self._bus.call_bus("GetNameOwner", "s", (NOTIFICATIONS,), expects="s", arrived=take)

    async def _ask_who_it_is(self) -> Server:
        owner = self._owner
        peer = Peer(owner, PATH, NOTIFICATIONS)
        (capabilities,) = await self._bus.call(peer, "GetCapabilities", expects="as")
        name, _, version, _ = await self._bus.call(peer, "GetServerInformation", expects="ssss")
        if owner != self._owner:
            raise ChannelLost("the notification server was replaced")
        self.server = Server(owner, show_text(name), show_text(version), frozenset(capabilities))
        return self.server

    def _change_owner(self, owner: str) -> None:
        if owner != self._owner:
            self._owner, self.server, self._start_again = owner, None, -math.inf
            self.lose("the notification server is gone")

    # --- signals, inside the reader ---

    def _on_signal(self, signal: Received) -> None:
        if signal.member == "NameOwnerChanged":
            if self._bus.is_from_bus(signal) and signal.signature == "sss":
                self._on_owner(*signal.body)
            else:
                self._complain(signal)
        elif signal.member in _JUDGED and signal.interface == NOTIFICATIONS:
            wanted = (self._owner, PATH, _JUDGED[signal.member][0])
            if (signal.sender, signal.path, signal.signature) != wanted:
                self._complain(signal)
            elif self._posted is not None and signal.body[0] == self._posted.number:
                _JUDGED[signal.member][1](self._posted, signal.body[1])

    def _on_owner(self, name: str, old: str, new: str) -> None:
        if name == NOTIFICATIONS:
            self._change_owner(new)
        elif name == _GNOME_SHELL and old and self.server and self.server.name == "gnome-shell":
            # The name is held by a part of GNOME that only hands on.
            self.lose("GNOME Shell is gone")

    def _complain(self, signal: Received) -> None:
        """Log a forgery; one line for all, since whoever sends one can send many."""
        if not self._has_complained:
            self._has_complained = True
            _log.warning(
                "a %s from %s is not what the owner of the notifications sends;"
                " ignored, as are further ones",
                signal.member,
                signal.sender,
            )


def _peer(server: Server) -> Peer:
    return Peer(server.owner, PATH, NOTIFICATIONS)


#: The signals that say something: signature, and what is made of them.
_JUDGED: dict[str, tuple[str, Callable[[Posted, Any], None]]] = {
    "ActionInvoked": ("us", Posted.click),
    "NotificationClosed": ("uu", Posted.closed),
}
