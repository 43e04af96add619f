"""In whatever order things happen: one end for each call, and a yes only after a valid answer."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass

import pytest
import trio
import trio.testing

from lamfuse.core.approval import FINAL, Answer, Question, Scope, State, may_follow
from lamfuse.core.errors import ChannelLost
from lamfuse.engine.broker import Limits, ReplyKind
from tests.engine.fakes import OFFERS, Bench, FakeNotifier, Pending

RUNS, CHUNKS = 3000, 12
OFFERED = {offer.scope for offer in OFFERS}
GARBAGE = (None, True, "allow", Answer(allow=True, scope=Scope.LISTED), object())
STEPS = (
    "call", "call", "call", "answer", "answer", "answer", "answer", "command", "command",
    "command", "show", "lose", "crash", "garbage", "leave", "cancel", "sleep", "sleep", "unready",
    "watch", "unwatch", "full", "reconsider",
)  # fmt: skip


@dataclass
class Said:
    """An answer that was given: when, to what, and whether it could count at that moment."""

    question: Question
    answer: Answer
    valid: bool


class Chaos:
    """Does random things to a broker and keeps a record of every answer it gave."""

    def __init__(self, bench: Bench, channels: list[FakeNotifier], rng: random.Random) -> None:
        self.bench = bench
        self.channels = channels
        self.rng = rng
        self.calls: list[tuple[int, Pending]] = []
        self.seen: dict[str, Question] = {}
        self.said: list[Said] = []
        self.accepted: dict[str, State | None] = {}
        self.watching: list[trio.CancelScope] = []

    async def run(self) -> None:
        for _ in range(self.rng.randint(3, 25)):
            getattr(self, "do_" + self.rng.choice(STEPS))()
            self.note()
            if self.rng.random() < 0.7:
                await trio.testing.wait_all_tasks_blocked()
                self.note()
            if self.rng.random() < 0.3:
                await trio.sleep(self.rng.choice([0.01, 0.1, 0.4]))
        for scope in self.watching:
            scope.cancel()
        if self.rng.random() < 0.3:
            self.bench.broker.close()
        await trio.sleep(1.2)

    def note(self) -> None:
        self.seen.update((question.id, question) for question in self.bench.broker.questions())

    def can_count(self, question: Question, answer: object) -> bool:
        limits, now = self.bench.broker.limits, trio.current_time()
        if not isinstance(answer, Answer) or question.state is not State.SHOWN:
            return False
        assert question.shown is not None
        in_time = (
            now < question.created + limits.total_timeout_s
            and now < question.shown + limits.shown_timeout_s
        )
        return in_time and (answer.scope is None or answer.scope in OFFERED)

    def say(self, what: object) -> None:
        channel = self.rng.choice(self.channels)
        question = channel.question
        if question is None:
            return
        # A channel that answers blindly does not count, whoever else has shown the question.
        valid = channel.shows and self.can_count(question, what)
        if isinstance(what, Answer):
            self.said.append(Said(question, what, valid))
        channel.say(what)

    def do_call(self) -> None:
        tid = len(self.calls) + 1
        name = b"f%d" % self.rng.randint(1, 6)
        session = self.rng.choice(["a", "b", "c"])
        self.calls.append((tid, self.bench.call_soon(name, session=session, tid=tid)))

    def random_answer(self) -> Answer:
        scope = self.rng.choice([None, None, *Scope])
        return Answer(allow=self.rng.random() < 0.6, scope=scope)

    def do_answer(self) -> None:
        self.say(self.random_answer())

    def do_command(self) -> None:
        if not self.seen:
            return
        question = self.seen[self.rng.choice(sorted(self.seen))]
        answer = self.random_answer()
        valid = self.can_count(question, answer)
        self.said.append(Said(question, answer, valid))
        reply = self.bench.broker.answer(question.id, answer)
        if reply.kind is ReplyKind.ACCEPTED:
            assert question.id not in self.accepted, "two answers were accepted"
            self.accepted[question.id] = reply.state

    def do_show(self) -> None:
        for question in self.bench.broker.questions():
            if self.rng.random() < 0.5:
                self.bench.broker.mark_shown(question.id)

    def do_lose(self) -> None:
        self.say(ChannelLost("lost"))

    def do_crash(self) -> None:
        self.say(RuntimeError("crash"))

    def do_garbage(self) -> None:
        self.say(self.rng.choice(GARBAGE))

    def do_leave(self) -> None:
        if self.calls:
            self.bench.callers.gone.add(self.rng.choice(self.calls)[0])

    def do_cancel(self) -> None:
        if self.calls:
            self.rng.choice(self.calls)[1].scope.cancel()

    def do_sleep(self) -> None:
        self.bench.nursery.start_soon(trio.sleep, self.rng.random())

    def do_unready(self) -> None:
        channel = self.rng.choice(self.channels)
        channel.ready = not channel.ready

    def do_watch(self) -> None:
        scope = trio.CancelScope()
        self.watching.append(scope)

        async def watch() -> None:
            with scope, self.bench.broker.attach_watch():
                await trio.sleep_forever()

        self.bench.nursery.start_soon(watch)

    def do_unwatch(self) -> None:
        if self.watching:
            self.watching.pop().cancel()

    def do_full(self) -> None:
        self.bench.journal.full = not self.bench.journal.full

    def do_reconsider(self) -> None:
        self.bench.broker.reconsider(lambda question: self.rng.random() < 0.3)

    def check(self) -> None:
        broker, journal = self.bench.broker, self.bench.journal
        assert broker.questions() == ()
        assert all(channel.question is None for channel in self.channels)
        for _, call in self.calls:
            assert (call.outcome is not None) or call.scope.cancel_called
            if call.outcome is not None and call.outcome.state is State.ALLOWED:
                self.check_allowed(call)
        for question in self.seen.values():
            assert question.state in FINAL
            steps = itertools.pairwise(question.history)
            assert all(may_follow(before, after) for before, after in steps)
        ends = [record.question for record in journal.answers()]
        assert len(ends) == len(set(ends))
        assert set(ends) <= {record.question for record in journal.questions()}
        for question_id, state in self.accepted.items():
            assert self.seen[question_id].state is state

    def check_allowed(self, call: Pending) -> None:
        outcome = call.result
        question, answer = outcome.question, outcome.answer
        assert question is not None
        assert answer is not None
        assert question.state is State.ALLOWED
        given = [said for said in self.said if said.question is question and said.valid]
        assert any(
            said.answer.allow and (said.answer.scope or question.default) is answer.scope
            for said in given
        )
        (record,) = [
            record for record in self.bench.journal.answers() if record.question == question.id
        ]
        assert record.outcome is State.ALLOWED


@pytest.mark.requirement("H4", "H17", "L4")
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_interleaving_has_one_end_for_each_call(
    chunk: int, caplog: pytest.LogCaptureFixture
) -> None:
    allowed = 0
    for seed in range(chunk * RUNS // CHUNKS, (chunk + 1) * RUNS // CHUNKS):
        clock = trio.testing.MockClock(autojump_threshold=0)
        try:
            allowed += trio.run(one_run, seed, clock=clock)
        except BaseException:
            print(f"seed {seed}")
            raise
    assert allowed > RUNS // CHUNKS // 10


async def one_run(seed: int) -> int:
    rng = random.Random(seed)
    limits = Limits(
        shown_timeout_s=0.6, total_timeout_s=1.1, wait_for_cli=rng.random() < 0.3,
        open_in_session=3, open_in_all=6,
    )  # fmt: skip
    channels = [
        FakeNotifier(f"c{number}", shows=rng.random() < 0.9, ready=rng.random() < 0.9)
        for number in range(rng.randint(1, 3))
    ]
    async with trio.open_nursery() as calls, trio.open_nursery() as daemon:
        bench = Bench(calls, *channels, limits=limits)
        await daemon.start(bench.run)
        chaos = Chaos(bench, channels, rng)
        await chaos.run()
        chaos.check()
        daemon.cancel_scope.cancel()
    return sum(
        call.outcome is not None and call.outcome.state is State.ALLOWED for _, call in chaos.calls
    )
