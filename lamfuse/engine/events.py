"""News of the questions, for those who watch.

A subscriber can never delay the broker: one that does not keep up is dropped.
"""

from __future__ import annotations

import contextlib
import enum
import logging
from collections.abc import Iterator
from dataclasses import dataclass

import trio

from lamfuse.core.approval import Question, Scope, State

__all__ = ["Event", "EventKind", "Feed"]

#: Every question that may be open, each with all of its events.
_SIZE = 256

_log = logging.getLogger(__name__)


class EventKind(enum.StrEnum):
    """What happened to a question. ASKED: it is its turn to be put to the person now."""

    OPENED = "opened"
    ASKED = "asked"
    SHOWN = "shown"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Event:
    """Something happened to *question*, which may have changed since; the rest is as it was."""

    kind: EventKind
    question: Question
    state: State
    channel: str = ""
    scope: Scope | None = None


class Feed:
    """Passes events on to any number of subscribers."""

    def __init__(self) -> None:
        self._subscribers: list[trio.MemorySendChannel[Event]] = []

    def tell(self, kind: EventKind, question: Question) -> None:
        """Tell everyone what happened to *question*; a subscriber with no room left is dropped."""
        scope = question.answer.scope if question.answer else None
        event = Event(kind, question, question.state, question.channel, scope)
        for subscriber in tuple(self._subscribers):
            try:
                subscriber.send_nowait(event)
            except trio.WouldBlock:
                _log.warning("dropped a subscriber that did not keep up with the questions")
                self._drop(subscriber)
            except trio.BrokenResourceError:
                self._drop(subscriber)

    @contextlib.contextmanager
    def subscribe(
        self, standing: tuple[Event, ...] = (), size: int = _SIZE
    ) -> Iterator[trio.MemoryReceiveChannel[Event]]:
        """Give a channel that begins with *standing*; it ends when its reader does not keep up."""
        send, receive = trio.open_memory_channel[Event](size)
        for event in standing[:size]:
            send.send_nowait(event)
        self._subscribers.append(send)
        try:
            with receive:
                yield receive
        finally:
            self._drop(send)

    def _drop(self, subscriber: trio.MemorySendChannel[Event]) -> None:
        if subscriber in self._subscribers:
            self._subscribers.remove(subscriber)
        subscriber.close()
