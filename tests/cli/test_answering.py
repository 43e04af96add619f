from __future__ import annotations

import pytest

from lamfuse.cli.answering import pick_last
from lamfuse.control import wire
from lamfuse.core.approval import Scope, State
from lamfuse.core.errors import RefusedError
from tests.cli.fake_daemon import FakeDaemon, lamfuse
from tests.control.fake_backend import make_question

pytestmark = pytest.mark.requirement("L8")


def _questions(*questions: wire.QuestionView) -> dict[str, wire.QuestionView]:
    return {question.id: question for question in questions}


def test_allow_without_scope_leaves_the_scope_to_the_question(daemon: FakeDaemon) -> None:
    daemon.backend.questions = _questions(make_question("k7f2"))
    result = lamfuse("allow", "k7f2")
    assert (result.code, result.out) == (0, "k7f2: allowed (file)\n")
    assert daemon.backend.asked == [("answer", "k7f2", True, None, "cli")]


def test_allow_with_a_scope_asks_for_it(daemon: FakeDaemon) -> None:
    daemon.backend.questions = _questions(make_question("k7f2"))
    result = lamfuse("allow", "--scope", "folder", "k7f2")
    assert (result.code, result.out) == (0, "k7f2: allowed (folder)\n")
    assert daemon.backend.asked == [("answer", "k7f2", True, Scope.FOLDER, "cli")]


def test_deny_declines_several(daemon: FakeDaemon) -> None:
    daemon.backend.questions = _questions(make_question("k7f2"), make_question("m3qd"))
    result = lamfuse("deny", "k7f2", "m3qd")
    assert (result.code, result.out) == (0, "k7f2: declined\nm3qd: declined\n")


@pytest.mark.parametrize(
    ("state", "words"),
    [
        pytest.param(
            State.DECLINED, "too late, it is declined already, by terminal", id="declined"
        ),
        pytest.param(State.TIMED_OUT, "too late, it is timed out already", id="timed-out"),
        pytest.param(State.QUEUED, "nobody has seen it yet", id="not-shown"),
    ],
)
def test_an_answer_that_changes_nothing_says_so_and_fails(
    daemon: FakeDaemon, state: State, words: str
) -> None:
    daemon.backend.questions = _questions(make_question("k7f2", state=state))
    result = lamfuse("allow", "k7f2")
    assert result.code == 1
    assert words in result.err
    assert result.out == ""


def test_an_unknown_id_says_so_and_the_others_are_answered(daemon: FakeDaemon) -> None:
    daemon.backend.questions = _questions(make_question("k7f2"))
    result = lamfuse("allow", "zzzz", "k7f2")
    assert result.code == 1
    assert result.out == "k7f2: allowed (file)\n"
    assert "zzzz: there is no such question. Nothing was changed." in result.err


def test_an_unknown_id_is_made_visible(daemon: FakeDaemon) -> None:
    result = lamfuse("allow", "\x1b[2J")
    assert result.code == 1
    assert "\x1b" not in result.err


def test_answers_for_programs(daemon: FakeDaemon) -> None:
    daemon.backend.questions = _questions(make_question("k7f2"))
    result = lamfuse("allow", "--json", "k7f2", "zzzz")
    assert result.code == 1
    assert [(item["id"], item["outcome"], item["scope"]) for item in result.data] == [
        ("k7f2", "accepted", "file"),
        ("zzzz", "unknown", None),
    ]


@pytest.mark.parametrize("command", ["allow", "deny"])
@pytest.mark.parametrize("arguments", [[], ["--last", "k7f2"]])
def test_either_ids_or_last(daemon: FakeDaemon, command: str, arguments: list[str]) -> None:
    daemon.backend.questions = _questions(make_question("k7f2"))
    result = lamfuse(command, *arguments)
    assert result.code == 2
    assert "--last" in result.err
    assert daemon.backend.asked == []


@pytest.mark.parametrize("command", ["allow", "deny"])
def test_without_a_daemon_nothing_runs(person: object, command: str) -> None:
    result = lamfuse(command, "k7f2")
    assert result.code == 3
    assert "lamfuse mount" in result.err


def test_last_answers_the_question_in_sight(daemon: FakeDaemon) -> None:
    daemon.backend.questions = _questions(
        make_question("aaaa", state=State.QUEUED, shown_s=None), make_question("k7f2")
    )
    assert lamfuse("deny", "--last").out == "k7f2: declined\n"
    assert ("show", "aaaa") not in daemon.backend.asked


PICKED = [
    pytest.param([make_question("aaaa")], "aaaa", id="the-only-one"),
    pytest.param(
        [make_question("aaaa", shown_s=9.0, age_s=9.5), make_question("bbbb", shown_s=2.0)],
        "bbbb",
        id="the-latest-in-sight",
    ),
    pytest.param(
        [make_question("aaaa"), make_question("bbbb", state=State.QUEUED, shown_s=None)],
        "aaaa",
        id="not-one-that-is-queued",
    ),
    pytest.param([make_question("aaaa", age_s=1.0, shown_s=1.0)], "aaaa", id="just-quiet-enough"),
]

NOT_PICKED = [
    pytest.param([], "No question is in sight", id="none"),
    pytest.param(
        [make_question("aaaa", state=State.QUEUED, shown_s=None)], "in sight", id="only-queued"
    ),
    pytest.param([make_question("aaaa", age_s=0.9, shown_s=0.9)], "less than a second", id="new"),
    pytest.param(
        [
            make_question("aaaa"),
            make_question("bbbb", state=State.QUEUED, age_s=0.2, shown_s=None),
        ],
        "less than a second",
        id="another-arrived",
    ),
    pytest.param(
        [make_question("aaaa", age_s=50.0, shown_s=0.3)],
        "less than a second",
        id="came-into-sight-when-the-one-before-went",
    ),
]


@pytest.mark.parametrize(("questions", "expected"), PICKED)
def test_last_is_what_the_person_sees(questions: list[wire.QuestionView], expected: str) -> None:
    assert pick_last(questions).id == expected


@pytest.mark.parametrize(("questions", "why"), NOT_PICKED)
def test_last_is_refused_when_it_could_mean_another(
    questions: list[wire.QuestionView], why: str
) -> None:
    with pytest.raises(RefusedError, match=why):
        pick_last(questions)
