"""``lamfuse reload``: the configuration as it is in the file now."""

from __future__ import annotations

import click

from lamfuse.cli import options, render
from lamfuse.core.errors import RefusedError

__all__ = ["command"]


@click.command("reload")
@options.places
@options.as_json
def command(*, home: bytes | None, config: bytes | None, json: bool) -> None:
    """Have the daemon read its configuration again; a bad one leaves the old in force."""
    with options.connect(home, config) as client:
        reply = client.reload()
    if json:
        render.data(reply)
    if not reply.done:
        raise RefusedError(f"{reply.message} The old configuration stays in force.")
    if not json:
        for problem in reply.problems:
            render.aside(f"skipped: {problem}")
        click.echo("The new configuration is in force.")
