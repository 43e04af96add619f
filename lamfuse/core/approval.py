"""Questions, answers, and the states between them.

The states are a table: an absent pair is an illegal move. Only ``ALLOWED`` lets a call through.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from lamfuse.core.errors import InternalError
from lamfuse.core.target import FileId, Request

__all__ = [
    "FINAL",
    "TRANSITIONS",
    "Answer",
    "Offer",
    "Question",
    "Scope",
    "State",
    "Text",
    "may_follow",
]


class State(enum.StrEnum):
    """The life of a question."""

    NEW = "new"
    QUEUED = "queued"
    SHOWN = "shown"
    ALLOWED = "allowed"
    DECLINED = "declined"
    TIMED_OUT = "timed out"
    LOST = "lost"
    GONE = "gone"


FINAL: frozenset[State] = frozenset(
    {State.ALLOWED, State.DECLINED, State.TIMED_OUT, State.LOST, State.GONE}
)

#: state -> states that may follow it. A question that nobody has seen can only be withdrawn, lost
#: or timed out: it can neither be allowed nor declined by a person.
TRANSITIONS: dict[State, frozenset[State]] = {
    State.NEW: frozenset({State.QUEUED, State.LOST, State.GONE}),
    State.QUEUED: frozenset({State.SHOWN, State.TIMED_OUT, State.LOST, State.GONE}),
    State.SHOWN: frozenset(
        {State.ALLOWED, State.DECLINED, State.TIMED_OUT, State.LOST, State.GONE}
    ),
}


def may_follow(state: State, following: State) -> bool:
    """Tell whether *following* may come right after *state*."""
    return following in TRANSITIONS.get(state, frozenset())


class Scope(enum.StrEnum):
    """How far a yes reaches."""

    ONCE = "once"
    FILE = "file"
    FOLDER = "folder"
    LISTED = "listed"


@dataclass(frozen=True, slots=True)
class Offer:
    """A scope that a question offers: for FOLDER the folder and how many files it holds already.

    ``existing`` is None when they were not counted: then existing files are not covered. ``files``
    are those that were counted.
    """

    scope: Scope
    path: bytes = b""
    existing: int | None = None
    files: frozenset[FileId] = field(default=frozenset(), repr=False)


@dataclass(frozen=True, slots=True)
class Text:
    """A question in words, ready to be shown: everything in it is already made visible."""

    title: str
    body: tuple[str, ...]
    destructive: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person said. ``scope`` None means the default of the question."""

    allow: bool
    scope: Scope | None = None
    channel: str = ""


@dataclass(slots=True)
class Question:
    """One open approval and its life.

    Times are monotonic seconds. ``waiters`` counts the calls that wait for it (identical ones
    join). ``runs_later`` are the paths, named in it, that run on the person's machine later.
    """

    id: str
    request: Request
    text: Text
    offers: tuple[Offer, ...]
    default: Scope
    created: float
    shown: float | None = None
    state: State = State.NEW
    answer: Answer | None = None
    channel: str = ""
    waiters: int = 0
    runs_later: tuple[bytes, ...] = ()
    history: list[State] = field(default_factory=lambda: [State.NEW])

    def move(self, state: State) -> None:
        """Go to *state*; an illegal move is our own bug."""
        if not may_follow(self.state, state):
            raise InternalError(f"question {self.id}: {self.state} cannot become {state}")
        self.state = state
        self.history.append(state)

    @property
    def is_final(self) -> bool:
        """Whether nothing can change any more."""
        return self.state in FINAL

    def offer(self, scope: Scope) -> Offer | None:
        """Return the offer with *scope*, or None when it is not offered."""
        return next((offer for offer in self.offers if offer.scope is scope), None)
