"""A throw-away home, and a daemon that mounts its view: always another process than the test.

Nothing here waits by sleeping for the daemon: it says when the view can be used. At the end it must
have ended in order, with nothing mounted, no descriptor leaked and nothing surprising in its log.
"""

import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import residue
from tests.person import PATIENCE_S, Person

__all__ = [
    "HIDDEN",
    "Daemon",
    "Home",
    "Mounted",
    "entries",
    "make_home",
    "mounted",
    "place",
    "wait_until",
]

#: Stands in the content of everything that no view may show.
HIDDEN = b"HIDDEN-FROM-THE-VIEW"
#: A test that has not ended by then hangs: ending the daemon lets its calls return (seconds).
WATCHDOG_S = 50.0
_GIT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "n", "GIT_AUTHOR_EMAIL": "n@example.org",
    "GIT_COMMITTER_NAME": "n", "GIT_COMMITTER_EMAIL": "n@example.org",
}  # fmt: skip
_SURPRISES = re.compile(r"\b(WARNING|ERROR|CRITICAL)\b|Traceback")

_FILES: dict[str, bytes] = {
    "Documents/letter.txt": b"Dear all,\nthis is a letter.\n",
    "Documents/notes/monday.md": b"# Monday\n",
    "Documents/Lam Agent/readme.md": b"for the agent\n",
    "Pictures/photo.bin": bytes(range(256)) * 16,
    "project/src/main.py": b"print('hello')\n",
    "project/README.md": b"A project.\n",
    "spare/deep/er/leaf.txt": b"leaf\n",
    "Downloads/old.txt": b"old\n",
}
_CREDENTIALS = (
    ".ssh/id_ed25519", ".ssh/config", ".gnupg/secring.gpg", ".aws/credentials",
    ".config/gh/hosts.yml", ".docker/config.json", ".netrc", "project/.env", "Documents/cert.pem",
    "Downloads/.env.local", "spare/credentials.json",
)  # fmt: skip
_LINKS = {
    "Documents/up": "../Pictures/photo.bin",
    "Documents/dangling": "nowhere",
    "Documents/loop": "loop",
    "Documents/tool": "/usr/bin/env",
    "Documents/outside": "/etc/hostname",
    "Documents/climbing": "../../../../../../../../etc/hostname",
    "Documents/to_secret": "../.ssh/id_ed25519",
    "Documents/folder": "notes",
}


@dataclass(frozen=True)
class Home:
    """The places of one throw-away home: all below *base*, the home itself and what is around."""

    base: Path
    home: Path
    runtime: Path
    view: Path
    outside: Path

    @property
    def config(self) -> Path:
        return self.home / ".config/lamfuse/config.toml"

    @property
    def journal(self) -> Path:
        return self.home / ".local/state/lamfuse/journal.jsonl"

    def environment(self) -> dict[str, str]:
        """Return the environment of a person whose home this is."""
        kept = ("PATH", "LANG", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "COVERAGE_PROCESS_START")
        env = {name: os.environ[name] for name in kept if name in os.environ}
        return env | _GIT | {
            "HOME": str(self.home),
            "XDG_RUNTIME_DIR": str(self.runtime),
            "TMPDIR": str(self.outside),
        }  # fmt: skip

    def configure(self, text: str) -> None:
        self.config.parent.mkdir(parents=True, exist_ok=True)
        self.config.write_text(text)

    def lamfuse(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run a command of lamfuse as that person."""
        return subprocess.run(
            [sys.executable, "-m", "lamfuse", *arguments],
            env=self.environment(), cwd="/", text=True, capture_output=True, check=False,
            stdin=subprocess.DEVNULL, timeout=PATIENCE_S,
        )  # fmt: skip


@contextmanager
def place() -> Iterator[Path]:
    """Make a private directory with a short path."""
    base = Path(tempfile.mkdtemp(prefix="lf-"))
    try:
        yield base
    finally:
        residue.remove(base)


def make_home(base: Path) -> Home:
    """Build a home with documents, a git repository, planted credentials and links of all kinds."""
    made = Home(base, base / "home", base / "run", base / "view", base / "outside")
    for folder in (made.home, made.runtime, made.view, made.outside):
        folder.mkdir(mode=0o700)
    (made.outside / "foreign.txt").write_bytes(b"foreign\n")
    for name, content in _FILES.items():
        _write(made.home / name, content)
    for name in _CREDENTIALS:
        _write(made.home / name, HIDDEN)
    for name, target in _LINKS.items():
        (made.home / name).symlink_to(target)
    (made.home / "Documents/absolute").symlink_to(made.home / "Pictures/photo.bin")
    (made.home / "Documents/roundabout").symlink_to(f"../../home/../home/{'Pictures'}/photo.bin")
    os.mkfifo(made.home / "Documents/fifo")
    (made.home / ".local/share/lamfuse/agent").mkdir(parents=True)
    made.configure("")
    return made


def make_repository(made: Home) -> None:
    """Make a git repository of the folder ``project``."""
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first"]):
        subprocess.run(
            ["git", *command], cwd=made.home / "project", env=made.environment(), check=True
        )


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


class Daemon:
    """``lamfuse mount --foreground`` for *home*, from its line "mounted" on."""

    def __init__(self, home: Home, *, before: str = "", limits: Sequence[str] = ()) -> None:
        """Start it; *before* is code that runs first in it, *limits* are options of prlimit."""
        self.home = home
        self.expected: list[str] = []
        self.allowed: list[str] = []
        self.log_file = home.base / "daemon.log"
        program = f"{before}\nfrom lamfuse.cli.main import main\nmain()"
        start = ["-c", program] if before else ["-m", "lamfuse"]
        command = [sys.executable, *start, "mount", "--foreground", str(home.view)]
        if limits:
            command = ["prlimit", *limits, *command]
        self._log = self.log_file.open("ab")
        started = time.monotonic()
        self.process = subprocess.Popen(
            command, env=home.environment(), cwd="/", stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=self._log,
        )  # fmt: skip
        self.line = self._first_line()
        self.started_s = time.monotonic() - started

    def _first_line(self) -> str:
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE_S)
        line = self.process.stdout.readline().decode() if ready else ""
        if not line.startswith("mounted "):
            self.end(expect=None)
            raise AssertionError(f"not mounted: {line!r}\n{self.log()}")
        return line

    @property
    def socket(self) -> bytes:
        (found,) = (self.home.runtime / "lamfuse").glob("control-*.sock")
        return os.fsencode(found)

    @property
    def pid(self) -> int:
        return self.process.pid

    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    def wait_log(self, pattern: str) -> None:
        """Wait for a line in the log."""
        wait_until(lambda: re.search(pattern, self.log()) is not None)

    def memory(self) -> int:
        """Return the resident memory of the daemon in bytes."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGESIZE")

    def end(self, number: int = signal.SIGTERM, *, expect: int | None = 0) -> None:
        """End the daemon by a signal and wait for it."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            code = self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        self._log.close()
        if expect is not None:
            assert code == expect, f"the daemon ended with {code}\n{self.log()}"

    def check_log(self) -> None:
        """Fail on a warning that nobody announced, and on an announced one that did not come."""
        lines = self.log().splitlines()
        known = [*self.expected, *self.allowed]
        surprising = [
            line for line in lines
            if _SURPRISES.search(line) and not any(re.search(e, line) for e in known)
        ]  # fmt: skip
        assert not surprising, "\n".join(lines)
        absent = [e for e in self.expected if not any(re.search(e, line) for line in lines)]
        assert not absent, f"not in the log: {absent}\n" + "\n".join(lines)


@dataclass
class Mounted:
    """A home with a daemon and a person at it."""

    place: Home
    daemon: Daemon
    person: Person
    descriptors: int
    _numbers: Iterator[int] = field(default_factory=lambda: iter(range(1, 1_000_000)))

    @property
    def home(self) -> Path:
        return self.place.home

    @property
    def view(self) -> Path:
        return self.place.view

    def fresh(self, below: str = "Downloads") -> str:
        """Make a new folder outside the view and return its path from home."""
        name = f"{below}/t{next(self._numbers)}"
        (self.home / name).mkdir(parents=True)
        return name

    def refusals(self) -> str:
        return (self.view / ".lamfuse/refusals").read_text()

    @contextmanager
    def watchdog(self) -> Iterator[None]:
        """End a daemon that does not answer: the calls that wait for it then return."""
        timer = threading.Timer(WATCHDOG_S, self.daemon.process.kill)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()

    def wait_descriptors(self, most: int) -> int:
        """Wait until the daemon holds at most *most* descriptors; returns how many it holds."""
        deadline = time.monotonic() + 5.0
        while (held := self.person.status().descriptors) > most and time.monotonic() < deadline:
            self.person.reload()  # the kernel forgets what it knows, and the descriptors go with it
            time.sleep(0.02)
        return held


@contextmanager
def mounted(
    made: Home,
    config: str = "",
    *,
    before: str = "",
    limits: Sequence[str] = (),
    expected: Sequence[str] = (),
    in_order: bool = True,
    kept: int = 0,
) -> Iterator[Mounted]:
    """Run a daemon for *made*; it has to end in order, and to leave nothing.

    *kept*: how many objects without a name the kernel may still know at the end; it forgets some of
    them under memory pressure only, and the daemon holds them open until then.
    """
    made.configure(config)
    daemon = Daemon(made, before=before, limits=limits)
    daemon.expected += expected
    try:
        person = Person(daemon.socket)
        try:
            os.statvfs(made.view)  # the first request makes the daemon open its pipe
            here = Mounted(made, daemon, person, person.status().descriptors)
            yield here
            if in_order:
                made.configure(config)
                most = here.descriptors + kept
                held = here.wait_descriptors(most)
                assert held <= most, f"{held - most} descriptors leaked"
        finally:
            person.close()
        if in_order:
            daemon.end()
            daemon.check_log()
    finally:
        daemon.end(expect=None)
        left = [m for m in residue.view_mounts() if m.is_below(os.fsencode(made.base))]
        for mount in left:
            residue.unmount(mount)
        assert not left or not in_order, f"left mounted: {left}"


def wait_until(there: Callable[[], bool]) -> None:
    """Wait for what tells of itself in no other way."""
    deadline = time.monotonic() + PATIENCE_S
    while not there():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def entries(journal: Path) -> list[dict[str, Any]]:
    """Return the lines of a journal."""
    return [json.loads(line) for line in journal.read_bytes().splitlines()]


def which(*programs: str) -> None:
    """Fail for a program that is missing."""
    missing = [program for program in programs if shutil.which(program) is None]
    assert not missing, f"not installed: {missing}"
