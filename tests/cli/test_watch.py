from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import trio
import trio.testing

from lamfuse.cli import prompting
from lamfuse.control import wire
from lamfuse.control.watching import Watching
from lamfuse.core.approval import Answer, Scope, State
from lamfuse.core.errors import ChannelLost
from lamfuse.engine.open_questions import Standing
from lamfuse.notify.render import Card
from tests.cli.fake_daemon import FakeDaemon, lamfuse
from tests.control.fake_backend import FakeBackend, make_question

pytestmark = pytest.mark.requirement("L8")


class Scripted:
    """A ``lamfuse watch --json`` that runs as a process of its own."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "lamfuse", "watch", "--json"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def say(self, line: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + b"\n")
        self._process.stdin.flush()

    def hear(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def end_input(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()

    def wait(self) -> tuple[int, bytes]:
        assert self._process.stderr is not None
        return self._process.wait(10), self._process.stderr.read()

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()


@pytest.fixture
def scripted(daemon: FakeDaemon) -> Iterator[Callable[[], Scripted]]:
    started: list[Scripted] = []

    def start() -> Scripted:
        started.append(Scripted())
        return started[-1]

    yield start
    for one in started:
        one.close()


def test_an_event_is_a_line_and_an_answer_too(
    daemon: FakeDaemon, scripted: Callable[[], Scripted]
) -> None:
    daemon.backend.questions = {"k7f2": make_question("k7f2")}
    watch = scripted()
    asked = watch.hear()
    assert (asked["kind"], asked["question"]["id"]) == ("asked", "k7f2")
    assert asked["question"]["paths"][0]["raw"] == "/home/lam/Downloads/report.md"
    watch.say(b'{"id": "k7f2", "answer": "allow", "scope": "folder"}')
    heard = [watch.hear(), watch.hear()]
    by_kind = {line["kind"]: line for line in heard}
    assert (by_kind["answer"]["id"], by_kind["answer"]["outcome"]) == ("k7f2", "accepted")
    assert (by_kind["changed"]["state"], by_kind["changed"]["channel"]) == ("allowed", "watch")
    assert daemon.backend.asked == [
        ("show", "k7f2"),
        ("answer", "k7f2", True, Scope.FOLDER, "watch"),
    ]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"allow", id="no-json"),
        pytest.param(b'"allow"', id="text"),
        pytest.param(b'{"id": "k7f2"}', id="no-answer"),
        pytest.param(b'{"id": "k7f2", "answer": "yes"}', id="another-word"),
        pytest.param(b'{"id": "k7f2", "answer": true}', id="truth"),
        pytest.param(b'{"id": "k7f2", "answer": "allow", "scope": "ever"}', id="no-such-scope"),
        pytest.param(b'{"id": "k7f2", "answer": "allow", "more": 1}', id="unknown-field"),
        pytest.param(b'{"id": "k7f2", "answer": "decline", "answer": "allow"}', id="twice"),
        pytest.param(b'{"id": "k7f2", "answer": "allow"} x', id="something-after-it"),
        pytest.param(b"\xff", id="no-text"),
    ],
)
def test_what_is_not_an_answer_answers_nothing(
    daemon: FakeDaemon, scripted: Callable[[], Scripted], line: bytes
) -> None:
    daemon.backend.questions = {"k7f2": make_question("k7f2")}
    watch = scripted()
    watch.hear()
    watch.say(line)
    assert watch.hear()["kind"] == "error"
    assert daemon.backend.asked == [("show", "k7f2")]


def test_the_end_of_input_answers_nothing_and_events_go_on(
    daemon: FakeDaemon, scripted: Callable[[], Scripted]
) -> None:
    daemon.backend.questions = {"k7f2": make_question("k7f2")}
    watch = scripted()
    watch.hear()
    watch.end_input()
    assert lamfuse("deny", "k7f2").code == 0
    changed = watch.hear()
    assert (changed["kind"], changed["state"], changed["channel"]) == ("changed", "declined", "cli")


def test_the_end_of_the_daemon_is_the_end_of_the_watch(
    daemon: FakeDaemon, scripted: Callable[[], Scripted]
) -> None:
    daemon.backend.questions = {"k7f2": make_question("k7f2")}
    watch = scripted()
    watch.hear()
    daemon.end()
    assert watch.wait() == (0, b"The view was unmounted.\n")


# --- on a terminal


class FakeTerminal:
    """Prompts in memory: a test waits for a card and gives the answer to it."""

    def __init__(self) -> None:
        self.cards: list[Card] = []
        self.endings: list[str] = []
        self.left: list[Standing] = []
        self.prompted = trio.Event()
        self.answer: Answer | Exception | None = None
        self.answered = trio.Event()

    async def prompt(
        self,
        card: Card,
        standing: Callable[[], Standing],
        shown: Callable[[], None],
        ending: Callable[[], str],
    ) -> Answer:
        self.cards.append(card)
        shown()
        self.prompted.set()
        try:
            await self.answered.wait()
        except trio.Cancelled:
            self.endings.append(ending())
            raise
        self.left.append(standing())
        self.answered = trio.Event()
        self.prompted = trio.Event()
        assert self.answer is not None
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def press(self, answer: Answer | Exception) -> None:
        self.answer = answer
        self.answered.set()


class FakeWatching:
    """A conversation with a backend in the same process."""

    def __init__(self, backend: FakeBackend, tell: Callable[[wire.Event], None]) -> None:
        self._backend = backend
        self._tell = tell

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        async with self._backend.watch() as events:
            task_status.started()
            async for event in events:
                self._tell(event)

    async def watch(self) -> None:
        await trio.lowlevel.checkpoint()

    async def show(self, question_id: str) -> wire.QuestionView | None:
        return await self._backend.show(question_id)

    async def answer(
        self, question_id: str, *, allow: bool, scope: Scope | None
    ) -> wire.AnswerReply:
        return await self._backend.answer(question_id, allow=allow, scope=scope, channel="watch")


async def _attend(backend: FakeBackend, terminal: FakeTerminal) -> None:
    def connect(tell: Callable[[wire.Event], None]) -> Watching:
        return FakeWatching(backend, tell)  # type: ignore[return-value] # the same methods

    await prompting.attend(connect, terminal)  # type: ignore[arg-type] # only prompt is used


async def test_questions_are_put_one_after_the_other(nursery: trio.Nursery) -> None:
    backend = FakeBackend({name: make_question(name) for name in ("k7f2", "m3qd")})
    terminal = FakeTerminal()
    nursery.start_soon(_attend, backend, terminal)
    with trio.fail_after(5):
        await terminal.prompted.wait()
        assert [card.id for card in terminal.cards] == ["k7f2"]
        terminal.press(Answer(allow=True, scope=Scope.FOLDER))
        await trio.testing.wait_all_tasks_blocked()
        assert [card.id for card in terminal.cards] == ["k7f2", "m3qd"]
        terminal.press(Answer(allow=False))
        await trio.testing.wait_all_tasks_blocked()
    answers = [call for call in backend.asked if isinstance(call, tuple) and call[0] == "answer"]
    assert answers == [
        ("answer", "k7f2", True, Scope.FOLDER, "watch"),
        ("answer", "m3qd", False, None, "watch"),
    ]


async def test_a_question_on_the_screen_counts_as_shown(nursery: trio.Nursery) -> None:
    backend = FakeBackend({"k7f2": make_question("k7f2")})
    terminal = FakeTerminal()
    nursery.start_soon(_attend, backend, terminal)
    await trio.testing.wait_all_tasks_blocked()
    assert backend.asked == [("show", "k7f2")]


async def test_a_question_that_is_decided_elsewhere_disappears(nursery: trio.Nursery) -> None:
    backend = FakeBackend({name: make_question(name) for name in ("k7f2", "m3qd")})
    terminal = FakeTerminal()
    nursery.start_soon(_attend, backend, terminal)
    await trio.testing.wait_all_tasks_blocked()
    backend.tell(wire.ChangedEvent(id="k7f2", state=State.DECLINED, channel="cli"))
    await trio.testing.wait_all_tasks_blocked()
    assert terminal.endings == ["Declined through cli."]
    assert [card.id for card in terminal.cards] == ["k7f2", "m3qd"]


async def test_a_question_that_goes_before_its_turn_is_never_put(nursery: trio.Nursery) -> None:
    backend = FakeBackend({name: make_question(name) for name in ("k7f2", "m3qd", "p5tz")})
    terminal = FakeTerminal()
    nursery.start_soon(_attend, backend, terminal)
    await trio.testing.wait_all_tasks_blocked()
    backend.tell(wire.ChangedEvent(id="m3qd", state=State.GONE))
    terminal.press(Answer(allow=False))
    await trio.testing.wait_all_tasks_blocked()
    assert [card.id for card in terminal.cards] == ["k7f2", "p5tz"]


async def test_a_question_asked_again_on_the_screen_is_put_once(nursery: trio.Nursery) -> None:
    backend = FakeBackend({"k7f2": make_question("k7f2")})
    terminal = FakeTerminal()
    nursery.start_soon(_attend, backend, terminal)
    await trio.testing.wait_all_tasks_blocked()
    backend.tell(wire.AskedEvent(question=make_question("k7f2")))
    backend.tell(wire.ChangedEvent(id="k7f2", state=State.SHOWN))
    await trio.testing.wait_all_tasks_blocked()
    assert [card.id for card in terminal.cards] == ["k7f2"]
    assert terminal.endings == []


async def test_a_late_answer_is_told_to_the_person(
    nursery: trio.Nursery, capsys: pytest.CaptureFixture[str]
) -> None:
    backend = FakeBackend({"k7f2": make_question("k7f2")})
    terminal = FakeTerminal()
    nursery.start_soon(_attend, backend, terminal)
    await trio.testing.wait_all_tasks_blocked()
    backend.questions["k7f2"] = make_question("k7f2", state=State.TIMED_OUT)
    terminal.press(Answer(allow=True))
    await trio.testing.wait_all_tasks_blocked()
    assert "k7f2: too late, it is timed out already" in capsys.readouterr().err


async def test_a_lost_terminal_ends_the_watch_and_answers_nothing() -> None:
    backend = FakeBackend({"k7f2": make_question("k7f2")})
    terminal = FakeTerminal()
    terminal.press(ChannelLost("end of input at the terminal"))
    with pytest.raises(ExceptionGroup) as caught:
        await _attend(backend, terminal)
    assert caught.group_contains(ChannelLost)
    assert [call for call in backend.asked if "answer" in str(call)] == []


def test_the_card_holds_the_whole_question() -> None:
    card = prompting.card_of(make_question("k7f2"))
    assert card.paths == ("/home/lam/Downloads/report.md",)
    assert card.title == "Overwrite report.md? [k7f2]"
    assert [(choice.key, choice.scope) for choice in card.choices] == [
        ("d", None),
        ("a", Scope.FILE),
        ("o", Scope.ONCE),
        ("f", Scope.FOLDER),
    ]


def test_without_a_terminal_watch_says_what_programs_use(daemon: FakeDaemon) -> None:
    result = lamfuse("watch")
    assert result.code == 1
    assert "--json" in result.err


def test_a_key_on_a_real_terminal_answers(daemon: FakeDaemon) -> None:
    daemon.backend.questions = {"k7f2": make_question("k7f2")}
    pid, master = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-m", "lamfuse", "watch"])
    try:
        _read_until(master, rb"k7f2.*d/a/")
        deadline = time.monotonic() + 20
        while not any("answer" in str(call) for call in daemon.backend.asked):
            # A key that comes too early is dropped, as for a person: press again.
            assert time.monotonic() < deadline
            os.write(master, b"a")
            select.select([master], [], [], 1.5)
            os.read(master, 4096)
        assert ("answer", "k7f2", True, Scope.FILE, "watch") in daemon.backend.asked
        os.write(master, b"\x03")
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 130
        pid = 0
    finally:
        if pid:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
        os.close(master)


def _read_until(fd: int, pattern: bytes) -> bytes:
    said = b""
    deadline = time.monotonic() + 10
    while not re.search(pattern, said, re.DOTALL):
        assert time.monotonic() < deadline, said
        if select.select([fd], [], [], 0.1)[0]:
            said += os.read(fd, 4096)
    return said
