"""The fake channel of the other tests keeps the contract of a real one."""

from __future__ import annotations

import pytest
import trio.testing

from lamfuse.core.approval import Answer, Question, Scope
from lamfuse.core.errors import ChannelLost
from tests.contract.notifier import Desk, NotifierContract
from tests.engine.fakes import FakeNotifier


class FakeDesk(Desk):
    def __init__(self) -> None:
        self.fake = FakeNotifier()
        self.notifier = self.fake

    async def answer(self, question: Question, *, allow: bool, scope: Scope | None) -> None:
        self.fake.say(Answer(allow, scope))

    async def garbage(self, question: Question) -> None:
        self.fake.say(ChannelLost("garbage"))

    async def end(self, question: Question) -> None:
        self.fake.say(ChannelLost("the end"))

    async def is_withdrawn(self, question: Question) -> bool:
        await trio.testing.wait_all_tasks_blocked()
        return self.fake.question is None


class TestFake(NotifierContract):
    @pytest.fixture
    def desk(self) -> FakeDesk:
        return FakeDesk()
