from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import lamfuse as package
from lamfuse.cli import mount_checks, views
from lamfuse.core.errors import MachineError, RefusedError
from lamfuse.store.config import Config
from lamfuse.store.dirs import Dirs
from lamfuse.tree.mounts import Mount
from tests.cli.fake_daemon import FakeDaemon, lamfuse

pytestmark = pytest.mark.requirement("L8")

_needs_fuse = pytest.mark.skipif(
    not os.access("/dev/fuse", os.R_OK | os.W_OK), reason="no /dev/fuse that can be opened"
)


@dataclass(frozen=True)
class _Settings:
    home: bytes
    config: Config
    dirs: Dirs
    mountpoint: bytes
    foreground: bool = False


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> types.ModuleType:
    """Stands in for the composition root: tells what it was started with, and mounts nothing."""

    def run(settings: _Settings, ready: Callable[[str], None]) -> None:
        (tmp_path / "started").write_text(f"{settings.foreground}")
        if (tmp_path / "fail").exists():
            raise MachineError("the daemon cannot do that here.")
        ready(f"mounted {os.fsdecode(settings.home)} at {os.fsdecode(settings.mountpoint)}")

    module = types.ModuleType("lamfuse.app")
    monkeypatch.setattr(module, "Settings", _Settings, raising=False)
    monkeypatch.setattr(module, "run", run, raising=False)
    monkeypatch.setitem(sys.modules, "lamfuse.app", module)
    monkeypatch.setattr(package, "app", module, raising=False)
    monkeypatch.setattr(mount_checks, "check_machine", lambda: None)
    return module


def _was_started(tmp_path: Path) -> str | None:
    place = tmp_path / "started"
    return place.read_text() if place.exists() else None


def _configure(dirs: Dirs, text: str) -> None:
    os.makedirs(dirs.config_dir, mode=0o700)
    Path(os.fsdecode(dirs.config_file)).write_text(text)


# --- what comes up


@pytest.mark.parametrize("foreground", [True, False])
def test_the_view_is_announced_in_one_line_and_the_limit_of_the_boundary_aside(
    app: types.ModuleType, dirs: Dirs, person: Path, tmp_path: Path, foreground: bool
) -> None:
    result = lamfuse("mount", *(["--foreground"] if foreground else []))
    assert result.code == 0
    assert result.out == f"mounted {person} at {os.fsdecode(dirs.mountpoint)}\n"
    assert result.err.count("merely pointed at") == 1
    assert _was_started(tmp_path) == str(foreground)
    assert os.stat(dirs.mountpoint).st_mode & 0o777 == 0o700


def test_another_mountpoint_can_be_given_by_a_relative_path(
    app: types.ModuleType, person: Path
) -> None:
    (person / "view").mkdir()
    result = lamfuse("mount", "view")
    assert result.out == f"mounted {person} at {person}/view\n"


def test_an_entry_that_was_skipped_is_told(app: types.ModuleType, dirs: Dirs) -> None:
    _configure(dirs, 'read_roots = ["relative"]\n')
    result = lamfuse("mount")
    assert result.code == 0
    assert "Note: read_roots: 'relative' is not used" in result.err


@pytest.mark.parametrize("foreground", [True, False])
def test_what_keeps_the_daemon_from_starting_is_told_with_its_code(
    app: types.ModuleType, person: Path, tmp_path: Path, foreground: bool
) -> None:
    (tmp_path / "fail").touch()
    result = lamfuse("mount", *(["--foreground"] if foreground else []))
    assert result.code == 4
    assert result.err.endswith("lamfuse: the daemon cannot do that here.\n")
    assert result.out == ""


# --- bad input: nothing may be started


@dataclass(frozen=True)
class Bad:
    """How to make it, and the words that must be in the message: the thing and the remedy."""

    make: Callable[[Path, Dirs], list[str]]
    words: tuple[str, ...]


def _home_is_file(person: Path, dirs: Dirs) -> list[str]:
    (person / "file").touch()
    return ["--home", str(person / "file")]


def _mountpoint_not_empty(person: Path, dirs: Dirs) -> list[str]:
    (person / "full").mkdir()
    for number in range(5):
        (person / "full" / f"x{number}").touch()
    return [str(person / "full")]


def _mountpoint_is_file(person: Path, dirs: Dirs) -> list[str]:
    (person / "file").touch()
    return [str(person / "file")]


def _mountpoint_in_write_root(person: Path, dirs: Dirs) -> list[str]:
    (person / "Downloads" / "view").mkdir(parents=True)
    return [str(person / "Downloads" / "view")]


def _mountpoint_in_write_root_by_a_link(person: Path, dirs: Dirs) -> list[str]:
    (person / "real" / "view").mkdir(parents=True)
    (person / "Downloads").symlink_to("real")
    return [str(person / "real" / "view")]


def _mountpoint_covers_home(person: Path, dirs: Dirs) -> list[str]:
    return [str(person)]


def _configured(text: str, *arguments: str) -> Callable[[Path, Dirs], list[str]]:
    def make(person: Path, dirs: Dirs) -> list[str]:
        (person / "file").touch()
        (person / "outer" / "view").mkdir(parents=True)
        _configure(dirs, text)
        return [argument.replace("~", str(person)) for argument in arguments]

    return make


BAD = [
    pytest.param(Bad(_home_is_file, ("file is not a directory", "--home DIR")), id="home-is-file"),
    pytest.param(
        Bad(lambda _p, _d: ["--home", "/nonexistent"], ("/nonexistent does not exist",)),
        id="home-missing",
    ),
    pytest.param(
        Bad(_mountpoint_not_empty, ("~/full is not empty (x0, x1, x2 and 2 more)", "an empty")),
        id="mountpoint-not-empty",
    ),
    pytest.param(
        Bad(_mountpoint_is_file, ("~/file is not a directory", "an empty directory")),
        id="mountpoint-is-file",
    ),
    pytest.param(
        Bad(lambda p, _d: [str(p / "nowhere")], ("~/nowhere does not exist", "mkdir")),
        id="mountpoint-missing",
    ),
    pytest.param(
        Bad(_mountpoint_in_write_root, ("Downloads", "Mount the view somewhere else")),
        id="mountpoint-in-write-root",
    ),
    pytest.param(
        Bad(_mountpoint_in_write_root_by_a_link, ("real", "Mount the view somewhere else")),
        id="mountpoint-in-write-root-by-a-link",
    ),
    pytest.param(
        Bad(_mountpoint_covers_home, ("covers the home", "somewhere else")),
        id="mountpoint-covers-home",
    ),
    pytest.param(
        Bad(_configured('read_roots = ["~/file"]'), ("read_roots", "file", "is a file", "Write")),
        id="root-is-file",
    ),
    pytest.param(
        Bad(_configured('write_roots = ["~/.ssh/x"]'), ("write_roots", ".ssh", "Leave it out")),
        id="root-on-denied-path",
    ),
    pytest.param(
        Bad(
            _configured('read_roots = ["~/outer"]', "~/outer/view"),
            ("read_roots", "outer", "holds the mountpoint", "somewhere else"),
        ),
        id="root-contains-mountpoint",
    ),
    pytest.param(
        Bad(_configured('deny = ["a\\\\"]'), ("deny[0]", "gitignore")), id="bad-denylist-line"
    ),
    pytest.param(Bad(_configured("denyy = []"), ("denyy", "Did you mean deny?")), id="unknown-key"),
    pytest.param(
        Bad(lambda _p, _d: ["--config", "/nonexistent.toml"], ("/nonexistent.toml", "--config")),
        id="config-missing",
    ),
]


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("foreground", [True, False], ids=["foreground", "background"])
def test_bad_input_is_named_with_a_remedy_and_starts_nothing(
    app: types.ModuleType, person: Path, dirs: Dirs, tmp_path: Path, bad: Bad, foreground: bool
) -> None:
    arguments = bad.make(person, dirs)
    result = lamfuse("mount", *(["--foreground"] if foreground else []), *arguments)
    assert result.code == 1
    assert [word for word in bad.words if word not in result.err] == []
    assert result.err.startswith("lamfuse: ")
    assert result.out == ""
    assert _was_started(tmp_path) is None
    assert not os.path.exists(dirs.mountpoint)


def test_a_home_that_is_served_already_says_where(
    app: types.ModuleType, daemon: FakeDaemon, tmp_path: Path
) -> None:
    result = lamfuse("mount")
    assert result.code == 1
    assert "mounted already, at /run/user/1000/lamfuse/home" in result.err
    assert _was_started(tmp_path) is None


@pytest.mark.parametrize(
    ("error", "words"),
    [
        pytest.param(errno.ENOENT, "modprobe fuse", id="missing"),
        pytest.param(errno.ENODEV, "--device /dev/fuse", id="no-module"),
        pytest.param(errno.EACCES, "chmod 0666 /dev/fuse", id="closed"),
        pytest.param(errno.EMFILE, "Too many open files", id="other"),
    ],
)
def test_without_the_device_the_machine_lacks_something(
    monkeypatch: pytest.MonkeyPatch, error: int, words: str
) -> None:
    def refuse(_path: object, _flags: int) -> int:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(views, "find_fusermount", lambda: "fusermount3")
    monkeypatch.setattr("os.open", refuse)
    with pytest.raises(MachineError, match=words):
        mount_checks.check_machine()


def test_without_fusermount_the_machine_lacks_something(
    person: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    result = lamfuse("mount")
    assert result.code == 4
    assert "fusermount3 is not installed" in result.err
    assert "apt install fuse3" in result.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_mountpoint_that_cannot_be_written_is_refused(person: Path) -> None:
    (person / "view").mkdir(mode=0o500)
    with pytest.raises(RefusedError, match="may not be written"):
        mount_checks.check_directory(bytes(person / "view"))


# --- what is mounted there already


@pytest.mark.parametrize(
    ("mount", "words"),
    [
        pytest.param(Mount(b"/x", b"fuse", b"lamfuse"), "lamfuse unmount", id="a-view"),
        pytest.param(Mount(b"/x", b"tmpfs", b"lamfuse"), r"\(tmpfs\)", id="other-by-that-name"),
        pytest.param(Mount(b"/x", b"fuse.sshfs", b"h:/"), r"fuse\.sshfs", id="another-fuse"),
    ],
)
def test_a_place_that_is_taken_is_refused(
    person: Path, monkeypatch: pytest.MonkeyPatch, mount: Mount, words: str
) -> None:
    monkeypatch.setattr(views, "mount_at", lambda _place: mount)
    monkeypatch.setattr(views, "is_dead", lambda _mount: False)
    with pytest.raises(RefusedError, match=words):
        mount_checks.check_free(b"/x")


def test_a_dead_mount_of_somebody_else_is_left_alone(
    person: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[Mount] = []
    monkeypatch.setattr(views, "mount_at", lambda _place: Mount(b"/x", b"fuse.sshfs", b"h:/"))
    monkeypatch.setattr(views, "is_dead", lambda _mount: True)
    monkeypatch.setattr(views, "take_away", taken.append)
    with pytest.raises(RefusedError, match="another file system"):
        mount_checks.check_free(b"/x")
    assert taken == []


_VIEW = """
import sys, pyfuse3, trio
pyfuse3.init(pyfuse3.Operations(), sys.argv[1], {"fsname=lamfuse"})
print("up", flush=True)
trio.run(pyfuse3.main)
"""


@pytest.fixture
def dead(person: Path) -> Iterator[Path]:
    """A view whose daemon was killed."""
    place = person / "dead"
    place.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", _VIEW, str(place)], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        process.send_signal(signal.SIGKILL)
        process.wait()
    yield place
    if views.mount_at(bytes(place)) is not None:
        subprocess.run(["fusermount3", "-uz", str(place)], check=True)


@pytest.mark.mount
@_needs_fuse
def test_unmount_takes_a_dead_view_away(dead: Path) -> None:
    with pytest.raises(OSError) as caught:
        dead.stat()
    assert caught.value.errno in {errno.ENOTCONN, errno.ECONNABORTED}
    result = lamfuse("unmount", str(dead))
    assert (result.code, result.out) == (0, "took away a dead view at ~/dead\n")
    assert list(dead.iterdir()) == []
    assert lamfuse("unmount", str(dead)).code == 3


@pytest.mark.mount
@_needs_fuse
def test_mount_takes_a_dead_view_away_first(app: types.ModuleType, dead: Path) -> None:
    result = lamfuse("mount", str(dead))
    assert result.code == 0
    assert "took away a dead view at ~/dead" in result.err
    assert views.mount_at(bytes(dead)) is None


@pytest.mark.mount
@_needs_fuse
def test_a_dead_view_in_which_somebody_works_is_taken_away_too(person: Path) -> None:
    place = person / "busy"
    place.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", _VIEW, str(place)], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        held = os.open(place, os.O_PATH)
        process.send_signal(signal.SIGKILL)
        process.wait()
    try:
        assert lamfuse("unmount", str(place)).code == 0
        assert views.mount_at(bytes(place)) is None
    finally:
        os.close(held)


@pytest.mark.mount
@_needs_fuse
def test_a_dead_view_is_not_what_a_path_is_resolved_through(dead: Path, person: Path) -> None:
    (person / "way").symlink_to(person)
    assert views.settle(bytes(person / "way" / "dead")) == bytes(dead)


def test_a_link_as_mountpoint_means_where_it_leads(person: Path) -> None:
    (person / "real").mkdir()
    (person / "link").symlink_to("real")
    assert views.settle(bytes(person / "link")) == bytes(person / "real")
