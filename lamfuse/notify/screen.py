"""Whether a person can see the screen: locked sessions, screen savers, and a machine that sleeps.

It asks logind on the system bus, which only root can be, and the screen savers on the session bus.
Whoever cannot be asked counts as absent: what comes of a lock is that less is shown, never a yes.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable
from typing import Any

import trio

from lamfuse.core.errors import ChannelLost
from lamfuse.engine.display import Signal
from lamfuse.notify.bus import Bus, Peer, Received, connect, system_address
from lamfuse.notify.once import Once

__all__ = ["Screen", "is_saver_active"]

_LOGIND = "org.freedesktop.login1"
_LOGIND_PATH = "/org/freedesktop/login1"
_MANAGER = "org.freedesktop.login1.Manager"
_PROPERTIES = "org.freedesktop.DBus.Properties"
#: Names of screen savers, each also its interface, with the object that tells.
_SAVERS = {
    "org.gnome.ScreenSaver": "/org/gnome/ScreenSaver",
    "org.freedesktop.ScreenSaver": "/org/freedesktop/ScreenSaver",
    "org.mate.ScreenSaver": "/org/mate/ScreenSaver",
    "org.cinnamon.ScreenSaver": "/org/cinnamon/ScreenSaver",
    "org.xfce.ScreenSaver": "/org/xfce/ScreenSaver",
}
#: Seconds for one of them to answer.
_LOOK_S = 1.0
#: Seconds before a bus that was lost, or is not there, is tried again.
_AGAIN_S = 30.0

_log = logging.getLogger(__name__)


class Screen:
    """Follows logind while :meth:`run` runs; *address* tells where its bus is.

    *slept* is called when the machine goes to sleep, and when it wakes: nobody sat in front of a
    question that stood meanwhile. ``is_locked`` is the lock of the person's graphical session;
    ``changed`` fires when it changes.
    """

    def __init__(
        self,
        slept: Callable[[], None],
        *,
        address: Callable[[], str | None] = system_address,
        again_s: float = _AGAIN_S,
    ) -> None:
        self.is_locked = False
        self.is_known = False
        self.changed = Signal()
        self._slept = slept
        self._address = address
        self._again_s = again_s
        self._owner = ""
        self._stirred = trio.Event()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Follow logind until cancelled; started once it is known, or known to be absent."""
        started = Once(task_status.started)
        while True:
            try:
                await self._follow(started)
            except* ChannelLost as group:
                _log.info("logind: %s", "; ".join(map(str, group.exceptions)))
            self.is_known = False
            self._set_locked(locked=False)
            started()
            await trio.sleep(self._again_s)

    async def _follow(self, started: Callable[[], None]) -> None:
        """Follow logind on one connection, until that is lost; raises ChannelLost."""
        address = self._address()
        if address is None:
            raise ChannelLost("no system bus")
        bus = await connect(address)
        async with trio.open_nursery() as nursery:
            await nursery.start(bus.run)
            bus.listeners.append(lambda signal: self._on_signal(bus, signal))
            await self._begin(bus)
            while not bus.lost.is_set():
                self._stirred = trio.Event()
                await self._look(bus)
                started()
                await self._wait(bus)
            nursery.cancel_scope.cancel()

    async def _wait(self, bus: Bus) -> None:
        """Wait until something may have changed."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_after, bus.lost, nursery.cancel_scope)
            await self._stirred.wait()
            nursery.cancel_scope.cancel()

    async def _begin(self, bus: Bus) -> None:
        await bus.listen(sender=_LOGIND, path_namespace=_LOGIND_PATH)
        await bus.listen(
            sender="org.freedesktop.DBus",
            interface="org.freedesktop.DBus",
            member="NameOwnerChanged",
            arg0=_LOGIND,
        )

        def take(body: tuple[Any, ...]) -> None:
            self._owner = body[0]

        self._owner = ""
        with contextlib.suppress(ChannelLost):  # it may come later
            await bus.call_bus("GetNameOwner", "s", (_LOGIND,), expects="s", arrived=take)

    def _on_signal(self, bus: Bus, signal: Received) -> None:
        if signal.member == "NameOwnerChanged":
            if bus.is_from_bus(signal) and signal.signature == "sss" and signal.body[0] == _LOGIND:
                self._owner = signal.body[2]
                self._stirred.set()
        elif self._owner and signal.sender == self._owner:
            kind = (signal.path, signal.interface, signal.member, signal.signature)
            if kind == (_LOGIND_PATH, _MANAGER, "PrepareForSleep", "b"):
                _log.info("the machine %s", "goes to sleep" if signal.body[0] else "wakes")
                self._slept()
            self._stirred.set()

    async def _look(self, bus: Bus) -> None:
        locked: bool | None = None
        if self._owner:
            try:
                locked = await self._is_locked(bus)
            except ChannelLost as error:
                _log.debug("logind does not tell of a lock: %s", error)
        self.is_known = locked is not None
        self._set_locked(locked=bool(locked))

    async def _is_locked(self, bus: Bus) -> bool:
        """Ask for the session that logind takes for the person's main one."""
        manager = Peer(self._owner, _LOGIND_PATH, _MANAGER)
        (user,) = await bus.call(manager, "GetUser", "u", (os.getuid(),), expects="o")
        display = await self._get(bus, user, "org.freedesktop.login1.User", "Display")
        match display:
            case ("(so)", (str(), str(path))) if path != "/":
                hint = await self._get(bus, path, "org.freedesktop.login1.Session", "LockedHint")
                return hint == ("b", True)
            case _:
                raise ChannelLost("no session")

    async def _get(self, bus: Bus, path: str, interface: str, name: str) -> object:
        peer = Peer(self._owner, path, _PROPERTIES)
        (value,) = await bus.call(peer, "Get", "ss", (interface, name), expects="v")
        return value

    def _set_locked(self, *, locked: bool) -> None:
        if locked != self.is_locked:
            self.is_locked = locked
            self.changed.fire()


async def is_saver_active(bus: Bus) -> bool:
    """Tell whether a screen saver on the session bus covers the screen; raises ChannelLost."""
    (names,) = await bus.call_bus("ListNames", "", (), expects="as", timeout_s=_LOOK_S)
    for name in _SAVERS.keys() & set(names):
        # One that is mute or knows no such call covers nothing, as far as anybody can tell.
        with contextlib.suppress(ChannelLost):
            (owner,) = await bus.call_bus("GetNameOwner", "s", (name,), expects="s")
            peer = Peer(owner, _SAVERS[name], name)
            (active,) = await bus.call(peer, "GetActive", expects="b", timeout_s=_LOOK_S)
            if active:
                return True
    return False


async def _cancel_after(event: trio.Event, scope: trio.CancelScope) -> None:
    await event.wait()
    scope.cancel()
