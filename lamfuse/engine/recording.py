"""What the journal is told about a question: its beginning, and its end."""

from __future__ import annotations

import logging

from lamfuse.core.approval import Answer, Question, Scope, State
from lamfuse.core.errors import JournalError
from lamfuse.core.records import AnswerRecord, QuestionRecord
from lamfuse.engine.ports import Journal

__all__ = ["question_record", "record_end"]

_log = logging.getLogger(__name__)


def question_record(question: Question, turn: int) -> QuestionRecord:
    """Record that *question* was opened in *turn* of its session."""
    request = question.request
    return QuestionRecord(
        question=question.id,
        session=request.session,
        turn=turn,
        operation=request.operation,
        paths=request.paths,
        title=question.text.title,
        body=question.text.body,
        destructive=question.text.destructive,
        scopes=tuple(offer.scope for offer in question.offers),
        pid=request.caller.pid,
        exe=request.caller.exe,
    )


def record_end(
    journal: Journal, question: Question, state: State, answer: Answer | None
) -> str | None:
    """Write that *question* ends in *state*; returns what kept it from being written, or None."""
    try:
        journal.append(_answer_record(question, state, answer))
    except JournalError as error:
        _log.error("the end of question %s is not in the journal: %s", question.id, error)
        return str(error)
    except Exception:  # noqa: BLE001 - a question must end even then: its caller is blocked
        _log.exception("the end of question %s could not be written", question.id)
        return "a fault of lamfuse; its log has the details"
    return None


def _answer_record(question: Question, state: State, answer: Answer | None) -> AnswerRecord:
    scope = answer.scope if answer is not None else None
    return AnswerRecord(
        question=question.id,
        session=question.request.session,
        outcome=state,
        scope=scope,
        channel=answer.channel if answer is not None else "",
        granted=_granted(question, scope),
    )


def _granted(question: Question, scope: Scope | None) -> tuple[bytes, ...]:
    """Return the paths that a yes with *scope* reaches beyond the call."""
    offer = question.offer(scope) if scope is not None else None
    if offer is None or not offer.path:
        return ()
    # "This file" reaches the files that run later as well: the question named each of them.
    beside = question.runs_later if scope is Scope.FILE else ()
    return tuple(dict.fromkeys((offer.path, *beside)))
