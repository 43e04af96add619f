"""Watchers see every question and hold nobody up; an attached one counts as a channel."""

from __future__ import annotations

import contextlib

import pytest
import trio
import trio.testing

from lamfuse.core.approval import Answer, State
from lamfuse.core.errors import ChannelLost
from lamfuse.engine.broker import Limits, ReplyKind
from lamfuse.engine.events import Event, EventKind
from tests.engine.fakes import Bench, FakeNotifier

settle = trio.testing.wait_all_tasks_blocked
YES = Answer(allow=True, channel="watch")


@pytest.fixture
async def bench(nursery: trio.Nursery, no_time: None) -> Bench:
    return await Bench(nursery).start()


def received(channel: trio.MemoryReceiveChannel[Event]) -> list[tuple[EventKind, State]]:
    events = []
    with contextlib.suppress(trio.WouldBlock, trio.EndOfChannel):
        while True:
            event = channel.receive_nowait()
            events.append((event.kind, event.state))
    return events


async def test_with_a_watch_attached_a_question_waits_for_it(bench: Bench) -> None:
    with bench.broker.attach_watch():
        call = await bench.call()
        question = bench.only()
        assert bench.broker.current is question
        assert bench.broker.answer(question.id, YES).kind is ReplyKind.NOT_SHOWN
        bench.broker.mark_shown(question.id)
        reply = bench.broker.answer(question.id, YES)
        await settle()

    assert reply.kind is ReplyKind.ACCEPTED
    assert call.result.state is State.ALLOWED


async def test_a_watch_that_puts_nothing_on_screen_lets_it_time_out_unseen(bench: Bench) -> None:
    with bench.broker.attach_watch():
        call = await bench.call()
        await trio.sleep(111)

    assert call.result.state is State.TIMED_OUT
    assert not call.result.was_shown


@pytest.mark.requirement("H17")
async def test_the_last_watch_that_leaves_takes_the_question_with_it(bench: Bench) -> None:
    with bench.broker.attach_watch():
        with bench.broker.attach_watch():
            call = await bench.call()
        await settle()
        assert call.outcome is None
        assert bench.broker.watchers == 1
    await settle()

    assert call.result.state is State.LOST


async def test_a_watch_keeps_the_question_that_a_channel_lost(
    nursery: trio.Nursery, no_time: None
) -> None:
    person = FakeNotifier()
    bench = await Bench(nursery, person).start()
    with bench.broker.attach_watch():
        call = await bench.call()
        person.say(ChannelLost("gone"))
        await settle()
        assert call.outcome is None


async def test_a_watch_that_comes_gets_what_waits_for_the_command_line(
    nursery: trio.Nursery, no_time: None
) -> None:
    bench = await Bench(nursery, limits=Limits(wait_for_cli=True)).start()
    await bench.call()
    current = bench.broker.current
    assert current is None
    with bench.broker.events() as events, bench.broker.attach_watch():
        await settle()
        assert bench.broker.current is bench.only()
        assert received(events) == [(EventKind.ASKED, State.QUEUED)]


async def test_a_question_that_nobody_can_show_does_not_hold_up_the_next(
    nursery: trio.Nursery, no_time: None
) -> None:
    person = FakeNotifier()
    bench = await Bench(nursery, person, limits=Limits(wait_for_cli=True)).start()
    first = await bench.call(b"a")
    second = await bench.call(b"b")
    person.say(ChannelLost("once"))
    await settle()
    person.allow()
    await settle()

    assert first.outcome is None
    assert second.result.state is State.ALLOWED


async def test_the_life_of_a_question_is_told_in_order(
    nursery: trio.Nursery, no_time: None
) -> None:
    person = FakeNotifier()
    bench = await Bench(nursery, person).start()
    with bench.broker.events() as events:
        await bench.call()
        person.allow()
        await settle()
        told = received(events)

    assert told == [
        (EventKind.OPENED, State.QUEUED),
        (EventKind.ASKED, State.QUEUED),
        (EventKind.SHOWN, State.SHOWN),
        (EventKind.CLOSED, State.ALLOWED),
    ]


async def test_who_subscribes_late_hears_of_the_current_question(
    nursery: trio.Nursery, no_time: None
) -> None:
    bench = await Bench(nursery, FakeNotifier()).start()
    await bench.call(b"a")
    await bench.call(b"b")
    with bench.broker.events() as events:
        assert received(events) == [(EventKind.ASKED, State.SHOWN)]


@pytest.mark.expects_log("dropped a subscriber that did not keep up")
async def test_a_subscriber_that_does_not_read_is_dropped_and_delays_nobody(
    nursery: trio.Nursery, no_time: None
) -> None:
    person = FakeNotifier()
    bench = await Bench(nursery, person).start()
    with bench.broker.events() as slow, bench.broker.events() as prompt:
        for number in range(100):
            call = await bench.call(b"%d" % number)
            person.decline()
            await settle()
            assert call.result.state is State.DECLINED
            assert len(received(prompt)) == 4
        assert len(received(slow)) == 256
        with pytest.raises(trio.EndOfChannel):
            await slow.receive()


async def test_a_subscriber_that_left_is_forgotten(nursery: trio.Nursery, no_time: None) -> None:
    person = FakeNotifier()
    bench = await Bench(nursery, person).start()
    with bench.broker.events() as events:
        events.close()
        call = await bench.call()
        person.allow()
        await settle()

    assert call.result.state is State.ALLOWED
