"""The questions that stand open, who waits for each, and the last ones that were decided.

It keeps and orders; it decides nothing and asks nobody.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field

import trio

from lamfuse.core.approval import Question, Scope, State
from lamfuse.core.target import Caller
from lamfuse.engine.outcomes import Outcome
from lamfuse.engine.ports import Notifier

__all__ = ["ID_ALPHABET", "Decided", "Entry", "OpenQuestions", "Standing", "Waiter"]

#: Nothing that is mistaken for another when it is read aloud or typed: no 0 o 1 l.
ID_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"
_ID_LENGTH = 4
#: How many decided questions are remembered, so that a late answer hears how it ended.
_REMEMBERED = 100
#: How many sessions are remembered as served; beyond that, fairness starts anew.
_SESSIONS = 1024


@dataclass(slots=True, eq=False)
class Waiter:
    """One call that waits for the outcome of a question."""

    caller: Caller
    done: trio.Event = field(default_factory=trio.Event)
    outcome: Outcome | None = None
    unwatched: bool = False

    def settle(self, outcome: Outcome) -> None:
        """End the waiting with *outcome*; only the first one counts."""
        if self.outcome is None:
            self.outcome = outcome
            self.done.set()


@dataclass(slots=True, eq=False)
class Entry:
    """An open question with all that the broker must know of it.

    ``deadline`` is in monotonic seconds. ``lost`` are the channels that failed for this question.
    ``looked_at`` is set when somebody saw it on the command line or in a watch.
    """

    question: Question
    key: Hashable
    deadline: float
    number: int
    waiters: list[Waiter] = field(default_factory=list)
    lost: list[Notifier] = field(default_factory=list)
    looked_at: bool = False

    @property
    def session(self) -> str:
        """The session that asks."""
        return self.question.request.session


@dataclass(frozen=True, slots=True)
class Decided:
    """How a question ended; nothing of the request is kept."""

    state: State
    channel: str
    scope: Scope | None


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a question stands right now: the seconds it has left, and how many others are open."""

    seconds_left: float
    waiting: int


class OpenQuestions:
    """All open questions, oldest first, and the last decided ones."""

    def __init__(self) -> None:
        self._by_id: dict[str, Entry] = {}
        self._by_key: dict[Hashable, Entry] = {}
        self._decided: OrderedDict[str, Decided] = OrderedDict()
        self._served: dict[str, int] = {}
        self._number = 0

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Entry]:
        """Iterate over a copy: entries may end meanwhile."""
        return iter(tuple(self._by_id.values()))

    def get(self, question_id: str) -> Entry | None:
        """Return the open question with this id, or None."""
        return self._by_id.get(question_id)

    def joined(self, key: Hashable) -> Entry | None:
        """Return the open question with this key, or None."""
        return self._by_key.get(key)

    def decided(self, question_id: str) -> Decided | None:
        """Return how a question ended, if it is one of the last."""
        return self._decided.get(question_id)

    def of_session(self, session: str) -> int:
        """Count the open questions of *session*."""
        return sum(entry.session == session for entry in self._by_id.values())

    def waiting(self, session: str | None = None) -> int:
        """Count the calls that wait, of *session* or of all."""
        return sum(
            len(entry.waiters)
            for entry in self._by_id.values()
            if session is None or entry.session == session
        )

    def new_id(self) -> str:
        """Make an id that no open and no remembered question has."""
        while True:
            made = "".join(secrets.choice(ID_ALPHABET) for _ in range(_ID_LENGTH))
            if made not in self._by_id and made not in self._decided:
                return made

    def add(self, question: Question, key: Hashable, deadline: float) -> Entry:
        """Enter a question."""
        self._number += 1
        entry = Entry(question, key, deadline, self._number)
        self._by_id[question.id] = self._by_key[key] = entry
        return entry

    def remove(self, entry: Entry) -> None:
        """Take out a question that was decided, and remember how."""
        question = entry.question
        del self._by_id[question.id]
        del self._by_key[entry.key]
        scope = question.answer.scope if question.answer else None
        self._decided[question.id] = Decided(question.state, question.channel, scope)
        if len(self._decided) > _REMEMBERED:
            self._decided.popitem(last=False)
        if not self._by_id or len(self._served) > _SESSIONS:
            self._served.clear()

    def next(self, may_be_put: Callable[[Entry], bool]) -> Entry | None:
        """Return the question whose turn it is: sessions in rotation, the oldest of each first."""
        candidates = [entry for entry in self._by_id.values() if may_be_put(entry)]
        return min(
            candidates,
            key=lambda entry: (self._served.get(entry.session, -1), entry.number),
            default=None,
        )

    def note_served(self, entry: Entry) -> None:
        """Put the session of *entry* at the end of the rotation."""
        self._number += 1
        self._served[entry.session] = self._number
