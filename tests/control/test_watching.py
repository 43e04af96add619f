from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
import trio.testing

from lamfuse.control import client, server, wire
from lamfuse.control.watching import Watching
from lamfuse.core.approval import Scope, State
from lamfuse.core.errors import NotRunningError, RefusedError
from tests.control.fake_backend import FakeBackend, make_question

pytestmark = pytest.mark.requirement("L8")


@pytest.fixture
def path(short_dir: Path) -> bytes:
    return bytes(short_dir / "run" / "home.sock")


@asynccontextmanager
async def serving(path: bytes, backend: FakeBackend) -> AsyncGenerator[trio.CancelScope, None]:
    """Serve while the body runs; what is yielded ends the server alone."""
    scope = trio.CancelScope()
    async with trio.open_nursery() as nursery:
        await nursery.start(_serve, path, backend, scope)
        with trio.fail_after(20):
            yield scope
        scope.cancel()


async def _serve(
    path: bytes,
    backend: FakeBackend,
    scope: trio.CancelScope,
    *,
    task_status: trio.TaskStatus[None],
) -> None:
    with scope:
        await server.serve(path, backend, task_status=task_status)


async def test_events_come_in_order_and_replies_to_whoever_asked(path: bytes) -> None:
    backend = FakeBackend({name: make_question(name) for name in ("k7f2", "m3qd")})
    events: list[wire.Event] = []
    async with serving(path, backend), trio.open_nursery() as nursery:
        watching = Watching(client.dial(path), events.append)
        await nursery.start(watching.run)
        await watching.watch()
        replies: dict[str, wire.AnswerReply] = {}

        async def answer(name: str) -> None:
            replies[name] = await watching.answer(name, allow=True, scope=Scope.ONCE)

        async with trio.open_nursery() as asking:
            for name in ("zzzz", "k7f2", "m3qd"):
                asking.start_soon(answer, name)
        shown = await watching.show("k7f2")
        assert shown is not None
        assert shown.state is State.ALLOWED
        assert {name: reply.outcome for name, reply in replies.items()} == {
            "zzzz": wire.AnswerOutcome.UNKNOWN,
            "k7f2": wire.AnswerOutcome.ACCEPTED,
            "m3qd": wire.AnswerOutcome.ACCEPTED,
        }
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    asked = [event.question.id for event in events if isinstance(event, wire.AskedEvent)]
    changed = {event.id for event in events if isinstance(event, wire.ChangedEvent)}
    assert (asked, changed) == (["k7f2", "m3qd"], {"k7f2", "m3qd"})


async def test_the_end_of_the_daemon_ends_the_reading(path: bytes) -> None:
    async with serving(path, FakeBackend()) as daemon:
        watching = Watching(client.dial(path), lambda _event: None)
        ended = trio.Event()

        async def run(*, task_status: trio.TaskStatus[None]) -> None:
            with pytest.raises(NotRunningError):
                await watching.run(task_status=task_status)
            ended.set()

        async with trio.open_nursery() as nursery:
            await nursery.start(run)
            await watching.watch()
            daemon.cancel()
            await ended.wait()


async def test_a_failure_of_one_request_is_raised_there_alone(
    path: bytes, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = FakeBackend()

    async def fail(_question_id: str) -> None:
        raise ZeroDivisionError("boom")

    monkeypatch.setattr(backend, "show", fail)
    async with serving(path, backend), trio.open_nursery() as nursery:
        watching = Watching(client.dial(path), lambda _event: None)
        await nursery.start(watching.run)
        with pytest.raises(RefusedError, match="fault of the daemon"):
            await watching.show("k7f2")
        await watching.watch()
        nursery.cancel_scope.cancel()
    caplog.clear()


async def test_a_daemon_that_does_not_talk_to_us_says_why(
    path: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with trio.open_nursery() as nursery:
        serve = server.serve

        async def picky(*, task_status: trio.TaskStatus[None]) -> None:
            await serve(path, FakeBackend(), judge=lambda _: "no", task_status=task_status)

        await nursery.start(picky)
        watching = Watching(client.dial(path), lambda _event: None)
        with pytest.raises(RefusedError, match="does not talk to this process: no"):
            await watching.run()
        nursery.cancel_scope.cancel()
    caplog.clear()


def test_nobody_to_dial_is_not_running(path: bytes) -> None:
    with pytest.raises(NotRunningError):
        client.dial(path)
    assert not os.path.exists(path)
