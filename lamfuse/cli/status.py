"""``lamfuse status``: how the daemon is."""

from __future__ import annotations

import click

from lamfuse.cli import options, render
from lamfuse.control import wire
from lamfuse.core import names

__all__ = ["command"]


@click.command("status")
@options.places
@options.as_json
def command(*, home: bytes | None, config: bytes | None, json: bool) -> None:
    """Say whether a view is mounted, and how it is."""
    with options.connect(home, config) as client:
        status = client.status()
    if json:
        render.data(status)
        return
    for line in _lines(status):
        click.echo(line)


def _lines(status: wire.Status) -> list[str]:
    channels = [
        channel.name + ("" if channel.ready else " (not ready)") for channel in status.channels
    ]
    if status.watchers:
        channels.append(f"watch ({status.watchers} attached)")
    rows = [
        ("home", status.home.text),
        ("mounted at", status.mountpoint.text),
        (
            "daemon",
            f"lamfuse {status.version}, pid {status.pid}, for {render.span(status.uptime_s)}",
        ),
        ("config", status.config.text),
        ("file tools", "on" if status.file_access else "off"),
        *_many("read root", [root.text for root in status.read_roots]),
        *_many("write root", [root.text for root in status.write_roots]),
        ("asks by", ", ".join(channels) or "nothing (attach with: lamfuse watch)"),
        ("questions", f"{status.open_questions} open"),
        *_many("session", [_session(session) for session in status.sessions]),
        ("journal", _journal(status.journal)),
        *_many("problem", list(status.problems)),
    ]
    return render.table(rows)


def _many(label: str, values: list[str]) -> list[tuple[str, str]]:
    return [(label, value) for value in values]


def _session(session: wire.SessionView) -> str:
    text = (
        f"{session.name}: turn {session.turn}, {session.grants} granted, {session.open} waiting,"
        f" {session.refusals} refused"
    )
    if session.breaker_open:
        text += "; breaker open, nothing is asked (lamfuse resume, or lamfuse turn)"
    return text


def _journal(journal: wire.JournalView) -> str:
    text = (
        f"{journal.path.text}, {names.count(journal.count, 'line')}, last hash {journal.head[:16]}"
    )
    return text if journal.writable else f"{text}; CANNOT BE WRITTEN, all changes are refused"
