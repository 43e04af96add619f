"""The program channel: only a right answer from a program that ended well says anything."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from lamfuse.core.approval import Answer, Question, Scope
from lamfuse.core.errors import ChannelLost
from lamfuse.core.target import FileKind
from lamfuse.engine.open_questions import Standing
from lamfuse.notify.program import MAX_OUTPUT, Program, question_as_data, read_answer
from tests.contract.notifier import Desk, NotifierContract
from tests.engine.fakes import make_question, make_request

# Takes the question, says that it has, and does as the file `do` says once that is there.
SCRIPT = """
import json, os, sys, time
place = sys.argv[1]
question = json.load(sys.stdin)
open(place + "/pid", "w").write(str(os.getpid()))
while not os.path.exists(place + "/do"):
    time.sleep(0.01)
print(open(place + "/do").read().replace("ID", question["id"]))
"""


def standing(question: Question) -> Standing:
    return Standing(57.25, 2)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def until(condition: Callable[[], bool]) -> None:
    with trio.fail_after(10):
        while not condition():  # noqa: ASYNC110 - a process of its own has no event
            await trio.sleep(0.01)


class ProgramDesk(Desk):
    def __init__(self, place: Path) -> None:
        self.place = place
        script = place / "person.py"
        script.write_text(SCRIPT)
        argv = [sys.executable, "-S", "-E", str(script), str(place)]
        self.notifier = Program(argv, standing)

    def _do(self, text: str) -> None:
        part = self.place / "part"
        part.write_text(text)
        part.rename(self.place / "do")

    async def answer(self, question: Question, *, allow: bool, scope: Scope | None) -> None:
        reply = {"id": "ID", "answer": "allow" if allow else "decline"}
        self._do(json.dumps(reply | ({"scope": scope} if scope else {})))

    async def garbage(self, question: Question) -> None:
        self._do("yes, please")

    async def end(self, question: Question) -> None:
        await until((self.place / "pid").exists)
        await until(lambda: bool((self.place / "pid").read_text()))
        os.kill(int((self.place / "pid").read_text()), signal.SIGKILL)

    async def is_withdrawn(self, question: Question) -> bool:
        pid = self.place / "pid"
        return not pid.exists() or not is_alive(int(pid.read_text()))


class TestProgram(NotifierContract):
    @pytest.fixture
    def desk(self, tmp_path: Path) -> ProgramDesk:
        return ProgramDesk(tmp_path)


async def outcome_of(shell: str, question: Question | None = None) -> Answer | str:
    """Run *shell* as the program; return its answer or why there is none."""
    try:
        with trio.fail_after(10):
            program = Program(["/bin/sh", "-c", shell], standing)
            return await program.ask(question or make_question(), lambda: None)
    except ChannelLost as error:
        return str(error)


GOOD = '{"id": "k7f2", "answer": "allow", "scope": "folder"}'


@pytest.mark.requirement("H17")
@pytest.mark.parametrize(
    ("shell", "why"),
    [
        pytest.param("cat >/dev/null; exit 0", "no answer", id="silent"),
        pytest.param(f"cat >/dev/null; echo '{GOOD}'; exit 1", "status 1", id="failed"),
        pytest.param(f"cat >/dev/null; echo '{GOOD}'; kill -9 $$", "status -9", id="killed"),
        pytest.param("cat >/dev/null; head -c 70000 /dev/zero", "more than", id="floods"),
        pytest.param("cat >/dev/null; exec cat /dev/zero", "more than", id="floods-on"),
        pytest.param(f"cat >/dev/null; echo '{GOOD}{GOOD}'", "no answer", id="twice"),
        pytest.param("cat", "no answer", id="echoes-the-question"),
        pytest.param("exec /no/such/program", "status 127", id="fails-inside"),
    ],
)
async def test_a_program_that_does_not_answer_well_says_nothing(shell: str, why: str) -> None:
    found = await outcome_of(shell)

    assert isinstance(found, str)
    assert why in found


@pytest.mark.parametrize(
    "argv", [["/no/such/program"], ["/dev/null"], ["a\0b"]], ids=["absent", "no-program", "nul"]
)
async def test_what_cannot_be_started_is_a_lost_channel(argv: list[str]) -> None:
    shown: list[None] = []
    with pytest.raises(ChannelLost, match="could not be started"):
        await Program(argv, standing).ask(make_question(), lambda: shown.append(None))

    assert shown == []


def test_without_a_program_it_is_not_ready() -> None:
    assert not Program([], standing).is_ready()


async def test_the_arguments_go_through_no_shell(tmp_path: Path) -> None:
    script = tmp_path / "a program;exit 3"
    script.write_text(f"#!/bin/sh\ncat >/dev/null\necho '{GOOD}'\n")
    script.chmod(0o755)
    answer = await Program([str(script), "$(exit 3)"], standing).ask(make_question(), lambda: None)

    assert answer == Answer(allow=True, scope=Scope.FOLDER, channel="program")


async def test_the_program_gets_the_environment_and_no_descriptor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAMFUSE_TEST_SEEN", "here")
    with open(tmp_path / "open", "wb") as secret:  # noqa: ASYNC230 - it is there before the test
        os.set_inheritable(secret.fileno(), True)
        shell = (
            f"cat >/dev/null; ls /proc/self/fd >'{tmp_path}/fds'; "
            f"printenv LAMFUSE_TEST_SEEN >'{tmp_path}/env'; echo '{GOOD}'"
        )
        assert isinstance(await outcome_of(shell), Answer)

    # ls itself has one more, for the directory.
    assert (tmp_path / "fds").read_text().split() == ["0", "1", "2", "3"]
    assert (tmp_path / "env").read_text() == "here\n"


async def test_it_counts_as_shown_only_when_the_question_was_taken(tmp_path: Path) -> None:
    shown: list[bool] = []
    long = make_request(b"x" * 200_000)
    program = Program(["/bin/sh", "-c", "exec sleep 60"], standing)
    with trio.move_on_after(0.4) as scope:
        await program.ask(make_question(request=long), lambda: shown.append(True))

    assert scope.cancelled_caught
    assert shown == []


@pytest.mark.parametrize("trap", ["", "trap '' TERM;"], ids=["willing", "unwilling"])
async def test_withdrawal_ends_the_whole_group_within_a_second(tmp_path: Path, trap: str) -> None:
    pids = tmp_path / "pids"
    shell = f"{trap} cat >/dev/null; sleep 600 & echo $$ $! >'{pids}'; wait; sleep 600"
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            program = Program(["/bin/sh", "-c", shell], standing)
            nursery.start_soon(program.ask, make_question(), lambda: None)
            await until(lambda: pids.exists() and len(pids.read_text().split()) == 2)
            began = trio.current_time()
            scope.cancel()

    assert trio.current_time() - began < 1.0
    await until(lambda: not any(is_running(int(pid)) for pid in pids.read_text().split()))


def is_running(pid: int) -> bool:
    """Tell whether *pid* lives: one whose parent does not reap it is dead all the same."""
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in {b"Z", b"X"}


async def test_a_child_that_keeps_the_output_open_does_not_hold_the_answer_up(
    tmp_path: Path,
) -> None:
    began = trio.current_time()
    answer = await outcome_of(
        f"cat >/dev/null; sleep 600 & echo $! >'{tmp_path}/pid'; echo '{GOOD}'"
    )

    assert isinstance(answer, Answer)
    assert trio.current_time() - began < 5
    await until(lambda: not is_running(int((tmp_path / "pid").read_text())))


async def test_complaints_go_to_the_log_made_visible(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    await outcome_of(f"cat >/dev/null; printf 'no \\033[2J display\\n' >&2; echo '{GOOD}'")

    assert "program: no \\x1b[2J display" in caplog.messages


def answer(**fields: object) -> bytes:
    return json.dumps({"id": "k7f2", "answer": "allow"} | fields).encode()


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        pytest.param(answer(), Answer(True, None, "program"), id="allow"),
        pytest.param(answer(scope="once"), Answer(True, Scope.ONCE, "program"), id="allow-once"),
        pytest.param(answer(answer="decline"), Answer(False, None, "program"), id="decline"),
        pytest.param(b"\n " + answer() + b" \n", Answer(True, None, "program"), id="blanks"),
    ],
)
def test_an_answer_is_read(output: bytes, expected: Answer) -> None:
    assert read_answer(output, make_question()) == expected


@pytest.mark.requirement("H17")
@pytest.mark.parametrize(
    "output",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"allow", id="a-word"),
        pytest.param(b"true", id="true"),
        pytest.param(b'["k7f2", "allow"]', id="a-list"),
        pytest.param(answer()[:-1], id="cut-short"),
        pytest.param(answer() + b"x", id="something-after"),
        pytest.param(answer() + answer(answer="decline"), id="two"),
        pytest.param(b'{"id": "k7f2"}', id="no-answer"),
        pytest.param(b'{"answer": "allow"}', id="no-id"),
        pytest.param(answer(id="k7f3"), id="another-id"),
        pytest.param(answer(id="K7F2"), id="another-case"),
        pytest.param(answer(id=None), id="null-id"),
        pytest.param(answer(answer="yes"), id="yes"),
        pytest.param(answer(answer="Allow"), id="capital"),
        pytest.param(answer(answer=True), id="true-for-allow"),
        pytest.param(answer(scope="listed"), id="scope-not-offered"),
        pytest.param(answer(scope="always"), id="unknown-scope"),
        pytest.param(answer(scope=None), id="null-scope"),
        pytest.param(answer(scope=["once"]), id="list-of-scopes"),
        pytest.param(answer(answer="decline", scope="listed"), id="no-with-a-scope-not-offered"),
        pytest.param(answer(comment="ok"), id="something-else-in-it"),
        pytest.param(b'{"id": "k7f2", "answer": "decline", "answer": "allow"}', id="a-key-twice"),
        pytest.param(b"\xff" + answer(), id="no-utf-8"),
        pytest.param(b"[" * 50_000, id="deep"),
        pytest.param(b"1" * MAX_OUTPUT, id="a-huge-number"),
    ],
)
def test_anything_else_is_none(output: bytes) -> None:
    with pytest.raises(ChannelLost):
        read_answer(output, make_question())


@pytest.mark.requirement("H4", "H30")
def test_the_question_has_what_a_person_needs() -> None:
    data = question_as_data(make_question(), 57.25)

    assert json.loads(json.dumps(data)) == {
        "id": "k7f2",
        "operation": "write",
        "paths": ["/home/lam/Downloads/report.md"],
        "title": "Overwrite? [k7f2]",
        "body": ["/home/lam/Downloads/report.md", "Replaces 1,240 bytes, 40 lines."],
        "destructive": False,
        "deadline_s": 57.2,
        "caller": {"pid": 4411, "exe": "/usr/bin/python3.12", "session": "claude-1"},
        "scopes": ["once", "file", "folder"],
    }


def test_a_path_that_is_no_text_is_written_as_base64() -> None:
    request = make_request(b"\xff")
    assert request.subjects[0].kind is FileKind.FILE
    data = question_as_data(make_question(request=request), 1.0)

    assert data["paths"] == [{"b64": "L2hvbWUvbGFtL0Rvd25sb2Fkcy//"}]
