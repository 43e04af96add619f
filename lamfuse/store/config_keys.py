"""Reading values out of a TOML table: the right type, or an error that names file, key and remedy.

Nothing here knows which keys there are: :mod:`lamfuse.store.config` does.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from lamfuse.core.errors import ConfigError

__all__ = ["Table"]

_Value = TypeVar("_Value")

_YEAR_S = 365 * 24 * 3600

_NAMES: tuple[tuple[type, str], ...] = (
    (bool, "true or false"),
    (int, "a number"),
    (float, "a number"),
    (str, "text"),
    (list, "a list"),
    (dict, "a table"),
)


class Table:
    """A TOML table; *prefix* is its own key, empty for the whole file.

    Raises ConfigError for a key that is not one of *known*. Every method returns *default* where
    the key is missing, and raises ConfigError where the value is of another type.
    """

    def __init__(
        self, data: Mapping[str, object], file: str, prefix: str, known: Sequence[str]
    ) -> None:
        self._data = data
        self._file = file
        self._prefix = prefix
        for key in data:
            if key not in known:
                near = difflib.get_close_matches(key, known, n=1)
                hint = f"Did you mean {near[0]}?" if near else f"Known here: {', '.join(known)}."
                raise self.error(key, "there is no such key", hint)

    def __contains__(self, key: str) -> bool:
        return key in self._data

    def key(self, key: str, index: int | None = None) -> str:
        """Return the full name of *key*, as errors give it."""
        if not re.fullmatch(r"[A-Za-z0-9_-]+", key):
            key = repr(key)  # a quoted key may hold anything
        dotted = f"{self._prefix}.{key}" if self._prefix else key
        return dotted if index is None else f"{dotted}[{index}]"

    def error(self, key: str, what: str, remedy: str, index: int | None = None) -> ConfigError:
        """Return the error for *key*, or for entry *index* of its list."""
        return ConfigError(f"{self._file}: {self.key(key, index)}", what, remedy)

    def boolean(self, key: str, *, default: bool) -> bool:
        """Return true or false."""
        value = self._data.get(key, default)
        if isinstance(value, bool):
            return value
        raise self._wrong(key, value, "Write true or false.")

    def seconds(self, key: str, default: float) -> float:
        """Return a number of seconds above 0 and below a year."""
        value = self._data.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong(key, value, f"Write a number of seconds, such as {default:g}.")
        if not 0 < value < _YEAR_S:
            remedy = f"Write a number of seconds above 0, such as {default:g}."
            raise self.error(key, "that is no time to wait", remedy)
        return float(value)

    def choice(self, key: str, choices: Sequence[str], default: str | None = None) -> str:
        """Return one of *choices*; without a default the key must be there."""
        remedy = f"Write one of: {_quoted(choices)}."
        if key not in self._data and default is None:
            raise self.error(key, "it is missing", remedy)
        value = self._data.get(key, default)
        if not isinstance(value, str):
            raise self._wrong(key, value, remedy)
        if value not in choices:
            raise self.error(key, f"{value!r} is not known", _meant(value, choices) or remedy)
        return value

    def texts(self, key: str, default: Sequence[str] | None, example: str) -> tuple[str, ...]:
        """Return a list of texts; without a default the key must be there and not be empty."""
        remedy = f"Write a list of texts, such as {example}."
        if key not in self._data and default is None:
            raise self.error(key, "it is missing", remedy)
        value = self._data.get(key, default)
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise self._wrong(key, value, remedy)
        if not value and default is None:
            raise self.error(key, "it is empty", remedy)
        return tuple(self._text(key, index, item, remedy) for index, item in enumerate(value))

    def choices(
        self, key: str, choices: Sequence[str], default: Sequence[str] | None, example: str
    ) -> tuple[str, ...]:
        """Return a list whose entries are each one of *choices*, none twice."""
        found = self.texts(key, default, example)
        for index, item in enumerate(found):
            if item not in choices:
                remedy = _meant(item, choices) or f"Known: {_quoted(choices)}."
                raise self.error(key, f"{item!r} is not known", remedy, index)
            if item in found[:index]:
                raise self.error(key, f"{item!r} stands there twice", "Remove one.", index)
        return found

    def text_or_list(self, key: str, example: str) -> str | Sequence[object]:
        """Return text or a list of anything; an empty list where the key is missing."""
        value = self._data.get(key, [])
        if isinstance(value, str | list):
            return value
        raise self._wrong(key, value, f"Write a list of texts, such as {example}.")

    def table(self, key: str, known: Sequence[str]) -> Table:
        """Return the table under *key*; an empty one where it is missing."""
        value = self._data.get(key, {})
        if not isinstance(value, dict):
            raise self._wrong(key, value, f"Write it as a table: [{self.key(key)}]")
        return Table(value, self._file, self.key(key), known)

    def tables(
        self, key: str, read: Callable[[Table], _Value], known: Sequence[str]
    ) -> list[_Value]:
        """Return what *read* makes of each table of the list under *key*."""
        value = self._data.get(key, [])
        remedy = f"Write each entry as a table: [[{self.key(key)}]]"
        if not isinstance(value, list):
            raise self._wrong(key, value, remedy)
        result = []
        for index, item in enumerate(value):
            if not isinstance(item, dict):
                raise self._wrong(key, item, remedy, index)
            result.append(read(Table(item, self._file, self.key(key, index), known)))
        return result

    def _text(self, key: str, index: int, item: object, remedy: str) -> str:
        if not isinstance(item, str):
            raise self._wrong(key, item, remedy, index)
        if "\0" in item:
            raise self.error(key, "it holds a NUL byte", "Remove it.", index)
        return item

    def _wrong(self, key: str, value: object, remedy: str, index: int | None = None) -> ConfigError:
        name = next((name for kind, name in _NAMES if isinstance(value, kind)), "a date or time")
        return self.error(key, f"{name} does not belong here", remedy, index)


def _quoted(choices: Sequence[str]) -> str:
    return ", ".join(f'"{choice}"' for choice in choices)


def _meant(value: str, choices: Sequence[str]) -> str:
    near = difflib.get_close_matches(value.lower(), choices, n=1, cutoff=0.7)
    return f'Did you mean "{near[0]}"?' if near else ""
