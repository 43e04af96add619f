"""What the person answered in advance: an allow reaches no further than it says."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamfuse.core import paths
from lamfuse.core.operations import Verb
from lamfuse.core.rules import RuleError
from lamfuse.core.standing import StandingRule, StandingRules
from tests import strategies

pytestmark = pytest.mark.requirement("H10")

HOME = strategies.HOME
_VERBS = frozenset({Verb.WRITE, Verb.DELETE})


def _rule(*patterns: str, allow: bool = True, text: str = "rule") -> StandingRule:
    return StandingRule(patterns, _VERBS, allow=allow, text=text, home=HOME)


_TREE = "~/work/scratch/build/**"
_BUILD = b"/home/u/work/scratch/build"


@pytest.mark.parametrize(
    ("pattern", "path", "allow", "decline"),
    [
        pytest.param(_TREE, _BUILD + b"/x", True, True, id="below"),
        pytest.param(_TREE, _BUILD + b"/a/b", True, True, id="deep-below"),
        pytest.param(_TREE, _BUILD + b"/a\nb/c", True, True, id="newline"),
        pytest.param(_TREE, _BUILD + b"/\xff", True, True, id="stray-byte"),
        pytest.param(_TREE, _BUILD, False, False, id="not-itself"),
        pytest.param(_TREE, _BUILD + b"2/x", False, False, id="longer"),
        pytest.param(_TREE, b"/srv" + _BUILD + b"/x", False, False, id="elsewhere"),
        pytest.param(_TREE, b"/work/scratch/build/x", False, False, id="without-home"),
        pytest.param(_TREE, b"/home/u/work/scratch/BUILD/x", False, True, id="other-case"),
        pytest.param(_TREE, _BUILD + b"./x", False, True, id="dot-after"),
        pytest.param(_TREE, _BUILD + b"/../x", False, False, id="climbs"),
        pytest.param(_TREE, _BUILD + b"//x", False, True, id="not-normalised"),
        pytest.param("~/a/", b"/home/u/a/b/c", True, True, id="slash-is-below"),
        pytest.param("~/a/", b"/home/u/a", False, False, id="slash-is-not-itself"),
        pytest.param("~/a", b"/home/u/a", True, True, id="literal"),
        pytest.param("~/a", b"/home/u/a/b", False, True, id="literal-below"),
        pytest.param("~/a", b"/home/u/b/a", False, False, id="literal-is-anchored"),
        pytest.param("~/*.txt", b"/home/u/x.txt", True, True, id="glob"),
        pytest.param("~/*.txt", b"/home/u/x.txt/y", False, True, id="glob-below"),
        pytest.param("~/*.txt", b"/home/u/a/x.txt", False, False, id="glob-is-one-level"),
        pytest.param("~/**/*.txt", b"/home/u/a/b/x.txt", True, True, id="glob-at-any-depth"),
        pytest.param("~/**/*.txt", b"/home/u/x.txt", True, True, id="glob-at-no-depth"),
        pytest.param("~/a[!b]c", b"/home/u/a/c", False, False, id="bracket-and-slash"),
        pytest.param("~/\u00e9", b"/home/u/e\xcc\x81", False, True, id="decomposed"),
        pytest.param("/srv/a", b"/srv/a", True, True, id="absolute"),
        pytest.param("/srv/**", b"/srv/a/b", True, True, id="absolute-below"),
        pytest.param("/home/u/a", b"/home/u/a", True, True, id="absolute-in-home"),
        pytest.param("/a", b"/home/u/a", False, False, id="absolute-is-not-from-home"),
        pytest.param("~/", b"/home/u/a/b", True, True, id="all-of-home"),
        pytest.param("~/", b"/home/u", False, False, id="not-home-itself"),
        pytest.param("~/", b"/home/u2/a", False, False, id="not-a-longer-home"),
        pytest.param("~/Notes", b"/home/u/Notes", True, True, id="capitals"),
        pytest.param("~/Notes", b"/home/u/notes", False, True, id="capitals-in-another-case"),
        pytest.param("/srv", b"/srv", True, True, id="one-name"),
        pytest.param("/srv", b"/srv/a", False, True, id="below-one-name"),
        pytest.param("~/a\\ ", b"/home/u/a ", True, True, id="escaped-blank"),
        pytest.param("~/a ", b"/home/u/a", True, True, id="blank-after"),
    ],
)
def test_how_far_a_rule_reaches(pattern: str, path: bytes, allow: bool, decline: bool) -> None:
    assert _rule(pattern).matches(path, Verb.WRITE) is allow
    assert _rule(pattern, allow=False).matches(path, Verb.WRITE) is decline
    assert _rule("/nowhere", pattern).matches(path, Verb.WRITE) is allow
    assert _rule("/nowhere", pattern, allow=False).matches(path, Verb.WRITE) is decline


@pytest.mark.parametrize("allow", [True, False])
def test_a_rule_answers_for_its_verbs_only(allow: bool) -> None:
    rule = _rule("~/a", allow=allow)

    assert [verb for verb in Verb if rule.matches(b"/home/u/a", verb)] == [Verb.WRITE, Verb.DELETE]


@pytest.mark.parametrize(
    ("pattern", "path", "exactly"),
    [
        pytest.param("~/.bashrc", b"/home/u/.bashrc", True, id="home"),
        pytest.param("/srv/a", b"/srv/a", True, id="absolute"),
        pytest.param("~/a\\*", b"/home/u/a*", True, id="escaped"),
        pytest.param("~/.bashr?", b"/home/u/.bashrc", False, id="glob"),
        pytest.param("~/[a]", b"/home/u/a", False, id="bracket"),
        pytest.param("~/**", b"/home/u/.bashrc", False, id="below"),
        pytest.param("~/a/", b"/home/u/a", False, id="directory"),
        pytest.param("~/**/a", b"/home/u/a", False, id="any-depth"),
        pytest.param("~/.bashrc", b"/home/u/.BASHRC", False, id="other-case"),
        pytest.param("~/.bashrc", b"/home/u/.bashrc/x", False, id="below-it"),
        pytest.param("~/.bashrc", b"/home/u//.bashrc", False, id="not-normalised"),
    ],
)
def test_names_exactly(pattern: str, path: bytes, exactly: bool) -> None:
    assert _rule("/nowhere", pattern).names_exactly(path) is exactly


def test_home_is_taken_literally() -> None:
    rule = StandingRule(("~/x",), _VERBS, allow=True, text="t", home=b"/h*/[a]\\\xff")

    assert rule.matches(b"/h*/[a]\\\xff/x", Verb.WRITE)
    assert rule.names_exactly(b"/h*/[a]\\\xff/x")
    assert not rule.matches(b"/home/a/x", Verb.WRITE)


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        pytest.param("a", "it must be absolute or start with ~/", id="relative"),
        pytest.param("*.txt", "it must be absolute or start with ~/", id="name"),
        pytest.param("!/a", "it must be absolute or start with ~/", id="negated"),
        pytest.param("# a", "it must be absolute or start with ~/", id="comment"),
        pytest.param("", "it must be absolute or start with ~/", id="empty"),
        pytest.param("~", "it must be absolute or start with ~/", id="tilde"),
        pytest.param("~x/a", "it must be absolute or start with ~/", id="other-user"),
        pytest.param("/a/../b", "no path can match it: a name in it is empty, . or ..", id="dots"),
        pytest.param(
            "/a//b", "no path can match it: a name in it is empty, . or ..", id="empty-name"
        ),
        pytest.param(
            "/a[", "a [ is not closed; write \\[ for the character itself", id="open-bracket"
        ),
        pytest.param("~/a//b", "no path can match it: a name in it is empty, . or ..", id="home"),
        pytest.param(
            "/a\nb", "it holds a line break or a NUL; write one pattern an entry", id="line-break"
        ),
    ],
)
def test_a_pattern_that_cannot_be_used_is_refused(pattern: str, why: str) -> None:
    with pytest.raises(RuleError) as caught:
        _rule("/ok", pattern)

    assert (caught.value.line, caught.value.index, caught.value.why) == (pattern, 1, why)


def test_without_a_home_a_tilde_means_nothing() -> None:
    with pytest.raises(RuleError, match="absolute"):
        StandingRule(("~/a",), _VERBS, allow=True, text="t")
    assert StandingRule(("/a",), _VERBS, allow=True, text="t").matches(b"/a", Verb.WRITE)


def test_a_rule_is_a_value() -> None:
    assert _rule("~/a") == _rule("~/a")
    assert _rule("~/a") != _rule("~/b")
    assert "_parsed" not in repr(_rule("~/a"))
    with pytest.raises(dataclasses.FrozenInstanceError):
        _rule("~/a").allow = False  # type: ignore[misc] # that is what must fail


def test_a_decline_beats_every_allow_in_any_order() -> None:
    allow, decline = _rule("~/a", text="yes"), _rule("~/**", allow=False, text="no")

    for rules in ([allow, decline], [decline, allow]):
        assert StandingRules(rules).answer(Verb.WRITE, b"/home/u/a") is decline


def test_the_rule_that_names_the_file_answers_before_a_wider_one() -> None:
    wide, exact = _rule("~/**", text="wide"), _rule("~/a", text="exact")

    for rules in ([wide, exact], [exact, wide]):
        assert StandingRules(rules).answer(Verb.WRITE, b"/home/u/a") is exact
        assert StandingRules(rules).answer(Verb.WRITE, b"/home/u/b") is wide


def test_of_two_like_rules_the_first_answers() -> None:
    first, second = _rule("~/a*", text="first"), _rule("~/*", text="second")

    assert StandingRules([first, second]).answer(Verb.WRITE, b"/home/u/a") is first
    assert StandingRules([first, second]).answer(Verb.WRITE, b"/home/u/b") is second


def test_without_a_rule_there_is_no_answer() -> None:
    rules = StandingRules([_rule("~/a")])

    assert rules.answer(Verb.MOVE, b"/home/u/a") is None
    assert rules.answer(Verb.WRITE, b"/home/u/b") is None
    assert StandingRules().answer(Verb.WRITE, b"/home/u/a") is None


def _is_usable(line: str) -> bool:
    return "//" not in line and all(part == "**" or "**" not in part for part in line.split("/"))


_patterns = st.one_of(
    strategies.pattern_lines.map(lambda line: "~/" + line.lstrip("!/")),
    st.sampled_from(["~/**", "~/a/**", "~/.ssh/"]),
).filter(_is_usable)


@given(pattern=_patterns, path=strategies.any_bytes)
def test_a_decline_reaches_at_least_as_far_as_the_allow(pattern: str, path: bytes) -> None:
    if _rule(pattern).matches(path, Verb.WRITE):
        assert _rule(pattern, allow=False).matches(path, Verb.WRITE)
        assert paths.contains(HOME, path)


@given(patterns=st.lists(_patterns, max_size=3), declined=_patterns, path=strategies.paths)
def test_one_more_decline_never_allows_more(
    patterns: list[str], declined: str, path: bytes
) -> None:
    rules = [_rule(pattern) for pattern in patterns]
    before = StandingRules(rules).answer(Verb.WRITE, path)
    after = StandingRules([*rules, _rule(declined, allow=False)]).answer(Verb.WRITE, path)

    assert after is before or (after is not None and not after.allow)
