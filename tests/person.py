"""A scripted person: watches a daemon's questions over its control socket and answers them.

It runs in a thread of the test. What it answers is a function of the question; everything that it
was asked is kept, in order, before it is answered.
"""

import os
import select
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from lamfuse.control import client, wire
from lamfuse.core.approval import Scope, State
from lamfuse.core.errors import NotRunningError

__all__ = [
    "DECLINE",
    "SILENCE",
    "Allow",
    "Answers",
    "Person",
    "by_operation",
    "decline",
    "plain_yes",
    "silence",
    "widest",
    "yes",
]


@dataclass(frozen=True)
class Allow:
    """A yes; where the scope is not on offer, a plain yes."""

    scope: Scope | None = None


DECLINE = "decline"
SILENCE = "silence"
Verdict: TypeAlias = Allow | str
Answers: TypeAlias = Callable[[wire.QuestionView], Verdict]

#: What takes longer than this has hung (seconds); nothing is expected to take a tenth of it.
PATIENCE_S = 20.0


def yes(scope: Scope | None = None) -> Answers:
    """Allow everything, with *scope* where it is offered."""
    return lambda question: Allow(scope)


plain_yes = yes()
widest = yes(Scope.FOLDER)


def decline(question: wire.QuestionView) -> Verdict:
    """Decline everything."""
    return DECLINE


def silence(question: wire.QuestionView) -> Verdict:
    """Look at everything and answer nothing."""
    return SILENCE


def by_operation(otherwise: Answers = decline, **answers: Verdict) -> Answers:
    """Answer by the name of the operation (a dash in it is written as underscore)."""

    def choose(question: wire.QuestionView) -> Verdict:
        verdict = answers.get(question.operation.value.replace("-", "_"))
        return otherwise(question) if verdict is None else verdict

    return choose


@dataclass
class _Record:
    asked: list[wire.QuestionView] = field(default_factory=list)
    ended: dict[str, State] = field(default_factory=dict)


class Person:
    """Watches at the control socket *path*; a context manager."""

    def __init__(self, path: bytes) -> None:
        self.answers: Answers = decline
        self._path = path
        self._news = threading.Condition()
        self._record = _Record()
        self._wake_reader, self._wake_writer = os.pipe2(os.O_CLOEXEC)
        self._watching = client.connect(path)
        self._answering = client.connect(path)
        self._watching.watch()
        self._thread = threading.Thread(target=self._run, name="person", daemon=True)
        self._thread.start()

    def stop_watching(self) -> None:
        """Leave: no question is seen any more. It may be called again."""
        os.write(self._wake_writer, b"x")
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()
        self._watching.close()

    def close(self) -> None:
        """Leave for good."""
        self.stop_watching()
        self._answering.close()
        os.close(self._wake_reader)
        os.close(self._wake_writer)

    # --- what was asked

    @property
    def asked(self) -> list[wire.QuestionView]:
        """Every question so far, oldest first."""
        with self._news:
            return list(self._record.asked)

    @property
    def operations(self) -> list[str]:
        """The operation of every question so far."""
        return [question.operation.value for question in self.asked]

    def forget(self, answers: Answers = decline) -> None:
        """Begin anew, with other answers."""
        with self._news:
            self._record = _Record()
            self.answers = answers

    def wait_asked(self, count: int = 1) -> list[wire.QuestionView]:
        """Wait until *count* questions were asked, and return them."""
        self._wait(lambda: len(self._record.asked) >= count, f"{count} questions")
        return self.asked

    def wait_ended(self, question: wire.QuestionView) -> State:
        """Wait until *question* is decided, and return how."""
        self._wait(lambda: question.id in self._record.ended, f"the end of {question.id}")
        return self._record.ended[question.id]

    def _wait(self, there: Callable[[], bool], what: str) -> None:
        with self._news:
            assert self._news.wait_for(there, PATIENCE_S), f"waited in vain for {what}"

    # --- answering by hand

    def open_questions(self) -> tuple[wire.QuestionView, ...]:
        """Return the open questions; they count as shown from then on."""
        with client.connect(self._path) as connection:
            return connection.pending()

    def answer(self, question: wire.QuestionView, verdict: Verdict) -> wire.AnswerReply | None:
        """Look at *question* and answer it."""
        with client.connect(self._path) as connection:
            return _answer(connection, question, verdict)

    def new_turn(self) -> None:
        """Begin a new turn."""
        with client.connect(self._path) as connection:
            connection.turn(None)

    def status(self) -> wire.Status:
        """Ask the daemon how it is."""
        with client.connect(self._path) as connection:
            return connection.status()

    def reload(self) -> wire.ReloadReply:
        """Have the configuration read again."""
        with client.connect(self._path) as connection:
            return connection.reload()

    def wait_no_questions(self) -> None:
        """Wait until no question is open."""
        deadline = time.monotonic() + PATIENCE_S
        while self.status().open_questions:
            assert time.monotonic() < deadline, "questions stay open"
            time.sleep(0.01)

    # --- the thread

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._watching.fileno(), select.POLLIN)
        poll.register(self._wake_reader, select.POLLIN)
        try:
            while True:
                if not self._watching.has_event:
                    ready = {fd for fd, _ in poll.poll()}
                    if self._wake_reader in ready:
                        return
                self._note(self._watching.next_event())
        except NotRunningError:
            return  # the daemon ended

    def _note(self, event: wire.Event) -> None:
        with self._news:
            if isinstance(event, wire.AskedEvent):
                self._record.asked.append(event.question)
            elif event.state in _FINAL:
                self._record.ended[event.id] = event.state
            answers = self.answers
            self._news.notify_all()
        if isinstance(event, wire.AskedEvent):
            _answer(self._answering, event.question, answers(event.question))


_FINAL = frozenset({State.ALLOWED, State.DECLINED, State.TIMED_OUT, State.LOST, State.GONE})


def _answer(
    connection: client.Client, question: wire.QuestionView, verdict: Verdict
) -> wire.AnswerReply | None:
    connection.show(question.id)
    if verdict == SILENCE:
        return None
    if not isinstance(verdict, Allow):
        return connection.answer(question.id, allow=False)
    offered = {offer.scope for offer in question.scopes}
    scope = verdict.scope if verdict.scope in offered else None
    return connection.answer(question.id, allow=True, scope=scope)
