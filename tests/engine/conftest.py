"""Tests of the engine wait for nothing: where the fixture `no_time` is used, time jumps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
import trio
import trio.testing

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


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Choose the runner of the tests that use `no_time`, ahead of the one of trio mode."""
    for item in items:
        if item.path.is_relative_to(_HERE) and "no_time" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.trio(run=run_in_no_time), append=False)
