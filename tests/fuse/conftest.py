"""Mounted homes for the tests: one daemon a module, a fresh folder and a new turn a test."""

from collections.abc import Iterator

import pytest

from tests.fuse.bench import Bench
from tests.mounting import Home, Mounted, make_home, mounted, place
from tests.person import decline


@pytest.fixture(scope="module")
def throw_away() -> Iterator[Home]:
    with place() as base:
        yield make_home(base)


@pytest.fixture(scope="module")
def config() -> str:
    """The configuration of the daemon; a module may have its own."""
    return ""


@pytest.fixture(scope="module")
def shared(throw_away: Home, config: str) -> Iterator[Mounted]:
    with mounted(throw_away, config) as here:
        yield here


@pytest.fixture
def bench(shared: Mounted) -> Iterator[Bench]:
    shared.person.new_turn()
    shared.person.forget(decline)
    with shared.watchdog():
        yield Bench(shared, shared.person, shared.fresh(), shared.fresh("spare"))
    shared.person.wait_no_questions()
