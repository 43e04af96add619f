"""The commands as processes of their own, against the real daemon and a real mount."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lamfuse.cli import views
from lamfuse.store.dirs import Dirs

pytestmark = [
    pytest.mark.mount,
    pytest.mark.requirement("L1", "L8", "L9"),
    pytest.mark.skipif(
        not os.access("/dev/fuse", os.R_OK | os.W_OK), reason="no /dev/fuse that can be opened"
    ),
]


def _lamfuse(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lamfuse", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )


@contextlib.contextmanager
def _watching() -> Iterator[subprocess.Popen[bytes]]:
    """Run a watch that answers what the test says; a test that fails does not leave it waiting."""
    with subprocess.Popen(
        [sys.executable, "-m", "lamfuse", "watch", "--json"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as watch:
        try:
            yield watch
        finally:
            watch.kill()


@pytest.fixture
def place(person: Path, dirs: Dirs) -> Iterator[Path]:
    """A home with something in it; the path is where its view will be."""
    (person / "Downloads").mkdir()
    (person / "Downloads" / "report.md").write_text("old\n")
    (person / ".ssh").mkdir(mode=0o700)
    (person / ".ssh" / "id_ed25519").write_text("secret")
    yield Path(os.fsdecode(dirs.mountpoint))
    if views.mount_at(dirs.mountpoint) is not None:
        _lamfuse("unmount")
    assert views.mount_at(dirs.mountpoint) is None


def test_mount_ask_allow_and_unmount(place: Path, person: Path, dirs: Dirs) -> None:
    mounted = _lamfuse("mount")
    assert (mounted.returncode, mounted.stdout) == (0, f"mounted {person} at {place}\n")
    assert "lamfuse watch" in mounted.stderr
    assert (place / "Downloads" / "report.md").read_text() == "old\n"
    assert not (place / ".ssh").exists()
    with _watching() as watch:
        assert watch.stdin is not None
        assert watch.stdout is not None
        _wait_for_watcher()
        for answer, text in (("decline", "old\n"), ("allow", "new\n")):
            script = f"printf 'new\\n' > {place}/Downloads/report.md"
            with subprocess.Popen(["/bin/sh", "-c", script], stderr=subprocess.DEVNULL) as writer:
                question = _next(watch, "asked")["question"]
                assert question["paths"][0]["raw"] == f"{person}/Downloads/report.md"
                said = {"id": question["id"], "answer": answer}
                watch.stdin.write(json.dumps(said).encode() + b"\n")
                watch.stdin.flush()
                assert _next(watch, "answer")["outcome"] == "accepted"
            assert (writer.returncode == 0) is (answer == "allow")
            assert (person / "Downloads" / "report.md").read_text() == text
            # What was declined stays so until a person begins a new turn.
            assert _lamfuse("turn").returncode == 0
        unmounted = _lamfuse("unmount")
        assert (unmounted.returncode, unmounted.stdout) == (0, f"unmounted {place}\n")
        assert watch.wait(10) == 0
    assert _lamfuse("log", "--verify").returncode == 0
    assert "declined by watch" in _lamfuse("log", "--denied").stdout


def _wait_for_watcher() -> None:
    for _ in range(100):
        if json.loads(_lamfuse("status", "--json").stdout)["watchers"]:
            return
    pytest.fail("the watch did not attach")


def _next(watch: subprocess.Popen[bytes], kind: str) -> Any:
    assert watch.stdout is not None
    for line in watch.stdout:
        event = json.loads(line)
        if event["kind"] == kind:
            return event
    pytest.fail("the watch ended")


def test_the_daemon_hides_itself_and_still_talks_to_commands(place: Path, person: Path) -> None:
    assert _lamfuse("mount").returncode == 0
    status = _lamfuse("status", "--json")
    assert status.returncode == 0
    pid = json.loads(status.stdout)["pid"]
    if os.geteuid() != 0:
        with pytest.raises(PermissionError):
            os.readlink(f"/proc/{pid}/cwd")
    assert _lamfuse("unmount").returncode == 0
    assert _has_ended(pid)


def _has_ended(pid: int) -> bool:
    """Tell whether a process is gone, or waits for nothing but to be reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_a_second_mount_of_the_same_home_is_refused(place: Path, tmp_path: Path) -> None:
    assert _lamfuse("mount").returncode == 0
    (tmp_path / "other").mkdir()
    second = _lamfuse("mount", str(tmp_path / "other"))
    assert second.returncode == 1
    assert "mounted already" in second.stderr
    assert (place / "Downloads").exists()


def test_after_a_crash_the_next_mount_cleans_up(place: Path, dirs: Dirs) -> None:
    assert _lamfuse("mount").returncode == 0
    os.kill(json.loads(_lamfuse("status", "--json").stdout)["pid"], signal.SIGKILL)
    assert _lamfuse("status").returncode == 3
    again = _lamfuse("mount")
    assert again.returncode == 0
    assert "took away a dead view" in again.stderr
    assert (place / "Downloads").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_in_the_foreground_one_line_is_printed_and_a_signal_ends_it(
    place: Path, person: Path, dirs: Dirs, number: signal.Signals
) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "lamfuse", "mount", "--foreground"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == f"mounted {person} at {place}\n".encode()
        assert (place / "Downloads").exists()
        process.send_signal(number)
        assert process.wait(10) == 0
        assert process.stdout.read() == b""
        assert b"Traceback" not in process.stderr.read()
    assert views.mount_at(dirs.mountpoint) is None
    assert not os.path.exists(dirs.socket)


def test_explain_says_the_same_with_and_without_a_daemon(place: Path, person: Path) -> None:
    path = str(person / "Downloads" / "report.md")
    without = _lamfuse("explain", path)
    assert without.returncode == 0
    assert "asks you" in without.stdout
    assert _lamfuse("mount").returncode == 0
    assert _lamfuse("explain", path).stdout == without.stdout
    assert _lamfuse("explain", str(place / "Downloads" / "report.md")).stdout == without.stdout


def test_explain_of_something_hidden_names_the_rule(place: Path, person: Path) -> None:
    result = _lamfuse("explain", "--json", str(person / ".ssh" / "id_ed25519"))
    assert result.returncode == 0
    data = json.loads(result.stdout)
    assert data["hidden"] == "/.ssh"
    assert {item["verdict"] for item in data["operations"]} == {"refuse"}
    assert {"lookup", "create"} <= {item["operation"] for item in data["operations"]}


def test_reload_takes_a_changed_file_over_and_keeps_the_old_when_it_is_bad(
    place: Path, person: Path, dirs: Dirs
) -> None:
    assert _lamfuse("init").returncode == 0
    assert _lamfuse("mount").returncode == 0
    (person / "secrets").mkdir()
    assert (place / "secrets").exists()
    config = Path(os.fsdecode(dirs.config_file))
    config.write_text('deny = ["secrets/"]\n')
    assert _lamfuse("reload").returncode == 0
    assert not (place / "secrets").exists()
    config.write_text("denyy = []\n")
    bad = _lamfuse("reload")
    assert bad.returncode == 1
    assert "Did you mean deny?" in bad.stderr
    assert not (place / "secrets").exists()
