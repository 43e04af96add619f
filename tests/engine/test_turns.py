"""Sessions: one ledger each, and the turns that end what was granted."""

from __future__ import annotations

import pytest

from lamfuse.core.approval import Offer, Scope
from lamfuse.core.ledger import Limits
from lamfuse.core.operations import Operation
from lamfuse.engine.turns import Sessions
from tests.core.acts import DOWNLOADS, act, file

pytestmark = pytest.mark.requirement("H9")

WRITE = act(Operation.WRITE, file(DOWNLOADS + b"/a"))


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sessions(clock: Clock) -> Sessions:
    return Sessions(Limits(), clock)


def grant(sessions: Sessions, name: str, now: float) -> None:
    offer = Offer(Scope.FILE, WRITE.paths[0])
    sessions.get(name).ledger.grant(WRITE, offer, (), now)


def is_granted(sessions: Sessions, name: str) -> bool:
    return sessions.get(name).ledger.covers(WRITE, ()) is not None


def test_a_session_is_made_once_with_an_empty_ledger(sessions: Sessions, clock: Clock) -> None:
    session = sessions.get("a")
    assert sessions.get("a") is session
    assert sessions.get("b") is not session
    assert not is_granted(sessions, "a")
    assert session.ledger.started == session.ledger.last_change == clock.now
    assert [each.name for each in sessions.all()] == ["a", "b"]


def test_each_session_has_its_own_grants(sessions: Sessions, clock: Clock) -> None:
    grant(sessions, "a", clock.now)
    assert is_granted(sessions, "a")
    assert not is_granted(sessions, "b")


def test_a_new_turn_of_one_session_leaves_the_others(sessions: Sessions, clock: Clock) -> None:
    for name in "abc":
        grant(sessions, name, clock.now)
    assert [each.name for each in sessions.new_turn("b")] == ["b"]
    assert [is_granted(sessions, name) for name in "abc"] == [True, False, True]
    assert [sessions.get(name).ledger.turn for name in "abc"] == [1, 2, 1]
    assert [each.name for each in sessions.new_turn()] == ["a", "b", "c"]
    assert not any(is_granted(sessions, name) for name in "abc")
    assert [sessions.get(name).ledger.turn for name in "abc"] == [2, 3, 2]


def test_a_turn_starts_its_time_anew(sessions: Sessions, clock: Clock) -> None:
    grant(sessions, "a", clock.now)
    clock.now += 3000.0
    sessions.new_turn("a")
    grant(sessions, "a", clock.now)
    clock.now += 899.0
    assert is_granted(sessions, "a")


@pytest.mark.parametrize("later", [900.0, 3600.0, 1e9])
def test_grants_that_are_due_are_over_when_somebody_looks(
    sessions: Sessions, clock: Clock, later: float
) -> None:
    grant(sessions, "a", clock.now)
    sessions.get("a").ledger.note_declined(WRITE)
    clock.now += later
    assert not is_granted(sessions, "a")
    assert sessions.get("a").ledger.was_declined(WRITE)
    assert sessions.get("a").ledger.turn == 1


def test_new_rules_end_the_grants_and_nothing_else(sessions: Sessions, clock: Clock) -> None:
    for name in "ab":
        grant(sessions, name, clock.now)
        sessions.get(name).ledger.note_declined(WRITE)
    sessions.end_grants()
    for name in "ab":
        assert not is_granted(sessions, name)
        assert sessions.get(name).ledger.was_declined(WRITE)
        assert sessions.get(name).ledger.turn == 1


def test_other_limits_hold_from_now_on_for_all(sessions: Sessions, clock: Clock) -> None:
    grant(sessions, "a", clock.now)
    sessions.set_limits(Limits(idle_s=10.0))
    grant(sessions, "b", clock.now)
    clock.now += 10.0
    assert not is_granted(sessions, "a")
    assert not is_granted(sessions, "b")


def test_a_late_write_is_the_first_once_for_each_file_and_end_of_grants(sessions: Sessions) -> None:
    session = sessions.get("a")
    assert [session.is_first_late(path) for path in (b"/a", b"/a", b"/b")] == [True, False, True]
    session.ledger.end_grants(0.0)
    assert [session.is_first_late(path) for path in (b"/a", b"/a")] == [True, False]
    assert sessions.get("b").is_first_late(b"/a")
