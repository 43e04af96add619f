"""``lamfuse pending``: the questions that stand."""

from __future__ import annotations

import click

from lamfuse.cli import options, render

__all__ = ["command"]


@click.command("pending")
@options.places
@options.as_json
def command(*, home: bytes | None, config: bytes | None, json: bool) -> None:
    """List the questions that wait for an answer; what is listed can be allowed."""
    with options.connect(home, config) as client:
        # Whatever is printed here whole is shown to a person by that.
        shown = [client.show(question.id) for question in client.pending()]
    questions = [question for question in shown if question is not None]
    if json:
        render.data(questions)
        return
    for question in questions:
        for line in render.lines_of_question(question):
            click.echo(line)
    if questions:
        click.echo(
            "Answer with: lamfuse allow ID, lamfuse deny ID. More about one: lamfuse show ID"
        )
    else:
        click.echo("No question is open.")
