"""The denylist: which names and places are hidden.

Three lists are OR-ed: the defaults, the person's own rules, and lamfuse's own places. Nothing takes
back a default or an own place; a ``!`` line of the person takes back only what the person's own
lines hid. Nothing here looks at the disk: links, and other names of a file, are the tree's
business.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from lamfuse.core import paths
from lamfuse.core.patterns import Pattern, PatternSet, RuleError, find, parse, spell, spellings

__all__ = ["CREDENTIAL_PLACES", "DEFAULT_DENY", "DenyRule", "Denylist", "RuleError"]

#: Fixed places of credentials, relative to home; what is in them is denied under every name it has.
CREDENTIAL_PLACES: tuple[bytes, ...] = (
    b".ssh",
    b".gnupg",
    b".aws",
    b".config/gh",
    b".docker/config.json",
    b".netrc",
)

#: Credential stores by place and by name, in gitignore syntax from home.
DEFAULT_DENY: tuple[str, ...] = (
    *(f"/{place.decode()}" for place in CREDENTIAL_PLACES),
    ".env",
    ".env.*",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "credentials.json",
    "*.pem",
    "*.key",
    "*.p12",
)

#: Names whose candidates are remembered; the caller chooses the names, so there must be a bound.
_REMEMBERED = 1 << 16


@dataclass(frozen=True, slots=True)
class DenyRule:
    """Why something is hidden: the line, and whose it is (``own``: lamfuse's own places)."""

    text: str
    kind: Literal["default", "person", "own"]


_OWN = DenyRule("lamfuse's own places", "own")

_Candidates = tuple[tuple[Pattern, ...], tuple[Pattern, ...], bool]
"""The patterns that a name can match, default and person's, and whether it can be an own place."""


class Denylist:
    """What is hidden below *home* and below roots elsewhere.

    *person* are gitignore lines from *home*. *own* are absolute places hidden with all that is
    below, except *own_except* and what is below that; of nested ones the innermost counts. Raises
    RuleError. Outside *home* only rules that name no place apply.
    """

    def __init__(
        self,
        home: bytes,
        person: Sequence[str] = (),
        own: Sequence[bytes] = (),
        own_except: Sequence[bytes] = (),
    ) -> None:
        self._home = home
        self._default = PatternSet(parse(DEFAULT_DENY, home))
        self._person = PatternSet(parse(person, home))
        self._own = _OwnPlaces(own, own_except)
        self._candidates: dict[bytes, _Candidates | None] = {}

    def rule_for(self, path: bytes, *, is_dir: bool | None) -> DenyRule | None:
        """Return the rule that hides *path* or a directory above it, or None.

        *is_dir* None: it may be either. Total: any bytes are read as an absolute path by their
        text.
        """
        path = paths.normalise(path)
        if self._own.hides(path):
            return _OWN
        place = self._home if paths.contains(self._home, path) else b"/"
        names = paths.components(paths.relative(place, path))
        for index, name in enumerate(names):
            kind = is_dir if index == len(names) - 1 else True
            candidates = self._candidates_for(name)
            if candidates is not None:
                rule = self._match(candidates, place, name, is_dir=kind)
                if rule is not None:
                    return rule
            place = paths.join(place, name)
        return None

    def rule_for_name(self, parent: bytes, name: bytes, *, is_dir: bool | None) -> DenyRule | None:
        """Return the rule that hides the entry *name* of *parent*, a directory known to be visible.

        This runs for each name that is looked up or listed: most names have no candidate at all.
        """
        if name in {b".", b".."} or b"/" in name:
            return self.rule_for(parent + b"/" + name, is_dir=is_dir)
        try:
            candidates = self._candidates[name]
        except KeyError:
            candidates = self._candidates_for(name)
        if candidates is not None:
            if candidates[2] and self._own.hides(paths.join(parent, name)):
                return _OWN
            rule = self._match(candidates, parent, name, is_dir=is_dir)
            if rule is not None:
                return rule
        if parent in self._own.ways and self._own.hides(paths.join(parent, name)):
            return _OWN
        return None

    def _candidates_for(self, name: bytes) -> _Candidates | None:
        """Return what can match an entry *name*, or None when nothing can; remembered by name."""
        if name in self._candidates:
            return self._candidates[name]
        spelled = spell(name)
        default, person = self._default.candidates(spelled), self._person.candidates(spelled)
        is_own = not self._own.names.isdisjoint(spelled)
        found = (default, person, is_own) if default or person or is_own else None
        if len(self._candidates) >= _REMEMBERED:
            self._candidates.clear()
        self._candidates[name] = found
        return found

    def _match(
        self, candidates: _Candidates, parent: bytes, name: bytes, *, is_dir: bool | None
    ) -> DenyRule | None:
        path = paths.join(parent, name)
        at_home = paths.contains(self._home, path)
        names = paths.components(paths.relative(self._home, path) if at_home else path)
        default, person, _ = candidates
        spelled = spellings(names)
        found = find(default, spelled, is_dir=is_dir, anchored=at_home)
        if found is not None:
            return DenyRule(found.text, "default")
        found = find(person, spelled, is_dir=is_dir, anchored=at_home)
        return DenyRule(found.text, "person") if found is not None else None


class _OwnPlaces:
    """Places hidden with all that is below, and exceptions; the innermost of both counts.

    Places are recognised in every spelling, exceptions only exactly. The way from a hidden place
    down to an exception stays visible, but not the hidden place itself. ``names`` are the last
    names of the places; ``ways`` are directories that can be visible although a place above them is
    hidden. Elsewhere an entry of a visible directory is hidden only by its name.
    """

    def __init__(self, places: Sequence[bytes], exceptions: Sequence[bytes]) -> None:
        self._places = [
            (len(names), names)
            for place in places
            for _, names in spellings(paths.components(paths.normalise(place)))
        ]
        self._exceptions = tuple(map(paths.normalise, exceptions))
        self.names = frozenset(names[-1] for _, names in self._places if names)
        self.ways = frozenset(
            way
            for exception in self._exceptions
            for way in paths.ancestors(b"/", exception)
            if self._depth(way) is not None
        )

    def hides(self, path: bytes) -> bool:
        """Tell whether *path* is hidden as, or below, one of the places."""
        place = self._depth(path) if self._places else None
        if place is None:
            return False
        for exception in self._exceptions:
            if paths.contains(exception, path) and paths.depth(b"/", exception) > place:
                return False
            if paths.contains(path, exception) and paths.depth(b"/", path) > place:
                return False
        return True

    def _depth(self, path: bytes) -> int | None:
        """Return how deep the innermost place is that holds *path*, or None."""
        depths = [
            depth
            for _, names in spellings(paths.components(path))
            for depth, place in self._places
            if names[:depth] == place
        ]
        return max(depths, default=None)
