"""Holds what changed in a folder against the journal: each change allowed, each allowed one there.

It follows the contract of the journal and nothing of the code that writes it.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

__all__ = ["Account"]

#: operation -> the first of its paths that a grant has to reach. A link is judged by its new name,
#: and a rename that replaces a file by a grant is a save: a write of its destination.
_JUDGED = {"link": 1, "replace": 1}


class Account:
    """Follows *journal* from its present end on, for changes in *folder*."""

    def __init__(self, journal: Path, folder: Path) -> None:
        self._journal = journal
        self._folder = folder
        self._start = journal.stat().st_size
        self._allowed: set[str] = set()
        self._granted: list[tuple[str, Path]] = []
        self._opened: set[Path] = set()

    def unexplained(self, paths: Iterable[Path]) -> Iterator[str]:
        """Yield what is wrong: an intent that nothing allowed, a change that none intended."""
        with self._journal.open("rb") as file:
            file.seek(self._start)
            lines = [json.loads(line) for line in file]
        done = {line["intent"] for line in lines if line["kind"] == "effect" and not line["errno"]}
        reached: set[Path] = set()
        moved: set[Path] = set()
        for line in lines:
            if line["kind"] == "answer" and line["outcome"] == "allowed":
                self._allowed.add(line["question"])
                self._granted += [(line["scope"], Path(path)) for path in line["granted"]]
            elif line["kind"] == "intent":
                yield from self._wrong(line)
                if line["seq"] in done:
                    reached.update(map(Path, line["paths"]))
                    if line["operation"] == "rename":
                        moved.update(map(Path, line["paths"]))
        for path in sorted(paths):
            if path not in reached and moved.isdisjoint(path.parents):
                yield f"no intent for {path}"

    def _wrong(self, intent: dict[str, Any]) -> Iterator[str]:
        paths = [Path(path) for path in intent["paths"]]
        if not all(path.is_relative_to(self._folder) for path in paths):
            yield f"outside: {intent}"
        match intent["decision"]:
            case "answer":
                allowed = intent["question"] in self._allowed
            case "grant":
                allowed = all(map(self._reaches, paths[_JUDGED.get(intent["operation"], 0) :]))
            case "handle":
                allowed = all(path in self._opened for path in paths)
            case _:
                allowed = False
        if not allowed:
            yield f"not allowed: {intent}"
        self._opened.update(paths)

    def _reaches(self, path: Path) -> bool:
        return any(
            path == granted or (scope == "folder" and granted in path.parents)
            for scope, granted in self._granted
        )
