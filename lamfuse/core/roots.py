"""The roots: where reading reaches beyond home, and where a change can be asked for.

Roots given here are real paths: a root that is a link must be resolved before. Nothing here looks
at the disk, so a root that does not exist yet is a root like any other.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Sequence
from dataclasses import dataclass

from lamfuse.core import paths

__all__ = ["DEFAULT_WRITE_ROOTS", "Area", "RootList", "Roots", "split_roots"]

#: Write roots that are always there, relative to home.
DEFAULT_WRITE_ROOTS: tuple[bytes, ...] = (
    b"Downloads",
    b"Documents/Lam Agent",
    b".local/share/lamfuse/agent",
)

_SEPARATORS = re.compile(r"[\n\r,]")


@dataclass(frozen=True, slots=True)
class RootList:
    """The roots that an entry list names, each once, and what was wrong with the other entries."""

    paths: tuple[bytes, ...]
    problems: tuple[str, ...]


def split_roots(value: str | Sequence[object], home: bytes) -> RootList:
    """Return the roots that *value* writes.

    *value* is text, one root a line or comma separated, or a list of entries. Entries are trimmed,
    ``~`` is *home*, empty ones are dropped; one that names no absolute path becomes a problem in
    words and disables no other.
    """
    entries = _SEPARATORS.split(value) if isinstance(value, str) else value
    found: list[bytes] = []
    problems: list[str] = []
    for entry in entries:
        text = entry.strip() if isinstance(entry, str) else entry
        if text == "":
            continue
        try:
            path = _root(text, home)
        except paths.PathError as error:
            problems.append(f"{text!r} is not used as a root: {error.reason}")
        else:
            found.append(path)
    return RootList(tuple(dict.fromkeys(found)), tuple(problems))


def _root(entry: object, home: bytes) -> bytes:
    if isinstance(entry, str) and not entry.startswith(("/", "~")):
        raise paths.PathError("it is not absolute (start it with / or ~/)")
    return paths.expand(entry, home)


class Area(enum.Enum):
    """What the roots say about a place; a hidden one is hidden in any of them."""

    OUTSIDE = "outside"
    READ = "read"
    WRITE = "write"


class Roots:
    """Home, more *read* roots, and the *write* roots; all absolute real paths.

    ``home``, ``read`` and ``write`` are as given, ``all`` is every one of them, each once, and
    ``extra`` those that lie outside home.
    """

    def __init__(
        self, home: bytes, read: Sequence[bytes] = (), write: Sequence[bytes] = ()
    ) -> None:
        self.home = paths.normalise(home)
        self.read = _each_once(read)
        self.write = _each_once(write)
        self.all = _each_once([self.home, *self.read, *self.write])
        self.extra = tuple(root for root in self.all if not paths.contains(self.home, root))

    def area(self, path: bytes) -> Area:
        """Return what may be done at *path*: a change (if asked for), reading, or nothing."""
        if self.write_root_of(path) is not None:
            return Area.WRITE
        return Area.OUTSIDE if self.root_of(path) is None else Area.READ

    def root_of(self, path: bytes) -> bytes | None:
        """Return the innermost root, or home, that contains *path*."""
        return _innermost(self.all, path)

    def write_root_of(self, path: bytes) -> bytes | None:
        """Return the innermost write root that contains *path*."""
        return _innermost(self.write, path)

    def is_root(self, path: bytes) -> bool:
        """Tell whether *path* is home or a configured root itself."""
        return path in self.all

    def leads_to_write_root(self, path: bytes) -> bool:
        """Tell whether *path*, below home, leads to a write root (and may be missing)."""
        if path == self.home or not paths.contains(self.home, path):
            return False
        return any(root != path and paths.contains(path, root) for root in self.write)


def _each_once(roots: Sequence[bytes]) -> tuple[bytes, ...]:
    return tuple(dict.fromkeys(map(paths.normalise, roots)))


def _innermost(roots: Sequence[bytes], path: bytes) -> bytes | None:
    return max((root for root in roots if paths.contains(root, path)), key=len, default=None)
