"""What ``resume`` and ``turn`` share: which sessions were meant, in words."""

from __future__ import annotations

import click

from lamfuse.cli import render
from lamfuse.control import wire
from lamfuse.core.errors import RefusedError

__all__ = ["report"]


def report(reply: wire.SessionReply, named: str | None, what: str, *, json: bool) -> None:
    """Print *reply*; raises :class:`RefusedError` when the session *named* does not exist."""
    if not reply.known:
        there = ", ".join(reply.sessions) or "none"
        raise RefusedError(f"There is no session {named!r}. There are: {there}.")
    if json:
        render.data(reply)
        return
    for session in reply.sessions:
        click.echo(f"{session} {what}.")
    if not reply.sessions:
        click.echo("There is no session yet.")
