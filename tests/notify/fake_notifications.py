"""A notification server that does as the test says, and the person in front of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import trio
from jeepney import HeaderFields
from jeepney.io.trio import DBusConnection

from tests.notify.private_bus import Client, Unhandled

__all__ = ["NOTIFICATIONS", "PATH", "FakeServer", "Popup"]

NOTIFICATIONS = "org.freedesktop.Notifications"
PATH = "/org/freedesktop/Notifications"


@dataclass(frozen=True)
class Popup:
    """What somebody wanted to be shown."""

    number: int
    title: str
    body: str
    actions: dict[str, str]
    hints: dict[str, Any]
    timeout: int
    replaces: int
    by: str

    def key(self, prefix: str) -> str:
        """Return the key of the button that is called so."""
        (found,) = (key for key in self.actions if key.startswith(f"{prefix}-"))
        return found


class FakeServer(Client):
    """Shows what it is told to, unless it is told not to."""

    def __init__(self, connection: DBusConnection) -> None:
        super().__init__(connection)
        self.server_name = "fake"
        self.capabilities = ["actions", "body"]
        self.posted: list[Popup] = []
        self.closed: list[int] = []
        self.is_paused = False
        #: Set to an event, it holds back the reply to Notify until that is set.
        self.held: trio.Event | None = None
        self.notify_signature = "u"
        self.first_number = 1
        #: What it does by itself with each popup, before it tells its number and after that.
        self.presses: str = ""

    async def handle(
        self, interface: str, member: str, body: tuple[Any, ...]
    ) -> tuple[str, tuple[Any, ...]]:
        match member:
            case "GetCapabilities":
                return "as", (self.capabilities,)
            case "GetServerInformation":
                return "ssss", (self.server_name, "lamfuse", "1.0", "1.2")
            case "Get" if body == ("org.dunstproject.cmd0", "paused"):
                return "v", (("b", self.is_paused),)
            case "CloseNotification":
                self.closed.append(body[0])
                self.stir()
                await self.close(body[0], 3)
                return "", ()
            case "Notify":
                return await self._notify(body)
        raise Unhandled

    async def _notify(self, body: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
        _, replaces, _, title, text, actions, hints, timeout = body
        number = self.first_number + len(self.posted)
        pairs = dict(zip(actions[::2], actions[1::2], strict=True))
        by = self.heard[-1].header.fields[HeaderFields.sender]
        popup = Popup(number, title, text, pairs, hints, timeout, replaces, by)
        self.posted.append(popup)
        self.stir()
        if self.held is not None:
            await self.held.wait()
        if self.notify_signature != "u":
            return self.notify_signature, ("1",)
        return "u", (number,)

    async def shown(self, count: int = 1) -> Popup:
        """Wait until *count* popups were posted, and return the last of these."""
        with trio.fail_after(10):
            while len(self.posted) < count:
                await self.heard_more()
        return self.posted[count - 1]

    async def withdrawn(self, number: int) -> None:
        """Wait until somebody has closed the popup."""
        with trio.fail_after(10):
            while number not in self.closed:
                await self.heard_more()

    async def press(self, popup: Popup, prefix: str) -> None:
        """Click a button."""
        await self.invoke(popup.number, popup.key(prefix))

    async def invoke(self, number: int, key: str, **others: Any) -> None:
        await self.tell("ActionInvoked", "us", (number, key), **others)

    async def close(self, number: int, reason: int, **others: Any) -> None:
        await self.tell("NotificationClosed", "uu", (number, reason), **others)

    async def tell(
        self,
        member: str,
        signature: str,
        body: tuple[Any, ...],
        *,
        path: str = PATH,
        interface: str = NOTIFICATIONS,
        to: str | None = None,
    ) -> None:
        """Send a signal as the server does, or somebody in its name."""
        await self.emit(path, interface, member, signature, body, to=to)
