"""``lamfuse watch`` on a terminal: each question as it comes, one at a time.

A question that is decided elsewhere disappears here. What a key means is the terminal channel's
business; whether an answer counts is the daemon's.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

import trio

from lamfuse.cli import answering, render
from lamfuse.control import wire
from lamfuse.control.watching import Watching
from lamfuse.core.approval import FINAL
from lamfuse.core.target import Caller
from lamfuse.engine.open_questions import Standing
from lamfuse.notify import render as cards
from lamfuse.notify.render import Card
from lamfuse.notify.terminal import Terminal

__all__ = ["Prompter", "attend", "card_of"]

Connect = Callable[[Callable[[wire.Event], None]], Watching]


async def attend(connect: Connect, terminal: Terminal) -> None:
    """Prompt for every question, until the terminal is lost (ChannelLost) or the daemon ends.

    *connect* makes the conversation with the daemon, given where its events go.
    """
    prompter = Prompter(terminal)
    watching = connect(prompter.take)
    async with trio.open_nursery() as nursery:
        await nursery.start(watching.run)
        await watching.watch()
        await prompter.run(watching)


class Prompter:
    """Keeps the questions that are to be put, and puts the oldest."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._questions: OrderedDict[str, _Put] = OrderedDict()
        self._changed = trio.Event()

    def take(self, event: wire.Event) -> None:
        """Note a new question, or the end of one."""
        if isinstance(event, wire.AskedEvent):
            question = event.question
            self._questions.setdefault(question.id, _Put(question))
        elif event.state in FINAL:
            put = self._questions.pop(event.id, None)
            if put is not None:
                put.end = event
                put.scope.cancel()
        self._changed.set()

    async def run(self, watching: Watching) -> None:
        """Put one question after the other; raises ChannelLost."""
        async with trio.open_nursery() as nursery:
            while True:
                put = next(iter(self._questions.values()), None)
                if put is None:
                    self._changed = trio.Event()
                    await self._changed.wait()
                else:
                    await self._put(put, watching, nursery)

    async def _put(self, put: _Put, watching: Watching, nursery: trio.Nursery) -> None:
        question = put.question

        def note_shown() -> None:
            nursery.start_soon(put.note_shown, watching)

        with put.scope:
            answer = await self._terminal.prompt(
                card_of(question), put.standing, note_shown, put.ending
            )
            self._questions.pop(question.id, None)
            reply = await watching.answer(question.id, allow=answer.allow, scope=answer.scope)
            if reply.outcome is not wire.AnswerOutcome.ACCEPTED:
                render.aside(answering.outcome(question.id, reply, answer.scope))


class _Put:
    """A question that is put to the person, and how it stands."""

    def __init__(self, question: wire.QuestionView) -> None:
        self.question = question
        self.scope = trio.CancelScope()
        self.end: wire.ChangedEvent | None = None
        self._seen_at = trio.current_time()

    async def note_shown(self, watching: Watching) -> None:
        """Tell the daemon that the question is in sight, and take over the time that it has now."""
        question = await watching.show(self.question.id)
        if question is not None:
            self.question, self._seen_at = question, trio.current_time()

    def standing(self) -> Standing:
        """Return how many seconds are left, and how many other questions stand."""
        passed = trio.current_time() - self._seen_at
        return Standing(max(0.0, self.question.deadline_s - passed), self.question.waiting)

    def ending(self) -> str:
        """Say how the question ended, if it was not by an answer here."""
        if self.end is None:
            return "Not answered here."
        return cards.ended(self.end.state, self.end.channel, self.end.scope)


def card_of(question: wire.QuestionView) -> Card:
    """Put a question from the wire on a card for the terminal."""
    labels = tuple((offer.scope, offer.label) for offer in question.scopes)
    return Card(
        id=question.id,
        title=question.title,
        body=question.body,
        paths=tuple(path.text for path in question.paths),
        destructive=question.destructive,
        caller=Caller(pid=question.caller.pid, exe=question.caller.exe.raw),
        session=question.session,
        choices=cards.choices_of(labels, question.default),
    )
