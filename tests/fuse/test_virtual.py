"""The folder ``.lamfuse`` of the view, and the roots outside home that stand in it."""

import errno
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fuse.changes import CHANGES, Change, errno_of, prepare, rename2, snapshot
from tests.mounting import HIDDEN, Mounted, make_home, mounted, place
from tests.person import decline, plain_yes

pytestmark = [pytest.mark.mount, pytest.mark.requirement("L7")]


@pytest.fixture(scope="module")
def rooted() -> Iterator[Mounted]:
    """A view with a read root and a write root outside home, and a real ``.lamfuse`` in home."""
    with place() as base:
        made = make_home(base)
        for name in ("library", "scratch", "library/deep/down"):
            (base / name).mkdir(parents=True)
        (base / "library/book.txt").write_bytes(b"book\n")
        (base / "library/.env").write_bytes(HIDDEN)
        (base / "library/deep/climber").symlink_to("../book.txt")
        (base / "library/deep/too-far").symlink_to("../../outside/foreign.txt")
        (base / "library/into-home").symlink_to(made.home / "Pictures/photo.bin")
        (made.home / "into-library").symlink_to(base / "library/book.txt")
        (made.home / ".lamfuse").mkdir()
        (made.home / ".lamfuse/real").write_bytes(HIDDEN)
        config = (
            f'read_roots = ["{base}/library"]\nwrite_roots = ["{base}/scratch"]\n'
            'deny = ["*.kdbx", "private/"]\n'
        )
        with mounted(made, config) as here:
            yield here


@pytest.fixture
def here(rooted: Mounted) -> Iterator[Mounted]:
    rooted.person.new_turn()
    rooted.person.forget(decline)
    with rooted.watchdog():
        yield rooted


def _root(here: Mounted, name: str) -> Path:
    return Path(f"{here.view}/.lamfuse/roots{here.place.base}/{name}")


def test_it_is_listed_once_and_holds_its_texts(here: Mounted) -> None:
    assert os.listdir(here.view).count(".lamfuse") == 1
    assert sorted(os.listdir(here.view / ".lamfuse")) == [
        "README.md", "policy.json", "refusals", "roots",
    ]  # fmt: skip
    assert not (here.view / ".lamfuse/real").exists()


@pytest.mark.requirement("H32", "H7")
def test_the_text_names_the_write_roots(here: Mounted) -> None:
    text = (here.view / ".lamfuse/README.md").read_text()
    assert "Downloads" in text
    assert f"{here.place.base}/scratch" in text
    assert len(text.encode()) == os.stat(here.view / ".lamfuse/README.md").st_size


def test_the_policy_is_data_and_keeps_the_persons_own_rules_to_itself(here: Mounted) -> None:
    text = (here.view / ".lamfuse/policy.json").read_text()
    policy = json.loads(text)
    assert f"{here.place.base}/scratch" in policy["write_roots"]
    assert f"{here.place.base}/library" in policy["read_roots"]
    assert policy["more_deny_rules"] == 2
    assert "/.ssh" in policy["deny"]
    assert "kdbx" not in text.replace(str(here.place.base), "")


_IN_IT: dict[str, Callable[[Path], object]] = {
    "create": lambda d: os.open(d / "new", os.O_CREAT | os.O_WRONLY),
    "write": lambda d: os.open(d / "README.md", os.O_WRONLY),
    "truncate by open": lambda d: os.open(d / "README.md", os.O_TRUNC),
    "truncate": lambda d: os.truncate(d / "README.md", 0),
    "chmod": lambda d: os.chmod(d / "README.md", 0o600),
    "utime": lambda d: os.utime(d / "README.md"),
    "setxattr": lambda d: os.setxattr(d / "README.md", "user.a", b""),
    "mkdir": lambda d: os.mkdir(d / "new"),
    "mkdir in roots": lambda d: os.mkdir(d / "roots/new"),
    "symlink": lambda d: os.symlink("x", d / "new"),
    "mkfifo": lambda d: os.mkfifo(d / "new"),
    "unlink": lambda d: os.unlink(d / "README.md"),
    "rmdir": lambda d: os.rmdir(d / "roots"),
    "rename": lambda d: os.rename(d / "README.md", d / "new"),
    "rename out": lambda d: os.rename(d / "README.md", d.parent / "Downloads/new"),
    "rename in": lambda d: os.rename(d.parent / "Downloads/old.txt", d / "new"),
    "the folder away": lambda d: os.rename(d, d.parent / "Downloads/new"),
    "onto the folder": lambda d: os.rename(d.parent / "Downloads", d),
    "the folder removed": os.rmdir,
    "exchange": lambda d: rename2(d / "README.md", d.parent / "Downloads/old.txt", 2),
}


@pytest.mark.parametrize("act", [pytest.param(act, id=name) for name, act in _IN_IT.items()])
def test_nothing_in_it_can_be_changed(here: Mounted, act: Callable[[Path], object]) -> None:
    here.person.forget(plain_yes)
    assert errno_of(act, here.view / ".lamfuse") in {errno.EROFS, errno.EBUSY, errno.EXDEV}
    assert here.person.asked == []
    assert (here.home / ".lamfuse/real").read_bytes() == HIDDEN


def test_a_link_to_its_texts_cannot_be_made(here: Mounted) -> None:
    assert errno_of(
        os.link, here.view / ".lamfuse/README.md", here.view / "Downloads/new"
    ) in {errno.EXDEV, errno.EROFS}  # fmt: skip


@pytest.mark.requirement("H6", "H31")
def test_refusals_are_listed_newest_last_and_look_ups_of_hidden_names_are_not(
    here: Mounted,
) -> None:
    here.person.forget(decline)
    assert errno_of(os.stat, here.view / ".ssh") == errno.ENOENT
    assert errno_of(os.mkdir, here.view / "Pictures/first") == errno.EROFS
    assert errno_of(os.mkdir, here.view / "Downloads/second") == errno.EACCES
    assert errno_of(os.mkdir, here.view / "Downloads/.env") == errno.EACCES
    *_, first, second, third = here.refusals().strip().split("\n\n")
    assert "Pictures/first" in first
    assert "declined" in second
    assert "Downloads/.env" in third
    assert ".ssh" not in here.refusals()


@pytest.mark.requirement("H11", "H23")
def test_roots_outside_home_stand_below_roots(here: Mounted) -> None:
    assert (_root(here, "library") / "book.txt").read_bytes() == b"book\n"
    assert sorted(os.listdir(_root(here, ""))) == ["library", "scratch"]
    assert not (_root(here, "outside")).exists()
    assert ".env" not in os.listdir(_root(here, "library"))
    assert errno_of(os.open, _root(here, "library") / ".env", os.O_RDONLY) == errno.ENOENT


@pytest.mark.requirement("H3", "H22")
@pytest.mark.parametrize("change", CHANGES)
def test_a_read_root_outside_home_is_read_only(here: Mounted, change: Change) -> None:
    folder = here.place.base / "library" / f"t{id(change)}"
    folder.mkdir()
    prepare(folder)
    before = snapshot(folder)
    here.person.forget(plain_yes)
    assert errno_of(change.act, _root(here, "library") / folder.name) == errno.EROFS
    assert here.person.asked == []
    assert snapshot(folder) == before


@pytest.mark.requirement("H22", "H4")
@pytest.mark.parametrize("change", CHANGES)
def test_a_write_root_outside_home_is_asked_about(here: Mounted, change: Change) -> None:
    folder = here.place.base / "scratch" / f"t{id(change)}"
    folder.mkdir()
    prepare(folder)
    before = snapshot(folder)
    assert errno_of(change.act, _root(here, "scratch") / folder.name) == errno.EACCES
    assert here.person.operations == [change.asks]
    assert snapshot(folder) == before
    here.person.new_turn()
    here.person.forget(plain_yes)
    change.act(_root(here, "scratch") / folder.name)
    assert here.person.operations == [change.asks]


@pytest.mark.requirement("H22")
def test_a_root_outside_home_itself_cannot_be_removed_or_moved(here: Mounted) -> None:
    here.person.forget(plain_yes)
    root = _root(here, "scratch")
    for act in (
        lambda: os.rmdir(root),
        lambda: os.rename(root, root.with_name("new")),
        lambda: os.rename(root, here.view / "Downloads/new"),
    ):
        assert errno_of(act) in {errno.EROFS, errno.EXDEV}
    assert here.person.asked == []


@pytest.mark.requirement("H3")
def test_links_between_home_and_roots_stay_in_the_view(here: Mounted) -> None:
    library = _root(here, "library")
    assert (here.view / "into-library").read_bytes() == b"book\n"
    assert os.path.realpath(here.view / "into-library") == str(library / "book.txt")
    assert (library / "into-home").read_bytes()[:2] == b"\0\1"
    assert os.path.realpath(library / "into-home") == str(here.view / "Pictures/photo.bin")
    assert os.readlink(library / "deep/climber") == "../book.txt"
    assert errno_of(os.readlink, library / "deep/too-far") == errno.EACCES
