"""``lamfuse deny``: no to a question."""

from __future__ import annotations

import click

from lamfuse.cli import answering, options

__all__ = ["command"]


@click.command("deny")
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option("--last", is_flag=True, help="The question in sight, unless another came just now.")
@options.places
@options.as_json
def command(
    *,
    ids: tuple[str, ...],
    last: bool,
    home: bytes | None,
    config: bytes | None,
    json: bool,
) -> int:
    """Decline the questions ID..."""
    return answering.answer(
        ids,
        last=last,
        allow=False,
        scope=None,
        home=home,
        config=config,
        json=json,
    )
