"""What the journal allows: a reader that follows it, and says which changes it accounts for.

It knows the contract and nothing of the code: an intent needs an allowed answer of its own, or an
allowed answer of the same turn whose grant reaches its paths.
"""

import json
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Ledger", "Seen", "changed", "look"]

#: What is compared: type and mode, owner, content or target, extended attributes, and which object.
Seen = tuple[object, ...]


def look(folder: Path) -> dict[str, tuple[int, Seen]]:
    """Return (inode number, what can be changed) for everything below *folder*."""
    found: dict[str, tuple[int, Seen]] = {}
    pending = [os.fspath(folder)]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                seen = entry.stat(follow_symlinks=False)
                content: object = None
                names: tuple[str, ...] = ()
                if stat.S_ISDIR(seen.st_mode):
                    pending.append(entry.path)
                elif stat.S_ISLNK(seen.st_mode):
                    content = os.readlink(entry.path)
                elif stat.S_ISREG(seen.st_mode):
                    content = Path(entry.path).read_bytes()
                    names = tuple(os.listxattr(entry.path))
                found[entry.path] = (seen.st_ino, (seen.st_mode, seen.st_uid, content, names))
    return found


def changed(
    before: dict[str, tuple[int, Seen]], after: dict[str, tuple[int, Seen]]
) -> dict[str, set[int]]:
    """Return every path that came, went or changed, with the inodes that stood there."""
    return {
        path: {side[path][0] for side in (before, after) if path in side}
        for path in before.keys() | after.keys()
        if before.get(path) != after.get(path)
    }


@dataclass
class Ledger:
    """Follows the journal *file* from its present end on."""

    file: Path
    offset: int = 0
    answered: dict[str, bool] = field(default_factory=dict)
    granted: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.offset = self.file.stat().st_size

    def new_turn(self) -> None:
        """Forget what was granted: a person began a turn."""
        self.granted.clear()

    def allowed(self) -> list[dict[str, Any]]:
        """Read on; return the intents that were carried out, each of which must be allowed."""
        with self.file.open("rb") as file:
            file.seek(self.offset)
            lines = [json.loads(line) for line in file.read().splitlines()]
            self.offset = file.tell()
        intents = {}
        done = []
        for line in lines:
            if line["kind"] == "answer":
                self._note_answer(line)
            elif line["kind"] == "turn":
                self.granted.clear()
            elif line["kind"] == "intent" and line["decision"] != "refused":
                self._check(line)
                intents[line["seq"]] = line
            elif line["kind"] == "effect" and line["errno"] == 0 and line["intent"] in intents:
                done.append(intents[line["intent"]])
        return done

    def _note_answer(self, line: dict[str, Any]) -> None:
        is_yes = line["outcome"] == "allowed"
        self.answered[line["question"]] = is_yes
        if is_yes:
            self.granted += [(line["scope"], path) for path in line["granted"]]

    def _check(self, intent: dict[str, Any]) -> None:
        if intent["decision"] == "answer":
            assert self.answered[intent["question"]], intent
        elif intent["decision"] == "grant":
            assert all(self._reaches(path) for path in intent["paths"][-1:]), (
                intent,
                self.granted,
            )
        else:
            assert intent["decision"] == "handle", intent

    def _reaches(self, path: str) -> bool:
        return any(
            path == granted or (scope == "folder" and path.startswith(f"{granted}/"))
            for scope, granted in self.granted
        )
