"""The inodes of the fixed credential places: a hard link to one of them is the credential itself.

Only files with more than one name are ever looked up here, so the places are read when such a
file is met, and not again while nothing in them changed. The limit: a file that only a name rule
covers (a ``.env`` somewhere) is not known here, and its other names are not hidden.
"""

from __future__ import annotations

import stat
import time
from collections.abc import Callable, Sequence

from lamfuse.tree import syscalls
from lamfuse.tree.syscalls import Stat

__all__ = ["CredentialInodes"]

_MOST_ENTRIES = 20_000
#: The clock of ctime goes in ticks of some milliseconds: what changed so shortly before it was read
#: may change again without another ctime.
_TICK_NS = 100_000_000


class CredentialInodes:
    """Knows which inodes stand in the credential *places* (relative to the descriptor *home*)."""

    def __init__(
        self, home: int, places: Sequence[bytes], *, now_ns: Callable[[], int] = time.time_ns
    ) -> None:
        self._home = home
        self._now_ns = now_ns
        self._settled = False
        self._places = tuple(places)
        self._inodes: set[tuple[int, int]] = set()
        self._too_many = False
        self._stamps: dict[bytes, tuple[int, int, int]] = {}

    def holds(self, seen: Stat) -> bool:
        """Whether the object *seen* is one of them; with too many to know, everything is."""
        if not self._settled or self._stamps != self._look():
            self._read()
        return self._too_many or (seen.dev, seen.ino) in self._inodes

    def _look(self) -> dict[bytes, tuple[int, int, int]]:
        """Return a stamp of every place and every directory below that was read before."""
        stamps = {}
        for place in {*self._places, *self._stamps}:
            try:
                fd = syscalls.open_beneath(self._home, place)
            except OSError:
                continue
            try:
                now = syscalls.fstat(fd)
                stamps[place] = (now.dev, now.ino, now.ctime_ns)
            finally:
                syscalls.close(fd)
        return stamps

    def _read(self) -> None:
        self._inodes.clear()
        self._too_many = False
        self._stamps = {}
        read_at = self._now_ns()
        for place in self._places:
            self._read_place(place)
        newest = max((ctime_ns for _, _, ctime_ns in self._stamps.values()), default=0)
        self._settled = newest < read_at - _TICK_NS

    def _read_place(self, place: bytes) -> None:
        pending = [place]
        while pending:
            path = pending.pop()
            try:
                fd = syscalls.open_beneath(self._home, path)
            except OSError:
                continue
            try:
                now = syscalls.fstat(fd)
                self._stamps[path] = (now.dev, now.ino, now.ctime_ns)
                if not stat.S_ISDIR(now.mode):
                    self._inodes.add((now.dev, now.ino))
                    continue
                for name, kind, ino in syscalls.scan(fd):
                    if len(self._inodes) >= _MOST_ENTRIES:
                        self._too_many = True
                        return
                    if kind == stat.S_IFDIR:
                        pending.append(path + b"/" + name)
                    else:
                        self._inodes.add((now.dev, ino))
            except OSError:
                self._too_many = True
            finally:
                syscalls.close(fd)
