"""Puts the open questions to the channels, one at a time.

All channels that are ready get the current question together. What they answer is judged by the
desk (the broker); whatever else a channel does, it is out for this question and decides nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeGuard

import trio

from lamfuse.core.approval import Answer, Scope
from lamfuse.core.errors import ChannelLost
from lamfuse.engine.open_questions import Entry, OpenQuestions
from lamfuse.engine.outcomes import Reply, ReplyKind
from lamfuse.engine.ports import Notifier

__all__ = ["Desk", "Display", "Signal"]

_log = logging.getLogger(__name__)


class Signal:
    """Wakes everyone who waits for a change; take ``event`` first, look, then wait for it."""

    def __init__(self) -> None:
        self.event = trio.Event()

    def fire(self) -> None:
        """Wake all who wait now."""
        self.event.set()
        self.event = trio.Event()


@dataclass(frozen=True, slots=True)
class Desk:
    """What the broker lends its display: what there is to show and by whom, and who judges it.

    ``asked`` notes whose turn it is, ``shown`` that it is in front of a person, ``accept`` judges
    an answer, and ``lose`` notes that nobody can show the question.
    """

    notifiers: Callable[[], Sequence[Notifier]]
    watchers: Callable[[], int]
    open: OpenQuestions
    changed: Signal
    asked: Callable[[Entry], None]
    shown: Callable[[Entry], None]
    accept: Callable[[Entry, Answer], Reply]
    lose: Callable[[Entry], None]


class Display:
    """Shows the questions of *desk*, in fair rotation over the sessions."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.current: Entry | None = None

    async def run(self) -> None:
        """Put one question after the other, until cancelled."""
        desk = self._desk
        while True:
            changed = desk.changed.event
            for entry in desk.open:
                if not self._can_be_put(entry):
                    desk.lose(entry)
            following = desk.open.next(self._can_be_put)
            if following is None:
                await changed.wait()
            else:
                await self._put(following)

    def _can_be_put(self, entry: Entry) -> bool:
        return self._desk.watchers() > 0 or bool(self._ready(entry))

    def _ready(self, entry: Entry, running: Sequence[Notifier] = ()) -> list[Notifier]:
        return [
            notifier
            for notifier in self._desk.notifiers()
            if notifier not in entry.lost and notifier not in running and _is_ready(notifier, entry)
        ]

    async def _put(self, entry: Entry) -> None:
        """Keep *entry* in front of the person until it is decided or nobody is left to show it."""
        desk = self._desk
        running: list[Notifier] = []
        self.current = entry
        desk.open.note_served(entry)
        desk.asked(entry)
        try:
            async with trio.open_nursery() as nursery:
                while not entry.question.is_final:
                    changed = desk.changed.event
                    # A channel that becomes ready meanwhile joins in.
                    for notifier in self._ready(entry, running):
                        running.append(notifier)
                        nursery.start_soon(self._ask, notifier, entry, running)
                    if not running and desk.watchers() == 0:
                        break
                    await changed.wait()
                nursery.cancel_scope.cancel()
        finally:
            self.current = None

    async def _ask(self, notifier: Notifier, entry: Entry, running: list[Notifier]) -> None:
        """Put *entry* to one channel; nothing that the channel does gets past this."""
        has_shown = False
        answers: list[object] = []

        def note_shown() -> None:
            nonlocal has_shown
            has_shown = True
            self._desk.shown(entry)

        try:
            answers.append(await notifier.ask(entry.question, note_shown))
        except* ChannelLost as group:
            _log.info("channel %s: %s", notifier.name, "; ".join(map(str, group.exceptions)))
        except* Exception:  # noqa: BLE001 - an edge: a broken channel must not end the others
            _log.exception("channel %s failed at question %s", notifier.name, entry.question.id)
        if not self._is_taken(notifier, entry, answers, has_shown=has_shown):
            entry.lost.append(notifier)
        running.remove(notifier)
        self._desk.changed.fire()

    def _is_taken(
        self, notifier: Notifier, entry: Entry, answers: list[object], *, has_shown: bool
    ) -> bool:
        """Hand on what the channel said; False when it was nothing that counts."""
        for answer in answers:
            if entry.question.is_final:
                return True
            if has_shown and _is_answer(answer):
                named = Answer(answer.allow, answer.scope, notifier.name)
                if self._desk.accept(entry, named).kind in {ReplyKind.ACCEPTED, ReplyKind.DECIDED}:
                    return True
            _log.warning("channel %s gave an answer that does not count", notifier.name)
        return False


def _is_answer(answer: object) -> TypeGuard[Answer]:
    """Tell whether a channel returned what the protocol says: a truthy thing is not a yes."""
    if not isinstance(answer, Answer):
        return False
    allow: object = answer.allow
    scope: object = answer.scope
    return isinstance(allow, bool) and (scope is None or isinstance(scope, Scope))


def _is_ready(notifier: Notifier, entry: Entry) -> bool:
    try:
        return notifier.is_ready()
    except Exception:  # noqa: BLE001 - an edge, as above
        _log.exception("channel %s cannot say whether it is ready", notifier.name)
        entry.lost.append(notifier)
        return False
