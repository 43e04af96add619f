"""Patterns match as git's do, and where they must not miss, better than pathspec's."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from lamfuse.core.patterns import (
    Pattern,
    PatternSet,
    RuleError,
    Spelling,
    find,
    parse,
    spell,
    spellings,
)
from lamfuse.core.rules import DEFAULT_DENY
from tests import strategies

pytestmark = pytest.mark.requirement("H21")

HOME = b"/h"


def _matches(line: str, path: str, *, is_dir: bool | None = False) -> bool:
    spelled = spellings(path.encode("utf-8", "surrogateescape").split(b"/"))
    return find(parse([line], HOME), spelled, is_dir=is_dir) is not None


@pytest.mark.parametrize(
    ("line", "path"),
    [
        pytest.param(".env", ".env", id="name"),
        pytest.param(".env", "a/b/.env", id="name-deep"),
        pytest.param(".env", "a\nb/.env", id="newline-above"),
        pytest.param(".env", ".env\n", id="newline-at-the-end"),
        pytest.param(".env", ".ENV", id="case"),
        pytest.param(".env", ".env.", id="dot-at-the-end"),
        pytest.param(".env", ".env ", id="blank-at-the-end"),
        pytest.param(".env", ".e\u200dnv", id="invisible-letter"),
        pytest.param(".\u200denv", ".\u200denv", id="invisible-letter-in-the-pattern"),
        pytest.param("*.key", "x.\u212aey", id="kelvin-sign"),
        pytest.param("stra\u00dfe", "STRASSE", id="sharp-s"),
        pytest.param("\u00e9", "e\u0301", id="decomposed-name"),
        pytest.param("e\u0301", "\u00e9", id="decomposed-pattern"),
        pytest.param("\u00c9*", "e\u0301x", id="decomposed-and-case"),
        pytest.param("*.pem", ".pem", id="star-is-empty"),
        pytest.param("*.pem", "a\n.pem", id="star-newline"),
        pytest.param("a?c", "a\nc", id="question-newline"),
        pytest.param("a?c", "a\udcffc", id="question-stray-byte"),
        pytest.param("/a", "a", id="anchored"),
        pytest.param("a/b", "a/b", id="anchored-by-a-slash"),
        pytest.param("~/a", "a", id="tilde"),
        pytest.param("a/**", "a/b", id="below"),
        pytest.param("a/**", "a/b/c", id="deep-below"),
        pytest.param("a/**/", "a/b", id="below-with-slash-also-files"),
        pytest.param("**/a", "a", id="any-depth-none"),
        pytest.param("**/a", "x/y/a", id="any-depth"),
        pytest.param("**/a/b", "x/a/b", id="any-depth-two"),
        pytest.param("a/**/b", "a/b", id="between-none"),
        pytest.param("a/**/b", "a/x/y/b", id="between"),
        pytest.param("a/**/b/**/c", "a/b/b/c", id="between-twice"),
        pytest.param("**/a/**/a", "a/b/a", id="between-from-the-first"),
        pytest.param("**/a/**", "a/b/a", id="below-the-first"),
        pytest.param("x[\u00df]", "x\u00df", id="only-as-written"),
        pytest.param("**", "a", id="everything"),
        pytest.param("/**", "a/b", id="everything-anchored"),
        pytest.param("*", "a", id="any-name"),
        pytest.param("/*", "a", id="any-name-anchored"),
        pytest.param("[ab]x", "bx", id="bracket"),
        pytest.param("[!a]x", "\nx", id="negated-bracket-newline"),
        pytest.param("[]]x", "]x", id="bracket-in-bracket"),
        pytest.param("[A-C]x", "bx", id="bracket-case"),
        pytest.param("\\#a", "#a", id="escaped-hash"),
        pytest.param("\\!a", "!a", id="escaped-exclamation"),
        pytest.param("a\\*", "a*", id="escaped-star"),
        pytest.param("a\\ ", "a ", id="escaped-blank"),
        pytest.param("a**c", "abc", id="stars-in-a-name"),
        pytest.param("**c", "abc", id="stars-before-a-name"),
        pytest.param("a b/c", "a b/c", id="inner-blank"),
        pytest.param("a /c", "a /c", id="blank-before-a-slash"),
        pytest.param("[a] /c", "a /c", id="blank-after-a-glob-before-a-slash"),
        pytest.param("a  ", "a", id="blanks-at-the-end"),
    ],
)
def test_matches(line: str, path: str) -> None:
    assert _matches(line, path)


@pytest.mark.parametrize(
    ("line", "path"),
    [
        pytest.param(".env", ".envrc", id="longer-name"),
        pytest.param(".env", "x.env", id="longer-at-the-start"),
        pytest.param(".env", ".env/x", id="below-is-the-callers-business"),
        pytest.param("*.pem", "pem", id="no-dot"),
        pytest.param("*.pem", "a.pem.txt", id="other-ending"),
        pytest.param("/a", "x/a", id="anchored"),
        pytest.param("a/b", "x/a/b", id="anchored-by-a-slash"),
        pytest.param("~/a", "x/a", id="tilde"),
        pytest.param("a/", "a", id="directory-only"),
        pytest.param("a/b/", "a/b", id="directory-only-anchored"),
        pytest.param("**/", "a", id="any-directory"),
        pytest.param("*/", "a", id="any-directory-by-star"),
        pytest.param("a/**", "a", id="below-is-not-itself"),
        pytest.param("a/**", "x/a/b", id="below-anchored"),
        pytest.param("**/a", "xa", id="any-depth-is-components"),
        pytest.param("a/**/b", "a/xb", id="between-is-components"),
        pytest.param("a/*/b", "a/b", id="star-is-one"),
        pytest.param("a/*/b", "a/x/y/b", id="star-is-not-two"),
        pytest.param("a*c", "a/c", id="star-and-slash"),
        pytest.param("a?c", "a/c", id="question-and-slash"),
        pytest.param("/a[!b]c", "a/c", id="negated-bracket-and-slash"),
        pytest.param("/a[.-0]c", "a/c", id="range-over-the-slash"),
        pytest.param("/*", "a/b", id="any-name-anchored"),
        pytest.param("[!a]x", "ax", id="negated-bracket"),
        pytest.param("[^a]x", "ax", id="negated-bracket-caret"),
        pytest.param("a\\*", "ab", id="escaped-star"),
        pytest.param("a\\?", "ab", id="escaped-question"),
        pytest.param("a.c", "abc", id="dot-is-a-dot"),
        pytest.param("# a", "# a", id="comment"),
        pytest.param("", "a", id="blank"),
        pytest.param("  ", "a", id="blanks"),
        pytest.param("!a", "a", id="negated"),
    ],
)
def test_does_not_match(line: str, path: str) -> None:
    assert not _matches(line, path)


@pytest.mark.parametrize("line", ["a/", "/a/", "**/a/", "*/", "**/"])
def test_a_directory_pattern_needs_a_directory(line: str) -> None:
    assert not _matches(line, "a", is_dir=False)
    assert _matches(line, "a", is_dir=True)
    assert _matches(line, "a", is_dir=None)


_WHYS = {
    "empty": "no path can match it: a name in it is empty, . or ..",
    "stars": "in a path, ** must stand alone between slashes; write *",
    "backslash": "a backslash ends it, or stands before a slash",
    "open": "a [ is not closed; write \\[ for the character itself",
    "unclear": "a [...] in it holds one of [ \\ -- && || ~~, which is not understood here",
    "range": "a [...] in it is wrong (bad character range b-a)",
    "folded": "a [...] in it is wrong (bad character range z-a)",
    "lines": "it holds a line break or a NUL; write one pattern an entry",
    "home": "patterns start at the home directory; write ~/ in place of it",
}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        pytest.param("/", "empty", id="slash"),
        pytest.param("!/", "empty", id="negated-slash"),
        pytest.param("//", "empty", id="slashes"),
        pytest.param("!", "empty", id="only-negated"),
        pytest.param("~", "empty", id="tilde"),
        pytest.param("!~", "empty", id="negated-tilde"),
        pytest.param("a//b", "empty", id="empty-name"),
        pytest.param("./a", "empty", id="dot"),
        pytest.param("a/../b", "empty", id="dots"),
        pytest.param("a/.", "empty", id="dot-at-the-end"),
        pytest.param("a**/b", "stars", id="stars-before-a-slash"),
        pytest.param("a/**b", "stars", id="stars-after-a-slash"),
        pytest.param("/a**", "stars", id="stars-after-an-anchor"),
        pytest.param("***/a", "stars", id="three-stars"),
        pytest.param("a\\", "backslash", id="backslash-at-the-end"),
        pytest.param("a\\/b", "backslash", id="backslash-before-a-slash"),
        pytest.param("a[", "open", id="open-bracket"),
        pytest.param("a[/]b", "open", id="slash-in-bracket"),
        pytest.param("[]", "open", id="empty-bracket"),
        pytest.param("!~/a[", "open", id="open-bracket-below-home"),
        pytest.param("[[:alpha:]]", "unclear", id="class"),
        pytest.param("[a[:digit:]]", "unclear", id="class-later"),
        pytest.param("[\\]x]", "unclear", id="backslash-in-bracket"),
        pytest.param("[a--]", "unclear", id="double-dash"),
        pytest.param("[a&&b]", "unclear", id="double-and"),
        pytest.param("[a||b]", "unclear", id="double-or"),
        pytest.param("[a~~b]", "unclear", id="double-tilde"),
        pytest.param("[b-a]", "range", id="backward-range"),
        pytest.param("[Z-a]", "folded", id="range-that-folding-turns"),
        pytest.param("a\nb", "lines", id="line-break"),
        pytest.param("a\rb", "lines", id="carriage-return"),
        pytest.param("a\0b", "lines", id="nul"),
        pytest.param("/h/a", "home", id="absolute-below-home"),
        pytest.param("!/h", "home", id="home-itself"),
    ],
)
def test_a_line_that_would_do_nothing_or_something_else_is_refused(line: str, why: str) -> None:
    with pytest.raises(RuleError) as caught:
        parse(["ok", line], HOME)

    assert (caught.value.line, caught.value.index, caught.value.why) == (line, 1, _WHYS[why])
    assert str(caught.value) == f"pattern 2, {line!r}: {_WHYS[why]}"


@pytest.mark.parametrize("line", ["/hx", "/hx/a", "h/a", "/a/h"])
def test_a_place_that_only_looks_like_home_is_taken(line: str) -> None:
    assert len(parse([line], HOME)) == 1


def test_with_the_root_as_home_a_leading_slash_is_an_anchor() -> None:
    assert [pattern.text for pattern in parse(["/a"], b"/")] == ["/a"]


@pytest.mark.parametrize(
    ("line", "exact"),
    [
        pytest.param("/a/b", ("a", "b"), id="literal"),
        pytest.param("/a\\*", ("a*",), id="escaped"),
        pytest.param("/a\\\\", ("a\\",), id="escaped-backslash"),
        pytest.param("/a*", None, id="glob"),
        pytest.param("/a/**", None, id="below"),
        pytest.param("a", None, id="any-depth"),
        pytest.param("/a/", None, id="directory"),
    ],
)
def test_exact_is_the_one_path_a_pattern_can_match(
    line: str, exact: tuple[str, ...] | None
) -> None:
    assert Pattern(line, 0).exact == exact


def test_names_above_are_literal() -> None:
    pattern = Pattern("/a", 0, above=("x*", "[y]", "\\"))

    assert pattern.exact == ("x*", "[y]", "\\", "a")
    assert pattern.text == "/a"


@pytest.mark.parametrize(
    ("name", "spelled"),
    [
        pytest.param(b"a", ("a",), id="plain"),
        pytest.param(b"A", ("A", "a"), id="upper"),
        pytest.param(b"A. ", ("A. ", "a. ", "a"), id="ends"),
        pytest.param(b"...", ("...",), id="nothing-left"),
        pytest.param("\u200d".encode(), ("\u200d",), id="only-invisible"),
        pytest.param(b"\xff", ("\udcff",), id="stray-byte"),
        pytest.param("E\u0301".encode(), ("E\u0301", "\u00e9"), id="composed"),
        pytest.param("e\u200d\u0301".encode(), ("e\u200d\u0301", "\u00e9"), id="between"),
    ],
)
def test_spell(name: bytes, spelled: tuple[str, ...]) -> None:
    assert spell(name) == spelled


def test_spellings_of_a_path_say_which_are_folded() -> None:
    assert spellings([b"A", b"b"]) == ((False, ("A", "b")), (True, ("a", "b")))
    assert spellings([b"a."]) == ((False, ("a.",)), (True, ("a.",)), (True, ("a",)))


# ---- The quick answer


_any_line = st.one_of(
    strategies.pattern_lines,
    st.sampled_from(DEFAULT_DENY),
    st.sampled_from(["X*", "*X", "É", "*.b?"]),
)


@settings(max_examples=300)
@given(
    lines=st.lists(_any_line, max_size=5),
    name=strategies.names,
    above=st.lists(strategies.names, max_size=3),
    is_dir=st.sampled_from([None, True, False]),
)
def test_the_quick_answer_never_loses_a_match(
    lines: list[str], name: bytes, above: list[bytes], is_dir: bool | None
) -> None:
    patterns = parse(lines, HOME)
    spelled: tuple[Spelling, ...] = spellings([*above, name])
    quick = PatternSet(patterns)
    candidates = quick.candidates(spell(name))

    assert find(candidates, spelled, is_dir=is_dir) is find(patterns, spelled, is_dir=is_dir)
    assert set(candidates) == {p for p in patterns if p.may_end_with(spell(name))}


def test_an_unknown_translation_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for regex in ("x/x(?:(?P<ps_d>/)|$)", "^x/y"):
        monkeypatch.setattr(
            GitIgnoreSpecPattern, "pattern_to_regex", lambda _line, regex=regex: (regex, True)
        )
        with pytest.raises(RuleError, match="unknown way"):
            parse(["x*"], HOME)


def test_a_plain_name_has_no_candidates() -> None:
    quick = PatternSet(parse(DEFAULT_DENY, HOME))

    assert not quick.may_match(("report.md",))
    assert not any(quick.may_match((name,)) for name in ("xpem", "x.pe", "env", ".envx", "id_rs"))
    assert not PatternSet(parse(["a*b", "a?"], HOME)).may_match(("ac?",))
    assert quick.candidates(("report.md",)) == ()
    assert not PatternSet(()).may_match(("a",))


_PLACES = (b"a", b"x/b", b"x/c/d", b"x/e", b"f/g")


def test_patterns_that_name_a_place_can_be_left_out() -> None:
    patterns = parse(["/a", "b", "**/c/d", "/**/e", "f/g"], HOME)

    def found(path: bytes, *, anchored: bool) -> bool:
        spelled = spellings(path.split(b"/"))
        return find(patterns, spelled, is_dir=False, anchored=anchored) is not None

    assert [found(path, anchored=True) for path in _PLACES] == [True] * 5
    assert [found(path, anchored=False) for path in _PLACES] == [
        False,
        True,
        True,
        False,
        False,
    ]
