"""Where reading reaches, and where a change can be asked for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamfuse.core import paths
from lamfuse.core.roots import DEFAULT_WRITE_ROOTS, Area, Roots, split_roots
from tests import strategies

HOME = strategies.HOME
ROOTS = Roots(
    HOME,
    read=(b"/srv/docs", b"/home/u/inside"),
    write=(b"/home/u/Downloads", b"/home/u/a/b/out", b"/srv/out", b"/srv/docs/deep"),
)


@pytest.mark.requirement("H23")
@pytest.mark.parametrize(
    ("value", "found"),
    [
        pytest.param("", (), id="nothing"),
        pytest.param(" \n , \n", (), id="only-separators"),
        pytest.param("/a", (b"/a",), id="one"),
        pytest.param("/a\n/b", (b"/a", b"/b"), id="lines"),
        pytest.param("/a\r\n/b", (b"/a", b"/b"), id="lines-of-another-system"),
        pytest.param("/a,/b", (b"/a", b"/b"), id="commas"),
        pytest.param("  /a  ,\t/b\t\n", (b"/a", b"/b"), id="trimmed"),
        pytest.param("~, ~/a", (HOME, HOME + b"/a"), id="tilde"),
        pytest.param("/a/,/a//b/../c", (b"/a", b"/a/c"), id="normalised"),
        pytest.param("/b,/a,/b/", (b"/b", b"/a"), id="each-once-in-order"),
        pytest.param("/a b", (b"/a b",), id="inner-blank"),
        pytest.param(["/a,b", " /c "], (b"/a,b", b"/c"), id="a-list-keeps-commas"),
        pytest.param([], (), id="empty-list"),
    ],
)
def test_split_roots(value: str | list[str], found: tuple[bytes, ...]) -> None:
    result = split_roots(value, HOME)

    assert result.paths == found
    assert result.problems == ()


@pytest.mark.requirement("H23")
@pytest.mark.parametrize(
    ("value", "problem"),
    [
        pytest.param(
            "x/y,/a",
            "'x/y' is not used as a root: it is not absolute (start it with / or ~/)",
            id="relative",
        ),
        pytest.param(
            "./x,/a",
            "'./x' is not used as a root: it is not absolute (start it with / or ~/)",
            id="dot",
        ),
        pytest.param(
            "~x,/a",
            "'~x' is not used as a root: it means another user's home "
            "(write ./~ for a name that starts with ~)",
            id="other-user",
        ),
        pytest.param("/\0,/a", "'/\\x00' is not used as a root: it holds a NUL byte", id="nul"),
        pytest.param([3, "/a"], "3 is not used as a root: it is not text", id="number"),
        pytest.param([None, "/a"], "None is not used as a root: it is not text", id="none"),
        pytest.param(
            ["/\ud800", "/a"],
            "'/\\ud800' is not used as a root: it holds a character that no file name can hold",
            id="surrogate",
        ),
    ],
)
def test_a_bad_entry_is_reported_and_disables_no_other(
    value: str | list[object], problem: str
) -> None:
    result = split_roots(value, HOME)

    assert result.paths == (b"/a",)
    assert result.problems == (problem,)


@pytest.mark.requirement("H23")
@given(value=st.one_of(st.text(max_size=40), st.lists(st.one_of(st.text(max_size=9), st.none()))))
def test_splitting_is_total_and_gives_absolute_roots(value: str | list[str | None]) -> None:
    result = split_roots(value, HOME)

    assert all(paths.normalise(path) == path for path in result.paths)
    assert len(set(result.paths)) == len(result.paths)


def test_areas_have_names() -> None:
    assert [area.value for area in Area] == ["outside", "read", "write"]


def test_a_root_list_is_a_value() -> None:
    assert {split_roots("/a", HOME), split_roots("/a/", HOME)} == {split_roots(["/a"], HOME)}


@pytest.mark.requirement("H22")
def test_default_write_roots() -> None:
    assert DEFAULT_WRITE_ROOTS == (
        b"Downloads",
        b"Documents/Lam Agent",
        b".local/share/lamfuse/agent",
    )


@pytest.mark.requirement("H3", "H11", "H22")
@pytest.mark.parametrize(
    ("path", "area", "root", "write_root"),
    [
        pytest.param(b"/home/u", Area.READ, HOME, None, id="home"),
        pytest.param(b"/home/u/x", Area.READ, HOME, None, id="in-home"),
        pytest.param(b"/home/u/inside/x", Area.READ, b"/home/u/inside", None, id="root-in-home"),
        pytest.param(
            b"/home/u/Downloads",
            Area.WRITE,
            b"/home/u/Downloads",
            b"/home/u/Downloads",
            id="write-root",
        ),
        pytest.param(
            b"/home/u/Downloads/x",
            Area.WRITE,
            b"/home/u/Downloads",
            b"/home/u/Downloads",
            id="in-a-write-root",
        ),
        pytest.param(b"/home/u/Downloads2", Area.READ, HOME, None, id="longer-than-a-write-root"),
        pytest.param(b"/home/u/a/b", Area.READ, HOME, None, id="above-a-write-root"),
        pytest.param(b"/srv/docs/x", Area.READ, b"/srv/docs", None, id="read-root"),
        pytest.param(
            b"/srv/docs/deep/x",
            Area.WRITE,
            b"/srv/docs/deep",
            b"/srv/docs/deep",
            id="write-root-in-a-read-root",
        ),
        pytest.param(b"/srv/out", Area.WRITE, b"/srv/out", b"/srv/out", id="write-root-outside"),
        pytest.param(b"/srv", Area.OUTSIDE, None, None, id="above-roots"),
        pytest.param(b"/srv/docs2", Area.OUTSIDE, None, None, id="longer-than-a-read-root"),
        pytest.param(b"/home/u2/x", Area.OUTSIDE, None, None, id="longer-than-home"),
        pytest.param(b"/home", Area.OUTSIDE, None, None, id="above-home"),
        pytest.param(b"/", Area.OUTSIDE, None, None, id="root"),
        pytest.param(b"/home/u/../v", Area.OUTSIDE, None, None, id="climbs-out"),
        pytest.param(b"/home/u/Downloads/../x", Area.OUTSIDE, None, None, id="climbs"),
    ],
)
def test_area(path: bytes, area: Area, root: bytes | None, write_root: bytes | None) -> None:
    assert ROOTS.area(path) is area
    assert ROOTS.root_of(path) == root
    assert ROOTS.write_root_of(path) == write_root


@pytest.mark.parametrize(
    ("path", "is_root"),
    [
        pytest.param(HOME, True, id="home"),
        pytest.param(b"/srv/docs", True, id="read"),
        pytest.param(b"/home/u/Downloads", True, id="write"),
        pytest.param(b"/home/u/Downloads/x", False, id="below"),
        pytest.param(b"/home", False, id="above"),
    ],
)
def test_is_root(path: bytes, is_root: bool) -> None:
    assert ROOTS.is_root(path) is is_root


@pytest.mark.requirement("H22")
@pytest.mark.parametrize(
    ("path", "leads"),
    [
        pytest.param(b"/home/u/a", True, id="first-of-the-chain"),
        pytest.param(b"/home/u/a/b", True, id="last-of-the-chain"),
        pytest.param(b"/home/u/a/b/out", False, id="the-root-itself"),
        pytest.param(b"/home/u/a/b/out/x", False, id="below-the-root"),
        pytest.param(b"/home/u/a/c", False, id="beside"),
        pytest.param(b"/home/u/a/b2", False, id="longer"),
        pytest.param(b"/home/u", False, id="home"),
        pytest.param(b"/home", False, id="above-home"),
        pytest.param(b"/srv", False, id="outside-home"),
        pytest.param(b"/home/u/inside", False, id="read-root"),
    ],
)
def test_leads_to_write_root(path: bytes, leads: bool) -> None:
    assert ROOTS.leads_to_write_root(path) is leads


def test_a_write_root_in_a_write_root_is_still_led_to() -> None:
    roots = Roots(HOME, write=(b"/home/u/a", b"/home/u/a/b/c"))

    assert roots.leads_to_write_root(b"/home/u/a") is True
    assert roots.write_root_of(b"/home/u/a/b/c/d") == b"/home/u/a/b/c"


def test_the_lists_hold_each_root_once() -> None:
    roots = Roots(b"/home/u/", read=(b"/x", b"/x/", b"/home/u/r"), write=(b"/x", b"/home", b"/y"))

    assert roots.home == HOME
    assert roots.read == (b"/x", b"/home/u/r")
    assert roots.write == (b"/x", b"/home", b"/y")
    assert roots.all == (HOME, b"/x", b"/home/u/r", b"/home", b"/y")
    assert roots.extra == (b"/x", b"/home", b"/y")


@given(path=strategies.paths, write=st.lists(strategies.paths, max_size=3))
def test_one_more_read_root_never_allows_a_change(path: bytes, write: list[bytes]) -> None:
    roots = Roots(HOME, write=write)
    more = Roots(HOME, read=(path,), write=write)

    assert (more.area(path) is Area.WRITE) is (roots.area(path) is Area.WRITE)
    assert more.area(path) is not Area.OUTSIDE


@given(path=strategies.paths, roots=st.lists(strategies.paths, max_size=4))
def test_the_innermost_root_holds_no_other_that_holds_the_path(
    path: bytes, roots: list[bytes]
) -> None:
    found = Roots(HOME, read=roots).root_of(path)
    holding = [root for root in (HOME, *roots) if paths.contains(root, path)]

    assert (found is None) is (not holding)
    assert found is None or all(paths.contains(root, found) for root in holding)
