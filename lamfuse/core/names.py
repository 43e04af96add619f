"""File names, sizes and times as a person sees them.

The one place that renders a name: an approval request is an attack surface, and its names are
chosen by the agent. What is shown is one line of printable text, and two different names never
give the same text unless it says how much was left out. Letters of two scripts that look alike are
left as they are: a person's own names have them. Nothing here knows what is asked about.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = [
    "Shown",
    "count",
    "number",
    "shorten",
    "show_age",
    "show_name",
    "show_path",
    "show_size",
    "show_text",
]

#: Printable to Unicode, and yet nothing is to be seen: fillers, blanks, joiners, selectors.
_BLANK = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u2800\u2d7f\u3164\uffa0\ufffc\U00013441\U00013442\U00016fe4\U0001d159"
    + "".join(map(chr, range(0x180B, 0x1810)))
    + "".join(map(chr, range(0xFE00, 0xFE10)))
    + "".join(map(chr, range(0xE0100, 0xE01F0)))
)
#: What would pass for our own text: the sign of what was left out, slashes that part no path, and
#: backslashes that escape nothing.
_OURS = frozenset(
    "\u2026\u22ef"
    "\u2044\u2215\u2571\u27cb\u29f8\uff0f\U0001f67c"
    "\u2216\u2572\u27cd\u29f5\u29f9\ufe68\uff3c\U0001f67d"
)
_NAMED = {"\n": r"\n", "\r": r"\r", "\t": r"\t", "\\": r"\\", '"': r"\""}
#: Right-to-left text is fenced, so that it cannot turn around what stands beside it.
_FENCE, _FENCE_END = "\u2068", "\u2069"
_RIGHT_TO_LEFT = frozenset({"R", "AL", "AN"})
_MOST_MARKS = 2
#: What a byte that is not UTF-8 is decoded to.
_STRAY = range(0xDC80, 0xDD00)
#: The length of the escapes that are longer than two characters, by what follows the backslash.
_ESCAPE_LENGTHS = {"x": 4, "u": 6, "U": 10}

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


@dataclass(frozen=True, slots=True)
class Shown:
    """A text that may have been shortened: ``left_out`` characters are missing in its middle."""

    text: str
    left_out: int = 0


def show_name(name: bytes) -> str:
    """Return *name* on one line, with everything unusual made visible; no two give the same text.

    A single tilde is escaped: bare, it always stands for home.
    """
    return _escape("~") if name == b"~" else show_text(name.decode("utf-8", "surrogateescape"))


def show_text(text: str) -> str:
    """Return *text* as :func:`show_name` does; stray bytes come as surrogates."""
    shown: list[str] = []
    marks_left = 0  # how many marks may stand on what is before them
    last = len(text) - 1
    for index, character in enumerate(text):
        if _is_mark(character):
            visible = _visible(character) if marks_left else _escape(character)
            marks_left = marks_left - 1 if visible == character else 0
        else:
            # One space between words is a space; any other could go unseen.
            hides = character == " " and (index in {0, last} or text[index - 1] == " ")
            visible = _escape(character) if hides else _visible(character)
            marks_left = _MOST_MARKS if visible == character and _can_bear(character) else 0
        shown.append(visible)
    result = "".join(shown)
    if any(unicodedata.bidirectional(character) in _RIGHT_TO_LEFT for character in result):
        return f"{_FENCE}{result}{_FENCE_END}"
    return result


def show_path(path: bytes, home: bytes) -> str:
    """Return the whole *path*, each name made visible; a leading ``~`` stands for *home*."""
    base = home.rstrip(b"/")
    if base and (path == base or path.startswith(base + b"/")):
        return "~" + _show_names(path[len(base) :])
    if path.startswith(b"~"):  # a relative path, as a link may have it: its tilde is not ours
        return _escape("~") + _show_names(path[1:])
    return _show_names(path)


def shorten(text: str, width: int) -> Shown:
    """Shorten a text that was made visible to *width* characters, in its middle.

    Beginning and end stay, and the number of characters left out stands between them. No escape is
    cut in two, and every fence is closed. Where *width* is too small for that the text stays whole.
    """
    if _width(text) <= width:
        return Shown(text)
    units = _units(text)
    room = width - len(_gap(len(units)))
    head = _fitting(units, room - room // 2)
    tail = len(units) - _fitting(reversed(units), room // 2)
    begin, middle, end = ("".join(part) for part in (units[:head], units[head:tail], units[tail:]))
    if not _width(begin) or not _width(end):
        return Shown(text)
    left_out = sum(map(bool, map(_width, units[head:tail])))
    closing = _FENCE_END if _is_open(begin) else ""
    opening = _FENCE if _is_open(begin + middle) else ""
    return Shown(begin + closing + _gap(left_out) + opening + end, left_out)


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


def show_age(now_ns: int, then_ns: int) -> str:
    """Return how long before *now_ns* something was, in the largest unit that fits."""
    seconds = (now_ns - then_ns) // _SECOND_NS
    if seconds < 0:
        return "in the future"
    for length, noun in _STEPS:
        if seconds >= length:
            return f"{count(seconds // length, noun)} ago"
    return "just now"


def _show_names(path: bytes) -> str:
    return "/".join(map(show_name, path.split(b"/")))


def _is_mark(character: str) -> bool:
    return bool(unicodedata.combining(character)) or unicodedata.category(character) in {"Mn", "Me"}


def _can_bear(character: str) -> bool:
    """Tell whether marks on *character* are writing: letters, digits, and vowels with a width."""
    return character.isalnum() or unicodedata.category(character) == "Mc"


def _visible(character: str) -> str:
    if character in _NAMED:
        return _NAMED[character]
    if not character.isprintable() or character in _BLANK or character in _OURS:
        return _escape(character)
    return character


def _escape(character: str) -> str:
    code = ord(character)
    if code in _STRAY:
        return f"\\x{code - 0xDC00:02x}"
    if character.isascii():
        return f"\\x{code:02x}"
    digits = f"{code:04x}"
    return f"\\u{digits}" if len(digits) == len("ffff") else f"\\U{digits:0>8}"


def _units(text: str) -> list[str]:
    """Cut *text*, made visible, into what must stay whole: escapes, letters with their marks."""
    units: list[str] = []
    index = 0
    while index < len(text):
        length = 1
        if text[index] == "\\":
            length = _ESCAPE_LENGTHS.get(text[index + 1 : index + 2], 2)
        elif units and _is_mark(text[index]):
            units[-1] += text[index]
            index += 1
            continue
        units.append(text[index : index + length])
        index += length
    return units


def _width(text: str) -> int:
    """Return how many characters of *text* take up room."""
    return sum(character not in {_FENCE, _FENCE_END} for character in text)


def _fitting(units: Iterable[str], room: int) -> int:
    """Return how many of the first *units* fit into *room* characters."""
    fitting = 0
    for unit in units:
        room -= _width(unit)
        if room < 0:
            break
        fitting += 1
    return fitting


def _is_open(text: str) -> bool:
    return text.count(_FENCE) > text.count(_FENCE_END)


def _gap(left_out: int) -> str:
    return f"…({number(left_out)} left out)…"
