"""What a link may say in the view: following it, step by step, never leaves the view."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamfuse.core import paths
from lamfuse.tree import syscalls
from lamfuse.tree.links import Anchor, Links
from tests import residue

pytestmark = pytest.mark.requirement("H3", "H20")

HIDDEN = frozenset({b".ssh", b".env"})


@dataclass
class Tree:
    """A home and an extra root below *base*, and the judge over both."""

    base: Path
    link_ok: tuple[bytes, ...] = (b"/usr", b"/bin")
    anchors: list[Anchor] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name, shown, aliases in (
            ("home", b"", (b"/alias/home",)),
            ("extra", b".lamfuse/roots" + os.fsencode(self.base / "extra"), ()),
        ):
            (self.base / name).mkdir()
            path = os.fsencode(self.base / name)
            self.anchors.append(Anchor(path, syscalls.open_root(path), shown, aliases))

    def close(self) -> None:
        for anchor in self.anchors:
            syscalls.close(anchor.fd)

    @property
    def home(self) -> bytes:
        return self.anchors[0].path

    @property
    def extra(self) -> bytes:
        return self.anchors[1].path

    def hides(self, path: bytes, is_dir: bool | None) -> bool:
        for anchor in self.anchors:
            if paths.contains(anchor.path, path):
                names = paths.components(paths.relative(anchor.path, path))
                return not HIDDEN.isdisjoint(names)
        return True

    def judge(self, directory: bytes, target: bytes) -> bytes | None:
        return Links(self.anchors, self.link_ok, self.hides).judge(directory, target)

    def in_home(self, target: str, directory: str = "") -> str | None:
        """Judge a target in a folder of home; ``{base}`` in it is the place of the tree."""
        text = os.fsencode(target.format(base=self.base))
        answer = self.judge(paths.join(self.home, os.fsencode(directory)), text)
        return None if answer is None else os.fsdecode(answer)


@pytest.fixture(scope="module")
def tree() -> Iterator[Tree]:
    base = Path(tempfile.mkdtemp(prefix="lf-"))
    tree = Tree(base)
    home = base / "home"
    for name in ("a/b/c", "d", ".ssh", "x/.ssh"):
        (home / name).mkdir(parents=True)
    for name in ("file", "a/b/file", ".ssh/id", ".env"):
        (home / name).touch()
    for name, target in {
        "to_a": "a",
        "to_file": "a/b/file",
        "abs_a": f"{base}/home/a",
        "abs_extra": f"{base}/extra/e",
        "alias_a": "/alias/home/a",
        "cycle1": "cycle2",
        "cycle2": "cycle1",
        "self": "self",
        "to_ssh": ".ssh",
        "to_etc": "/etc",
        "to_usr": "/usr/bin",
        "out": "../outside",
        "a/up": "..",
        "a/b/up2": "../..",
        "a/b/up3": "../../..",
        "dangling": "nothing",
        "a/to_d": "../d",
        "deep": "a/b/c",
    }.items():
        (home / name).symlink_to(target)
    for number in range(42):
        (home / f"chain{number}").symlink_to(f"chain{number + 1}" if number < 41 else "file")
    (base / "extra/e/f").mkdir(parents=True)
    (base / "extra/.env").touch()
    (base / "outside").mkdir()
    (base / "home-evil").mkdir()
    yield tree
    tree.close()
    residue.remove(base)


@pytest.mark.parametrize(
    ("target", "directory"),
    [
        pytest.param("file", "", id="a name"),
        pytest.param("a/b/c", "", id="several names"),
        pytest.param("nothing/at/all", "", id="dangling"),
        pytest.param("./a//b/", "", id="written oddly"),
        pytest.param(".", "", id="itself"),
        pytest.param("..", "a", id="one up from depth one"),
        pytest.param("../d", "a", id="up and down"),
        pytest.param("../../d", "a/b", id="two up from depth two"),
        pytest.param("../../../d/x", "a/b/c", id="three up from depth three"),
        pytest.param(".././.././d", "a/b", id="up, written oddly"),
        pytest.param(".ssh/id", "", id="a hidden name: the view hides it itself"),
        pytest.param("to_etc/passwd", "", id="through another link: that is judged itself"),
        pytest.param("self", "", id="a cycle: the kernel ends it"),
        pytest.param("...", "", id="a name of three dots"),
        pytest.param("..a/b", "", id="a name that begins with two dots"),
    ],
)
def test_a_relative_target_that_stays_inside_by_its_text_is_unchanged(
    tree: Tree, target: str, directory: str
) -> None:
    assert tree.in_home(target, directory) == target


@pytest.mark.parametrize(
    ("target", "directory", "expected"),
    [
        pytest.param("{base}/home/a", "", "a", id="absolute"),
        pytest.param("{base}/home/a", "a/b", "../../a", id="absolute, from below"),
        pytest.param("{base}/home", "", ".", id="home itself"),
        pytest.param("{base}/home", "a/b", "../..", id="home itself, from below"),
        pytest.param("{base}/home//a/./b", "", "a/b", id="absolute, written oddly"),
        pytest.param("{base}/home/nothing/x", "d", "../nothing/x", id="absolute and dangling"),
        pytest.param("{base}/home/a/../d", "", "d", id="`..` behind a name"),
        pytest.param("{base}/home/a/b/../../d", "", "d", id="`..` twice"),
        pytest.param("/alias/home/a/b", "d", "../a/b", id="another spelling of home"),
        pytest.param("a/../d", "", "d", id="relative, `..` behind a name"),
        pytest.param("../a/../d", "d", "../d", id="relative, `..` in the middle"),
        pytest.param("a/b/..", "", "a", id="relative, `..` at the end"),
        pytest.param("to_a/../d", "", "d", id="`..` behind a link counts from where it leads"),
        pytest.param("deep/../file", "", "a/b/file", id="`..` behind a link to the depth"),
        pytest.param("{base}/home/abs_a/b", "", "a/b", id="through an absolute link"),
        pytest.param("{base}/home/alias_a/b", "", "a/b", id="through another spelling"),
        pytest.param("{base}/home/a/up/d", "", "d", id="through a link that climbs"),
        pytest.param("{base}/home/a/b/up2/d", "", "d", id="through a link that climbs twice"),
        pytest.param("{base}/home/to_file", "", "a/b/file", id="to a link to a file"),
        pytest.param("{base}/extra/e", "", ".lamfuse/roots{base}/extra/e", id="into an extra root"),
        pytest.param(
            "{base}/home/abs_extra/f",
            "a",
            "../.lamfuse/roots{base}/extra/e/f",
            id="through a link into an extra root",
        ),
        pytest.param("{base}/home/chain3", "", "file", id="39 links in a row"),
    ],
)
def test_what_lands_inside_is_said_as_a_relative_path(
    tree: Tree, target: str, directory: str, expected: str
) -> None:
    assert tree.in_home(target, directory) == expected.format(base=tree.base)


@pytest.mark.parametrize(
    ("target", "directory"),
    [
        pytest.param("..", "", id="above home"),
        pytest.param("../home/a", "", id="out and in again, relative"),
        pytest.param("../../outside", "a", id="one more up than there is"),
        pytest.param("../../../home/a", "a/b", id="out and in again, from below"),
        pytest.param("a/../../home/d", "", id="out behind a name"),
        pytest.param("a/../..", "", id="out behind a name, at the end"),
        pytest.param("{base}/home/a/b/up3", "", id="to a link that climbs out"),
        pytest.param("{base}/home/out", "", id="to a link that leads out"),
        pytest.param("{base}/home/../home/a", "", id="out and in again, absolute"),
        pytest.param("{base}/home/..", "", id="above home, absolute"),
        pytest.param("{base}", "", id="the folder of home"),
        pytest.param("{base}/outside", "", id="beside home"),
        pytest.param("{base}/home-evil", "", id="beside home, the same beginning"),
        pytest.param("{base}/home-evil/../home/a", "", id="beside home and in again"),
        pytest.param("/", "", id="the root"),
        pytest.param("/etc/passwd", "", id="the system"),
        pytest.param("/proc/self/root/etc", "", id="proc"),
        pytest.param("/alias/home2/a", "", id="beside the other spelling"),
        pytest.param("{base}/home/to_etc/passwd", "", id="through a link to the system"),
        pytest.param("/usr/../etc", "", id="the system by way of what is let through"),
        pytest.param("/usrlocal", "", id="beside what is let through"),
        pytest.param("{base}/home/.ssh/id", "", id="hidden"),
        pytest.param("{base}/home/.ssh/nothing", "", id="hidden and missing"),
        pytest.param("{base}/home/.env", "", id="a hidden file"),
        pytest.param("{base}/home/x/.ssh", "", id="hidden below"),
        pytest.param("{base}/home/nothing/.env", "", id="hidden where nothing is"),
        pytest.param("{base}/home/.ssh/../a", "", id="by way of a hidden folder"),
        pytest.param("{base}/home/.nothing/../a", "", id="by way of a missing folder"),
        pytest.param("{base}/home/to_ssh/id", "", id="through a link to a hidden folder"),
        pytest.param("a/../.ssh/id", "", id="hidden, relative"),
        pytest.param("{base}/extra/.env", "", id="hidden in an extra root"),
        pytest.param("{base}/extra/../outside", "", id="out of an extra root"),
        pytest.param("{base}/home/cycle1", "", id="a cycle"),
        pytest.param("{base}/home/self/x", "", id="a link to itself"),
        pytest.param("{base}/home/chain0", "", id="more links than the kernel follows"),
        pytest.param("{base}/home/dangling/../a", "", id="`..` behind what is missing"),
        pytest.param("{base}/home/file/../a", "", id="`..` behind a file"),
        pytest.param("{base}/home/file/x", "", id="below a file"),
        pytest.param("{base}/home/" + "n" * 300 + "/../a", "", id="a name that is too long"),
    ],
)
def test_there_is_no_answer_for_what_leads_out_or_to_a_hidden_name(
    tree: Tree, target: str, directory: str
) -> None:
    assert tree.in_home(target, directory) is None


@pytest.mark.parametrize(
    "target", ["/usr/bin/python3", "/usr", "/bin/sh", "/usr//lib/./x", "/usr/nothing"]
)
def test_links_to_the_system_are_unchanged(tree: Tree, target: str) -> None:
    assert tree.in_home(target, "a") == target


def test_a_home_or_root_in_the_system_is_no_part_of_it(tree: Tree) -> None:
    inside = Tree.__new__(Tree)
    inside.base, inside.anchors = tree.base, tree.anchors
    inside.link_ok = (os.fsencode(tree.base), b"/alias")
    assert inside.in_home("{base}/home/a") == "a"
    assert inside.in_home("{base}/home/.ssh/id") is None
    assert inside.in_home("/alias/home/.ssh/id") is None
    assert inside.in_home("{base}/outside") == f"{tree.base}/outside"


@pytest.mark.parametrize(
    ("target", "directory", "expected"),
    [
        pytest.param("f", "e", "f", id="inside"),
        pytest.param("../e", "e", "../e", id="up to its root"),
        pytest.param("../..", "e", None, id="above its root"),
        pytest.param("{base}/extra/e", "", "e", id="absolute in the same root"),
    ],
)
def test_an_extra_root_is_its_own_top(
    tree: Tree, target: str, directory: str, expected: str | None
) -> None:
    text = os.fsencode(target.format(base=tree.base))
    answer = tree.judge(paths.join(tree.extra, os.fsencode(directory)), text)
    if expected == "e":
        up = len(paths.components(tree.anchors[1].shown))
        assert answer == b"../" * up + tree.anchors[1].shown + b"/e"
    else:
        assert answer == (None if expected is None else expected.encode())


def test_from_an_extra_root_into_home(tree: Tree) -> None:
    answer = tree.judge(tree.extra + b"/e", tree.home + b"/a")
    assert answer == b"../" * (len(paths.components(tree.anchors[1].shown)) + 1) + b"a"


def test_a_link_outside_every_root_has_no_answer(tree: Tree) -> None:
    assert tree.judge(b"/etc", b"passwd") is None
    assert tree.judge(os.fsencode(tree.base / "home-evil"), b"x") is None


def test_the_innermost_root_counts(tree: Tree) -> None:
    inner = os.fsencode(tree.base / "home/a")
    fd = syscalls.open_root(inner)
    try:
        links = Links([*tree.anchors, Anchor(inner, fd, b".lamfuse/x")], (), tree.hides)
        assert links.judge(inner + b"/b", b"../../d") is None
        assert links.judge(inner + b"/b", b"..") == b".."
        assert links.judge(tree.home, inner + b"/b") == b".lamfuse/x/b"
    finally:
        syscalls.close(fd)


@pytest.mark.requirement("H5")
def test_what_is_hidden_or_outside_is_never_looked_at(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[bytes] = []
    look = syscalls.open_beneath

    def note(root: int, relative: bytes) -> int:
        looked.append(paths.join(syscalls.real_path(root), relative))
        return look(root, relative)

    monkeypatch.setattr(syscalls, "open_beneath", note)
    for target in (
        "{base}/home/.ssh/id/x",
        "{base}/home/to_ssh/id",
        "{base}/home/to_etc/passwd",
        "{base}/outside/x",
        "{base}/home/../outside/x",
        "a/../.ssh/id",
        "/etc/passwd",
    ):
        assert tree.in_home(target) is None
    assert looked
    for path in looked:
        assert not tree.hides(path, None)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO])
def test_what_cannot_be_looked_at_has_no_answer(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def fail(root: int, relative: bytes) -> int:
        raise OSError(number, "no")

    monkeypatch.setattr(syscalls, "open_beneath", fail)
    assert tree.in_home("{base}/home/a") is None


# --- a kernel that knows nothing but the view ---

_NAMES = ["a", "b", "c", ".ssh"]
_pieces = st.sampled_from([*_NAMES, "..", "..", ".", "l0", "l1", "l2", "nothing"])
_relative = st.lists(_pieces, min_size=1, max_size=5).map("/".join)
_targets = st.one_of(
    _relative,
    _relative.map("{{base}}/home/{}".format),
    _relative.map("{{base}}/extra/{}".format),
    _relative.map("{{base}}/{}".format),
    _relative.map("/alias/home/{}".format),
    st.sampled_from(["/", "/etc", "/usr/bin", "/usr/../etc", "{base}", "{base}/home-evil"]),
)
_places = st.lists(st.sampled_from(["a", "b", "c"]), max_size=3).map("/".join)
_links = st.dictionaries(
    st.tuples(st.sampled_from(["home", "extra"]), _places, st.sampled_from(["l0", "l1", "l2"])),
    _targets,
    min_size=1,
    max_size=5,
)


class LeftTheViewError(Exception):
    """The kernel stands above the root of the view."""


class Kernel:
    """Walks as a kernel would that sees the view at some place of its own.

    A position is a list of names below the root of the view. The real directories are asked, and
    each link only says what the judge says.
    """

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.links = Links(tree.anchors, tree.link_ok, tree.hides)

    def real(self, position: list[bytes]) -> bytes | None:
        """Return what the view shows at *position*; None for its own virtual folders."""
        shown = b"/".join(position)
        extra = self.tree.anchors[1]
        if position[:1] == [b".lamfuse"]:
            if shown == extra.shown or shown.startswith(extra.shown + b"/"):
                return extra.path + shown[len(extra.shown) :]
            return None
        return self.tree.home + (b"/" + shown if shown else b"")

    def follow(self, directory: list[bytes], text: bytes, budget: int = 40) -> None:
        """Follow *text* from *directory*; raises LeftTheViewError where that leads out."""
        position, todo = list(directory), [name for name in text.split(b"/") if name]
        if text.startswith(b"/"):
            assert any(paths.contains(place, text) for place in self.tree.link_ok), text
            assert b".." not in todo
            return
        while todo:
            name = todo.pop(0)
            if name == b".":
                continue
            if name == b"..":
                if not position:
                    raise LeftTheViewError(text)
                position.pop()
                continue
            position.append(name)
            real = self.real(position)
            if real is None:
                continue
            if self.tree.hides(real, None) or not os.path.lexists(real):
                return
            if os.path.islink(real):
                budget -= 1
                position.pop()
                here = self.real(position)
                assert here is not None
                said = self.links.judge(here, os.readlink(real))
                if said is None or budget < 0:
                    return
                if said.startswith(b"/"):
                    self.follow(position, said, budget)
                    return
                todo = [name for name in said.split(b"/") if name] + todo
            elif todo and not os.path.isdir(real):
                return


@given(links=_links)
@settings(max_examples=80)
def test_following_any_link_never_leaves_the_view(
    links: dict[tuple[str, str, str], str],
) -> None:
    base = Path(tempfile.mkdtemp(prefix="lf-"))
    tree = Tree(base)
    try:
        made = []
        for (root, place, name), target in links.items():
            folder = base / root / place
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).symlink_to(target.format(base=base))
            made.append((root, place, name))
        (base / "home/.ssh").mkdir(exist_ok=True)
        kernel = Kernel(tree)
        for root, place, name in made:
            shown = tree.anchors[root == "extra"].shown
            position = [*paths.components(shown), *paths.components(os.fsencode(place))]
            kernel.follow(position, os.fsencode(name))
    finally:
        tree.close()
        residue.remove(base)


def test_the_walk_of_the_property_notices_a_link_that_leads_out(tree: Tree) -> None:
    kernel = Kernel(tree)
    with pytest.raises(LeftTheViewError):
        kernel.follow([b"a"], b"../../outside")
    with pytest.raises(AssertionError):
        kernel.follow([b"a"], b"/etc/passwd")
