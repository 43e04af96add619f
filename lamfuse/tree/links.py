"""What a symbolic link may say inside the view.

The kernel of the caller follows what ``readlink`` returns, from the caller's own root. So a
target is returned only when following it cannot leave the view: unchanged, or as an equivalent
relative path; for everything else there is no answer. A target is judged component by component,
and the judging stops at the first hidden name and at the first step outside, which is never
looked at.

Nothing here decides what is hidden: that comes in as a function.
"""

from __future__ import annotations

import errno
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lamfuse.core import paths
from lamfuse.tree import syscalls
from lamfuse.tree.survey import leading_climb

__all__ = ["Anchor", "Links"]

_MOST_LINKS = 40


@dataclass(frozen=True, slots=True)
class Anchor:
    """A directory that the view shows: its real path, its descriptor, and where it is in the view.

    ``aliases`` are other absolute spellings of the same place (a home directory behind a link).
    ``shown`` is its path below the root of the view, empty for home.
    """

    path: bytes
    fd: int
    shown: bytes = b""
    aliases: tuple[bytes, ...] = ()


@dataclass(slots=True)
class _Walk:
    """Where a walk stands: at which components below which anchor, and what is still to do."""

    anchor: Anchor
    at: list[bytes]
    todo: list[bytes]
    followed: int = 0


class Links:
    """Judges link targets. *hides* tells whether a real path is hidden (``is_dir`` None.

    Unknown).
    """

    def __init__(
        self,
        anchors: Sequence[Anchor],
        link_ok: Sequence[bytes],
        hides: Callable[[bytes, bool | None], bool],
    ) -> None:
        # The innermost place first: an extra root may lie below another one.
        self._anchors = sorted(anchors, key=lambda anchor: -len(anchor.path))
        self._link_ok = tuple(link_ok)
        self._hides = hides

    def judge(self, directory: bytes, target: bytes) -> bytes | None:
        """Return what a link with *target* in the real *directory* says in the view.

        None: no answer.
        """
        anchor = self._anchor_of(directory)
        if anchor is None:
            return None
        depth = paths.depth(anchor.path, directory)
        if not target.startswith(b"/"):
            climb = leading_climb(target)
            if climb <= depth and b".." not in _named(target)[climb:]:
                return target
        elif self._is_ok_outside(target):
            return target
        landing = self._land(anchor, directory, target)
        return None if landing is None else _relative(anchor, directory, *landing)

    def _is_ok_outside(self, target: bytes) -> bool:
        components = target.split(b"/")
        if b".." in components:
            return False
        path = paths.normalise(target)
        if any(
            paths.contains(place, path)
            for anchor in self._anchors
            for place in (anchor.path, *anchor.aliases)
        ):
            return False
        return any(paths.contains(place, path) for place in self._link_ok)

    def _anchor_of(self, path: bytes) -> Anchor | None:
        return next((a for a in self._anchors if paths.contains(a.path, path)), None)

    def _land(
        self, anchor: Anchor, directory: bytes, target: bytes
    ) -> tuple[Anchor, list[bytes]] | None:
        """Walk *target* inside the view, and return the anchor it lands in and what follows it.

        None when it leaves the view, meets a hidden name, or never ends.
        """
        here = list(paths.components(paths.relative(anchor.path, directory)))
        walk = _Walk(anchor, here, _named(target))
        if target.startswith(b"/") and not self._enter(walk):
            return None
        while walk.todo:
            if not self._step(walk):
                return None
        return walk.anchor, walk.at

    def _enter(self, walk: _Walk) -> bool:
        """Begin at the anchor that an absolute path leads into; False: it leads to none."""
        for anchor in self._anchors:
            for place in (anchor.path, *anchor.aliases):
                known = list(paths.components(place))
                if walk.todo[: len(known)] == known:
                    walk.anchor, walk.at, walk.todo = anchor, [], walk.todo[len(known) :]
                    return True
        return False

    def _step(self, walk: _Walk) -> bool:
        """Go one component further; False where there is no answer."""
        name = walk.todo.pop(0)
        if name == b"..":
            if not walk.at:
                return False
            walk.at.pop()
            return True
        walk.at.append(name)
        kind, text = self._look(walk.anchor, walk.at)
        if kind == stat.S_IFLNK:
            return self._follow(walk, text)
        if kind is None:
            return self._dangle(walk)
        return kind == stat.S_IFDIR or (kind != _HIDDEN and not walk.todo)

    def _follow(self, walk: _Walk, text: bytes) -> bool:
        walk.followed += 1
        if walk.followed > _MOST_LINKS:
            return False
        walk.at.pop()
        walk.todo = _named(text) + walk.todo
        return not text.startswith(b"/") or self._enter(walk)

    def _dangle(self, walk: _Walk) -> bool:
        """Take the rest as it is written: nothing stands there that could lead elsewhere."""
        walk.at += walk.todo
        is_safe = b".." not in walk.todo and not self._is_hidden(walk.anchor, walk.at, None)
        walk.todo = []
        return is_safe

    def _is_hidden(self, anchor: Anchor, at: list[bytes], is_dir: bool | None) -> bool:  # noqa: FBT001 - tri-state as in the denylist
        return self._hides(paths.join(anchor.path, b"/".join(at)), is_dir)

    def _look(self, anchor: Anchor, at: list[bytes]) -> tuple[int | None, bytes]:
        """Return the kind of *at* below *anchor* (None: nothing there) and the text of a link."""
        if self._is_hidden(anchor, at, None):
            return _HIDDEN, b""
        try:
            fd = syscalls.open_beneath(anchor.fd, b"/".join(at))
        except OSError as error:
            if error.errno in {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG}:
                return None, b""
            return _HIDDEN, b""
        try:
            mode = syscalls.fstat(fd).mode
            if stat.S_ISLNK(mode):
                return stat.S_IFLNK, syscalls.read_link(fd)
            return stat.S_IFMT(mode), b""
        finally:
            syscalls.close(fd)


_HIDDEN = -1


def _named(target: bytes) -> list[bytes]:
    """Split a path into the components that mean something."""
    return [component for component in target.split(b"/") if component not in {b"", b"."}]


def _relative(anchor: Anchor, directory: bytes, landing: Anchor, at: list[bytes]) -> bytes:
    """Return the relative path in the view from *directory* to the place that was landed on."""
    here = [
        *paths.components(anchor.shown),
        *paths.components(paths.relative(anchor.path, directory)),
    ]
    there = [*paths.components(landing.shown), *at]
    return b"/".join([b".."] * len(here) + there) or b"."
