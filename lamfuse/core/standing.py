"""Standing rules: permissions and refusals that the person wrote into the configuration.

An allow is read narrowly: exactly as the path is spelled, and without what lies below unless the
pattern says ``/**``. A decline is read widely: in every spelling, and with all that lies below.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lamfuse.core import paths
from lamfuse.core.operations import Verb
from lamfuse.core.patterns import Pattern, RuleError, decode, spellings, trim

__all__ = ["StandingRule", "StandingRules"]


@dataclass(frozen=True, slots=True)
class StandingRule:
    """What the person answers in advance for *verbs* at the places that *patterns* name.

    A pattern is absolute or starts with ``~/`` (then *home* must be given), in gitignore syntax:
    ``x`` is x itself, ``x/**`` all that is below it, ``x/`` the same. *text* is the rule in words.
    Raises RuleError.
    """

    patterns: tuple[str, ...]
    verbs: frozenset[Verb]
    allow: bool
    text: str
    home: bytes = b""
    _parsed: tuple[Pattern, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        parsed = tuple(_parse(line, index, self.home) for index, line in enumerate(self.patterns))
        object.__setattr__(self, "_parsed", parsed)

    def matches(self, path: bytes, verb: Verb) -> bool:
        """Tell whether the rule answers for *verb* at the real path *path*."""
        if verb not in self.verbs:
            return False
        if not self.allow:
            return self._declines(paths.normalise(path))
        if path != paths.normalise(path):
            return False
        names = tuple(map(decode, paths.components(path)))
        return any(pattern.matches((False, names), is_dir=True) for pattern in self._parsed)

    def names_exactly(self, path: bytes) -> bool:
        """Tell whether some pattern is the literal *path*: the person meant this very file."""
        names = tuple(map(decode, paths.components(path)))
        return path == paths.normalise(path) and any(
            pattern.exact == names for pattern in self._parsed
        )

    def _declines(self, path: bytes) -> bool:
        spelled = spellings(paths.components(path))
        return any(
            pattern.matches((is_folded, names[:end]), is_dir=True)
            for is_folded, names in spelled
            for end, _ in enumerate(names, start=1)
            for pattern in self._parsed
        )


def _parse(line: str, index: int, home: bytes) -> Pattern:
    text = trim(line, index)
    if text.startswith("~/") and home:
        above, body = tuple(map(decode, paths.components(home))), text[1:]
    elif text.startswith("/"):
        above, body = (), text
    else:
        raise RuleError(line, index, "it must be absolute or start with ~/")
    if body.endswith("/"):
        body += "**"
    return Pattern(body, index, above, written=line)


class StandingRules:
    """All standing rules of the person; one that declines beats any that allows."""

    def __init__(self, rules: Sequence[StandingRule] = ()) -> None:
        self.rules = tuple(rules)

    def answer(self, verb: Verb, path: bytes) -> StandingRule | None:
        """Return the rule that answers for *verb* at the real path *path*, or None.

        Among those that allow, one that names exactly this path comes first.
        """
        found = [rule for rule in self.rules if rule.matches(path, verb)]
        declined = next((rule for rule in found if not rule.allow), None)
        if declined is not None:
            return declined
        exact = next((rule for rule in found if rule.names_exactly(path)), None)
        return exact if exact is not None else next(iter(found), None)
