"""What stands around the broker in its tests: channels, a journal and callers, all in memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

import trio
import trio.testing

from lamfuse.core.approval import Answer, Offer, Question, Scope, Text
from lamfuse.core.errors import JournalError
from lamfuse.core.operations import Operation
from lamfuse.core.records import AnswerRecord, QuestionRecord, Record
from lamfuse.core.target import Caller, FileKind, Identity, Request, Subject
from lamfuse.engine.broker import Broker, Limits, Outcome

__all__ = [
    "OFFERS",
    "Bench",
    "FakeCallers",
    "FakeJournal",
    "FakeNotifier",
    "Pending",
    "describe",
    "make_question",
    "make_request",
]

FOLDER = b"/home/lam/Downloads"
OFFERS = (
    Offer(Scope.ONCE),
    Offer(Scope.FILE, FOLDER + b"/report.md"),
    Offer(Scope.FOLDER, FOLDER, 3),
)


def make_request(
    name: bytes = b"report.md", *, session: str = "claude-1", tid: int = 4411
) -> Request:
    path = FOLDER + b"/" + name
    subject = Subject(
        path, FileKind.FILE, Identity(1, 2), Identity(1, 3), size=1240, mtime_ns=1, lines=40
    )
    caller = Caller(tid, tid, b"/usr/bin/python3.12")
    return Request(
        Operation.WRITE,
        session,
        caller,
        (subject,),
        truncates=True,
        new_size=2180,
        new_lines=61,
    )


def describe(
    request: Request,
    question_id: str,
    offers: tuple[Offer, ...],
    runs_later: tuple[bytes, ...],
) -> Text:
    path = request.paths[-1].decode("utf-8", "backslashreplace")
    return Text(f"Overwrite? [{question_id}]", (path, "Replaces 1,240 bytes, 40 lines."))


def make_question(question_id: str = "k7f2", request: Request | None = None) -> Question:
    request = request or make_request()
    text = describe(request, question_id, OFFERS, ())
    return Question(question_id, request, text, OFFERS, Scope.FILE, created=0.0)


class FakeNotifier:
    """A channel that says what the test tells it to."""

    def __init__(self, name: str = "fake", *, ready: bool = True, shows: bool = True) -> None:
        self.name = name
        self.ready = ready
        self.shows = shows
        self.asked: list[str] = []
        self.withdrawn: list[str] = []
        self.question: Question | None = None
        self.shown: Callable[[], None] | None = None
        self._said = trio.Event()
        self._what: object = None

    def is_ready(self) -> bool:
        return self.ready

    async def ask(self, question: Question, shown: Callable[[], None]) -> Answer:
        assert self.question is None, "a second question while one stands"
        self.question, self.shown, self._said = question, shown, trio.Event()
        self.asked.append(question.id)
        if self.shows:
            shown()
        try:
            await self._said.wait()
        except trio.Cancelled:
            self.withdrawn.append(question.id)
            raise
        finally:
            self.question = None
        if isinstance(self._what, BaseException):
            raise self._what
        return self._what  # type: ignore[return-value]  # garbage is what some tests are about

    def say(self, what: object) -> None:
        """Let the present ``ask`` return *what*, or raise it."""
        self._what = what
        self._said.set()

    def allow(self, scope: Scope | None = None) -> None:
        self.say(Answer(allow=True, scope=scope))

    def decline(self) -> None:
        self.say(Answer(allow=False))


@dataclass
class FakeJournal:
    """Keeps the records; ``full`` makes it refuse, ``fault`` makes it break."""

    records: list[Record] = field(default_factory=list)
    full: bool = False
    fault: Exception | None = None

    def append(self, record: Record) -> int:
        if self.full:
            raise JournalError("no space left")
        if self.fault is not None:
            raise self.fault
        self.records.append(record)
        return len(self.records)

    async def sync(self) -> None:
        await trio.lowlevel.checkpoint()

    def questions(self) -> list[QuestionRecord]:
        return [record for record in self.records if isinstance(record, QuestionRecord)]

    def answers(self) -> list[AnswerRecord]:
        return [record for record in self.records if isinstance(record, AnswerRecord)]


@dataclass
class FakeCallers:
    """All callers wait, but those whose thread id is in ``gone``."""

    gone: set[int] = field(default_factory=set)
    fault: Exception | None = None
    looks: int = 0

    def is_waiting(self, caller: Caller) -> bool:
        self.looks += 1
        if self.fault is not None:
            raise self.fault
        return caller.tid not in self.gone


@dataclass
class Pending:
    """A call that waits; ``outcome`` is there once it ended, ``scope`` cancels it."""

    outcome: Outcome | None = None
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    ended_at: float = 0.0

    @property
    def result(self) -> Outcome:
        assert self.outcome is not None, "still waiting"
        return self.outcome


class Bench:
    """A broker with its surroundings, and calls that wait at it."""

    def __init__(
        self, nursery: trio.Nursery, *notifiers: FakeNotifier, limits: Limits | None = None
    ) -> None:
        self.nursery = nursery
        self.journal = FakeJournal()
        self.callers = FakeCallers()
        self.broker = Broker(notifiers, self.journal, self.callers, limits or Limits(), describe)

    async def start(self) -> Bench:
        await self.nursery.start(self.run)
        return self

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        await self.broker.run(task_status=task_status)

    async def call(
        self,
        name: bytes = b"report.md",
        *,
        session: str = "claude-1",
        tid: int = 4411,
        key: Hashable = None,
    ) -> Pending:
        """Start a call and return when everything has settled."""
        pending = self.call_soon(name, session=session, tid=tid, key=key)
        await trio.testing.wait_all_tasks_blocked()
        return pending

    def call_soon(
        self,
        name: bytes = b"report.md",
        *,
        session: str = "claude-1",
        tid: int = 4411,
        key: Hashable = None,
    ) -> Pending:
        pending = Pending()
        request = make_request(name, session=session, tid=tid)

        async def run() -> None:
            with pending.scope:
                outcome = await self.broker.ask(
                    request, OFFERS, Scope.FILE, key if key is not None else name
                )
                assert pending.outcome is None
                pending.outcome, pending.ended_at = outcome, trio.current_time()

        self.nursery.start_soon(run)
        return pending

    def only(self) -> Question:
        """Return the one open question."""
        (question,) = self.broker.questions()
        return question
