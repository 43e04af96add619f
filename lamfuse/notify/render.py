"""A question as lines of plain text, with the keys that answer it.

No terminal here, and no clock: the seconds come in. Texts arrive made visible; a control character
that slips through all the same is escaped once more before it can reach a screen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lamfuse.core import names, wording
from lamfuse.core.approval import Question, Scope, State
from lamfuse.core.target import Caller, Request

__all__ = [
    "Card",
    "Choice",
    "card_of",
    "choices_of",
    "ended",
    "hint",
    "lines",
    "printable",
    "sizes",
]

_KEYS = {Scope.FILE: "t", Scope.FOLDER: "f", Scope.ONCE: "o", Scope.LISTED: "l"}
_REACH = {
    Scope.ONCE: "this one call only",
    Scope.FILE: "this file, until the turn ends",
    Scope.FOLDER: "this folder, until the turn ends",
    Scope.LISTED: "what is on the list, until the turn ends",
}


@dataclass(frozen=True, slots=True)
class Choice:
    """A key and what it does; *scope* None declines."""

    key: str
    scope: Scope | None
    label: str


@dataclass(frozen=True, slots=True)
class Card:
    """All of a question that goes on a screen. *paths* are whole, source first.

    The first of *choices* declines.
    """

    id: str
    title: str
    body: tuple[str, ...]
    paths: tuple[str, ...]
    destructive: bool
    caller: Caller
    session: str
    choices: tuple[Choice, ...]
    sizes: str = ""


def card_of(question: Question, home: bytes) -> Card:
    """Put *question* on a card; *home* is what a tilde stands for."""
    request = question.request
    labels = tuple((offer.scope, wording.label(offer, home)) for offer in question.offers)
    return Card(
        id=question.id,
        title=question.text.title,
        body=question.text.body,
        paths=tuple(names.show_path(path, home) for path in request.paths),
        destructive=question.text.destructive,
        caller=request.caller,
        session=request.session,
        choices=choices_of(labels, question.default),
        sizes=sizes(request),
    )


def choices_of(labels: tuple[tuple[Scope, str], ...], default: Scope) -> tuple[Choice, ...]:
    """Give each scope on offer its key: *a* is the default, *d* declines and stands first."""
    allows = [
        Choice("a" if scope is default else _KEYS[scope], scope, label) for scope, label in labels
    ]
    allows.sort(key=lambda choice: choice.key != "a")
    return (Choice("d", None, "Decline"), *allows)


def lines(card: Card, seconds_left: float, waiting: int) -> list[str]:
    """Return the lines of a question and its legend; each is free of control characters."""
    return [printable(line) for line in _lines(card, seconds_left, waiting)]


def _lines(card: Card, seconds_left: float, waiting: int) -> Iterator[str]:
    yield card.title
    shown = "\n".join(card.body)
    # A path that the text has shortened stands here whole: only then is a yes informed.
    yield from (f"  {path}" for path in card.paths if path not in shown)
    yield from (f"  {line}" for line in card.body)
    if card.sizes:
        yield f"  {card.sizes}"
    if card.destructive:
        yield "  Destructive."
    by = wording.caller_line(card.caller, card.session, round(seconds_left), waiting)
    yield f"  {by}"
    for choice in card.choices:
        reach = f" ({_REACH[choice.scope]})" if choice.scope is not None else ""
        yield f"  [{choice.key}] {choice.label}{reach}"


def hint(card: Card, seconds_left: float) -> str:
    """Return the last line, which waits for a key."""
    keys = "/".join(choice.key for choice in card.choices)
    return printable(f"{keys}? {round(seconds_left)} s ")


def ended(state: State, channel: str, scope: Scope | None) -> str:
    """Say how a question ended that was not answered here."""
    by = f" through {channel}" if channel else ""
    reach = f" ({scope})" if scope is not None else ""
    match state:
        case State.ALLOWED:
            return printable(f"Allowed{by}{reach}.")
        case State.DECLINED:
            return printable(f"Declined{by}.")
        case State.TIMED_OUT:
            return "Nobody answered in time: refused."
        case State.GONE:
            return "Withdrawn: nobody waits for it any more."
        case State.LOST:
            return "Refused: it cannot be asked any more."
        case _:
            return "Withdrawn here; it may still be answered elsewhere."


def sizes(request: Request) -> str:
    """Tell the sizes before and after, where both are known; else nothing."""
    old = request.subjects[-1]
    if request.new_size is None or not old.exists or old.is_directory:
        return ""
    text = f"{_change(old.size, request.new_size)} bytes"
    if old.lines is not None and request.new_lines is not None:
        text += f", {_change(old.lines, request.new_lines)} lines"
    return text


def _change(old: int, new: int) -> str:
    return f"{old:,} -> {new:,} ({new - old:+,})"


def printable(text: str) -> str:
    """Return *text* with everything escaped that is no printable character."""
    return "".join(letter if letter.isprintable() else _escaped(letter) for letter in text)


def _escaped(letter: str) -> str:
    # Isolates fence right-to-left names and are put there by core.names, so they are let through.
    if letter in "\u2068\u2069":
        return letter
    return letter.encode("unicode_escape", "backslashreplace").decode("ascii")
