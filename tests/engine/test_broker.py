"""The broker gives each question exactly one end, and allows only after a valid answer in time."""

from __future__ import annotations

import gc
import tracemalloc

import pytest
import trio
import trio.testing

from lamfuse.core.approval import Answer, Scope, State
from lamfuse.core.errors import ChannelLost, InternalError
from lamfuse.core.refusals import Reason
from lamfuse.engine.broker import Limits, Reply, ReplyKind
from lamfuse.engine.open_questions import ID_ALPHABET
from lamfuse.engine.turns import OTHER
from tests.engine.fakes import OFFERS, Bench, FakeNotifier, make_request

settle = trio.testing.wait_all_tasks_blocked
YES = Answer(allow=True, channel="cli")
NO = Answer(allow=False, channel="cli")


@pytest.fixture
def person() -> FakeNotifier:
    return FakeNotifier("person")


@pytest.fixture
async def bench(nursery: trio.Nursery, no_time: None, person: FakeNotifier) -> Bench:
    return await Bench(nursery, person).start()


def alone(nursery: trio.Nursery, **limits: bool) -> Bench:
    return Bench(nursery, limits=Limits(**limits))


@pytest.mark.requirement("H4")
class TestAnswers:
    async def test_a_yes_allows_with_the_default_scope(
        self, bench: Bench, person: FakeNotifier
    ) -> None:
        call = await bench.call()
        person.allow()
        await settle()

        assert call.result.state is State.ALLOWED
        assert call.result.answer == Answer(allow=True, scope=Scope.FILE, channel="person")
        assert call.result.was_shown
        assert bench.broker.questions() == ()

    @pytest.mark.parametrize("scope", [Scope.ONCE, Scope.FILE, Scope.FOLDER])
    async def test_a_yes_with_an_offered_scope_has_it(
        self, bench: Bench, person: FakeNotifier, scope: Scope
    ) -> None:
        call = await bench.call()
        person.allow(scope)
        await settle()

        assert call.result.answer is not None
        assert call.result.answer.scope is scope

    async def test_a_no_declines(self, bench: Bench, person: FakeNotifier) -> None:
        call = await bench.call()
        person.decline()
        await settle()

        assert call.result.state is State.DECLINED
        assert call.result.answer == Answer(allow=False, channel="person")

    async def test_the_first_of_two_channels_wins_and_the_other_is_withdrawn(
        self, bench: Bench, person: FakeNotifier
    ) -> None:
        other = FakeNotifier("other")
        bench.broker.notifiers = (person, other)
        call = await bench.call()
        question = bench.only()
        other.decline()
        await settle()

        assert call.result.state is State.DECLINED
        assert call.result.answer == Answer(allow=False, channel="other")
        assert person.withdrawn == [question.id]

    async def test_two_answers_at_the_same_moment_are_one(
        self, bench: Bench, person: FakeNotifier
    ) -> None:
        other = FakeNotifier("other")
        bench.broker.notifiers = (person, other)
        call = await bench.call()
        question = bench.only()
        person.allow()
        other.decline()
        await settle()

        assert call.result.state in {State.ALLOWED, State.DECLINED}
        assert len(bench.journal.answers()) == 1
        assert question.history[-1] is call.result.state

    @pytest.mark.expects_log("gave an answer that does not count")
    @pytest.mark.parametrize(
        "garbage",
        [
            pytest.param(None, id="none"),
            pytest.param(True, id="a-truthy-thing"),
            pytest.param("allow", id="text"),
            pytest.param(Answer(allow=1), id="one-for-true"),  # type: ignore[arg-type]
            pytest.param(Answer(allow=True, scope="file"), id="scope-as-text"),  # type: ignore[arg-type]
            pytest.param(Answer(allow=True, scope=Scope.LISTED), id="scope-not-offered"),
        ],
    )
    @pytest.mark.requirement("H17")
    async def test_garbage_from_the_only_channel_is_a_refusal(
        self, bench: Bench, person: FakeNotifier, garbage: object
    ) -> None:
        call = await bench.call()
        person.say(garbage)
        await settle()

        assert call.result.state is State.LOST

    @pytest.mark.expects_log("gave an answer that does not count")
    async def test_an_answer_to_what_was_not_shown_is_none(
        self, nursery: trio.Nursery, no_time: None
    ) -> None:
        blind = FakeNotifier("blind", shows=False)
        bench = await Bench(nursery, blind).start()
        call = await bench.call()
        bench.broker.mark_shown(bench.only().id)
        blind.allow()
        await settle()
        assert call.outcome is None

        bench.broker.answer(bench.only().id, NO)
        await settle()
        assert call.result.state is State.DECLINED


@pytest.mark.requirement("H17")
class TestLostChannels:
    @pytest.mark.parametrize("wait_for_cli", [False, True])
    async def test_with_no_channel_it_is_lost_at_once_unless_the_cli_is_waited_for(
        self,
        nursery: trio.Nursery,
        no_time: None,
        wait_for_cli: bool,
    ) -> None:
        bench = await alone(nursery, wait_for_cli=wait_for_cli).start()
        began = trio.current_time()
        call = bench.call_soon()
        await trio.sleep(111)

        assert call.result.state is (State.TIMED_OUT if wait_for_cli else State.LOST)
        assert call.ended_at - began == pytest.approx(110 if wait_for_cli else 0)
        assert not call.result.was_shown

    async def test_a_channel_that_is_not_ready_is_none(
        self, bench: Bench, person: FakeNotifier
    ) -> None:
        person.ready = False
        call = await bench.call()

        assert call.result.state is State.LOST
        assert person.asked == []

    @pytest.mark.parametrize(
        "what",
        [
            pytest.param(ChannelLost("the bus went"), id="lost"),
            pytest.param(ExceptionGroup("", [ChannelLost("the bus went")]), id="lost-in-a-group"),
            pytest.param(
                RuntimeError("broken"),
                id="crash",
                marks=pytest.mark.expects_log("channel person failed at question"),
            ),
            pytest.param(
                ExceptionGroup("", [ChannelLost("x"), RuntimeError("broken")]),
                id="crash-in-a-group",
                marks=pytest.mark.expects_log("channel person failed at question"),
            ),
        ],
    )
    async def test_the_last_channel_takes_the_question_with_it(
        self, bench: Bench, person: FakeNotifier, what: Exception
    ) -> None:
        call = await bench.call()
        person.say(what)
        await settle()

        assert call.result.state is State.LOST
        assert call.result.was_shown

    async def test_a_channel_that_is_left_still_answers(
        self, bench: Bench, person: FakeNotifier
    ) -> None:
        other = FakeNotifier("other")
        bench.broker.notifiers = (person, other)
        call = await bench.call()
        person.say(ChannelLost("gone"))
        await settle()
        assert call.outcome is None
        other.allow()
        await settle()

        assert call.result.state is State.ALLOWED
        assert len(person.asked) == 1

    async def test_a_lost_channel_gets_the_next_question(
        self, bench: Bench, person: FakeNotifier
    ) -> None:
        await bench.call()
        person.say(ChannelLost("once"))
        await settle()
        call = await bench.call(b"other.md")
        person.allow()
        await settle()

        assert call.result.state is State.ALLOWED

    @pytest.mark.expects_log("cannot say whether it is ready")
    async def test_a_channel_that_cannot_tell_its_readiness_is_out(
        self, bench: Bench, person: FakeNotifier, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken() -> bool:
            raise RuntimeError("broken")

        monkeypatch.setattr(person, "is_ready", broken)
        call = await bench.call()

        assert call.result.state is State.LOST

    async def test_a_channel_that_becomes_ready_gets_the_question_that_waits(
        self, nursery: trio.Nursery, no_time: None
    ) -> None:
        late = FakeNotifier("late", ready=False)
        limits = Limits(wait_for_cli=True)
        bench = await Bench(nursery, late, limits=limits).start()
        call = await bench.call()
        late.ready = True
        await trio.sleep(0.2)
        late.allow()
        await settle()

        assert call.result.state is State.ALLOWED

    async def test_what_somebody_looks_at_outlives_its_channel(
        self, bench: Bench, person: FakeNotifier
    ) -> None:
        call = await bench.call()
        question = bench.only()
        assert bench.broker.mark_shown(question.id)
        person.say(ChannelLost("gone"))
        await settle()
        reply = bench.broker.answer(question.id, YES)
        await settle()

        assert reply.kind is ReplyKind.ACCEPTED
        assert call.result.state is State.ALLOWED


class TestTime:
    async def test_the_clock_of_a_shown_question_starts_when_it_is_shown(
        self, nursery: trio.Nursery, no_time: None
    ) -> None:
        slow = FakeNotifier("slow", shows=False)
        bench = await Bench(nursery, slow).start()
        began = trio.current_time()
        call = await bench.call()
        await trio.sleep(20)
        assert slow.shown is not None
        slow.shown()
        await trio.sleep(59.9)
        assert call.outcome is None
        await trio.sleep(0.2)

        assert call.result.state is State.TIMED_OUT
        assert call.ended_at - began == pytest.approx(80)
        assert slow.withdrawn == [slow.asked[0]]

    async def test_the_total_time_ends_what_was_shown_late(
        self, nursery: trio.Nursery, no_time: None
    ) -> None:
        slow = FakeNotifier("slow", shows=False)
        bench = await Bench(nursery, slow).start()
        began = trio.current_time()
        call = await bench.call()
        await trio.sleep(90)
        assert slow.shown is not None
        slow.shown()
        await trio.sleep(30)

        assert call.result.state is State.TIMED_OUT
        assert call.ended_at - began == pytest.approx(110)

    async def test_an_answer_at_the_deadline_is_late(self, nursery: trio.Nursery) -> None:
        # Time must pass without the broker waking: so its clock is real and its task held up.
        bench = await Bench(nursery, FakeNotifier(), limits=Limits(shown_timeout_s=0.05)).start()
        call = await bench.call()
        question = bench.only()
        until = trio.current_time() + 0.06
        while trio.current_time() < until:
            pass
        reply = bench.broker.answer(question.id, YES)
        await settle()

        assert reply == Reply(ReplyKind.DECIDED, State.TIMED_OUT)
        assert call.result.state is State.TIMED_OUT
        nursery.cancel_scope.cancel()

    async def test_a_question_tells_how_long_it_has(
        self, bench: Bench, person: FakeNotifier
    ) -> None:
        await bench.call()
        await bench.call(b"other.md")
        first, second = bench.broker.questions()
        await trio.sleep(7)

        assert bench.broker.standing(first).seconds_left == pytest.approx(53)
        assert bench.broker.standing(second).seconds_left == pytest.approx(60)
        assert bench.broker.standing(first).waiting == 1
        person.decline()
        await settle()
        assert bench.broker.standing(first).seconds_left == 0


class TestOrder:
    async def test_one_question_is_shown_at_a_time(
        self, bench: Bench, person: FakeNotifier
    ) -> None:
        await bench.call(b"a")
        await bench.call(b"b")
        first, second = bench.broker.questions()

        assert person.asked == [first.id]
        assert (first.state, second.state) == (State.SHOWN, State.QUEUED)
        assert bench.broker.current is first
        person.decline()
        await settle()
        assert person.asked == [first.id, second.id]

    async def test_sessions_take_turns_and_each_is_served_in_order(
        self, bench: Bench, person: FakeNotifier
    ) -> None:
        for name, session in [
            (b"a1", "a"), (b"a2", "a"), (b"a3", "a"), (b"b1", "b"), (b"b2", "b"), (b"c1", "c"),
        ]:  # fmt: skip
            await bench.call(name, session=session)
        names = []
        while person.question is not None:
            names.append(person.question.request.paths[0][-2:])
            person.decline()
            await settle()

        assert names == [b"a1", b"b1", b"c1", b"a2", b"b2", b"a3"]

    async def test_identical_questions_of_a_session_are_one(
        self, bench: Bench, person: FakeNotifier
    ) -> None:
        calls = [await bench.call(tid=tid) for tid in (1, 2, 3)]
        assert bench.only().waiters == 3
        person.allow()
        await settle()

        assert [call.result.state for call in calls] == [State.ALLOWED] * 3
        assert len(person.asked) == len(bench.journal.questions()) == 1

    async def test_identical_questions_of_two_sessions_are_two(self, bench: Bench) -> None:
        await bench.call(session="a")
        await bench.call(session="b")

        assert len(bench.broker.questions()) == 2

    async def test_a_question_that_was_decided_is_not_joined(
        self, bench: Bench, person: FakeNotifier
    ) -> None:
        first = await bench.call()
        person.allow()
        second = await bench.call()

        assert first.result.state is State.ALLOWED
        assert second.outcome is None

    async def test_what_a_grant_overtook_is_given_back(
        self, bench: Bench, person: FakeNotifier
    ) -> None:
        shown, queued, other = [await bench.call(name) for name in (b"a", b"b", b"c")]
        count = bench.broker.reconsider(
            lambda question: not question.request.paths[0].endswith(b"c")
        )
        await settle()

        assert count == 2
        assert [call.result.again for call in (shown, queued)] == [True, True]
        assert [call.result.state for call in (shown, queued)] == [State.GONE] * 2
        assert other.outcome is None


class TestSleep:
    async def test_what_stands_open_is_refused_and_what_comes_later_is_asked(
        self, bench: Bench
    ) -> None:
        calls = [await bench.call(b"%d" % number) for number in range(3)]

        bench.broker.refuse_all("the machine went to sleep")
        later = await bench.call(b"later")

        assert [call.result.state for call in calls] == [State.LOST] * 3
        assert {call.result.detail for call in calls} == {"the machine went to sleep"}
        assert later.outcome is None


class TestCaps:
    async def test_the_seventeenth_question_of_a_session_is_refused_and_not_asked(
        self, bench: Bench
    ) -> None:
        calls = [await bench.call(b"%d" % number) for number in range(17)]

        assert [call.outcome for call in calls[:16]] == [None] * 16
        assert calls[16].result.state is State.LOST
        assert calls[16].result.reason is Reason.QUEUE_FULL
        assert calls[16].result.question is None
        assert len(bench.journal.questions()) == 16
        other = await bench.call(session="other")
        assert other.outcome is None

    async def test_everybody_else_together_may_have_as_many_questions_as_there_may_be(
        self, bench: Bench
    ) -> None:
        calls = [await bench.call(b"%d" % number, session=OTHER) for number in range(65)]

        assert [call.outcome for call in calls[:64]] == [None] * 64
        assert calls[64].result.reason is Reason.QUEUE_FULL

    async def test_the_sixty_fifth_question_is_refused(self, bench: Bench) -> None:
        for number in range(64):
            await bench.call(b"%d" % number, session=f"s{number % 5}")
        call = await bench.call(session="another")

        assert call.result.reason is Reason.QUEUE_FULL
        assert len(bench.broker.questions()) == 64

    async def test_with_the_queue_full_an_open_question_can_still_be_joined(
        self, bench: Bench
    ) -> None:
        for number in range(64):
            await bench.call(b"%d" % number, session=OTHER)
        joining = await bench.call(b"0", session=OTHER)

        assert joining.outcome is None
        assert len(bench.broker.questions()) == 64

    async def test_calls_that_join_are_bounded_too(self, bench: Bench) -> None:
        calls = [await bench.call(tid=number) for number in range(65)]

        assert calls[63].outcome is None
        assert calls[64].result.reason is Reason.QUEUE_FULL

    async def test_with_sixty_four_questions_open_any_one_can_be_answered(
        self, bench: Bench
    ) -> None:
        calls = [await bench.call(b"%d" % number, session=f"s{number % 4}") for number in range(64)]
        last = bench.broker.questions()[-1]
        bench.broker.mark_shown(last.id)
        bench.broker.answer(last.id, YES)
        await settle()

        assert calls[-1].result.state is State.ALLOWED


@pytest.mark.requirement("L4")
class TestCallersThatLeave:
    async def test_a_killed_caller_is_released_within_one_poll(
        self, bench: Bench, person: FakeNotifier
    ) -> None:
        call = await bench.call(tid=7)
        question = bench.only()
        await trio.sleep(3)
        bench.callers.gone.add(7)
        left = trio.current_time()
        await trio.sleep(1)

        assert call.result.state is State.GONE
        assert call.ended_at - left <= 0.05 + 1e-9
        assert person.withdrawn == [question.id]
        assert bench.broker.questions() == ()

    async def test_a_queued_question_goes_with_its_caller(
        self, bench: Bench, person: FakeNotifier
    ) -> None:
        await bench.call(b"first")
        call = await bench.call(b"second", tid=7)
        bench.callers.gone.add(7)
        await trio.sleep(0.1)

        assert call.result.state is State.GONE
        assert not call.result.was_shown
        assert len(person.asked) == 1

    async def test_the_question_stays_while_another_call_waits(
        self, bench: Bench, person: FakeNotifier
    ) -> None:
        gone, stays = await bench.call(tid=7), await bench.call(tid=8)
        bench.callers.gone.add(7)
        await trio.sleep(0.1)
        assert gone.result.state is State.GONE
        assert bench.only().waiters == 1
        person.allow()
        await settle()

        assert stays.result.state is State.ALLOWED

    async def test_a_yes_to_a_caller_that_just_left_allows_nothing(self, bench: Bench) -> None:
        call = await bench.call(tid=7)
        question = bench.only()
        bench.callers.gone.add(7)
        reply = bench.broker.answer(question.id, YES)
        await settle()

        assert reply == Reply(ReplyKind.DECIDED, State.GONE)
        assert call.result.state is State.GONE

    @pytest.mark.expects_log("cannot tell whether the caller")
    async def test_a_broken_look_at_the_callers_leaves_the_question_to_its_deadline(
        self, bench: Bench
    ) -> None:
        bench.callers.fault = RuntimeError("broken")
        call = await bench.call()
        await trio.sleep(61)

        assert call.result.state is State.TIMED_OUT
        assert bench.callers.looks == 1

    async def test_nobody_is_looked_at_while_nothing_is_open(self, bench: Bench) -> None:
        await trio.sleep(100)

        assert bench.callers.looks == 0

    async def test_a_cancelled_call_takes_its_question_back(
        self, bench: Bench, person: FakeNotifier
    ) -> None:
        call = await bench.call()
        question = bench.only()
        call.scope.cancel()
        await settle()

        assert call.outcome is None
        assert question.state is State.GONE
        assert person.withdrawn == [question.id]
        assert [record.outcome for record in bench.journal.answers()] == [State.GONE]


class TestTheCommandLine:
    async def test_what_nobody_saw_can_be_neither_allowed_nor_declined(self, bench: Bench) -> None:
        await bench.call(b"a")
        await bench.call(b"b")
        queued = bench.broker.questions()[1]

        for answer in (YES, NO):
            assert bench.broker.answer(queued.id, answer).kind is ReplyKind.NOT_SHOWN
        assert queued.state is State.QUEUED
        assert bench.broker.mark_shown(queued.id)
        reply = bench.broker.answer(queued.id, YES)
        assert (reply.kind, reply.state, reply.channel, reply.scope) == (
            ReplyKind.ACCEPTED, State.ALLOWED, "cli", Scope.FILE,
        )  # fmt: skip

    async def test_a_scope_that_is_not_offered_changes_nothing(self, bench: Bench) -> None:
        await bench.call()
        question = bench.only()
        reply = bench.broker.answer(question.id, Answer(allow=True, scope=Scope.LISTED))

        assert reply.kind is ReplyKind.NOT_OFFERED
        assert reply.offered == (Scope.ONCE, Scope.FILE, Scope.FOLDER)
        assert question.state is State.SHOWN

    async def test_a_late_and_a_double_answer_hear_how_it_ended(
        self, bench: Bench, person: FakeNotifier
    ) -> None:
        await bench.call()
        question = bench.only()
        person.allow(Scope.FOLDER)
        await settle()

        expected = Reply(ReplyKind.DECIDED, State.ALLOWED, "person", Scope.FOLDER)
        assert bench.broker.answer(question.id, NO) == expected
        assert not bench.broker.mark_shown(question.id)

    async def test_an_unknown_answer_says_so(self, bench: Bench) -> None:
        assert bench.broker.answer("zzzz", YES) == Reply(ReplyKind.UNKNOWN)
        assert not bench.broker.mark_shown("zzzz")

    async def test_only_the_last_hundred_ends_are_remembered(
        self, bench: Bench, person: FakeNotifier
    ) -> None:
        ids = []
        for number in range(101):
            await bench.call(b"%d" % number)
            ids.append(bench.only().id)
            person.decline()
            await settle()

        kinds = [bench.broker.answer(question_id, YES).kind for question_id in ids]
        assert kinds == [ReplyKind.UNKNOWN] + [ReplyKind.DECIDED] * 100

    async def test_ids_are_four_clear_letters_and_never_the_same(self, bench: Bench) -> None:
        for number in range(64):
            await bench.call(b"%d" % number, session=f"s{number % 4}")
        ids = [question.id for question in bench.broker.questions()]

        assert len(set(ids)) == 64
        assert all(len(made) == 4 and set(made) <= set(ID_ALPHABET) for made in ids)
        assert not set("0o1l") & set(ID_ALPHABET)


class TestTheJournal:
    async def test_a_question_and_its_end_are_recorded(
        self, bench: Bench, person: FakeNotifier
    ) -> None:
        await bench.call()
        person.allow(Scope.FOLDER)
        await settle()
        (question,), (answer,) = bench.journal.questions(), bench.journal.answers()

        assert question.question == answer.question
        assert question.scopes == (Scope.ONCE, Scope.FILE, Scope.FOLDER)
        assert (answer.outcome, answer.scope, answer.channel, answer.granted) == (
            State.ALLOWED, Scope.FOLDER, "person", (b"/home/lam/Downloads",),
        )  # fmt: skip

    async def test_what_cannot_be_recorded_is_not_asked(
        self, bench: Bench, person: FakeNotifier
    ) -> None:
        bench.journal.full = True
        call = await bench.call()

        assert (call.result.state, call.result.reason) == (State.LOST, Reason.JOURNAL)
        assert person.asked == []
        assert bench.broker.questions() == ()

    @pytest.mark.expects_log("journal|could not be written")
    @pytest.mark.parametrize("full", [True, False], ids=["full", "broken"])
    async def test_a_yes_that_cannot_be_recorded_is_a_refusal(
        self, bench: Bench, person: FakeNotifier, full: bool
    ) -> None:
        call = await bench.call()
        question = bench.only()
        bench.journal.full = full
        bench.journal.fault = ValueError("not text")
        reply = bench.broker.answer(question.id, YES)
        await settle()

        assert (call.result.state, call.result.reason) == (State.LOST, Reason.JOURNAL)
        assert call.result.answer is None
        assert (reply.kind, reply.state) == (ReplyKind.DECIDED, State.LOST)

    @pytest.mark.expects_log("is not in the journal")
    async def test_a_no_that_cannot_be_recorded_stays_a_no(
        self, bench: Bench, person: FakeNotifier
    ) -> None:
        call = await bench.call()
        bench.journal.full = True
        person.decline()
        await settle()

        assert call.result.state is State.DECLINED


class TestTheEnd:
    async def test_closing_refuses_what_is_open_and_what_comes(
        self, bench: Bench, person: FakeNotifier
    ) -> None:
        shown, queued = await bench.call(b"a"), await bench.call(b"b")
        bench.broker.close()
        late = await bench.call(b"c")

        for call in (shown, queued, late):
            assert (call.result.state, call.result.reason) == (State.LOST, Reason.STOPPING)
        assert len(person.withdrawn) == 1

    async def test_the_end_of_run_refuses_what_is_open(self, no_time: None) -> None:
        async with trio.open_nursery() as callers:
            async with trio.open_nursery() as daemon:
                bench = await Bench(daemon, FakeNotifier()).start()
                bench.nursery = callers
                call = await bench.call()
                daemon.cancel_scope.cancel()
            await settle()
            assert call.result.reason is Reason.STOPPING
            late = await bench.call()
            assert late.result.reason is Reason.STOPPING

    async def test_before_run_nothing_is_asked(self, nursery: trio.Nursery) -> None:
        bench = Bench(nursery, FakeNotifier())
        call = await bench.call()

        assert call.result.reason is Reason.STOPPING

    async def test_a_default_that_is_not_offered_is_our_own_fault(self, bench: Bench) -> None:
        with pytest.raises(InternalError):
            await bench.broker.ask(make_request(), OFFERS, Scope.LISTED, "key")

        assert bench.broker.questions() == ()

    async def test_sixty_four_questions_fit_in_memory_and_leave_nothing(
        self, bench: Bench, person: FakeNotifier
    ) -> None:
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            calls = [
                await bench.call(b"%d" % number, session=f"s{number % 4}") for number in range(64)
            ]
            held = tracemalloc.get_traced_memory()[0] - before
            bench.broker.reconsider(lambda question: True)
            await settle()
            calls.clear()
            bench.journal.records.clear()
            gc.collect()
            left = tracemalloc.get_traced_memory()[0] - before
        finally:
            tracemalloc.stop()

        assert held < 20_000_000
        assert left < 200_000
