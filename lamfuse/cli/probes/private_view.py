"""A throw-away home with a view of it, served by a daemon of its own that asks nobody.

All of it lies in one private directory: home, configuration, state, runtime and the mountpoint. It
is gone at the end, however that comes; the view itself is touched by nobody here.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from lamfuse.cli import views
from lamfuse.cli.probes import apart
from lamfuse.core import paths
from lamfuse.core.errors import RefusedError

__all__ = ["COMMAND", "Made", "PrivateView", "clear_up", "clear_up_after", "opened", "populate"]

COMMAND: Final = (sys.executable, "-m", "lamfuse")

_READY_S: Final = 20.0
_END_S: Final = 10.0
_ATTEMPTS: Final = 3
_LINE_BYTES: Final = 65536
#: Nobody is to be asked, and nothing is to be told to the desktop.
_LEFT_OUT: Final = (
    "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "SSH_AUTH_SOCK",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PrivateView:
    """The places of a throw-away home: all below *base*."""

    base: bytes

    @property
    def home(self) -> bytes:
        """The home that is shown."""
        return paths.join(self.base, b"home")

    @property
    def view(self) -> bytes:
        """Where it is mounted."""
        return paths.join(self.base, b"view")

    @property
    def config(self) -> bytes:
        """Its configuration file."""
        return paths.join(self.base, b"config.toml")

    @property
    def log(self) -> bytes:
        """What the daemon says."""
        return paths.join(self.base, b"daemon.log")


@dataclass(frozen=True, slots=True)
class Made:
    """A file to be made: its *path* from home, and whether it is a directory with a file in it."""

    path: bytes
    is_dir: bool


def populate(home: bytes, files: Iterable[Made]) -> None:
    """Make *files* below *home*; where one is the folder of another, it becomes a directory."""
    wanted = list(files)
    folders = {paths.join(b"/", made.path) for made in wanted if made.is_dir}
    for made in wanted:
        above = paths.parent(paths.join(b"/", made.path))
        folders.update([] if above == b"/" else paths.ancestors(b"/", above))
    for folder in sorted(folders):
        os.makedirs(home + folder, mode=0o700, exist_ok=True)
    for made in wanted:
        place = paths.join(b"/", made.path)
        file = place + b"/inside" if place in folders else place
        with open(home + file, "wb") as new:
            new.write(made.path)


@contextlib.contextmanager
def opened(
    key: str,
    deny: Sequence[str],
    files: Iterable[Made],
    environ: Mapping[str, str],
    command: Sequence[str] = COMMAND,
) -> Iterator[PrivateView]:
    """Mount the view of a throw-away home with *files* and the person's rules *deny*.

    *key* is a part of its name, for :func:`clear_up_after`. Raises RefusedError with the daemon's
    own words when it does not come up, or does not go.
    """
    base = views.settle(os.fsencode(tempfile.mkdtemp(prefix=_prefix(key))))
    place = PrivateView(base)
    try:
        for name in (b"home", b"view", b"run", b"state", b"xdg"):
            os.mkdir(paths.join(base, name), 0o700)
        populate(place.home, files)
        rules = ", ".join(_quoted(line) for line in deny)
        with open(place.config, "xb", opener=_private) as file:
            file.write(f"deny = [{rules}]\n[approval]\nchannels = []\n".encode())
        daemon = _start(place, environ, command)
        try:
            _wait_ready(daemon, place)
            yield place
        finally:
            _end(daemon)
    finally:
        clear_up(base)


def _prefix(key: str) -> str:
    return f"lamfuse-doctor-{key}-"


def _quoted(line: str) -> str:
    """Return *line* as text of TOML: JSON's escapes, and the one that JSON does not need."""
    return json.dumps(line).replace("\x7f", "\\u007f")


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)  # noqa: TID251 - our own directory


def _start(
    place: PrivateView, environ: Mapping[str, str], command: Sequence[str]
) -> subprocess.Popen[bytes]:
    inside = {
        "HOME": b"home", "XDG_RUNTIME_DIR": b"run", "XDG_STATE_HOME": b"state",
        "XDG_CONFIG_HOME": b"xdg",
    }  # fmt: skip
    kept = {name: value for name, value in environ.items() if name not in _LEFT_OUT}
    own = {name: os.fsdecode(paths.join(place.base, path)) for name, path in inside.items()}
    arguments: list[str | bytes] = ["mount", "--foreground", "--config", place.config, place.view]
    with open(place.log, "xb", opener=_private) as log:
        return subprocess.Popen(
            [*command, *arguments],
            env={**kept, **own},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
        )


def _wait_ready(daemon: subprocess.Popen[bytes], place: PrivateView) -> None:
    assert daemon.stdout is not None
    poll = select.poll()
    poll.register(daemon.stdout, select.POLLIN)
    deadline = time.monotonic() + _READY_S
    said = b""
    while b"\n" not in said and (left := deadline - time.monotonic()) > 0:
        if poll.poll(left * 1000):
            data = os.read(daemon.stdout.fileno(), _LINE_BYTES)
            if not data:
                break
            said += data
    if not said.startswith(b"mounted "):
        raise RefusedError(_last_words(place))


def _last_words(place: PrivateView) -> str:
    with open(place.log, "rb") as log:
        lines = log.read(_LINE_BYTES).decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"the daemon was not ready within {_READY_S:g} s"


def _end(daemon: subprocess.Popen[bytes]) -> None:
    """End the daemon; one that does not go in time is killed, and its mount is taken away."""
    assert daemon.stdout is not None
    daemon.stdout.close()
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            daemon.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            daemon.wait(_END_S)
            return


def clear_up_after(key: str) -> None:
    """Clear up what an examination could not, because it was killed; raises RefusedError."""
    above = os.fsencode(tempfile.gettempdir())
    for name in os.listdir(above):
        if name.startswith(os.fsencode(_prefix(key))):
            clear_up(views.settle(paths.join(above, name)))


def clear_up(base: bytes) -> None:
    """Unmount what is left at or below *base* and remove it; raises RefusedError where it stays."""
    for _ in range(_ATTEMPTS):
        mount = views.mount_at(paths.join(base, b"view"))
        if mount is None:
            break
        views.take_away(mount)
    if views.mount_at(paths.join(base, b"view")) is not None:
        raise RefusedError(f"{os.fsdecode(base)}/view is still mounted.")
    removed = apart.gather(lambda: _remove(base), _END_S)
    if not removed.has_ended:
        raise RefusedError(f"{os.fsdecode(base)} could not be removed: {removed.fault}")


def _remove(base: bytes) -> Iterator[bytes]:
    shutil.rmtree(base)
    yield b"removed"
