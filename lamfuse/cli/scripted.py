"""``lamfuse watch --json``: events out and answers in, a JSON object a line.

For scripted persons and for front ends. Each question that is printed counts as shown. A line that
is not an answer answers nothing, and neither does the end of the input.
"""

from __future__ import annotations

import json
import os
import select
from typing import Any, Literal

import msgspec

from lamfuse.cli import render
from lamfuse.control import wire
from lamfuse.control.client import Client
from lamfuse.core.approval import Scope

__all__ = ["attend"]

_STDIN = 0
_READ_BYTES = 65536


class _Said(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An answer, as the program channel gives it too."""

    id: str
    answer: Literal["allow", "decline"]
    scope: Scope | None = None


def attend(client: Client) -> None:
    """Pass events and answers on, until the daemon ends (NotRunningError)."""
    client.watch()
    lines = wire.Lines(wire.MAX_REQUEST_BYTES)
    sources = [client.fileno(), _STDIN]
    while True:
        if client.has_event:
            _print(client, client.next_event())
            continue
        ready, _, _ = select.select(sources, [], [])
        if client.fileno() in ready:
            _print(client, client.next_event())
        elif _STDIN in ready:
            received = os.read(_STDIN, _READ_BYTES)
            if not received:
                sources.remove(_STDIN)
            for line in _cut(lines, received):
                _answer(client, line)


def _print(client: Client, event: wire.Event) -> None:
    render.data(event)
    if isinstance(event, wire.AskedEvent):
        client.show(event.question.id)


def _cut(lines: wire.Lines, received: bytes) -> list[bytes]:
    try:
        return [line for line in lines.feed(received) if line.strip()]
    except wire.WireError as error:
        _complain(str(error))
        raise


def _answer(client: Client, line: bytes) -> None:
    try:
        said = msgspec.convert(json.loads(line, object_pairs_hook=_once_each), _Said)
    except (ValueError, RecursionError) as error:
        _complain(f"not an answer, and nothing was answered: {error}")
        return
    reply = client.answer(said.id, allow=said.answer == "allow", scope=said.scope)
    render.data({"kind": "answer", "id": said.id, **render.as_data(reply)})


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse an object that says a thing twice: it is not clear which one was meant."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _complain(text: str) -> None:
    render.data({"kind": "error", "message": text})
