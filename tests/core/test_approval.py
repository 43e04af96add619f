"""The life of a question: which state may follow which."""

from __future__ import annotations

import itertools

import pytest

from lamfuse.core.approval import (
    FINAL,
    TRANSITIONS,
    Answer,
    Offer,
    Question,
    Scope,
    State,
    Text,
    may_follow,
)
from lamfuse.core.errors import InternalError
from lamfuse.core.operations import Operation
from tests.core.acts import DOWNLOADS, act, file

_ALLOWED_MOVES = {
    (State.NEW, State.QUEUED),
    (State.NEW, State.LOST),
    (State.NEW, State.GONE),
    (State.QUEUED, State.SHOWN),
    (State.QUEUED, State.TIMED_OUT),
    (State.QUEUED, State.LOST),
    (State.QUEUED, State.GONE),
    (State.SHOWN, State.ALLOWED),
    (State.SHOWN, State.DECLINED),
    (State.SHOWN, State.TIMED_OUT),
    (State.SHOWN, State.LOST),
    (State.SHOWN, State.GONE),
}


def _question(state: State = State.NEW) -> Question:
    offers = (Offer(Scope.ONCE), Offer(Scope.FILE, DOWNLOADS + b"/a"))
    request = act(Operation.WRITE, file(DOWNLOADS + b"/a"))
    return Question("k7f2", request, Text("t", ()), offers, Scope.FILE, 0.0, state=state)


@pytest.mark.requirement("H4", "H17")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(*pair, id=f"{pair[0]} to {pair[1]}")
        for pair in itertools.product(State, repeat=2)
    ],
)
def test_each_move_is_allowed_or_our_own_bug(before: State, after: State) -> None:
    question = _question(before)
    if (before, after) in _ALLOWED_MOVES:
        assert may_follow(before, after)
        question.move(after)
        assert question.state is after
        assert question.history == [State.NEW, after]
    else:
        assert not may_follow(before, after)
        with pytest.raises(InternalError, match="k7f2"):
            question.move(after)
        assert question.state is before
        assert question.history == [State.NEW]


def test_only_a_question_that_was_shown_can_be_allowed_or_declined() -> None:
    for answer in (State.ALLOWED, State.DECLINED):
        assert [state for state in State if may_follow(state, answer)] == [State.SHOWN]


def test_nothing_follows_a_final_state_and_every_other_state_can_end() -> None:
    assert {State.ALLOWED, State.DECLINED, State.TIMED_OUT, State.LOST, State.GONE} == FINAL
    for state in State:
        assert (state in FINAL) is (not TRANSITIONS.get(state))
        assert _question(state).is_final is (state in FINAL)


def test_a_question_knows_what_it_offers() -> None:
    question = _question()
    assert question.offer(Scope.FILE) == Offer(Scope.FILE, DOWNLOADS + b"/a")
    assert question.offer(Scope.ONCE) == Offer(Scope.ONCE)
    assert question.offer(Scope.FOLDER) is None


@pytest.mark.requirement("L9")
def test_the_names_are_those_of_the_journal_and_the_program_channel() -> None:
    assert [str(state) for state in State] == [
        "new", "queued", "shown", "allowed", "declined", "timed out", "lost", "gone",
    ]  # fmt: skip
    assert [str(scope) for scope in Scope] == ["once", "file", "folder", "listed"]


def test_a_new_question_was_seen_by_nobody_and_nobody_waits_for_it() -> None:
    offers = (Offer(Scope.ONCE),)
    request = act(Operation.WRITE, file(DOWNLOADS + b"/a"))
    question = Question("k7f2", request, Text("t", ()), offers, Scope.ONCE, 5.0)
    assert (question.state, question.shown, question.waiters) == (State.NEW, None, 0)
    assert (question.answer, question.channel, question.history) == (None, "", [State.NEW])
    assert not question.is_final
    assert not question.text.destructive
    assert Answer(allow=True) == Answer(allow=True, scope=None, channel="")
    assert offers[0].path == b""


def test_a_question_does_not_print_every_file_that_it_counted() -> None:
    offer = Offer(Scope.FOLDER, DOWNLOADS, 1, frozenset([(1, 4711, 3)]))
    assert "4711" not in repr(offer)
