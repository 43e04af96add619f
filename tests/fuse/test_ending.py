"""Beginning and ending: fast, in order, and after a crash the next mount cleans up."""

import contextlib
import errno
import os
import signal
import subprocess
import time
from collections.abc import Iterator

import pytest

from lamfuse.core.approval import State
from tests import residue
from tests.fuse.changes import errno_of, prepare, snapshot
from tests.mounting import Daemon, Home, entries, make_home, mounted, place, wait_until
from tests.person import plain_yes, silence

pytestmark = [pytest.mark.mount, pytest.mark.requirement("L1")]


@pytest.fixture
def home() -> Iterator[Home]:
    with place() as base:
        yield make_home(base)


def _is_mounted(home: Home) -> bool:
    return any(mount.point == os.fsencode(home.view) for mount in residue.view_mounts())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_in_order_and_refuses_what_is_open(
    home: Home, number: signal.Signals
) -> None:
    with mounted(home, in_order=False) as here:
        here.person.forget(silence)
        folders = [here.fresh(), here.fresh()]  # a waiting change keeps its folder locked
        for folder in folders:
            prepare(home.home / folder)
        before = [snapshot(home.home / folder) for folder in folders]
        commands = (["/usr/bin/rm", "-f", "file"], ["/usr/bin/truncate", "-s0", "other"])
        callers = [
            subprocess.Popen(
                command, cwd=home.view / folder, stderr=subprocess.PIPE, env={"LC_ALL": "C"}
            )
            for command, folder in zip(commands, folders, strict=True)
        ]
        wait_until(lambda: here.person.status().open_questions == 2)
        here.daemon.end(number)
        for caller in callers:
            _, said = caller.communicate(timeout=10)
            assert caller.returncode == 1
            assert b"Permission denied" in said
        assert [snapshot(home.home / folder) for folder in folders] == before
        assert not _is_mounted(home)
        ends = [e for e in entries(home.journal) if e["kind"] == "answer"]
        assert [end["outcome"] for end in ends] == [State.LOST.value] * 2
        assert entries(home.journal)[-1]["kind"] == "stop"


def test_unmount_by_command_ends_in_order(home: Home) -> None:
    with mounted(home, in_order=False) as here:
        done = home.lamfuse("unmount")
        assert done.returncode == 0, done.stderr
        here.daemon.process.wait(10)
        assert here.daemon.process.returncode == 0
        assert not _is_mounted(home)
        assert os.listdir(home.view) == []
        here.daemon.check_log()


def test_unmount_by_somebody_else_ends_the_daemon(home: Home) -> None:
    with mounted(home, in_order=False) as here:
        subprocess.run(["fusermount3", "-u", str(home.view)], check=True)
        assert here.daemon.process.wait(10) == 0
        assert not _is_mounted(home)
        here.daemon.check_log()


def test_a_busy_view_is_unmounted_all_the_same(home: Home) -> None:
    with mounted(home, in_order=False) as here:
        inside = subprocess.Popen(
            ["sleep", "30"], cwd=home.view / "Documents", stdin=subprocess.DEVNULL
        )
        try:
            fd = os.open(home.view / "Documents/letter.txt", os.O_RDONLY)
            done = home.lamfuse("unmount")
            assert done.returncode == 0, done.stderr
            assert here.daemon.process.wait(10) == 0
            assert errno_of(os.read, fd, 100) in {errno.ENOTCONN, errno.ECONNABORTED}
            with contextlib.suppress(OSError):
                os.close(fd)  # the last message to a daemon that is gone
            assert not _is_mounted(home)
        finally:
            inside.kill()
            inside.wait()


def test_after_kill_9_callers_get_an_error_and_the_next_mount_cleans_up(home: Home) -> None:
    with mounted(home, in_order=False) as here:
        here.person.forget(silence)
        folder = here.fresh()
        prepare(home.home / folder)
        caller = subprocess.Popen(
            ["/usr/bin/rm", "-f", "file"], cwd=home.view / folder, stderr=subprocess.DEVNULL
        )
        here.person.wait_asked()
        here.daemon.end(signal.SIGKILL, expect=-signal.SIGKILL)
        assert caller.wait(10) == 1
        assert (home.home / folder / "file").exists()
        assert _is_mounted(home)
        assert errno_of(os.listdir, home.view) in {errno.ENOTCONN, errno.ECONNABORTED}
        with mounted(home) as again, again.watchdog():
            assert "took away a dead view" in again.daemon.log()
            again.person.forget(plain_yes)
            (home.view / folder / "file").unlink()
        verified = home.lamfuse("log", "--verify")
        assert verified.returncode == 0, verified.stdout + verified.stderr


def test_it_can_be_used_within_a_second(home: Home) -> None:
    times = []
    for _ in range(3):
        started = time.monotonic()
        daemon = Daemon(home)
        try:
            os.listdir(home.view)
            times.append(time.monotonic() - started)
        finally:
            daemon.end()
    assert min(times) < 1.0, times


def test_the_default_mountpoint_is_in_the_runtime_directory(home: Home) -> None:
    done = home.lamfuse("mount")
    try:
        assert done.returncode == 0, done.stderr
        view = home.runtime / "lamfuse/home"
        assert done.stdout == f"mounted {home.home} at {view}\n"
        assert (view / "Documents/letter.txt").read_bytes().startswith(b"Dear")
    finally:
        ended = home.lamfuse("unmount")
    assert ended.returncode == 0, ended.stderr
    assert os.listdir(view) == []


def test_a_second_mount_of_the_same_home_is_refused_and_names_the_first(home: Home) -> None:
    with mounted(home):
        done = home.lamfuse("mount")
        assert done.returncode == 1
        assert str(home.view) in done.stderr


def test_a_view_in_home_is_hidden_in_itself_and_does_not_wait_for_itself(home: Home) -> None:
    inside = home.home / "mnt/view"
    inside.mkdir(parents=True)
    (home.home / "into").symlink_to("mnt/view/Documents/letter.txt")
    (home.home / "into2").symlink_to(inside / "Documents/letter.txt")
    nested = Home(home.base, home.home, home.runtime, inside, home.outside)
    with mounted(nested) as here, here.watchdog():
        assert os.listdir(inside / "mnt") == []
        for path in ("mnt/view", "mnt/view/Documents", "into"):
            assert errno_of(os.stat, inside / path) == errno.ENOENT
        assert errno_of(os.stat, inside / "into2") == errno.EACCES
        done = subprocess.run(
            ["find", ".", "-name", "letter.txt"],
            cwd=inside, capture_output=True, check=True, timeout=20,
        )  # fmt: skip
        assert done.stdout == b"./Documents/letter.txt\n"
        here.person.forget(plain_yes)
        assert errno_of(os.mkdir, inside / "mnt/view") == errno.EACCES


@pytest.mark.root
@pytest.mark.requirement("H11")
@pytest.mark.parametrize("when", ["before", "after"])
def test_another_file_system_below_home_is_hidden(home: Home, when: str) -> None:
    place_of_it = home.home / "Documents/disk"
    place_of_it.mkdir()

    def mount() -> None:
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(place_of_it)], check=True)
        (place_of_it / "foreign").write_bytes(b"x")

    if when == "before":
        mount()
    try:
        with mounted(home) as here, here.watchdog():
            if when == "after":
                assert os.listdir(home.view / "Documents/disk") == []
                mount()
                wait_until(lambda: not (home.view / "Documents/disk").exists())
            assert errno_of(os.stat, home.view / "Documents/disk") == errno.ENOENT
            assert errno_of(os.stat, home.view / "Documents/disk/foreign") == errno.ENOENT
            assert "disk" not in os.listdir(home.view / "Documents")
            here.person.forget(plain_yes)
            assert errno_of(os.mkdir, home.view / "Documents/disk") == errno.EACCES
    finally:
        subprocess.run(["umount", str(place_of_it)], check=True)


@pytest.mark.root
@pytest.mark.requirement("H23")
def test_another_file_system_that_is_a_root_is_shown(home: Home) -> None:
    disk = home.home / "Documents/disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(disk)], check=True)
    try:
        (disk / "mine").write_bytes(b"x")
        with mounted(home, f'write_roots = ["{disk}"]\n') as here, here.watchdog():
            here.person.forget(plain_yes)
            assert (home.view / "Documents/disk/mine").read_bytes() == b"x"
            (home.view / "Documents/disk/new").write_bytes(b"y")
            assert (disk / "new").read_bytes() == b"y"
            assert errno_of(
                os.rename, home.view / "Documents/disk/new", home.view / "Downloads/new"
            ) == errno.EXDEV  # fmt: skip
            assert here.person.operations == ["create"]
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.root
def test_nobody_but_the_mounting_user_gets_in(home: Home) -> None:
    with mounted(home) as here, here.watchdog():
        home.base.chmod(0o711)
        for command in (["ls", str(home.view)], ["cat", f"{home.view}/Documents/letter.txt"]):
            done = subprocess.run(
                command, user=65534, group=65534, capture_output=True, check=False
            )
            assert done.returncode != 0
            assert b"denied" in done.stderr
