"""File names, sizes and times as a person sees them.

The one place that renders a name: an approval request is an attack surface, and its names are
chosen by the agent. What is shown is one line of printable text, and two different names never
look the same unless the text says how much of it was left out. Nothing here knows what is asked
about.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

__all__ = [
    "Shown",
    "count",
    "is_unusual",
    "number",
    "shorten",
    "show_age",
    "show_name",
    "show_path",
    "show_short_size",
    "show_size",
    "show_text",
]

#: Printable to Unicode, and yet nothing is to be seen: fillers, blanks, joiners, selectors.
_BLANK = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
    + "".join(map(chr, range(0xFE00, 0xFE10)))
    + "".join(map(chr, range(0xE0100, 0xE01F0)))
    + "".join(map(chr, range(0x180B, 0x1810)))
)
_NAMED = {"\n": r"\n", "\r": r"\r", "\t": r"\t", "\\": r"\\", '"': r"\""}
#: Right-to-left text is fenced, so that it cannot turn around what stands beside it.
_FENCE, _FENCE_END = "\u2068", "\u2069"
_RIGHT_TO_LEFT = frozenset({"R", "AL", "AN"})
_MOST_MARKS = 2
#: One unit is what must not be cut in two: an escape, or a character with its marks.
_UNIT = re.compile(r"\\x[0-9a-f]{2}|\\u[0-9a-f]{4}|\\U[0-9a-f]{8}|\\.|.", re.DOTALL)

_PLURALS = {"entry": "entries"}
_SECOND_NS = 1_000_000_000
_STEPS = (
    (60 * 60 * 24 * 365, "year"),
    (60 * 60 * 24 * 30, "month"),
    (60 * 60 * 24, "day"),
    (60 * 60, "hour"),
    (60, "minute"),
    (1, "second"),
)
_STEP = 1000
_UNITS = ("kB", "MB", "GB", "TB", "PB", "EB")


@dataclass(frozen=True, slots=True)
class Shown:
    """A text that may have been shortened: ``left_out`` characters are missing in its middle."""

    text: str
    left_out: int = 0


def show_name(name: bytes) -> str:
    """Return *name* on one line, with everything unusual made visible; no two names look alike."""
    return show_text(name.decode("utf-8", "surrogateescape"))


def show_text(text: str) -> str:
    """Return *text* as :func:`show_name` does; stray bytes come as surrogates."""
    shown: list[str] = []
    marks = 0
    last = len(text) - 1
    for index, character in enumerate(text):
        if unicodedata.combining(character) or unicodedata.category(character) in {"Mn", "Me"}:
            marks += 1
        else:
            marks = 0
        at_edge = index in {0, last} or text[index - 1] == " "
        if character == " ":
            shown.append(r"\x20" if at_edge else " ")
        elif marks > _MOST_MARKS or (marks and index == 0):
            shown.append(_escape(character))
        else:
            shown.append(_visible(character))
    result = "".join(shown)
    if any(unicodedata.bidirectional(character) in _RIGHT_TO_LEFT for character in result):
        return f"{_FENCE}{result}{_FENCE_END}"
    return result


def is_unusual(name: bytes) -> bool:
    """Tell whether something in *name* had to be made visible."""
    return show_name(name).strip(_FENCE + _FENCE_END).encode() != name


def show_path(path: bytes, home: bytes) -> str:
    """Return the whole *path*, each name made visible; a leading ``~`` stands for *home*."""
    base = home.rstrip(b"/")
    if base and (path == base or path.startswith(base + b"/")):
        below = path[len(base) :]
        return "~" + "/".join(map(show_name, below.split(b"/")))
    return "/".join(map(show_name, path.split(b"/")))


def shorten(text: str, width: int) -> Shown:
    """Shorten a text that was made visible to about *width* characters, in its middle.

    Beginning and end stay, and the number of characters left out stands between them. No escape is
    cut in two.
    """
    units = _UNIT.findall(text)
    if len(text) <= width or len(units) <= _SHORTEST:
        return Shown(text)
    is_fenced = text.startswith(_FENCE)
    head = units[: max(1, width * 2 // 5)]
    tail = units[-max(1, width * 2 // 5) :]
    left_out = len(units) - len(head) - len(tail)
    if left_out <= 0:
        return Shown(text)
    end = _FENCE_END if is_fenced else ""
    begin = _FENCE if is_fenced else ""
    middle = f"{end}…({number(left_out)} left out)…{begin}"
    return Shown("".join(head) + middle + "".join(tail), left_out)


#: Nothing as short as this is made shorter.
_SHORTEST = 8


def number(value: int) -> str:
    """Return *value* with thousands separated."""
    return f"{value:,}"


def count(value: int, noun: str) -> str:
    """Return ``1 line`` or ``1,204 lines``."""
    if value == 1:
        return f"1 {noun}"
    plural = _PLURALS.get(noun, noun + "s")
    return f"{number(value)} {plural}"


def show_size(size: int) -> str:
    """Return *size* exactly, in bytes."""
    return count(size, "byte")


def show_short_size(size: int) -> str:
    """Return *size* (bytes) in two or three figures, with a decimal unit."""
    if size < _STEP:
        return count(size, "byte")
    value, units = size / _STEP, list(_UNITS)
    while value >= _STEP - 0.05 and len(units) > 1:
        value /= _STEP
        units.pop(0)
    return f"{value:.1f} {units[0]}"


def show_age(now_ns: int, then_ns: int) -> str:
    """Return how long before *now_ns* something was, in the largest unit that fits."""
    seconds = (now_ns - then_ns) // _SECOND_NS
    if seconds < 0:
        return "in the future"
    for length, noun in _STEPS:
        if seconds >= length:
            return f"{count(seconds // length, noun)} ago"
    return "just now"


def _visible(character: str) -> str:
    if character in _NAMED:
        return _NAMED[character]
    if not character.isprintable() or character in _BLANK:
        return _escape(character)
    return character


def _escape(character: str) -> str:
    if "\udc80" <= character <= "\udcff":
        return f"\\x{ord(character) - 0xDC00:02x}"  # a byte that is not UTF-8
    if character.isascii():
        return f"\\x{ord(character):02x}"
    return f"\\u{ord(character):04x}" if character <= "\uffff" else f"\\U{ord(character):08x}"
