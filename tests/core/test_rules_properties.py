"""What holds for every denylist and every path."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lamfuse.core import paths
from lamfuse.core.patterns import find, parse, spellings
from lamfuse.core.rules import DEFAULT_DENY, Denylist
from tests import strategies

pytestmark = pytest.mark.requirement("H5", "H21")

HOME = strategies.HOME

_OWN = (b"/home/u/.config/lamfuse", b"/run/user/1/lamfuse", b"/home/u/state")
_EXCEPT = (b"/home/u/state/x/agent",)

_lists = st.lists(
    st.one_of(
        strategies.pattern_lines, st.sampled_from(["secrets/", "*.pem", "!*.pem", "!a\\*", "X"])
    ),
    max_size=4,
)
_kinds = st.sampled_from([None, True, False])
_parts = st.lists(
    st.one_of(strategies.names, st.sampled_from([b"a", b"b", b"ab", b"c"])), min_size=1, max_size=5
)


@given(path=strategies.any_bytes, lines=_lists, is_dir=_kinds)
def test_the_rule_is_total_and_judges_the_normalised_path(
    path: bytes, lines: list[str], is_dir: bool | None
) -> None:
    denylist = Denylist(HOME, lines, own=_OWN, own_except=_EXCEPT)

    found = denylist.rule_for(path, is_dir=is_dir)
    assert found == denylist.rule_for(paths.normalise(path), is_dir=is_dir)
    by_name = denylist.rule_for_name(HOME, path, is_dir=is_dir)
    assert by_name == denylist.rule_for(HOME + b"/" + path, is_dir=is_dir)


@settings(max_examples=300)
@given(
    lines=_lists,
    extra=strategies.pattern_lines.filter(lambda line: not line.startswith("!")),
    at=st.integers(0, 4),
    parts=_parts,
    is_dir=_kinds,
)
def test_one_more_rule_never_widens(
    lines: list[str], extra: str, at: int, parts: list[bytes], is_dir: bool | None
) -> None:
    path = HOME + b"/" + b"/".join(parts)
    more = [*lines[:at], extra, *lines[at:]]
    if Denylist(HOME, lines).rule_for(path, is_dir=is_dir) is not None:
        assert Denylist(HOME, more).rule_for(path, is_dir=is_dir) is not None


@given(lines=_lists, parts=_parts, is_dir=_kinds)
def test_nothing_of_the_persons_takes_back_a_default(
    lines: list[str], parts: list[bytes], is_dir: bool | None
) -> None:
    path = HOME + b"/" + b"/".join(parts)
    default = Denylist(HOME).rule_for(path, is_dir=is_dir)
    if default is not None:
        assert Denylist(HOME, lines).rule_for(path, is_dir=is_dir) is not None


@settings(max_examples=300)
@given(path=strategies.paths, lines=_lists, is_dir=_kinds)
def test_a_path_is_hidden_when_it_or_a_directory_above_it_is(
    path: bytes, lines: list[str], is_dir: bool | None
) -> None:
    denylist = Denylist(HOME, lines, own=_OWN)
    below = HOME if paths.contains(HOME, path) else b"/"
    by_name = [
        denylist.rule_for_name(
            paths.parent(prefix), paths.base(prefix), is_dir=is_dir if prefix == path else True
        )
        for prefix in paths.ancestors(below, path)
    ]

    assert (denylist.rule_for(path, is_dir=is_dir) is not None) is any(by_name)
    for prefix in paths.ancestors(below, path):
        if denylist.rule_for(prefix, is_dir=True) is not None and prefix != path:
            assert denylist.rule_for(path, is_dir=is_dir) is not None


@settings(max_examples=300)
@given(path=strategies.paths, lines=_lists, is_dir=_kinds)
def test_by_name_and_by_path_agree_where_the_parent_is_visible(
    path: bytes, lines: list[str], is_dir: bool | None
) -> None:
    denylist = Denylist(HOME, lines, own=_OWN, own_except=_EXCEPT)
    assume(path not in {b"/", b"/home"})
    prefixes = list(paths.ancestors(b"/", paths.parent(path)))
    assume(all(denylist.rule_for(prefix, is_dir=True) is None for prefix in prefixes))

    by_name = denylist.rule_for_name(paths.parent(path), paths.base(path), is_dir=is_dir)
    assert by_name == denylist.rule_for(path, is_dir=is_dir)


@settings(max_examples=300)
@given(path=strategies.paths_below(HOME), lines=_lists, is_dir=st.booleans())
def test_the_quick_way_agrees_with_all_patterns_on_every_prefix(
    path: bytes, lines: list[str], is_dir: bool
) -> None:
    names = paths.components(paths.relative(HOME, path))
    slow = any(
        find(patterns, spellings(names[:end]), is_dir=is_dir or end < len(names)) is not None
        for patterns in (parse(DEFAULT_DENY, HOME), parse(lines, HOME))
        for end in range(1, len(names) + 1)
    )

    assert (Denylist(HOME, lines).rule_for(path, is_dir=is_dir) is not None) is slow


@given(path=strategies.paths, lines=_lists)
def test_an_unknown_kind_is_hidden_when_either_kind_is(path: bytes, lines: list[str]) -> None:
    denylist = Denylist(HOME, lines)
    either = [denylist.rule_for(path, is_dir=kind) is not None for kind in (True, False)]

    assert (denylist.rule_for(path, is_dir=None) is not None) is any(either)
