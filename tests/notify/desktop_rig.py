"""The desktop channel on a bus of its own, before a server that does as the test says."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import trio

from lamfuse.core.approval import Question
from lamfuse.engine.open_questions import Standing
from lamfuse.notify.bus import Received
from lamfuse.notify.desktop import Desktop
from lamfuse.notify.screen import Screen
from tests.contract.notifier import Asking
from tests.engine.fakes import make_question
from tests.notify.fake_notifications import NOTIFICATIONS, FakeServer, Popup
from tests.notify.private_bus import Client, PrivateBus, on_bus, private_bus

__all__ = ["ARMING_S", "Rig", "ended", "rig_on", "standing"]

#: Short: what is tested with it is that there is an arming delay, not how long it is.
ARMING_S = 0.15


def standing(question: Question) -> Standing:
    return Standing(57.25, 2)


@dataclass
class Rig:
    """The channel and all that stands around it."""

    bus: PrivateBus
    server: FakeServer
    rogue: Client
    desktop: Desktop
    nursery: trio.Nursery
    running: trio.CancelScope = field(default_factory=trio.CancelScope)
    asked: list[Asking] = field(default_factory=list)

    async def start(self) -> None:
        """Start the channel, and return when it knows its surroundings."""

        async def run(*, task_status: trio.TaskStatus[None]) -> None:
            with self.running:
                await self.desktop.run(task_status=task_status)

        with trio.fail_after(15):
            await self.nursery.start(run)

    def ask_soon(self, question: Question | None = None) -> Asking:
        """Put a question."""
        asking = Asking(question or make_question())
        self.asked.append(asking)
        self.nursery.start_soon(asking.run, self.desktop)
        return asking

    async def ask(self, question: Question | None = None) -> tuple[Asking, Popup]:
        """Put a question and return it when it is shown and armed."""
        count = len(self.server.posted)
        asking = self.ask_soon(question)
        popup = await self.server.shown(count + 1)
        with trio.fail_after(10):
            await asking.shown.wait()
        await trio.sleep(ARMING_S * 1.2)
        return asking, popup

    async def settled(self, *clients: Client) -> None:
        """Return when all that *clients*, or all of them, have sent has reached the channel."""
        for client in clients or (self.rogue, self.server):
            arrived = trio.Event()
            bus = self.desktop._bus
            assert bus is not None

            def listen(
                signal: Received, client: Client = client, arrived: trio.Event = arrived
            ) -> None:
                if (signal.sender, signal.member) == (client.name, "Marker"):
                    arrived.set()

            bus.listeners.append(listen)
            await client.emit("/", "test.Marker", "Marker", "", (), to=bus.unique_name)
            with trio.fail_after(10):
                await arrived.wait()
            bus.listeners.remove(listen)

    async def until_ready(self) -> None:
        with trio.fail_after(10):
            while not self.desktop.is_ready():  # noqa: ASYNC110 - readiness has no event
                await trio.sleep(0.01)


async def ended(asking: Asking) -> Asking:
    """Wait for the end of *asking* and return it."""
    with trio.fail_after(10):
        await asking.ended.wait()
    return asking


@asynccontextmanager
async def rig_on(
    place: Path,
    nursery: trio.Nursery,
    *,
    screen: Screen | None = None,
    arming_s: float = ARMING_S,
    owns: bool = True,
) -> AsyncIterator[Rig]:
    """Have a rig; its channel is not started yet, and its server has the name if *owns*."""
    async with (
        private_bus(place) as bus,
        on_bus(bus.address, FakeServer) as server,
        on_bus(bus.address, Client) as rogue,
    ):
        if owns:
            await server.own(NOTIFICATIONS, 1)
        desktop = Desktop(
            b"/home/lam",
            standing,
            screen=screen,
            address=lambda: bus.address,
            arming_s=arming_s,
            again_s=(0.05, 0.1),
        )
        rig = Rig(bus, server, rogue, desktop, nursery)
        yield rig
        rig.running.cancel()
