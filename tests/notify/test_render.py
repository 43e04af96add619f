"""A question as lines: complete, and nothing in it that a terminal would act on."""

from __future__ import annotations

import dataclasses

import pytest

from lamfuse.core.approval import Scope, State, Text
from lamfuse.core.target import FileKind
from lamfuse.notify import render
from tests.engine.fakes import make_question, make_request

HOME = b"/home/lam"


@pytest.mark.parametrize(
    ("default", "keys"),
    [
        pytest.param(Scope.FILE, {"d": None, "a": Scope.FILE, "o": Scope.ONCE, "f": Scope.FOLDER}),
        pytest.param(Scope.ONCE, {"d": None, "a": Scope.ONCE, "t": Scope.FILE, "f": Scope.FOLDER}),
    ],
    ids=str,
)
def test_every_scope_on_offer_has_a_key_and_decline_comes_first(
    default: Scope, keys: dict[str, Scope | None]
) -> None:
    labels = ((Scope.ONCE, "Allow once"), (Scope.FILE, "Allow"), (Scope.FOLDER, "Allow folder"))
    choices = render.choices_of(labels, default)

    assert {choice.key: choice.scope for choice in choices} == keys
    assert [choice.key for choice in choices[:2]] == ["d", "a"]


@pytest.mark.requirement("H4")
def test_a_path_that_the_text_has_shortened_is_shown_whole() -> None:
    card = render.card_of(make_question(), HOME)
    shortened = dataclasses.replace(card, body=("~/Downloads/re... (5 left out)",))
    whole = dataclasses.replace(card, body=card.paths)

    assert f"  {card.paths[0]}" in render.lines(shortened, 60, 0)
    assert render.lines(whole, 60, 0).count(f"  {card.paths[0]}") == 1


def test_what_destroys_says_so() -> None:
    card = render.card_of(make_question(), HOME)
    grave = dataclasses.replace(card, destructive=True)

    assert "  Destructive." in render.lines(grave, 60, 0)
    assert "  Destructive." not in render.lines(card, 60, 0)


@pytest.mark.requirement("H14")
@pytest.mark.parametrize(
    ("changes", "text"),
    [
        pytest.param({}, "1,240 -> 2,180 (+940) bytes, 40 -> 61 (+21) lines", id="both"),
        pytest.param({"new_lines": None}, "1,240 -> 2,180 (+940) bytes", id="no-lines"),
        pytest.param(
            {"new_size": 0, "new_lines": 0},
            "1,240 -> 0 (-1,240) bytes, 40 -> 0 (-40) lines",
            id="empties",
        ),
        pytest.param({"new_size": None}, "", id="new-size-unknown"),
    ],
)
def test_sizes_before_and_after_are_compared(changes: dict[str, int | None], text: str) -> None:
    request = dataclasses.replace(make_request(), **changes)  # type: ignore[arg-type]

    assert render.sizes(request) == text


@pytest.mark.parametrize("kind", [None, FileKind.DIRECTORY])
def test_what_has_no_size_is_not_compared(kind: FileKind | None) -> None:
    request = make_request()
    subject = dataclasses.replace(request.subjects[0], kind=kind)

    assert render.sizes(dataclasses.replace(request, subjects=(subject,))) == ""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("plain ~/a b", "plain ~/a b", id="plain"),
        pytest.param("\x1b[2J", "\\x1b[2J", id="escape"),
        pytest.param("a\nb\r", "a\\nb\\r", id="lines"),
        pytest.param("\u202e", "\\u202e", id="bidi-override"),
        pytest.param("\u2068\u05d0\u2069", "\u2068\u05d0\u2069", id="isolates-stay"),
        pytest.param("\x9b", "\\x9b", id="c1"),
        pytest.param("\ud800", "\\ud800", id="surrogate"),
        pytest.param("é字", "é字", id="letters"),
    ],
)
def test_nothing_unprintable_is_left(text: str, shown: str) -> None:
    assert render.printable(text) == shown


def test_lines_of_a_hostile_text_are_printable() -> None:
    question = make_question()
    question.text = Text("a\x1b[2J\n", ("b\x07",))
    lines = render.lines(render.card_of(question, HOME), 60, 0)

    assert all(letter.isprintable() for line in lines for letter in line)


@pytest.mark.parametrize("state", list(State))
def test_every_end_has_its_words(state: State) -> None:
    assert render.ended(state, "desktop", None).endswith(".")
