"""``lamfuse show``: one question, whole."""

from __future__ import annotations

import click

from lamfuse.cli import options, render
from lamfuse.control import wire
from lamfuse.core.errors import RefusedError

__all__ = ["command"]


@click.command("show")
@click.argument("question_id", metavar="ID")
@options.places
@options.as_json
def command(
    *,
    question_id: str,
    home: bytes | None,
    config: bytes | None,
    json: bool,
) -> None:
    """Show one question, with its whole paths; from then on it can be allowed."""
    with options.connect(home, config) as client:
        question = client.show(question_id)
    if question is None:
        raise RefusedError(f"No question {question_id!r} is open (see: lamfuse pending).")
    if json:
        render.data(question)
        return
    for line in [*render.lines_of_question(question), *_ways(question)]:
        click.echo(line)


def _ways(question: wire.QuestionView) -> list[str]:
    """Return how the question can be answered."""
    rows = [(f"lamfuse deny {question.id}", "Decline")]
    for offer in question.scopes:
        mark = " (the default)" if offer.scope is question.default else ""
        command_line = f"lamfuse allow {question.id} --scope {offer.scope}"
        rows.append((command_line, offer.label + mark))
    return render.table(rows, indent="  ")
