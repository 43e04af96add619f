"""``lamfuse turn``: a new turn, begun by a person."""

from __future__ import annotations

import click

from lamfuse.cli import options, sessions

__all__ = ["command"]


@click.command("turn")
@click.argument("session", required=False)
@options.places
@options.as_json
def command(
    *,
    session: str | None,
    home: bytes | None,
    config: bytes | None,
    json: bool,
) -> None:
    """Begin a new turn for SESSION (default: all): its grants end, its refusals are forgotten."""
    with options.connect(home, config) as client:
        reply = client.turn(session)
    sessions.report(reply, session, "begins a new turn", json=json)
