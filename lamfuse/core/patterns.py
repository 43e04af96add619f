r"""Patterns in gitignore syntax, matched against one path at a time.

pathspec translates each segment of a pattern; the segments are put together here. pathspec's
whole-path expressions are not used, because they miss what must not be missed: ``.`` stops at a
newline, so ``a\nb/.env`` would be visible; ``[!a]`` matches a slash; ``$`` matches before a final
newline; and a ``!keep/`` un-hides a directory ``keep/x.log`` that ``*.log`` hides. The tests hold
both against each other and against ``git check-ignore``.

Every path is matched in up to three spellings: as it is; case-folded and composed (NFC), against
patterns treated alike; and also without characters that some file systems ignore in a name
(invisible ones, dots and blanks at the end). A path is matched when any spelling of it is.

A pattern matches a path itself. What lies below a matched directory is the caller's business.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

__all__ = [
    "Pattern",
    "PatternSet",
    "RuleError",
    "Segment",
    "Spelling",
    "decode",
    "find",
    "parse",
    "spell",
    "spellings",
    "trim",
]


class RuleError(ValueError):
    """A pattern that cannot be used: the *line*, its *index* in its list (0 first), and *why*."""

    def __init__(self, line: str, index: int, why: str) -> None:
        super().__init__(f"pattern {index + 1}, {line!r}: {why}")
        self.line = line
        self.index = index
        self.why = why


# ---- Spellings

Spelling = tuple[bool, tuple[str, ...]]
"""The components of a path in one spelling, and whether they are folded."""

#: Default_Ignorable_Code_Point of Unicode 15: ext4, f2fs and tmpfs with case folding ignore these.
_IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)


#: FAT ignores dots and blanks that end a name. A line break there is nothing but a trick.
_IGNORED_ENDS = ". \t\n\r\v\f"


def decode(name: bytes) -> str:
    """Return *name* as text; stray bytes become lone surrogates, so nothing is lost."""
    return name.decode("utf-8", "surrogateescape")


def _fold(text: str) -> str:
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFD", text).casefold()
    return unicodedata.normalize("NFC", folded)


def _strip(folded: str) -> str:
    """Drop what some file systems ignore in a name, and blanks of any kind at its end."""
    if not folded.isascii():
        folded = _fold(_IGNORABLE.sub("", folded))
    return folded.rstrip(_IGNORED_ENDS)


def spell(name: bytes) -> tuple[str, ...]:
    """Return the distinct spellings of one name, the plain one first."""
    plain = decode(name)
    folded = _fold(plain)
    stripped = _strip(folded) or folded
    return tuple(dict.fromkeys((plain, folded, stripped)))


def spellings(names: Iterable[bytes]) -> tuple[Spelling, ...]:
    """Return the components *names* in every spelling that they are to be matched in."""
    plain = tuple(map(decode, names))
    folded = tuple(map(_fold, plain))
    stripped = tuple(_strip(name) or name for name in folded)
    both = ((False, plain), (True, folded))
    return both if stripped == folded else (*both, (True, stripped))


# ---- Segments

_SPECIAL = re.compile(r"[*?\[\\]")
_HEAD = "^"
#: A second segment keeps pathspec from stripping blanks that end the first; it is cut off again.
_SECOND = "/x"
_TAIL = str(GitIgnoreSpecPattern.pattern_to_regex("/q" + _SECOND)[0])[len(_HEAD + "q") :]
_UNCLEAR = ("[", "\\", "--", "&&", "||", "~~")


class Segment:
    """One component of a pattern: a name, or a glob that matches within one name.

    ``literal`` is the name, or None for a glob. Raises ValueError, with the reason, for a glob that
    cannot be used.
    """

    __slots__ = ("_match", "literal", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.literal: str | None = text
        if _SPECIAL.search(text):
            unescaped = re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)
            is_glob = _SPECIAL.search(re.sub(r"\\.", "", text, flags=re.DOTALL)) is not None
            self.literal = None if is_glob else unescaped
            self._match = _compile(text).fullmatch

    def matches(self, name: str) -> bool:
        """Tell whether *name*, in one spelling, is matched as a whole."""
        if self.literal is not None:
            return name == self.literal
        return self._match(name) is not None


def _compile(text: str) -> re.Pattern[str]:
    _check_brackets(text)
    try:
        regex, _include = GitIgnoreSpecPattern.pattern_to_regex("/" + text + _SECOND)
    except ValueError as error:
        raise ValueError("a backslash ends it, or stands before a slash") from error
    if regex is None:
        raise ValueError("a [ is not closed; write \\[ for the character itself")
    if not (regex.startswith(_HEAD) and regex.endswith(_TAIL)):
        raise ValueError("pathspec translates it in an unknown way")
    try:
        return re.compile(regex[len(_HEAD) : -len(_TAIL)])
    except re.error as error:
        raise ValueError(f"a [...] in it is wrong ({error.msg})") from error


def _check_brackets(text: str) -> None:
    """Refuse a ``[...]`` that git, pathspec and Python's expressions read differently."""
    for found in re.finditer(r"\\.|\[([!^]?\]?[^\]]*)\]", text, flags=re.DOTALL):
        inside = found.group(1)
        if inside is not None and any(unclear in inside for unclear in _UNCLEAR):
            raise ValueError(
                "a [...] in it holds one of [ \\ -- && || ~~, which is not understood here"
            )


# ---- Patterns

_ANY_DEPTH = None
_Segments = tuple[Segment | None, ...]


def _match_segments(segments: _Segments, names: Sequence[str]) -> bool:
    """Match all *names*; ``**`` (None) is any number of them, and at the end one or more."""
    reached = {0}
    for index, segment in enumerate(segments):
        if segment is not None:
            reached = {at + 1 for at in reached if at < len(names) and segment.matches(names[at])}
        elif index == len(segments) - 1:
            reached = {len(names)} if min(reached) < len(names) else set()
        else:
            reached = set(range(min(reached), len(names) + 1))
        if not reached:
            return False
    return len(names) in reached


class Pattern:
    """One line in gitignore syntax.

    ``anchored``: it speaks of one place below the directory that the patterns belong to.
    ``negated``: a ``!`` line.
    ``above`` are literal names that stand before the pattern. *line* has no blanks at its end and
    is no comment (:func:`parse` sees to that). ``text`` is *written*, as the person wrote the line,
    or else *line*. Raises RuleError.
    """

    __slots__ = ("_folded", "_plain", "anchored", "dir_only", "negated", "text")

    def __init__(self, line: str, index: int, above: Sequence[str] = (), written: str = "") -> None:
        self.text = written or line
        self.negated = line.startswith("!")
        body = line[1:] if self.negated else line
        self.dir_only = body.endswith("/")
        parts = body.removesuffix("/").split("/")
        rooted = parts[0] == ""
        if rooted:
            del parts[0]
        self.anchored = rooted or (len(parts) > 1 and parts[0] != "**")
        if not parts or any(part in {"", ".", ".."} for part in parts):
            raise RuleError(
                self.text, index, "no path can match it: a name in it is empty, . or .."
            )
        if (rooted or len(parts) > 1) and any("**" in part and part != "**" for part in parts):
            # Git's documentation reads it as one ``*``, git itself at times as any depth.
            raise RuleError(
                self.text, index, "in a path, ** must stand alone between slashes; write *"
            )
        if not self.anchored and parts[0] != "**":
            parts.insert(0, "**")
        if parts[-1] == "**" and len(parts) > 1 and not self.negated:
            # ``x/**/`` is everything in x. Git leaves out its files, and nobody means that.
            self.dir_only = False
        try:
            self._plain = _segments(parts, above)
            self._folded = _segments(
                [_fold(part) for part in parts], [_fold(name) for name in above]
            )
        except ValueError as error:
            raise RuleError(self.text, index, str(error)) from error

    @property
    def exact(self) -> tuple[str, ...] | None:
        """The one path that the pattern can match, as components, or None."""
        literals = [segment.literal if segment else None for segment in self._plain]
        if self.dir_only:
            return None
        names = tuple(name for name in literals if name is not None)
        return names if len(names) == len(literals) else None

    @property
    def last(self) -> tuple[Segment, Segment] | None:
        """The last segment, as written and folded; None where any name may come last."""
        plain, folded = self._plain[-1], self._folded[-1]
        return (plain, folded) if plain and folded else None

    def may_end_with(self, name: Sequence[str]) -> bool:
        """Tell whether a path whose last name has the spellings *name* can be matched at all."""
        if self.last is None:
            return True
        plain, folded = self.last
        return plain.matches(name[0]) or any(folded.matches(text) for text in name)

    def matches(self, spelling: Spelling, *, is_dir: bool) -> bool:
        """Tell whether the path itself, given in one spelling, is matched."""
        is_folded, names = spelling
        if self.dir_only and not is_dir:
            return False
        segments = self._folded if is_folded else self._plain
        return _match_segments(segments, names)


def parse(lines: Sequence[str], home: bytes) -> tuple[Pattern, ...]:
    """Return the patterns that *lines* write; blank lines and comments write none.

    ``~/x`` is read as ``/x``: the patterns belong to *home*. Raises RuleError, also for what git
    would take and never match: nobody should believe in a rule that does nothing.
    """
    return tuple(
        pattern
        for index, line in enumerate(lines)
        if (pattern := _parse_line(line, index, home)) is not None
    )


def trim(line: str, index: int) -> str:
    """Return *line* without the blanks at its end; RuleError where it is more than a line."""
    text = line if line.endswith("\\ ") else line.rstrip()
    if any(character in text for character in "\n\r\0"):
        raise RuleError(line, index, "it holds a line break or a NUL; write one pattern an entry")
    return text


def _parse_line(line: str, index: int, home: bytes) -> Pattern | None:
    text = trim(line, index)
    if not text or text.startswith("#"):
        return None
    sign = "!" if text.startswith("!") else ""
    body = text.removeprefix("!")
    if body == "~" or body.startswith("~/"):
        body = body[1:]
    if f"{body}/".startswith(f"{decode(home)}/"):
        raise RuleError(
            line, index, "patterns start at the home directory; write ~/ in place of it"
        )
    return Pattern(sign + body, index, written=text)


def _segments(parts: Sequence[str], above: Sequence[str]) -> _Segments:
    names = [_literal(name) for name in above]
    return (*names, *(_ANY_DEPTH if part == "**" else Segment(part) for part in parts))


def _literal(name: str) -> Segment:
    return Segment(re.sub(r"([*?\[\\])", r"\\\1", name))


# ---- Sets of patterns


class PatternSet:
    """Patterns in order, and a quick answer to which can match a path with a certain last name.

    In :func:`find` the last one that matches decides, for each spelling of a path alone: a ``!``
    line takes back what lines before it matched, in its own spelling only.
    """

    __slots__ = ("_any_name", "_ends", "_exact", "_globs", "_starts", "patterns")

    def __init__(self, patterns: Iterable[Pattern]) -> None:
        self.patterns = tuple(patterns)
        exact: set[str] = set()
        ends: set[str] = set()
        starts: set[str] = set()
        self._globs: list[Segment] = []
        lasts = [pattern.last for pattern in self.patterns]
        self._any_name = None in lasts
        for segment in (segment for last in lasts if last for segment in last):
            if segment.literal is not None:
                exact.add(segment.literal)
            elif segment.text[0] == "*" and not _SPECIAL.search(segment.text[1:]):
                ends.add(segment.text[1:])
            elif segment.text[-1] == "*" and not _SPECIAL.search(segment.text[:-1]):
                starts.add(segment.text[:-1])
            else:
                self._globs.append(segment)
        self._exact, self._ends, self._starts = frozenset(exact), tuple(ends), tuple(starts)

    def may_match(self, name: Sequence[str]) -> bool:
        """Tell, cheaply, whether a path whose last name has the spellings *name* can be matched.

        A yes may be wrong, a no never is.
        """
        if self._any_name:
            return True
        for text in name:
            if text in self._exact or text.endswith(self._ends) or text.startswith(self._starts):
                return True
            if any(segment.matches(text) for segment in self._globs):
                return True
        return False

    def candidates(self, name: Sequence[str]) -> tuple[Pattern, ...]:
        """Return the patterns, in order, that can match a path whose last name is *name*."""
        if not self.may_match(name):
            return ()
        return tuple(pattern for pattern in self.patterns if pattern.may_end_with(name))


def find(
    patterns: Sequence[Pattern],
    spelled: Sequence[Spelling],
    *,
    is_dir: bool | None,
    anchored: bool = True,
) -> Pattern | None:
    """Return the pattern of *patterns* that decides that the path itself is matched, or None.

    *is_dir* None: as either kind. Without *anchored*, patterns that name a place are left out: the
    path does not lie where they belong.
    """
    kinds = (False, True) if is_dir is None else (is_dir,)
    used = patterns if anchored else [pattern for pattern in patterns if not pattern.anchored]
    for spelling in spelled if used else ():
        for kind in kinds:
            for pattern in reversed(used):
                if pattern.matches(spelling, is_dir=kind):
                    if not pattern.negated:
                        return pattern
                    break
    return None
