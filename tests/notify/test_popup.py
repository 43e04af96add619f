"""What a notification says, which buttons it has, and what is made of a click."""

from __future__ import annotations

import html
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamfuse.core import wording
from lamfuse.core.approval import Answer, Offer, Question, Scope, Text
from lamfuse.core.names import show_path
from lamfuse.core.target import FileKind, Identity, Subject
from lamfuse.engine.open_questions import Standing
from lamfuse.notify.popup import Click, Popup, Traits, compose
from tests.engine.fakes import OFFERS, make_question, make_request

HOME = b"/home/lam"
STANDING = Standing(60.0, 0)
YES = Answer(allow=True, scope=Scope.FILE, channel="desktop")
NO = Answer(allow=False, channel="desktop")


def worded(path: bytes, offers: tuple[Offer, ...] = OFFERS) -> Question:
    """Return the question whether *path* is overwritten, in its true words."""
    subject = Subject(
        path, FileKind.FILE, Identity(1, 2), Identity(1, 3), size=1240, mtime_ns=1, lines=40
    )
    request = replace(make_request(), subjects=(subject,))
    text = wording.describe(request, HOME, 2, question_id="k7f2", offers=offers)
    return replace(make_question(), request=request, text=text, offers=offers)


def popup_of(question: Question, traits: Traits | None = None, *, hasty: int = 0) -> Popup:
    return compose(question, HOME, STANDING, traits or Traits(), hasty=hasty)


@pytest.mark.requirement("H4", "H30")
def test_it_says_what_the_contract_says() -> None:
    popup = popup_of(worded(b"/home/lam/Downloads/report.md"))

    assert popup.title == "Overwrite report.md? [k7f2]"
    assert popup.body.splitlines() == [
        "~/Downloads/report.md",
        "Replaces 1,240 bytes, 40 lines, last changed just now.",
        "New content is 2,180 bytes, 61 lines.",
        (
            "Allowing the folder also lets the 3 files in it be changed,"
            " and not deleted or moved: ~/Downloads"
        ),
        "by python3.12 (pid 4411), session claude-1 · declines in 60 s",
    ]


@pytest.mark.parametrize(
    ("offers", "default", "labels", "scopes"),
    [
        pytest.param(
            OFFERS,
            Scope.FILE,
            ("Decline", "Allow", "Allow folder this turn (3 files in it)"),
            (None, Scope.FILE, Scope.FOLDER),
            id="widest-is-the-folder",
        ),
        pytest.param(
            OFFERS[:2], Scope.FILE, ("Decline", "Allow"), (None, Scope.FILE), id="nothing-wider"
        ),
        pytest.param(
            OFFERS[:1], Scope.ONCE, ("Decline", "Allow once"), (None, Scope.ONCE), id="once-only"
        ),
        pytest.param(
            (Offer(Scope.ONCE), Offer(Scope.LISTED, b"/home/lam/build", 214)),
            Scope.ONCE,
            ("Decline", "Allow once", "Allow these 214"),
            (None, Scope.ONCE, Scope.LISTED),
            id="a-list",
        ),
        pytest.param(
            (*OFFERS, Offer(Scope.LISTED, b"/home/lam/build", 214)),
            Scope.ONCE,
            ("Decline", "Allow once", "Allow these 214"),
            (None, Scope.ONCE, Scope.LISTED),
            id="four-on-offer",
        ),
        pytest.param((), Scope.FILE, ("Decline",), (None,), id="nothing-on-offer"),
    ],
)
@pytest.mark.requirement("H4")
def test_decline_first_and_three_buttons_at_most(
    offers: tuple[Offer, ...],
    default: Scope,
    labels: tuple[str, ...],
    scopes: tuple[Scope | None, ...],
) -> None:
    popup = popup_of(replace(make_question(), offers=offers, default=default))

    assert popup.labels == labels
    assert tuple(answer.scope for answer in popup.answers.values()) == scopes
    assert [answer.allow for answer in popup.answers.values()] == [
        scope is not None for scope in scopes
    ]
    assert popup.actions[1::2] == list(labels)
    assert popup.actions[::2] == list(popup.answers)


def test_no_two_popups_have_a_key_in_common() -> None:
    keys = [key for _ in range(50) for key in popup_of(make_question()).answers]

    assert len(set(keys)) == len(keys)
    assert all(len(key.partition("-")[2]) >= 24 for key in keys)


@pytest.mark.parametrize(
    ("prefix", "stood_s", "click"),
    [
        pytest.param("file", 0.7, Click.ANSWER, id="yes"),
        pytest.param("file", 0.69, Click.HASTY, id="yes-too-fast"),
        pytest.param("folder", 0.0, Click.HASTY, id="wide-yes-too-fast"),
        pytest.param("file", float("-inf"), Click.HASTY, id="before-it-stood"),
        pytest.param("deny", 0.0, Click.ANSWER, id="no-at-once"),
        pytest.param("once", 5.0, Click.UNKNOWN, id="not-among-the-buttons"),
    ],
)
@pytest.mark.requirement("H4")
def test_a_yes_counts_once_it_could_be_read(prefix: str, stood_s: float, click: Click) -> None:
    popup = popup_of(make_question())
    keys = {key.partition("-")[0]: key for key in popup.answers}

    assert popup.judge(keys.get(prefix, f"{prefix}-0123"), stood_s) is click


LONG = b"/home/lam/Downloads/" + b"a" * 110 + b"-thesis-final.tex"


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(LONG, id="one-long-name"),
        pytest.param(b"/home/lam/" + b"/".join([b"folder"] * 30) + b"/x", id="deep"),
        pytest.param(b"/home/lam/" + b"\xff" * 40, id="long-once-it-is-visible"),
        pytest.param(b"/home/lam/" + "ש".encode() * 125, id="right-to-left"),
    ],
)
@pytest.mark.requirement("H30")
def test_where_the_path_is_not_whole_there_is_no_yes(path: bytes) -> None:
    popup = popup_of(worded(path, offers=OFFERS[:2]))
    lines = popup.body.splitlines()

    assert popup.labels == ("Decline",)
    assert "left out)" in lines[0]
    assert lines[0].startswith("~/")
    assert show_path(path, HOME).rstrip("\u2069")[-6:] in lines[0]
    assert "Too long for here. To see it whole and answer: lamfuse show k7f2" in lines


@pytest.mark.requirement("H30")
def test_names_that_differ_at_the_end_look_different() -> None:
    bodies = {
        popup_of(worded(b"/home/lam/" + b"a" * 250 + ending, OFFERS[:1])).body
        for ending in (b".md", b".me", b".tx")
    }

    assert len(bodies) == 3


def test_a_text_with_too_many_lines_is_cut_and_has_no_yes() -> None:
    body = ("~/Downloads/report.md", "It also has 40 other names that change with it.")
    question = worded(b"/home/lam/Downloads/report.md")
    text = Text("Change? [k7f2]", (*body, *(f"  ~/name-{number}" for number in range(40))))
    popup = popup_of(replace(question, text=text))

    assert popup.labels == ("Decline",)
    assert popup.body.splitlines()[:2] == list(body)
    assert len(popup.body.splitlines()) == 12
    assert "lamfuse show k7f2" in popup.body


@pytest.mark.parametrize(
    ("markup", "shown"),
    [
        pytest.param(True, "~/&lt;b&gt;a&lt;/b&gt;&amp;amp;", id="read-as-markup"),
        pytest.param(False, r"~/\x3cb>a\x3c/b>\x26amp;", id="perhaps-read-all-the-same"),
    ],
)
@pytest.mark.requirement("H30")
def test_markup_is_never_read(markup: bool, shown: str) -> None:
    popup = popup_of(worded(b"/home/lam/<b>a</b>&amp;"), Traits(markup=markup))

    assert popup.body.splitlines()[0] == shown


@given(name=st.binary(min_size=1, max_size=60), markup=st.booleans(), lines=st.booleans())
@pytest.mark.requirement("H30")
def test_no_name_can_look_like_anything_else(name: bytes, markup: bool, lines: bool) -> None:
    name = name.replace(b"/", b"_").replace(b"\0", b"_")
    question = worded(b"/home/lam/" + name, OFFERS[:2])
    popup = popup_of(question, Traits(markup=markup, lines=lines))
    parts = popup.body.split("\n" if lines else " \u2215 ")
    said = [
        html.escape(line, quote=False)
        if markup
        else line.replace("&", r"\x26").replace("<", r"\x3c")
        for line in question.text.body
    ]

    assert all(letter.isprintable() or letter in "\n\u2068\u2069" for letter in popup.body)
    assert "\n" not in popup.title
    assert parts[: len(said)] == said or len(popup.answers) == 1
    assert "<" not in popup.body
    assert markup or "&" not in popup.body


def test_what_is_not_printable_is_escaped_even_if_it_comes_through() -> None:
    text = Text("Over\x1bwrite\n? [k7f2]", ("~/Downloads/report.md\u202e",))
    popup = popup_of(replace(make_question(), text=text))

    assert popup.title == r"Over\x1bwrite\n? [k7f2]"
    assert r"\u202e" in popup.body


def test_answers_are_those_of_the_channel() -> None:
    assert list(popup_of(make_question()).answers.values())[:2] == [NO, YES]
