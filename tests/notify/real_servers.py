"""A screen without a monitor, a notification server of Debian on it, and a person with a mouse.

Everything is a process of the test's own, on a bus of its own, and ended by its number. What is on
the screen is read from the screen: buttons are found by how they look, not by where they should be.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import trio

from tests.notify.private_bus import PrivateBus, private_bus

__all__ = ["SERVERS", "Image", "Place", "Screen", "Server", "place_of", "screen_of"]

ROOT = Path(__file__).resolve().parent.parent.parent
#: Where pictures are kept for people; scripts/setup --tests makes it.
PICTURES = ROOT / "build" / "screens"
#: A program, or the service that says where it is.
SERVERS = {
    "dunst": ("dunst", "-conf", "{place}/dunstrc"),
    "mate": ("org.freedesktop.mate.Notifications",),
    "xfce": ("org.xfce.xfce4-notifyd.Notifications",),
}
#: dunst has no buttons: a menu shows the actions, and this program is the person who takes one.
DUNSTRC = """
[global]
    dmenu = {place}/choose
    {more}
"""
#: Rows above the lower end of a window: through the words on the buttons, through the buttons below
#: their words, and through the margin below the buttons.
WORDS_ROW, BUTTON_ROW, MARGIN_ROW = 29, 18, 5
LEAST_WIDTH, LEAST_POPUP = 30, 100


@dataclass(frozen=True)
class Image:
    """A picture: three bytes for each point, line by line."""

    width: int
    height: int
    points: bytes

    def at(self, x: int, y: int) -> tuple[int, int, int]:
        start = 3 * (y * self.width + x)
        red, green, blue = self.points[start : start + 3]
        return red, green, blue

    def is_button(self, x: int, row: int, margin: int) -> bool:
        """Tell whether a point is of the light grey of a button, and unlike what is below it."""
        here, below = self.at(x, row), self.at(x, margin)
        is_grey = max(here) - min(here) < 10 and min(here) > 200
        return is_grey and max(abs(one - other) for one, other in zip(here, below, strict=True)) > 4


@dataclass(frozen=True)
class Window:
    """Where a window is, in points from the upper left corner of the screen."""

    x: int
    y: int
    width: int
    height: int


class Screen:
    """A screen without a monitor."""

    def __init__(self, env: dict[str, str]) -> None:
        self.env = env

    def run(self, *argv: str) -> str:
        """Run a program that looks at the screen or acts on it; return what it prints."""
        done = subprocess.run(
            argv, env=self.env, check=True, capture_output=True, timeout=20, text=True
        )
        return done.stdout

    def windows(self) -> list[Window]:
        """Return the windows that are to be seen."""
        windows = []
        for number in self.try_to("xdotool", "search", "--onlyvisible", "--name", ".").split():
            lines = self.try_to("xdotool", "getwindowgeometry", "--shell", number).splitlines()
            of = {name: int(value) for name, value in (line.split("=") for line in lines)}
            if of and of["WIDTH"] > LEAST_POPUP:  # it may be gone by now
                windows.append(Window(of["X"], of["Y"], of["WIDTH"], of["HEIGHT"]))
        return windows

    def try_to(self, *argv: str) -> str:
        """Run a program that may find nothing."""
        done = subprocess.run(
            argv, env=self.env, check=False, capture_output=True, timeout=20, text=True
        )
        return done.stdout if done.returncode == 0 else ""

    def picture(self, name: str) -> Image:
        """Take a picture of the whole screen, and keep it under *name*."""
        done = subprocess.run(
            ["import", "-window", "root", "-depth", "8", "ppm:-"],
            env=self.env, check=True, capture_output=True, timeout=20,
        )  # fmt: skip
        kind, width, height, depth = done.stdout[:32].split()[:4]
        assert (kind, depth) == (b"P6", b"255")
        size = 3 * int(width) * int(height)
        image = Image(int(width), int(height), done.stdout[-size:])
        if os.access(PICTURES, os.W_OK):
            folder = PICTURES / f"user-{os.getuid()}"
            folder.mkdir(exist_ok=True)
            to = f"png:{folder / name}.png"
            subprocess.run(["convert", "ppm:-", to], input=done.stdout, check=True, timeout=20)
        return image

    def click(self, x: int, y: int) -> None:
        """Move the pointer there and press its left button."""
        self.run("xdotool", "mousemove", str(x), str(y), "sleep", "0.05", "click", "1")


@contextmanager
def screen_of(place: Path) -> Iterator[Screen]:
    """Have a screen, as long as the context lasts."""
    reading, writing = os.pipe()
    process = subprocess.Popen(
        ["Xvfb", "-displayfd", str(writing), "-screen", "0", "800x600x24", "-noreset",
         "-nolisten", "tcp", "-nolisten", "unix"],
        pass_fds=[writing], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        os.close(writing)
        number = os.read(reading, 20).decode().strip()
        assert number, "the screen did not start"
        yield Screen(
            {
                "PATH": os.environ["PATH"],
                "LANG": "C.UTF-8",
                "DISPLAY": f":{number}",
                "HOME": str(place),
                "XDG_RUNTIME_DIR": str(place),
                "GSETTINGS_BACKEND": "memory",
                "GTK_THEME": "Adwaita",
                "NO_AT_BRIDGE": "1",
            }
        )
    finally:
        os.close(reading)
        process.terminate()  # not killed: it removes what it has made
        process.wait(20)


def program_of(name: str) -> str | None:
    """Find a program by its name, or by that of the service whose file names it."""
    service = Path(f"/usr/share/dbus-1/services/{name}.service")
    if not service.exists():
        return shutil.which(name)
    found = re.search(r"^Exec=(\S+)", service.read_text(), re.MULTILINE)
    return found[1] if found else None


class Server:
    """A notification server that runs."""

    def __init__(self, argv: Sequence[str], env: dict[str, str]) -> None:
        program = program_of(argv[0])
        assert program, f"{argv[0]} is missing: scripts/setup --tests installs it"
        self._argv = [program, *argv[1:]]
        self._env = env
        self._start()

    def _start(self) -> None:
        self.process = subprocess.Popen(
            self._argv,
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def end(self) -> None:
        """Kill it, and what it has started."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def restart(self) -> None:
        """Kill it and start it again."""
        self.end()
        self._start()


@dataclass
class Place:
    """A bus, a server on it, and the screen."""

    name: str
    bus: PrivateBus
    server: Server
    screen: Screen
    folder: Path

    async def window(self, *, other_than: Window | None = None) -> Window:
        """Wait for the popup, and return where it is."""
        with trio.fail_after(10):
            while True:
                for window in await trio.to_thread.run_sync(self.screen.windows):
                    if window != other_than:
                        return window
                await trio.sleep(0.05)

    async def buttons(self, name: str) -> list[tuple[int, int]]:
        """Take a picture of the popup, and return the middles of its buttons from the left."""
        window = await self.window()
        with trio.fail_after(10):
            while True:
                await trio.sleep(0.3)  # it fades in
                image = await trio.to_thread.run_sync(self.screen.picture, name)
                found = buttons_in(image, window)
                if found:
                    return found

    async def gone(self) -> None:
        """Wait until nothing is on the screen."""
        with trio.fail_after(10):
            while await trio.to_thread.run_sync(self.screen.windows):  # noqa: ASYNC110 - no event
                await trio.sleep(0.05)

    async def click(self, spot: tuple[int, int]) -> None:
        await trio.to_thread.run_sync(self.screen.click, *spot)

    async def dunstctl(self, *arguments: str) -> str:
        return await trio.to_thread.run_sync(self.screen.run, "dunstctl", *arguments)

    def will_choose(self, label: str) -> None:
        """Let the person take this out of dunst's menu: ``#label (title) [number,key]``."""
        script = self.folder / "choose"
        script.write_text(f"#!/bin/sh\nexec grep -F '#{label} ('\n")
        script.chmod(0o755)


def buttons_in(image: Image, window: Window) -> list[tuple[int, int]]:
    """Find the middles of the buttons at the lower end of a popup, from the left."""
    bottom = window.y + window.height
    row, margin = bottom - BUTTON_ROW, bottom - MARGIN_ROW
    found = []
    start: int | None = None
    end = min(window.x + window.width, image.width)
    for x in range(window.x, end + 1):
        if x < end and image.is_button(x, row, margin):
            start = x if start is None else start
        elif start is not None:
            if x - start >= LEAST_WIDTH:
                found.append(((start + x) // 2, bottom - WORDS_ROW))
            start = None
    return found


@asynccontextmanager
async def place_of(
    name: str, screen: Screen, folder: Path, *, dunstrc: str = ""
) -> AsyncIterator[Place]:
    """Have the server *name* on *screen*, on a bus of its own; *dunstrc* is a line for dunst."""
    (folder / "dunstrc").write_text(DUNSTRC.format(place=folder, more=dunstrc))
    async with private_bus(folder) as bus:
        there = Screen(
            {
                **screen.env,
                "HOME": str(folder),
                "XDG_RUNTIME_DIR": str(folder),
                "DBUS_SESSION_BUS_ADDRESS": bus.address,
            }
        )
        argv = [word.format(place=folder) for word in SERVERS[name]]
        server = Server(argv, there.env)
        try:
            yield Place(name, bus, server, there, folder)
        finally:
            server.end()
