"""``lamfuse resume``: ask again, after a breaker opened."""

from __future__ import annotations

import click

from lamfuse.cli import options, sessions

__all__ = ["command"]


@click.command("resume")
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
    """Ask again for SESSION (default: all), after too many refusals silenced it."""
    with options.connect(home, config) as client:
        reply = client.resume(session)
    sessions.report(reply, session, "is asked for again", json=json)
