"""The cache of directory descriptors: bounded, and never of another directory than was meant."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamfuse.tree import syscalls
from lamfuse.tree.directories import Directories
from lamfuse.tree.inodes import Inode, Inodes

pytestmark = pytest.mark.requirement("H33")


class Bench:
    """A cache over a real tree."""

    def __init__(self, home: Path, capacity: int) -> None:
        self.home = home
        self.fd = syscalls.open_root(os.fsencode(home))
        self.inodes = Inodes(syscalls.fstat(self.fd))
        self.directories = Directories(capacity)
        self.directories.add_anchor(self.inodes.root, self.fd)

    def inode(self, path: str) -> Inode:
        """Make the directories of *path* where they are missing, and look each up."""
        inode = self.inodes.root
        place = self.home
        for name in path.split("/"):
            place = place / name
            place.mkdir(exist_ok=True)
            fd = syscalls.open_root(os.fsencode(place))
            inode = self.inodes.seen(syscalls.fstat(fd), inode, os.fsencode(name))
            syscalls.close(fd)
        return inode

    def path(self, inode: Inode) -> str:
        return os.fsdecode(syscalls.real_path(self.directories.fd(inode)))

    def open_count(self) -> int:
        return len(os.listdir("/proc/self/fd"))


@pytest.fixture
def bench(home: Path) -> Iterator[Bench]:
    bench = Bench(home, 3)
    yield bench
    bench.directories.close()


def is_stale(bench: Bench, inode: Inode) -> bool:
    try:
        bench.directories.fd(inode)
    except OSError as error:
        return error.errno == errno.ESTALE
    return False


def test_a_directory_is_opened_through_its_parents(bench: Bench) -> None:
    inode = bench.inode("a/b/c")
    assert bench.path(inode) == str(bench.home / "a/b/c")
    assert bench.directories.fd(bench.inodes.root) == bench.fd
    assert bench.directories.is_anchor(bench.inodes.root)
    assert not bench.directories.is_anchor(inode)


def test_it_is_opened_once(bench: Bench) -> None:
    inode = bench.inode("a")
    assert bench.directories.fd(inode) == bench.directories.fd(inode)


@pytest.mark.parametrize("capacity", [1, 2, 3, 8])
def test_at_most_so_many_are_open(home: Path, capacity: int) -> None:
    bench = Bench(home, capacity)
    inodes = [bench.inode(f"d{number}/e/f") for number in range(10)]
    before = bench.open_count()
    for _ in range(2):
        for number, inode in enumerate(inodes):
            assert bench.path(inode) == str(home / f"d{number}/e/f")
    assert bench.open_count() - before <= capacity
    bench.directories.close()


def test_a_duplicate_outlives_the_cache(bench: Bench) -> None:
    inode = bench.inode("a")
    fd = syscalls.duplicate(bench.directories.fd(inode))
    for number in range(10):
        bench.directories.fd(bench.inode(f"d{number}"))
    bench.directories.forget(inode)
    assert syscalls.real_path(fd) == os.fsencode(bench.home / "a")
    assert bench.path(inode) == str(bench.home / "a")
    syscalls.close(fd)


def test_what_is_forgotten_is_closed(bench: Bench) -> None:
    inode = bench.inode("a")
    before = bench.open_count()
    bench.directories.fd(inode)
    assert bench.open_count() == before + 1
    bench.directories.forget(inode)
    bench.directories.forget(inode)
    assert bench.open_count() == before
    bench.directories.forget(bench.inodes.root)
    assert bench.directories.fd(bench.inodes.root) == bench.fd


def test_an_open_one_follows_a_move(bench: Bench) -> None:
    inode = bench.inode("a/b")
    bench.directories.fd(inode)
    os.rename(bench.home / "a/b", bench.home / "c")
    assert bench.path(inode) == str(bench.home / "c")


def test_one_that_moved_away_is_stale(bench: Bench) -> None:
    inode = bench.inode("a/b")
    os.rename(bench.home / "a", bench.home / "c")
    assert is_stale(bench, inode)
    os.rename(bench.home / "c", bench.home / "a")
    assert bench.path(inode) == str(bench.home / "a/b")


@pytest.mark.requirement("H3")
def test_a_link_in_its_place_is_not_followed(bench: Bench, tmp_path: Path) -> None:
    inode = bench.inode("a/b")
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "b").mkdir(parents=True)
    os.rename(bench.home / "a", bench.home / "moved")
    for target in (elsewhere, bench.home / "moved", "moved"):
        os.symlink(target, bench.home / "a")
        assert is_stale(bench, inode)
        os.unlink(bench.home / "a")


def test_another_directory_in_its_place_is_not_taken_for_it(bench: Bench) -> None:
    inode = bench.inode("a/b")
    os.rename(bench.home / "a", bench.home / "moved")
    (bench.home / "a").mkdir()
    (bench.home / "a/b").mkdir()
    before = bench.open_count()
    assert is_stale(bench, inode)
    assert bench.open_count() == before


def test_a_file_in_its_place_is_stale(bench: Bench) -> None:
    inode = bench.inode("a")
    os.rmdir(bench.home / "a")
    (bench.home / "a").touch()
    assert is_stale(bench, inode)


def test_one_that_has_no_place_or_is_below_itself_is_stale(bench: Bench) -> None:
    inode = bench.inode("a/b")
    parent = inode.parent
    assert parent is not None
    parent.add_name(inode, b"loop")
    assert is_stale(bench, inode)
    inode.drop_name(parent, b"b")
    assert is_stale(bench, inode)


def test_whatever_else_the_kernel_says_passes_on(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    inode = bench.inode("a")

    def refuse(dirfd: int, name: bytes) -> int:
        raise PermissionError(errno.EACCES, "no")

    monkeypatch.setattr(syscalls, "open_directory", refuse)
    with pytest.raises(PermissionError):
        bench.directories.fd(inode)
