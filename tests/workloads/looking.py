"""What stands in a folder, what of it changed, and what of that two runs of a task share."""

import os
import stat
from collections.abc import Container
from pathlib import Path
from typing import NamedTuple

from tests.workloads.tasks import LONG_AGO_NS

__all__ = ["Seen", "changed", "comparable", "look"]


class Seen(NamedTuple):
    """One entry: mode, number of names, time of the last change, content or a link's target.

    A folder has no number of names: file systems do not agree on what that is.
    """

    mode: int
    names: int
    mtime_ns: int
    content: bytes


def look(folder: Path) -> dict[Path, Seen]:
    """Return what is at and below *folder*, without following a link."""
    return {path: _seen(path) for path in (folder, *folder.rglob("*"))}


def _seen(path: Path) -> Seen:
    found = path.lstat()
    if stat.S_ISDIR(found.st_mode):
        return Seen(found.st_mode, 0, found.st_mtime_ns, b"")
    content = b""
    if stat.S_ISLNK(found.st_mode):
        content = os.readlink(bytes(path))
    elif stat.S_ISREG(found.st_mode):
        content = path.read_bytes()
    return Seen(found.st_mode, found.st_nlink, found.st_mtime_ns, content)


def changed(before: dict[Path, Seen], after: dict[Path, Seen]) -> set[Path]:
    """Return every path that came, went or changed; what changes in a folder is no change of it."""
    return {path for path in before | after if _own(before.get(path)) != _own(after.get(path))}


def _own(seen: Seen | None) -> Seen | None:
    is_folder = seen is not None and stat.S_ISDIR(seen.mode)
    return seen._replace(mtime_ns=0) if seen is not None and is_folder else seen


def comparable(
    found: dict[Path, Seen], folder: Path, place: Path, varies: Container[str]
) -> dict[str, tuple[object, ...]]:
    """Return *found*, looked up in *folder*, as another run in another folder would leave it.

    *place* is what the task took *folder* for: its path is replaced in every content. A time counts
    where it was kept from before. The content of the files *varies* does not count.
    """
    shared: dict[str, tuple[object, ...]] = {}
    for path, seen in found.items():
        name = os.fspath(path.relative_to(folder))
        kept = name not in varies
        content = seen.content.replace(bytes(place), b"@") if kept else b""
        time = seen.mtime_ns if seen.mtime_ns <= LONG_AGO_NS else "later"
        shared[name] = (stat.filemode(seen.mode), seen.names, time, content)
    return shared
