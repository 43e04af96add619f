"""A caller that is killed or interrupted while it waits is let go, and nothing is changed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lamfuse.core.approval import State
from tests.fuse.bench import Bench
from tests.fuse.changes import prepare, snapshot
from tests.mounting import entries
from tests.person import Allow, silence

pytestmark = [pytest.mark.mount, pytest.mark.requirement("L4")]

#: Within this time a caller is free (contract, section 3), in seconds.
FREE_S = 1.0

_WAITING = {
    "unlink": ["rm", "-f", "file"],
    "rmdir": ["rmdir", "empty"],
    "create": ["touch", "new"],
    "mkdir": ["mkdir", "new"],
    "open for writing": ["dd", "if=/dev/null", "of=file", "conv=notrunc", "status=none"],
    "open and truncate": ["dd", "if=/dev/null", "of=file", "status=none"],
    "truncate": ["truncate", "-c", "-s", "0", "file"],
    "rename": ["mv", "-T", "file", "moved"],
    "chmod": ["chmod", "600", "file"],
}
_PROGRAMS = [pytest.param(command, id=name) for name, command in _WAITING.items()]


@contextmanager
def _waiting(bench: Bench, command: list[str]) -> Iterator["subprocess.Popen[bytes]"]:
    """Run *command* in the own folder until it waits for an answer."""
    prepare(bench.real)
    bench.person.forget(silence)
    process = subprocess.Popen(
        command, cwd=bench.here, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        bench.person.wait_asked()
        yield process
    finally:
        process.kill()
        process.wait(10)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("command", _PROGRAMS)
def test_a_killed_caller_is_free_within_a_second_and_nothing_is_changed(
    bench: Bench, command: list[str], number: signal.Signals
) -> None:
    with _waiting(bench, command) as process:
        before = snapshot(bench.real)
        process.send_signal(number)
        assert process.wait(FREE_S) == -number
        (question,) = bench.person.asked
        assert bench.person.wait_ended(question) is State.GONE
        assert bench.person.open_questions() == ()
        assert snapshot(bench.real) == before
        late = bench.person.answer(question, Allow())
        assert late is not None
        assert late.outcome == "decided"
        assert snapshot(bench.real) == before
    kinds = [
        entry["kind"]
        for entry in entries(bench.mount.place.journal)
        if question.id == entry.get("question")
    ]
    assert "intent" not in kinds


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGQUIT])
def test_other_ending_signals_free_the_caller_as_well(bench: Bench, number: signal.Signals) -> None:
    with _waiting(bench, ["rm", "-f", "file"]) as process:
        process.send_signal(number)
        assert process.wait(FREE_S) == -number
        assert (bench.real / "file").exists()


@pytest.mark.parametrize("number", [signal.SIGCHLD, signal.SIGWINCH, signal.SIGCONT])
def test_a_signal_that_does_not_end_the_caller_leaves_it_waiting(
    bench: Bench, number: signal.Signals
) -> None:
    with _waiting(bench, ["rm", "-f", "file"]) as process:
        for _ in range(3):
            process.send_signal(number)
            time.sleep(0.1)  # for what must not happen there is no event
        (question,) = bench.person.asked
        bench.person.answer(question, Allow())
        assert process.wait(10) == 0
        assert not (bench.real / "file").exists()


def test_a_stopped_caller_still_gets_its_answer(bench: Bench) -> None:
    with _waiting(bench, ["rm", "-f", "file"]) as process:
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.2)  # for what must not happen there is no event
        (question,) = bench.person.asked
        bench.person.answer(question, Allow())
        process.send_signal(signal.SIGCONT)
        assert process.wait(10) == 0
        assert not (bench.real / "file").exists()


@pytest.mark.parametrize("how", ["SIG_BLOCK", "SIG_IGN"])
def test_a_signal_that_is_blocked_or_ignored_does_not_end_the_call(bench: Bench, how: str) -> None:
    if how == "SIG_BLOCK":
        setup = "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])"
    else:
        setup = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    program = f"import os, signal; {setup}; os.unlink('file')"
    with _waiting(bench, [sys.executable, "-ISc", program]) as process:
        process.send_signal(signal.SIGTERM)
        time.sleep(0.2)  # for what must not happen there is no event
        (question,) = bench.person.asked
        assert bench.person.open_questions() != ()
        bench.person.answer(question, Allow())
        bench.person.wait_ended(question)
        assert process.wait(10) in {0, -signal.SIGTERM}
        assert not (bench.real / "file").exists()


def test_a_waiting_thread_of_a_killed_process_is_let_go(bench: Bench) -> None:
    program = (
        "import os, threading, time\n"
        "threading.Thread(target=os.unlink, args=['file']).start()\n"
        "time.sleep(60)\n"
    )
    with _waiting(bench, [sys.executable, "-ISc", program]) as process:
        process.kill()
        assert process.wait(FREE_S) == -signal.SIGKILL
        assert bench.person.wait_ended(bench.person.asked[0]) is State.GONE
        assert (bench.real / "file").exists()


def test_a_caller_with_a_handler_gets_eintr(bench: Bench) -> None:
    program = (
        "import ctypes, os, signal, sys\n"
        "signal.signal(signal.SIGTERM, lambda *_: None)\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "libc.unlink(b'file')\n"
        "sys.exit(ctypes.get_errno())\n"
    )
    with _waiting(bench, [sys.executable, "-ISc", program]) as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(FREE_S) == 4
        assert (bench.real / "file").exists()


def test_what_a_killed_caller_blocked_goes_on(bench: Bench) -> None:
    with _waiting(bench, ["rm", "-f", "file"]) as process:
        process.kill()
        process.wait(FREE_S)
        assert "file" in os.listdir(bench.here)
        bench.person.forget(lambda _: Allow())
        (bench.here / "file").unlink()
        assert not (bench.real / "file").exists()
