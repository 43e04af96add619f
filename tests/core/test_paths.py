"""Paths are placed by their components, whatever bytes they hold."""

from __future__ import annotations

import pytest
from hypothesis import given

from lamfuse.core import paths
from tests import strategies

HOME = b"/home/u"


@pytest.mark.requirement("H3", "H20")
@pytest.mark.parametrize(
    ("root", "path"),
    [
        pytest.param(b"/a", b"/a", id="itself"),
        pytest.param(b"/a", b"/a/b", id="child"),
        pytest.param(b"/a", b"/a/b/c", id="grandchild"),
        pytest.param(b"/a", b"/a/..b", id="name-that-starts-with-dots"),
        pytest.param(b"/a", b"/a/b..", id="name-that-ends-with-dots"),
        pytest.param(b"/", b"/", id="root-itself"),
        pytest.param(b"/", b"/a", id="root-holds-all"),
        pytest.param(b"/a", b"/a/\n", id="newline"),
    ],
)
def test_contained(root: bytes, path: bytes) -> None:
    assert paths.contains(root, path) is True


@pytest.mark.requirement("H3", "H20")
@pytest.mark.parametrize(
    ("root", "path"),
    [
        pytest.param(b"/a", b"/ab", id="longer-name"),
        pytest.param(b"/a", b"/a.", id="dot-after"),
        pytest.param(b"/a/b", b"/a", id="parent"),
        pytest.param(b"/a", b"/", id="root"),
        pytest.param(b"/a", b"/b/a", id="same-name-elsewhere"),
        pytest.param(b"/a", b"/a/../b", id="climbs-out"),
        pytest.param(b"/a", b"/a/b/..", id="climbs-at-the-end"),
        pytest.param(b"/", b"/..", id="climbs-at-the-root"),
        pytest.param(b"/a", b"a/b", id="relative"),
        pytest.param(b"a", b"a", id="relative-itself"),
        pytest.param(b"a", b"a/b", id="relative-root"),
        pytest.param(b"", b"", id="nothing"),
        pytest.param(b"", b"/a", id="empty-root"),
        pytest.param(b"/A", b"/a/b", id="other-case"),
    ],
)
def test_not_contained(root: bytes, path: bytes) -> None:
    assert paths.contains(root, path) is False


@pytest.mark.requirement("H3")
@given(root=strategies.paths, path=strategies.paths)
def test_containment_is_by_components(root: bytes, path: bytes) -> None:
    names = paths.components(root)

    assert paths.contains(root, path) is (paths.components(path)[: len(names)] == names)


@pytest.mark.requirement("H3")
@given(root=strategies.paths.filter(lambda root: root != b"/"), tail=strategies.names)
def test_a_longer_name_is_not_contained(root: bytes, tail: bytes) -> None:
    assert paths.contains(root, root + tail) is False


@pytest.mark.parametrize(
    ("root", "path", "relative", "depth"),
    [
        pytest.param(b"/a", b"/a", b"", 0, id="itself"),
        pytest.param(b"/a", b"/a/b", b"b", 1, id="child"),
        pytest.param(b"/a", b"/a/b/c", b"b/c", 2, id="grandchild"),
        pytest.param(b"/", b"/a/b", b"a/b", 2, id="from-the-root"),
        pytest.param(b"/", b"/", b"", 0, id="the-root"),
    ],
)
def test_relative_and_depth(root: bytes, path: bytes, relative: bytes, depth: int) -> None:
    assert paths.relative(root, path) == relative
    assert paths.depth(root, path) == depth
    assert paths.join(root, relative) == path


@pytest.mark.parametrize("function", [paths.relative, paths.depth])
def test_what_lies_outside_has_no_relative_path(function: object) -> None:
    assert callable(function)
    with pytest.raises(ValueError, match="is not below"):
        function(b"/a", b"/ab")


def test_ancestors_go_from_just_below_the_root_to_the_path() -> None:
    assert list(paths.ancestors(b"/a", b"/a/b/c")) == [b"/a/b", b"/a/b/c"]
    assert list(paths.ancestors(b"/", b"/a/b")) == [b"/a", b"/a/b"]
    assert list(paths.ancestors(b"/a", b"/a")) == []
    with pytest.raises(ValueError, match="is not below"):
        list(paths.ancestors(b"/a", b"/b"))


@pytest.mark.parametrize(
    ("path", "parent", "base"),
    [
        pytest.param(b"/", b"/", b"", id="root"),
        pytest.param(b"/a", b"/", b"a", id="top"),
        pytest.param(b"/a/b", b"/a", b"b", id="below"),
    ],
)
def test_parent_and_base(path: bytes, parent: bytes, base: bytes) -> None:
    assert paths.parent(path) == parent
    assert paths.base(path) == base


def test_join_puts_one_slash_between() -> None:
    assert paths.join(b"/", b"a") == b"/a"
    assert paths.join(b"/a", b"b/c") == b"/a/b/c"
    assert paths.join(b"/a", b"") == b"/a"


def test_an_absolute_name_does_not_leave_its_parent() -> None:
    with pytest.raises(ValueError, match="not a name"):
        paths.join(b"/a", b"/etc")


@given(path=strategies.paths)
def test_parent_and_base_make_the_path_again(path: bytes) -> None:
    assert paths.join(paths.parent(path), paths.base(path)) == path
    assert b"/" + b"/".join(paths.components(path)) == path


@pytest.mark.requirement("H20")
@pytest.mark.parametrize(
    ("path", "normal"),
    [
        pytest.param(b"", b"/", id="empty"),
        pytest.param(b"/", b"/", id="root"),
        pytest.param(b"//a", b"/a", id="two-slashes-at-the-start"),
        pytest.param(b"/a/", b"/a", id="slash-at-the-end"),
        pytest.param(b"/a/.", b"/a", id="dot-at-the-end"),
        pytest.param(b"/a/./b", b"/a/b", id="dot"),
        pytest.param(b"/a//b", b"/a/b", id="empty-name"),
        pytest.param(b"/a/../b", b"/b", id="dots"),
        pytest.param(b"/a/b/..", b"/a", id="dots-at-the-end"),
        pytest.param(b"/../../a", b"/a", id="clamped"),
        pytest.param(b"/a/.../b", b"/a/.../b", id="three-dots-are-a-name"),
        pytest.param(b"/a/.b", b"/a/.b", id="hidden-name"),
        pytest.param(b"a/b", b"/a/b", id="relative"),
    ],
)
def test_normalise(path: bytes, normal: bytes) -> None:
    assert paths.normalise(path) == normal


@given(path=strategies.any_bytes)
def test_normalise_is_idempotent_and_absolute(path: bytes) -> None:
    normal = paths.normalise(path)

    assert paths.normalise(normal) == normal
    assert paths.contains(b"/", normal)
    assert not {b"", b".", b".."} & set(paths.components(normal))


@given(path=strategies.paths)
def test_normalise_keeps_what_is_normal(path: bytes) -> None:
    assert paths.normalise(path) == path


@pytest.mark.requirement("H15", "H20")
@pytest.mark.parametrize(
    ("written", "path"),
    [
        pytest.param("~", HOME, id="home"),
        pytest.param("~/", HOME, id="home-slash"),
        pytest.param("~/a", HOME + b"/a", id="below-home"),
        pytest.param("~//etc", HOME + b"/etc", id="two-slashes"),
        pytest.param("a/b", HOME + b"/a/b", id="relative"),
        pytest.param("./~x", HOME + b"/~x", id="name-with-a-tilde"),
        pytest.param("a~", HOME + b"/a~", id="tilde-later"),
        pytest.param("../v", b"/home/v", id="relative-climbs"),
        pytest.param("~/../v", b"/home/v", id="home-climbs"),
        pytest.param("/etc/../x", b"/x", id="absolute"),
        pytest.param(".", HOME, id="dot"),
        pytest.param(" ", HOME + b"/ ", id="a-blank-is-a-name"),
        pytest.param("é\udcff", HOME + b"/\xc3\xa9\xff", id="stray-byte"),
    ],
)
def test_expand(written: str, path: bytes) -> None:
    assert paths.expand(written, HOME) == path


_OTHER = "it means another user's home (write ./~ for a name that starts with ~)"


@pytest.mark.requirement("H20")
@pytest.mark.parametrize(
    ("written", "reason"),
    [
        pytest.param(None, "it is not text", id="none"),
        pytest.param(b"/a", "it is not text", id="bytes"),
        pytest.param(3, "it is not text", id="number"),
        pytest.param("", "it is empty", id="empty"),
        pytest.param("a\0b", "it holds a NUL byte", id="nul"),
        pytest.param("\0", "it holds a NUL byte", id="only-nul"),
        pytest.param("~root", _OTHER, id="other-user"),
        pytest.param("~root/x", _OTHER, id="below-other-user"),
        pytest.param(
            "\ud800", "it holds a character that no file name can hold", id="lone-surrogate"
        ),
    ],
)
def test_what_names_no_path_is_refused(written: object, reason: str) -> None:
    with pytest.raises(paths.PathError) as caught:
        paths.expand(written, HOME)

    assert caught.value.reason == reason
    assert str(caught.value) == reason
