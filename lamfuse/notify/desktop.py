"""The desktop channel: a question as a notification with buttons.

One notification at a time, so that none can slip under the pointer on its way to another. A yes is
a click on a button of it, from the server that shows it, after a moment in which it could be read.
Dismissed is a no. All else (the server gone or replaced, the bus lost or mute, a locked screen, do
not disturb, expiry) means that nobody is being asked here, which never allows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

import trio

from lamfuse.core.approval import Answer, Question
from lamfuse.core.errors import ChannelLost
from lamfuse.engine.open_questions import Standing
from lamfuse.notify.bus import Bus, connect, session_address
from lamfuse.notify.notifications import Notifications, Posted, Server
from lamfuse.notify.once import Once
from lamfuse.notify.popup import ARMING_S, CHANNEL, compose
from lamfuse.notify.screen import Screen, is_saver_active

__all__ = ["Desktop", "Report"]

#: Seconds before a bus that was lost, or is not there, is tried again: the first time, and at most.
_AGAIN_S = (1.0, 30.0)
#: Seconds between two looks whether a person can still see what is shown.
_LOOK_S = 1.0
#: Seconds in which popups are taken away when the channel ends.
_LEAVE_S = 1.0
#: So many hasty answers to one question are no person's.
_MOST_HASTY = 10

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Report:
    """How the channel stands: *server* None is not found (yet); *trouble* is why it cannot ask."""

    connected: bool
    server: Server | None
    trouble: str = ""


class Desktop:
    """A channel on the person's desktop; :meth:`run` must be running for it to be ready.

    *home* is what a tilde stands for; *standing* tells how long a question has left; *screen*
    tells of a lock. *address* tells where the session bus is, or that there is none.
    """

    name = CHANNEL

    def __init__(
        self,
        home: bytes,
        standing: Callable[[Question], Standing],
        *,
        screen: Screen | None = None,
        address: Callable[[], str | None] = session_address,
        arming_s: float = ARMING_S,
        again_s: tuple[float, float] = _AGAIN_S,
    ) -> None:
        self._home = home
        self._standing = standing
        self._screen = screen
        self._address = address
        self._arming_s = arming_s
        self._again_s = again_s
        self._bus: Bus | None = None
        self._notifications: Notifications | None = None
        self._turn = trio.Lock()
        self._problem = "not connected yet"

    # --- its life ---

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Keep a connection to the session bus until cancelled.

        Started once it is known whether there is one. At the end what is shown is taken away.
        """
        started = Once(task_status.started)
        pause, most = self._again_s
        while True:
            try:
                bus, notifications = await self._arrive()
            except ChannelLost as error:
                self._note(str(error))
            else:
                pause = self._again_s[0]
                await self._stay(bus, notifications, started)
            started()
            await trio.sleep(pause)
            pause = min(most, pause * 2)

    async def _arrive(self) -> tuple[Bus, Notifications]:
        address = self._address()
        if address is None:
            raise ChannelLost("there is no session bus")
        bus = await connect(address)
        return bus, Notifications(bus, arming_s=self._arming_s)

    async def _stay(
        self, bus: Bus, notifications: Notifications, started: Callable[[], None]
    ) -> None:
        """Serve on one connection until it is lost."""
        # The reader outlasts a cancellation, so that popups can still be taken away.
        reading = trio.CancelScope(shield=True)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_read, bus, reading)
            try:
                await notifications.begin()
                self._bus, self._notifications, self._problem = bus, notifications, ""
                started()
                await bus.lost.wait()
            except ChannelLost as error:
                _log.info("desktop: %s", error)
            finally:
                self._bus = self._notifications = None
                self._note("the session bus is lost")
                notifications.lose(self._problem)
                with trio.CancelScope(shield=True), trio.move_on_after(_LEAVE_S):
                    async with self._turn:  # whoever asks has taken away what was shown
                        pass
                reading.cancel()

    def _note(self, problem: str) -> None:
        if problem != self._problem:
            self._problem = problem
            _log.info("desktop: %s", problem)

    # --- what it says of itself ---

    def is_ready(self) -> bool:
        """Whether a question could be shown now, as far as is known without asking the server."""
        return not self.report().trouble

    def report(self) -> Report:
        """Tell how the channel stands, for people."""
        notifications = self._notifications
        if notifications is None:
            return Report(connected=False, server=None, trouble=self._problem)
        server = notifications.server
        trouble = ""
        if not notifications.is_ready:
            trouble = f"{server.name} cannot show buttons" if server else "no notification server"
        elif self._is_locked():
            trouble = "the screen is locked"
        return Report(connected=True, server=server, trouble=trouble)

    def _is_locked(self) -> bool:
        return self._screen is not None and self._screen.is_locked

    # --- asking ---

    async def ask(self, question: Question, shown: Callable[[], None]) -> Answer:
        """Show *question* until it is answered; raises ChannelLost when it does not stand any more.

        Cancellation takes the notification away.
        """
        async with self._turn:
            bus, notifications = self._bus, self._notifications
            if bus is None or notifications is None:
                raise ChannelLost(f"no desktop to ask on: {self._problem}")
            await self._look(bus)
            server = await notifications.ensure()
            tell = Once(shown)
            for hasty in range(_MOST_HASTY):
                posted = await self._put(bus, notifications, server, question, tell, hasty)
                if posted.answer is not None:
                    return posted.answer
                if posted.lost:
                    raise ChannelLost(posted.lost)
            raise ChannelLost("answers come faster than any person's")

    async def _put(
        self,
        bus: Bus,
        notifications: Notifications,
        server: Server,
        question: Question,
        tell: Once,
        hasty: int,
    ) -> Posted:
        """Show *question* once, until anything becomes of it."""
        standing = self._standing(question)
        popup = compose(question, self._home, standing, server.traits, hasty=hasty)
        try:
            posted = await notifications.post(server, popup)
            tell()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._watch, bus, notifications, server)
                await posted.done.wait()
                nursery.cancel_scope.cancel()
            return posted
        finally:
            await notifications.withdraw()

    async def _watch(self, bus: Bus, notifications: Notifications, server: Server) -> None:
        """Give up the popup when nobody can see it any more."""
        while True:
            changed = self._screen.changed.event if self._screen is not None else trio.Event()
            try:
                await self._look(bus)
                if await notifications.is_quiet(server):
                    raise ChannelLost(f"{server.name} is set to show nothing (do not disturb)")
            except ChannelLost as error:
                notifications.lose(str(error))
                return
            with trio.move_on_after(_LOOK_S):
                await changed.wait()

    async def _look(self, bus: Bus) -> None:
        """Raise ChannelLost when the screen is covered."""
        if self._is_locked() or await is_saver_active(bus):
            raise ChannelLost("the screen is locked")


async def _read(bus: Bus, scope: trio.CancelScope) -> None:
    with scope:
        await bus.run()
