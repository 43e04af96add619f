from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lamfuse.cli import background
from lamfuse.core.errors import MachineError, RefusedError


@pytest.fixture
def log(tmp_path: Path) -> bytes:
    return bytes(tmp_path / "daemon.log")


def _wait_until(is_true: Callable[[], bool]) -> None:
    """Poll another process, for which there is nothing to wait on."""
    deadline = time.monotonic() + 10
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_line_comes_back_and_the_process_lives_on(log: bytes, tmp_path: Path) -> None:
    answer = tmp_path / "answer"

    def act(ready: Callable[[str], None]) -> None:
        facts = {
            "pid": os.getpid(),
            "leads_session": os.getsid(0) == os.getpid(),
            "cwd": os.getcwd(),
            "stdin": sys.stdin.read(),
        }
        ready(json.dumps(facts))
        print("told")
        answer.write_text("went on")

    facts = json.loads(background.detach(act, log))
    assert facts["pid"] != os.getpid()
    assert facts["leads_session"] is False
    assert facts["cwd"] == "/"
    assert facts["stdin"] == ""
    _wait_until(lambda: answer.exists() and answer.read_text() == "went on")
    _wait_until(lambda: b"told" in Path(os.fsdecode(log)).read_bytes())
    assert os.stat(log).st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        pytest.param(RefusedError("not here"), RefusedError, id="refused"),
        pytest.param(MachineError("not here"), MachineError, id="machine"),
        pytest.param(ExceptionGroup("g", [MachineError("not here")]), MachineError, id="group"),
    ],
)
def test_an_error_before_readiness_is_raised_in_the_starter(
    log: bytes, error: Exception, kind: type[Exception]
) -> None:
    def act(ready: Callable[[str], None]) -> None:
        raise error

    with pytest.raises(kind, match=r"^not here$"):
        background.detach(act, log)
    assert Path(os.fsdecode(log)).read_bytes() == b""


def test_a_fault_before_readiness_names_the_log_which_has_the_traceback(log: bytes) -> None:
    def act(ready: Callable[[str], None]) -> None:
        raise ZeroDivisionError("boom")

    with pytest.raises(RefusedError, match=r"boom.*daemon\.log"):
        background.detach(act, log)
    assert b"Traceback" in Path(os.fsdecode(log)).read_bytes()


def test_a_daemon_that_is_killed_before_readiness_is_noticed(log: bytes) -> None:
    def act(ready: Callable[[str], None]) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(RefusedError, match="ended before it was ready"):
        background.detach(act, log)


def test_an_error_after_readiness_is_in_the_log(log: bytes) -> None:
    def act(ready: Callable[[str], None]) -> None:
        logging.basicConfig(force=True)
        ready("up")
        raise RefusedError("no more")

    assert background.detach(act, log) == "up"
    _wait_until(lambda: b"no more" in Path(os.fsdecode(log)).read_bytes())


def test_a_daemon_whose_starter_went_does_not_come_up(log: bytes, tmp_path: Path) -> None:
    outcome = tmp_path / "outcome"
    go = tmp_path / "go"

    def act(ready: Callable[[str], None]) -> None:
        _wait_until(go.exists)
        try:
            ready("up")
        except BrokenPipeError:
            outcome.write_text("nobody waits")
            raise

    starter = os.fork()
    if starter == 0:
        with contextlib.suppress(BaseException):
            background.detach(act, log)
        os._exit(0)
    _wait_until(lambda: b"daemon.log" in b"".join(os.listdir(os.path.dirname(log))))
    os.kill(starter, signal.SIGKILL)
    os.waitpid(starter, 0)
    go.touch()
    _wait_until(lambda: outcome.exists() and outcome.read_text() == "nobody waits")


def test_a_large_log_is_set_aside(log: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "_LOG_LIMIT", 10)
    Path(os.fsdecode(log)).write_bytes(b"x" * 11)
    background.detach(lambda ready: ready("up"), log)
    assert Path(os.fsdecode(log + b".1")).read_bytes() == b"x" * 11


def test_a_link_in_place_of_the_log_is_not_followed(log: bytes, tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("kept")
    os.symlink(tmp_path / "victim", log)
    with pytest.raises(RefusedError):
        background.detach(lambda ready: ready("up"), log)
    assert (tmp_path / "victim").read_text() == "kept"
