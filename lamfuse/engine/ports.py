"""What the engine needs from outside, as protocols.

The adapters live in ``notify`` (channels), ``store`` (journal) and ``fuse`` (callers).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from lamfuse.core.approval import Answer, Question
from lamfuse.core.records import Record
from lamfuse.core.target import Caller

__all__ = ["CallerWatch", "Journal", "Notifier"]


class Notifier(Protocol):
    """A channel through which a person is asked.

    ``ask`` puts one question and returns what the person said. It calls *shown* once the question
    is in front of the person (the clock of the question starts there). It raises
    :class:`lamfuse.core.errors.ChannelLost` when it cannot put the question, or no longer puts
    it. Cancellation withdraws the question from the person's sight within one second.
    ``is_ready`` tells whether a question could be put at all right now.
    """

    name: str

    def is_ready(self) -> bool:
        """Whether a question could be put right now."""
        ...

    async def ask(self, question: Question, shown: Callable[[], None]) -> Answer:
        """Put *question* and return the answer of the person."""
        ...


class Journal(Protocol):
    """The append-only record. Both methods raise :class:`lamfuse.core.errors.JournalError`."""

    def append(self, record: Record) -> int:
        """Write one record (not yet synced) and return its sequence number."""
        ...

    async def sync(self) -> None:
        """Return once everything appended so far has reached the disk."""
        ...


class CallerWatch(Protocol):
    """Tells whether the caller of a waiting request still wants the answer."""

    def is_waiting(self, caller: Caller) -> bool:
        """Return False once *caller* was killed, interrupted, or is gone."""
        ...
