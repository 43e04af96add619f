"""Everything that is wrong with a configuration, not only the first of it.

Reading stops at the first error, as it should: a wrong configuration is never used. To find the
rest, what was wrong is left out and the remainder is read again, by the same code.
"""

from __future__ import annotations

import ast
import copy
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from lamfuse.core.errors import ConfigError
from lamfuse.store import config
from lamfuse.store.config import DEFAULT, DEFAULT_LINK_OK, Config
from lamfuse.store.config_roots import check_roots
from lamfuse.store.dirs import Dirs

__all__ = ["Found", "find", "find_in_places"]

#: Nobody mends more at once; it also ends what would not end.
_MOST = 200

_STEP = re.compile(
    r"""\.?([A-Za-z0-9_-]+) | \.?('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*") | \[(\d+)\]""", re.VERBOSE
)

#: What a rule needs, so that the rest of it can be read.
_HARMLESS = {"paths": ["/nowhere"], "operations": ["create"], "answer": "decline"}

_Steps = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """What a look at a file found: the errors in it, and the configuration that is left.

    With errors, ``config`` is none to be used: it lacks what was wrong, and all standing rules.
    """

    config: Config
    errors: tuple[ConfigError, ...] = ()


def find(path: bytes, home: bytes, *, must_exist: bool = False) -> Found:
    """Return all that is wrong in the file at *path*; a missing one has nothing wrong."""
    try:
        data: dict[str, Any] = copy.deepcopy(config.read(path, must_exist=must_exist))
    except ConfigError as error:
        return Found(config.build({}, path, home), (error,))
    rest = _Rest(data, os.fsdecode(path))
    errors: list[ConfigError] = []
    while len(errors) < _MOST:
        try:
            built = config.build(data, path, home)
        except ConfigError as error:
            errors.append(rest.as_written(error))
            if rest.leave_out(error):
                continue
            break
        if errors:
            built = replace(built, approval=replace(built.approval, rules=()))
        return Found(built, tuple(errors))
    return Found(config.build({}, path, home), tuple(errors))


def find_in_places(loaded: Config, mountpoint: bytes, dirs: Dirs) -> Iterator[ConfigError]:
    """Yield all that does not fit the disk: each root, each place of links, the program.

    This looks at paths, so it may wait for a file system.
    """
    seen: set[str] = set()
    for part in _parts(loaded):
        try:
            check_roots(part, mountpoint, dirs)
        except ConfigError as error:
            if str(error) not in seen:
                seen.add(str(error))
                yield error


def _parts(loaded: Config) -> Iterator[Config]:
    """Yield configurations with one thing each that can be wrong, the least one first."""
    own = config.default_write_roots(loaded.home)
    least = replace(
        loaded,
        read_roots=(),
        write_roots=own,
        link_ok=DEFAULT_LINK_OK,
        approval=replace(loaded.approval, program=()),
        origin={**loaded.origin, "link_ok": DEFAULT},
    )
    yield least
    yield from (replace(least, read_roots=(root,)) for root in loaded.read_roots)
    yield from (
        replace(least, write_roots=(*own, root)) for root in loaded.write_roots if root not in own
    )
    yield from (replace(least, link_ok=(place,), origin=loaded.origin) for place in loaded.link_ok)
    if loaded.approval.program:
        asking = replace(least, approval=loaded.approval)
        yield from (replace(asking, write_roots=(root,)) for root in loaded.write_roots)


class _Rest:
    """What is still read of a file: parts are left out of *data*, and their places remembered."""

    def __init__(self, data: dict[str, Any], file: str) -> None:
        self._data = data
        self._file = file
        self._places: dict[_Steps, list[int]] = {}

    def as_written(self, error: ConfigError) -> ConfigError:
        """Return *error* with the place that the entry has in the file."""
        steps = self._steps(error)
        if not steps or not isinstance(steps[-1], int):
            return error
        places = self._places.get(steps[:-1])
        if places is None:
            return error
        where = f"{error.where.rpartition('[')[0]}[{places[steps[-1]]}]"
        return ConfigError(where, error.what, error.remedy)

    def leave_out(self, error: ConfigError) -> bool:
        """Leave out of the data what *error* speaks of; False where that cannot be told."""
        steps = self._steps(error)
        try:
            match steps:
                case ("approval", "program", *_):
                    self._leave_program()
                case ("approval", "channels", *_):
                    self._leave_channels()
                case ("approval", "shown_timeout_s"):
                    # It may be the default that is longer than the total.
                    self._data["approval"].pop("shown_timeout_s", None)
                    self._data["approval"].pop("total_timeout_s", None)
                case ("approval", "rule", int(index), str(key)) if key in _HARMLESS:
                    self._data["approval"]["rule"][index][key] = copy.copy(_HARMLESS[key])
                case (*above, int(index)) if above:
                    self._leave_entry(tuple(above), index)
                case (*above, last):
                    del self._at(tuple(above))[last]
                case _:
                    return False
        except (KeyError, IndexError, TypeError):
            return False
        return True

    def _steps(self, error: ConfigError) -> _Steps:
        """Return the way to what *error* speaks of: keys, and indices of lists."""
        key = error.where.removeprefix(f"{self._file}: ")
        if key == error.where:
            return ()
        steps: list[str | int] = []
        for name, quoted, index in _STEP.findall(key):
            if index:
                steps.append(int(index))
            else:
                steps.append(str(ast.literal_eval(quoted)) if quoted else name)
        return tuple(steps)

    def _at(self, steps: _Steps) -> Any:
        found: Any = self._data
        for step in steps:
            found = found[step]
        return found

    def _leave_entry(self, above: _Steps, index: int) -> None:
        entries = self._at(above)
        places = self._places.setdefault(above, list(range(len(entries))))
        if len(entries) == 1 and above[-1] in _HARMLESS:
            entries[:] = _HARMLESS[str(above[-1])]
            return
        del entries[index]
        del places[index]

    def _leave_program(self) -> None:
        asking = self._data["approval"]
        asking.pop("program", None)
        if "program" in asking.get("channels", ()):
            asking["channels"] = [name for name in asking["channels"] if name != "program"]

    def _leave_channels(self) -> None:
        """Leave the channels out, and still look at the program."""
        asking = self._data["approval"]
        del asking["channels"]
        if "program" in asking:
            asking["channels"] = ["program"]
