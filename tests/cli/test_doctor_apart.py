"""Nothing that hangs or fails holds the doctor up, and nothing of it is left running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamfuse.cli.probes import apart
from lamfuse.core.errors import RefusedError

pytestmark = pytest.mark.requirement("L8")


def has_ended(pid: int) -> bool:
    """Tell whether a process is gone, or waits for nothing but to be reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_what_is_said_arrives_in_order_and_whole() -> None:
    lines = [b"", b"a", b"b\xff\0" * 100_000, b"+.!"]

    told = apart.gather(lambda: lines, 10.0)

    assert told.lines == lines
    assert (told.has_ended, told.fault) == (True, "")


def test_it_is_another_process_in_a_group_of_its_own() -> None:
    def work() -> Iterator[bytes]:
        yield b"%d" % os.getpid()
        yield b"%d" % os.getpgid(0)

    pid, group = map(int, apart.gather(work, 10.0).lines)

    assert pid == group != os.getpid()
    assert has_ended(pid)


def test_what_was_said_before_it_hung_is_kept_and_it_is_ended() -> None:
    def work() -> Iterator[bytes]:
        yield b"%d" % os.getpid()
        child = subprocess.Popen(["sleep", "100"])
        yield b"%d" % child.pid
        signal.pause()

    started = time.monotonic()
    told = apart.gather(work, 0.5)

    assert time.monotonic() - started < 5
    assert (told.has_ended, told.fault) == (False, "")
    assert len(told.lines) == 2
    for pid in map(int, told.lines):
        deadline = time.monotonic() + 5
        while not has_ended(pid):
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_one_that_does_not_die_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "_BURIAL_S", 0.05)
    monkeypatch.setattr(apart, "_kill", lambda _child: None)  # as one that waits for a mute disk
    pids: list[int] = []

    def work() -> Iterator[bytes]:
        yield b"%d" % os.getpid()
        signal.pause()

    started = time.monotonic()
    pids += map(int, apart.gather(work, 0.1).lines)

    assert time.monotonic() - started < 5
    assert not has_ended(pids[0])
    os.kill(pids[0], signal.SIGKILL)
    os.waitpid(pids[0], 0)


def test_a_fault_is_said_and_kept_to_one_line() -> None:
    def work() -> Iterator[bytes]:
        yield b"before"
        raise RefusedError("it\nfailed")

    told = apart.gather(work, 10.0)

    assert told.lines == [b"before"]
    assert told.fault == "RefusedError: it failed"


def test_a_process_that_is_killed_is_a_fault() -> None:
    def work() -> Iterator[bytes]:
        os.kill(os.getpid(), signal.SIGKILL)
        yield b"never"

    told = apart.gather(work, 10.0)

    assert (told.lines, told.fault) == ([], "its process ended early")


def test_who_is_left_alone_clears_up(tmp_path: Path) -> None:
    """The doctor is killed: the child still does what stands behind its work."""
    mark = tmp_path / "cleared"
    code = f"""
import os, pathlib
from lamfuse.cli.probes import apart
def work():
    try:
        yield b"ready"
        parent = os.getppid()
        print("ready", flush=True)
        while os.getppid() == parent:
            yield b"on"
    finally:
        pathlib.Path({str(mark)!r}).touch()
apart.gather(work, 30.0)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.kill()
        assert process.stdout.read() == b""  # at the end of the child as well
    assert mark.exists()


def test_ctrl_c_lets_the_child_clear_up(tmp_path: Path) -> None:
    mark = tmp_path / "cleared"
    code = f"""
import pathlib, signal
from lamfuse.cli.probes import apart
def work():
    try:
        print("ready", flush=True)
        yield b"ready"
        signal.pause()
    finally:
        pathlib.Path({str(mark)!r}).touch()
apart.gather(work, 30.0)
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=10)
    assert out == b""
    assert b"KeyboardInterrupt" in err
    assert mark.exists()


def test_no_descriptor_is_lost_however_it_ends() -> None:
    def fail() -> Iterator[bytes]:
        yield b"x"
        raise ValueError

    before = len(os.listdir("/proc/self/fd"))
    apart.gather(lambda: [b"x"], 5.0)
    apart.gather(fail, 5.0)
    apart.gather(signal.pause, 0.05)  # type: ignore[arg-type]  # it never returns

    assert len(os.listdir("/proc/self/fd")) == before
