"""Tests of the engine wait for nothing: where the fixture `no_time` is used, time jumps."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

import pytest
import trio
import trio.testing

from tests.engine.gate_bench import Bench, at_once

_HERE = Path(__file__).parent


def run_in_no_time(
    function: Callable[[], Awaitable[object]],
    *,
    clock: trio.abc.Clock | None,
    instruments: Sequence[trio.abc.Instrument],
) -> object:
    """Run a test with a clock that jumps ahead whenever every task waits."""
    assert clock is None
    jumping = trio.testing.MockClock(autojump_threshold=0)
    return trio.run(function, clock=jumping, instruments=instruments)


@pytest.fixture
def no_time() -> None:
    """Let time jump; unlike `autojump_clock` it also works from within another fixture."""


@pytest.fixture
def in_this_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what runs in threads run here: nobody waits for them, and time may jump."""
    monkeypatch.setattr(trio.to_thread, "run_sync", at_once)


@pytest.fixture
async def bench(nursery: trio.Nursery, no_time: None, in_this_thread: None) -> AsyncIterator[Bench]:
    """Give a gate with a running broker; the tests of the broker have a bench of their own."""
    bench = Bench(nursery)
    await nursery.start(bench.run_broker)
    yield bench
    nursery.cancel_scope.cancel()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Choose the runner of the tests that use `no_time`, ahead of the one of trio mode."""
    for item in items:
        if item.path.is_relative_to(_HERE) and "no_time" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.trio(run=run_in_no_time), append=False)
