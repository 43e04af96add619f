"""What every channel that asks a person must do: one suite, run over each implementation.

A test module subclasses :class:`NotifierContract` and gives it a `desk` fixture: the channel, and a
person in front of it.
"""

from __future__ import annotations

import abc
import functools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import ClassVar

import pytest
import trio

from lamfuse.core.approval import Answer, Question, Scope, State
from lamfuse.core.errors import ChannelLost
from lamfuse.engine.broker import Broker, Limits
from lamfuse.engine.ports import Notifier
from tests.engine.fakes import (
    OFFERS,
    FakeCallers,
    FakeJournal,
    describe,
    make_question,
    make_request,
)

__all__ = ["Asking", "Desk", "NotifierContract"]

SCOPES = [offer.scope for offer in OFFERS]


@dataclass
class Asking:
    """A question that is put to the channel, in a task of its own."""

    question: Question
    shown: trio.Event = field(default_factory=trio.Event)
    ended: trio.Event = field(default_factory=trio.Event)
    times_shown: int = 0
    answer: Answer | None = None
    lost: ChannelLost | None = None
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)

    def note_shown(self) -> None:
        self.times_shown += 1
        self.shown.set()

    async def run(self, notifier: Notifier) -> None:
        with self.scope:
            try:
                self.answer = await notifier.ask(self.question, self.note_shown)
            except ChannelLost as error:
                self.lost = error
        self.ended.set()


class Desk(abc.ABC):
    """A channel and the person in front of it; each act waits until the channel could see it."""

    notifier: Notifier

    @abc.abstractmethod
    async def answer(self, question: Question, *, allow: bool, scope: Scope | None) -> None:
        """Answer the question that is shown."""

    @abc.abstractmethod
    async def garbage(self, question: Question) -> None:
        """Do something that is no answer."""

    @abc.abstractmethod
    async def end(self, question: Question) -> None:
        """End the input of the channel."""

    @abc.abstractmethod
    async def is_withdrawn(self, question: Question) -> bool:
        """Whether the question is out of the person's sight."""


class NotifierContract:
    """The tests; `garbage_ends` says whether the channel gives up on garbage or waits on."""

    garbage_ends: ClassVar[bool] = True

    @pytest.fixture
    def ask(self, nursery: trio.Nursery, desk: Desk) -> Callable[[], Awaitable[Asking]]:
        return functools.partial(self.put, nursery, desk)

    @staticmethod
    async def put(nursery: trio.Nursery, desk: Desk) -> Asking:
        asking = Asking(make_question())
        nursery.start_soon(asking.run, desk.notifier)
        with trio.fail_after(10):
            await asking.shown.wait()
        return asking

    async def test_it_is_ready_and_has_a_name(self, desk: Desk) -> None:
        assert desk.notifier.is_ready()
        assert desk.notifier.name

    async def test_a_question_is_shown_once_and_waits(
        self, ask: Callable[[], Awaitable[Asking]]
    ) -> None:
        asking = await ask()
        with trio.move_on_after(0.3):
            await asking.ended.wait()

        assert asking.times_shown == 1
        assert not asking.ended.is_set()
        asking.scope.cancel()

    @pytest.mark.requirement("H4")
    async def test_a_no_is_a_no(self, desk: Desk, ask: Callable[[], Awaitable[Asking]]) -> None:
        asking = await ask()
        await desk.answer(asking.question, allow=False, scope=None)
        with trio.fail_after(10):
            await asking.ended.wait()

        assert asking.lost is None
        assert asking.answer is not None
        assert asking.answer.allow is False

    @pytest.mark.requirement("H4")
    @pytest.mark.parametrize("scope", [None, *SCOPES])
    async def test_a_yes_has_the_scope_that_was_chosen(
        self, desk: Desk, ask: Callable[[], Awaitable[Asking]], scope: Scope | None
    ) -> None:
        asking = await ask()
        await desk.answer(asking.question, allow=True, scope=scope)
        with trio.fail_after(10):
            await asking.ended.wait()

        assert asking.answer is not None
        assert asking.answer.allow is True
        wanted = scope or asking.question.default
        assert (asking.answer.scope or asking.question.default) is wanted

    @pytest.mark.requirement("H17")
    async def test_garbage_is_no_answer(
        self, desk: Desk, ask: Callable[[], Awaitable[Asking]]
    ) -> None:
        asking = await ask()
        await desk.garbage(asking.question)
        with trio.move_on_after(10 if self.garbage_ends else 0.3):
            await asking.ended.wait()

        assert asking.answer is None
        assert (asking.lost is not None) is self.garbage_ends
        asking.scope.cancel()

    @pytest.mark.requirement("H17")
    async def test_the_end_of_input_is_no_answer(
        self, desk: Desk, ask: Callable[[], Awaitable[Asking]]
    ) -> None:
        asking = await ask()
        await desk.end(asking.question)
        with trio.fail_after(10):
            await asking.ended.wait()

        assert asking.answer is None
        assert asking.lost is not None

    async def test_cancellation_withdraws_within_a_second(
        self, desk: Desk, ask: Callable[[], Awaitable[Asking]]
    ) -> None:
        asking = await ask()
        asking.question.move(State.QUEUED)
        asking.question.move(State.GONE)
        began = trio.current_time()
        asking.scope.cancel()
        with trio.fail_after(10):
            await asking.ended.wait()

        assert trio.current_time() - began < 1.0
        assert asking.answer is None
        assert await desk.is_withdrawn(asking.question)

    async def test_the_next_question_can_be_put_after_a_withdrawn_one(
        self, desk: Desk, ask: Callable[[], Awaitable[Asking]]
    ) -> None:
        first = await ask()
        first.scope.cancel()
        await first.ended.wait()
        second = await ask()
        await desk.answer(second.question, allow=True, scope=None)
        with trio.fail_after(10):
            await second.ended.wait()

        assert second.answer is not None
        assert second.answer.allow is True

    @pytest.mark.requirement("H4", "H17")
    @pytest.mark.parametrize(
        ("act", "state"),
        [("allow", State.ALLOWED), ("decline", State.DECLINED), ("end", State.LOST)],
    )
    async def test_behind_the_broker_it_decides_what_the_person_did(
        self, nursery: trio.Nursery, desk: Desk, act: str, state: State
    ) -> None:
        broker = Broker((desk.notifier,), FakeJournal(), FakeCallers(), Limits(), describe)
        await nursery.start(self.run_broker, broker)
        states: list[State] = []

        async def call() -> None:
            outcome = await broker.ask(make_request(), OFFERS, Scope.FILE, "key")
            states.append(outcome.state)

        async with trio.open_nursery() as calls:
            calls.start_soon(call)
            with broker.events() as events, trio.fail_after(10):
                question = (await events.receive()).question
                while question.state is not State.SHOWN:
                    await events.receive()
                if act == "end":
                    await desk.end(question)
                else:
                    await desk.answer(question, allow=act == "allow", scope=None)
        nursery.cancel_scope.cancel()

        assert states == [state]

    @staticmethod
    async def run_broker(broker: Broker, *, task_status: trio.TaskStatus[None]) -> None:
        await broker.run(task_status=task_status)
