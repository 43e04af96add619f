"""``lamfuse config``: the configuration in force, and where each value comes from."""

from __future__ import annotations

import os
from collections.abc import Iterator

import click

from lamfuse.cli import options, render
from lamfuse.core import names
from lamfuse.store.config import DEFAULT, Config
from lamfuse.store.config_text import Value, effective

__all__ = ["command"]


@click.command("config")
@options.places
@options.as_json
def command(*, home: bytes | None, config: bytes | None, json: bool) -> None:
    """Print the configuration in force, and where each value comes from."""
    dirs = options.places_of(home, config)
    loaded = options.load(dirs, config)
    if not json:
        for line in _lines(loaded):
            click.echo(line)
        return
    render.data(
        {
            "file": loaded.file,
            "exists": os.path.exists(loaded.file),
            "home": loaded.home,
            "values": [
                {"key": key, "value": value, "origin": origin}
                for key, value, origin in effective(loaded)
            ],
            "notes": loaded.notes,
        }
    )


def _lines(config: Config) -> Iterator[str]:
    absent = "" if os.path.exists(config.file) else " (does not exist; lamfuse init writes it)"
    yield f"file: {render.person_path(config.file)}{absent}"
    yield f"home: {render.person_path(config.home)}"
    rows = [
        (key, "default" if origin == DEFAULT else "file", _text(value))
        for key, value, origin in effective(config)
    ]
    yield from render.table(rows)
    for note in config.notes:
        yield f"skipped: {render.printable(note)}"


def _text(value: Value) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return names.show_text(value)
        case list():
            return ", ".join(_text(item) for item in value) or "-"
        case _:
            return f"{value:g}"
