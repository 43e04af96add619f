"""What a notification about a question says, which buttons it has, and what is made of a click.

Pure: no bus, no clock. A click counts only with a key of this very notification, which nobody can
know before it is posted, and a yes only once the notification has stood long enough to be seen.
Where not all of a question can be shown there is no yes.
"""

from __future__ import annotations

import enum
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lamfuse.core import names, wording
from lamfuse.core.approval import Answer, Question, Scope
from lamfuse.engine.open_questions import Standing
from lamfuse.notify.render import printable

__all__ = ["ARMING_S", "CHANNEL", "Click", "Popup", "Traits", "compose"]

CHANNEL = "desktop"
#: Seconds that a notification stands before a yes counts: what comes faster was meant for another.
ARMING_S = 0.7
#: Visible characters of one path and of one line, and of all that is said about a question. Servers
#: cut a text at its end without a sign of it: GNOME after six lines, KDE after eight.
_PATH_WIDTH = 120
_LINE_WIDTH = 280
_TEXT_WIDTH = 640
_TEXT_LINES = 10
_NONCE_BYTES = 12
_WIDTH_ORDER = tuple(Scope)
#: Parts the lines where a server makes one of them. No name that is shown can have it.
_PARTING = " \u2215 "


@dataclass(frozen=True, slots=True)
class Traits:
    """What matters about a notification server for the text.

    *buttons*: it shows actions as buttons, not only in a menu. *markup*: it says that it reads the
    body as markup. *lines*: it keeps line ends.
    """

    buttons: bool = True
    markup: bool = False
    lines: bool = True


class Click(enum.Enum):
    """What a click on a notification is."""

    UNKNOWN = "no button of this notification"
    HASTY = "a yes that came too fast"
    ANSWER = "an answer"


@dataclass(frozen=True, slots=True)
class Popup:
    """A notification. ``answers`` are its buttons: key to what it means; the first declines."""

    title: str
    body: str
    labels: tuple[str, ...]
    answers: Mapping[str, Answer]

    @property
    def actions(self) -> list[str]:
        """Return keys and labels by turns, as the bus wants them."""
        return [text for pair in zip(self.answers, self.labels, strict=True) for text in pair]

    def judge(self, key: str, stood_s: float, arming_s: float = ARMING_S) -> Click:
        """Judge a click on the button *key*, *stood_s* seconds after the popup was posted."""
        answer = self.answers.get(key)
        if answer is None:
            return Click.UNKNOWN
        return Click.HASTY if answer.allow and stood_s < arming_s else Click.ANSWER


def compose(
    question: Question, home: bytes, standing: Standing, traits: Traits, *, hasty: int = 0
) -> Popup:
    """Put *question* on a popup with keys of its own; *hasty* tells how often a yes came too fast.

    *home* is what a tilde stands for.
    """
    said, is_whole = _said(question, home)
    lines = [*said, *_remarks(question, traits, hasty, is_whole=is_whole)]
    request = question.request
    lines.append(
        wording.caller_line(
            request.caller, request.session, standing.seconds_left, standing.waiting
        )
    )
    body = ("\n" if traits.lines else _PARTING).join(map(printable, lines))
    buttons = [("deny", "Decline", Answer(allow=False, channel=CHANNEL))]
    if is_whole:
        buttons += _yeses(question, home)
    nonce = secrets.token_hex(_NONCE_BYTES)
    return Popup(
        printable(question.text.title),
        _escaped(body) if traits.markup else _without_markup(body),
        tuple(label for _, label, _ in buttons),
        {f"{key}-{nonce}": answer for key, _, answer in buttons},
    )


def _yeses(question: Question, home: bytes) -> list[tuple[str, str, Answer]]:
    """Return the plain yes, and the widest one there is beside it: servers show three buttons."""
    scopes = [question.default]
    widest = max((offer.scope for offer in question.offers), key=_WIDTH_ORDER.index, default=None)
    if widest is not None and _WIDTH_ORDER.index(widest) > _WIDTH_ORDER.index(question.default):
        scopes.append(widest)
    return [
        (str(scope), wording.label(offer, home), Answer(allow=True, scope=scope, channel=CHANNEL))
        for scope in scopes
        if (offer := question.offer(scope)) is not None
    ]


def _said(question: Question, home: bytes) -> tuple[list[str], bool]:
    """Return the lines about the question that fit, and whether these are all of it, whole."""
    whole = list(question.text.body)
    shown = "\n".join(whole)
    # A path that the text does not have whole stands here.
    paths = [names.show_path(path, home) for path in question.request.paths]
    whole[:0] = [path for path in paths if path not in shown]
    lines = [_shortened(line, paths) for line in whole]
    fitting: list[str] = []
    room = _TEXT_WIDTH
    for line in lines[:_TEXT_LINES]:
        room -= len(line)
        if room < 0:
            break
        fitting.append(line)
    return fitting, fitting == whole


def _shortened(line: str, paths: Iterable[str]) -> str:
    for path in sorted(paths, key=len, reverse=True):
        line = line.replace(path, names.shorten(path, _PATH_WIDTH).text)
    return names.shorten(line, _LINE_WIDTH).text


def _remarks(question: Question, traits: Traits, hasty: int, *, is_whole: bool) -> list[str]:
    remarks = []
    if not is_whole:
        remarks.append(f"Too long for here. To see it whole and answer: lamfuse show {question.id}")
    elif not traits.buttons:
        remarks.append(f"To answer: lamfuse allow {question.id}, or deny")
    if hasty:
        # Its number makes the text another one: some servers refuse the same text twice a second.
        remarks.append(f"That answer came too fast to count. Please look again ({hasty}).")
    return remarks


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _without_markup(text: str) -> str:
    """Write what begins markup as names are made visible.

    dunst reads it, without saying so, when its configuration says nothing of markup.
    """
    return text.replace("&", r"\x26").replace("<", r"\x3c")
