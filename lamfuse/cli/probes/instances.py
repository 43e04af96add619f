"""Files that a deny rule names, made from its pattern; and files that no rule names.

What a pattern means is asked of pathspec, not of lamfuse's own matching: that is what is put to the
test. Where pathspec does not agree that a name is hidden, that name proves nothing and is not used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pathspec import GitIgnoreSpec

from lamfuse.core.rules import DEFAULT_DENY

__all__ = ["Instance", "Plan", "make_plan"]

#: Stands for what a glob leaves open; the second where the first is taken back by a ``!`` line.
_FILLINGS: Final = ("x", "probe-7", "Q")
_DEEP: Final = "lamfuse-probe/deep"
_LOUD: Final = "lamfuse-probe/loud"
#: Default rules that name a folder; every other one that names a place names a file.
_FOLDERS: Final = ("/.ssh", "/.gnupg", "/.aws", "/.config/gh")
#: Beside the rules, and no credential: each has to be seen unless a rule of the person names it.
_CONTROLS: Final = (
    "lamfuse-control.txt", "lamfuse-probe/control.md", "lamfuse-probe/deep/control.bin", ".envrc",
    "id_rsa.pub", "keyring.txt",
)  # fmt: skip
_LONGEST_NAME: Final = 255
_GLOB: Final = re.compile(r"\\(.)|(\*+)|(\?)|\[(!|\^)?(\]?[^\]]*)\]", re.DOTALL)

Kind = Literal["default", "person"]


@dataclass(frozen=True, slots=True)
class Instance:
    """A *path* from home that *rule* names, and whether it is to be made as a directory."""

    rule: str
    kind: Kind
    path: bytes
    is_dir: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """What is put to the test: names to be hidden, names to be seen, and what cannot be tried.

    ``untried`` are lines of the person of which no name could be made. ``idle`` are ``!`` lines
    that take back nothing, since a default rule hides what they name.
    """

    hidden: tuple[Instance, ...]
    controls: tuple[bytes, ...]
    untried: tuple[str, ...]
    idle: tuple[str, ...]


def make_plan(person: Sequence[str]) -> Plan:
    """Return the names that prove the default rules and the lines of *person*."""
    defaults = GitIgnoreSpec.from_lines(DEFAULT_DENY)
    theirs = GitIgnoreSpec.from_lines([_from_home(line) for line in person])
    hidden = [
        instance
        for rule in DEFAULT_DENY
        for instance in _instances(rule, rule, "default", defaults)
    ]
    untried, idle = [], []
    for line in person:
        text = _from_home(line)
        if not text or text.startswith("#"):
            continue
        if text.startswith("!"):
            named = _candidates(text[1:])
            if named and all(_matches(defaults, path, text.endswith("/")) for path in named):
                idle.append(line)
            continue
        found = list(_instances(text, line, "person", theirs))
        hidden += found
        if not found:
            untried.append(line)
    return Plan(tuple(hidden), _controls(person), tuple(untried), tuple(idle))


def _from_home(line: str) -> str:
    """Return *line* as pathspec reads it: without blanks at its end, a tilde as the home."""
    text = line if line.endswith("\\ ") else line.rstrip()
    sign = "!" if text.startswith("!") else ""
    body = text[len(sign) :]
    return sign + (body[1:] if body == "~" or body.startswith("~/") else body)


def _instances(line: str, written: str, kind: Kind, spec: GitIgnoreSpec) -> Iterator[Instance]:
    """Yield one name for each way to come upon what *line* names, which was *written* so."""
    is_dir = line.endswith("/") or line in _FOLDERS
    body = line.rstrip("/")
    is_name = "/" not in body
    found = next((path for path in _candidates(body) if _matches(spec, path, is_dir)), None)
    if found is None:
        return
    spelled = [found]
    if is_name:
        if _matches(spec, f"{_DEEP}/{found}", is_dir):
            spelled.append(f"{_DEEP}/{found}")
        if kind == "default" and found.upper() != found:
            spelled.append(f"{_LOUD}/{found.upper()}")
    for path in spelled:
        yield Instance(written, kind, path.encode("utf-8", "surrogateescape"), is_dir)


def _candidates(body: str) -> list[str]:
    """Return paths from home that *body*, a pattern without sign, may name; best first."""
    segments = [segment for segment in body.strip("/").split("/") if segment]
    found: list[str] = []
    for filling in _FILLINGS:
        names = [_fill(segment, filling) for segment in segments if segment != "**"]
        if segments and segments[-1] == "**":
            names.append(filling)
        path = "/".join(names)
        fits = all(0 < len(name.encode("utf-8", "surrogateescape")) <= _LONGEST_NAME and
                   name not in {".", ".."} for name in names)  # fmt: skip
        if names and fits and path not in found:
            found.append(path)
    return found


def _fill(segment: str, filling: str) -> str:
    """Return a name that the glob *segment* may match."""

    def fill(found: re.Match[str]) -> str:
        escaped, stars, one, negated, characters = found.groups()
        if escaped:
            return str(escaped)
        if stars:
            return filling
        if one:
            return filling[0]
        if negated:
            return next((c for c in f"{filling[0]}xyz019-_" if c not in characters), "x")
        return str(characters[0])

    return _GLOB.sub(fill, segment)


def _matches(spec: GitIgnoreSpec, path: str, is_dir: bool) -> bool:  # noqa: FBT001 - one flag, private
    return spec.match_file(path + "/" if is_dir else path)


def _controls(person: Sequence[str]) -> tuple[bytes, ...]:
    """Return the names that no line can hide in any spelling, whatever takes it back."""
    lines = [line for line in map(_from_home, person) if not line.startswith("!")]
    loose = GitIgnoreSpec.from_lines([*DEFAULT_DENY, *lines, *map(str.lower, lines)])
    return tuple(name.encode() for name in _CONTROLS if not loose.match_file(name))
