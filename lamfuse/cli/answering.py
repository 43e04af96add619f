"""What ``allow`` and ``deny`` share: which questions are meant, and what became of the answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import click

from lamfuse.cli import options, render
from lamfuse.cli.exit_codes import ExitCode
from lamfuse.control import wire
from lamfuse.control.wire import AnswerOutcome
from lamfuse.core.approval import Scope, State
from lamfuse.core.errors import RefusedError, UsageError

__all__ = ["LAST_QUIET_S", "answer", "outcome", "pick_last"]

#: ``--last`` is pressed blindly: it means nothing while something else came into sight just now.
LAST_QUIET_S: Final = 1.0


def answer(
    ids: Sequence[str],
    *,
    last: bool,
    allow: bool,
    scope: Scope | None,
    home: bytes | None,
    config: bytes | None,
    json: bool,
) -> int:
    """Answer the questions *ids* (or the last one) and return the exit code."""
    if last == bool(ids):
        raise UsageError("Name the questions (see: lamfuse pending), or give --last instead.")
    with options.connect(home, config) as client:
        if last:
            ids = [pick_last(client.pending()).id]
        replies = [(name, client.answer(name, allow=allow, scope=scope)) for name in ids]
    if json:
        render.data([{"id": name, **render.as_data(reply)} for name, reply in replies])
    else:
        for name, reply in replies:
            accepted = _is_accepted(reply)
            click.echo(outcome(name, reply, scope), err=not accepted)
    return ExitCode.DONE if all(_is_accepted(reply) for _, reply in replies) else ExitCode.FAILED


def pick_last(questions: Sequence[wire.QuestionView]) -> wire.QuestionView:
    """Return the question that a person who presses a key now must mean.

    Raises :class:`RefusedError` when none is in sight, or another one arrived, or came into sight,
    less than a second ago: then the key may have been meant for the one before.
    """
    shown = [question for question in questions if question.state is State.SHOWN]
    if not shown:
        raise RefusedError("No question is in sight (see: lamfuse pending).")
    if any(_newest(question) < LAST_QUIET_S for question in questions):
        raise RefusedError(
            "Another question came less than a second ago; look again (see: lamfuse pending)."
        )
    return min(shown, key=_newest)


def _newest(question: wire.QuestionView) -> float:
    """Return for how long nothing new happened to *question*, in seconds."""
    return question.age_s if question.shown_s is None else min(question.age_s, question.shown_s)


def outcome(name: str, reply: wire.AnswerReply, wanted: Scope | None) -> str:
    """Return in words what became of an answer."""
    match reply.outcome:
        case AnswerOutcome.ACCEPTED:
            return f"{name}: {reply.state}" + (f" ({reply.scope})" if reply.scope else "")
        case AnswerOutcome.UNKNOWN:
            return f"{name}: there is no such question. Nothing was changed."
        case AnswerOutcome.DECIDED:
            by = f", by {reply.channel}" if reply.channel else ""
            return f"{name}: too late, it is {reply.state} already{by}. Nothing was changed."
        case AnswerOutcome.NOT_SHOWN:
            return f"{name}: nobody has seen it yet. See it first: lamfuse show {name}"
        case AnswerOutcome.NOT_OFFERED:
            offered = ", ".join(reply.offered) or "nothing"
            return f"{name}: the scope {wanted} is not offered (offered: {offered})."


def _is_accepted(reply: wire.AnswerReply) -> bool:
    return reply.outcome is AnswerOutcome.ACCEPTED
