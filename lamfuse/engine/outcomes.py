"""What becomes of a question, for the call that waits and for whoever answers."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from lamfuse.core.approval import Answer, Question, Scope, State
from lamfuse.core.refusals import Reason

__all__ = ["Outcome", "Reply", "ReplyKind"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one waiting call ends. Only ``ALLOWED`` lets it through, and then *answer* is there.

    *answer* has its scope filled in when it allows. *question* is None when none was opened.
    *reason* is set where the state alone does not tell it: the queue was full, the journal could
    not be written, the daemon stops. *again* says that the question was taken back unanswered
    because it may have become needless: the request is to be decided anew.
    """

    state: State
    answer: Answer | None = None
    question: Question | None = None
    reason: Reason | None = None
    detail: str = ""
    again: bool = False

    @property
    def was_shown(self) -> bool:
        """Whether a person could see the question before it ended."""
        return self.question is not None and self.question.shown is not None


class ReplyKind(enum.StrEnum):
    """What became of an answer. Only ``ACCEPTED`` changed anything."""

    ACCEPTED = "accepted"
    UNKNOWN = "unknown"
    DECIDED = "decided"
    NOT_SHOWN = "not shown"
    NOT_OFFERED = "not offered"


@dataclass(frozen=True, slots=True)
class Reply:
    """What became of an answer, for the person who gave it.

    *state* is the question's state after it (None: unknown), *channel* who decided it, *scope* what
    a yes got, *offered* what could have been chosen.
    """

    kind: ReplyKind
    state: State | None = None
    channel: str = ""
    scope: Scope | None = None
    offered: tuple[Scope, ...] = ()
