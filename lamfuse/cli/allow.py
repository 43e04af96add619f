"""``lamfuse allow``: yes to a question."""

from __future__ import annotations

import click

from lamfuse.cli import answering, options
from lamfuse.core.approval import Scope

__all__ = ["command"]

#: ``listed`` is an answer to a question that offers it; so is what is not offered refused.
_SCOPES = [str(scope) for scope in (Scope.ONCE, Scope.FILE, Scope.FOLDER)]


@click.command("allow")
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option("--scope", type=click.Choice(_SCOPES), help="How far the yes reaches.")
@click.option("--last", is_flag=True, help="The question in sight, unless another came just now.")
@options.places
@options.as_json
def command(
    *,
    ids: tuple[str, ...],
    scope: str | None,
    last: bool,
    home: bytes | None,
    config: bytes | None,
    json: bool,
) -> int:
    """Allow the questions ID..., within their default scope or the one given."""
    return answering.answer(
        ids,
        last=last,
        allow=True,
        scope=Scope(scope) if scope is not None else None,
        home=home,
        config=config,
        json=json,
    )
