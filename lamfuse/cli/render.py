"""How values become text on a terminal, and data for programs.

What comes from outside is made visible before it gets here. Nothing here asks or decides.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable, Sequence
from typing import Any

import click
import msgspec

from lamfuse.control import wire
from lamfuse.core import names, wording
from lamfuse.core.target import Caller
from lamfuse.notify import render as cards
from lamfuse.store.dirs import user_home

__all__ = [
    "as_data",
    "aside",
    "data",
    "lines_of_question",
    "person_path",
    "printable",
    "span",
    "table",
]


def data(value: object) -> None:
    """Print *value* as one line of JSON, at once (somebody may wait for it)."""
    click.echo(msgspec.json.encode(as_data(value)))


def as_data(value: object) -> Any:
    """Return *value* in what JSON knows; bytes as text, or as ``{"b64": ...}`` if they are none.

    The journal writes its file names in the same way.
    """
    plain = msgspec.to_builtins(value, builtin_types=(bytes,))
    return _without_bytes(plain)


def _without_bytes(value: object) -> object:
    match value:
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                return {"b64": base64.b64encode(value).decode()}
        case dict():
            return {name: _without_bytes(item) for name, item in value.items()}
        case list() | tuple():
            return [_without_bytes(item) for item in value]
        case _:
            return value


def aside(text: str) -> None:
    """Print a remark where it is in nobody's way: on standard error."""
    click.echo(printable(text), err=True)


def printable(text: str) -> str:
    """Return *text* with every character escaped that could do something to a terminal.

    Names in messages are made visible before; this is for what others wrote into an error.
    """
    return "\n".join(map(cards.printable, text.split("\n")))


def person_path(path: bytes) -> str:
    """Return *path* made visible, with the user's own home as a tilde."""
    return names.show_path(path, user_home(os.environ))


def span(seconds: float) -> str:
    """Return a length of time in its two largest units."""
    left = int(seconds)
    parts: list[str] = []
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count or (unit == "s" and not parts):
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2])


def table(rows: Iterable[Sequence[str]], *, indent: str = "") -> list[str]:
    """Return *rows* in columns, each as wide as its widest cell; the last is left ragged."""
    kept = [tuple(row) for row in rows]
    if not kept:
        return []
    widths = [max(len(row[column]) for row in kept) for column in range(len(kept[0]) - 1)]
    return [
        indent
        + "".join(f"{cell:<{width}}  " for cell, width in zip(row, widths, strict=False))
        + row[-1]
        for row in kept
    ]


def lines_of_question(question: wire.QuestionView) -> list[str]:
    """Return a question as a person reads it: everything, nothing shortened."""
    caller = Caller(pid=question.caller.pid, exe=question.caller.exe.raw)
    by = wording.caller_line(caller, question.session, question.deadline_s, question.waiting)
    body = [*question.body, by]
    whole = [path.text for path in question.paths if not any(path.text in line for line in body)]
    lines = [question.title, *(f"  {line}" for line in (*whole, *body))]
    lines.append(
        f"  {question.state}; " + ("destructive" if question.destructive else "it adds or changes")
    )
    return lines
