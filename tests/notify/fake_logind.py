"""A logind that does as the test says, on a bus of the test's own; and a screen saver."""

from __future__ import annotations

from typing import Any

from jeepney.io.trio import DBusConnection

from tests.notify.private_bus import Client, Unhandled

__all__ = ["LOGIND", "FakeLogind", "FakeSaver"]

LOGIND = "org.freedesktop.login1"
PATH = "/org/freedesktop/login1"
USER = "/org/freedesktop/login1/user/_1000"
SESSION = "/org/freedesktop/login1/session/_32"


class FakeLogind(Client):
    """Has one user, who has one session, or none."""

    def __init__(self, connection: DBusConnection) -> None:
        super().__init__(connection)
        self.session = SESSION
        self.is_locked = False
        self.looked = 0

    async def handle(
        self, interface: str, member: str, body: tuple[Any, ...]
    ) -> tuple[str, tuple[Any, ...]]:
        match member, body:
            case "GetUser", (int(),):
                return "o", (USER,)
            case "Get", ("org.freedesktop.login1.User", "Display"):
                number = "2" if self.session != "/" else ""
                return "v", (("(so)", (number, self.session)),)
            case "Get", ("org.freedesktop.login1.Session", "LockedHint"):
                self.looked += 1
                return "v", (("b", self.is_locked),)
        raise Unhandled

    async def lock(self, *, locked: bool) -> None:
        self.is_locked = locked
        await self.emit(
            self.session, "org.freedesktop.DBus.Properties", "PropertiesChanged", "sa{sv}as",
            ("org.freedesktop.login1.Session", {"LockedHint": ("b", locked)}, []),
        )  # fmt: skip

    async def sleep(self, *, begins: bool, **others: Any) -> None:
        options = {"path": PATH, "interface": f"{LOGIND}.Manager", **others}
        to = options.get("to")
        await self.emit(
            options["path"], options["interface"], "PrepareForSleep", "b", (begins,), to=to
        )


class FakeSaver(Client):
    """A screen saver that covers the screen, or not."""

    def __init__(self, connection: DBusConnection) -> None:
        super().__init__(connection)
        self.is_active = False

    async def handle(
        self, interface: str, member: str, body: tuple[Any, ...]
    ) -> tuple[str, tuple[Any, ...]]:
        if member == "GetActive":
            return "b", (self.is_active,)
        raise Unhandled
