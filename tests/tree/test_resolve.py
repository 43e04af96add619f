"""From an inode to descriptors: what is acted on is what stands there, at its real path."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamfuse.core.target import FileKind
from lamfuse.tree import syscalls
from lamfuse.tree.inodes import Inode
from lamfuse.tree.resolve import Target, Tree, kind_of

pytestmark = pytest.mark.requirement("H33", "L3")


class Bench:
    def __init__(self, home: Path) -> None:
        self.home = home
        fd = syscalls.open_root(os.fsencode(home))
        self.tree = Tree(fd, open_directories=3, nameless=2)

    def inode(self, path: str) -> Inode:
        """Look up *path* as the kernel would, name by name."""
        inode = self.tree.inodes.root
        for name in os.fsencode(path).split(b"/"):
            seen = syscalls.stat_at(self.tree.directories.fd(inode), name)
            inode = self.tree.inodes.seen(seen, inode, name)
            inode.lookups += 1
        return inode

    def entry(self, path: str) -> Target:
        folder, _, name = path.rpartition("/")
        parent = self.inode(folder) if folder else self.tree.inodes.root
        return self.tree.entry(parent, os.fsencode(name))

    def real(self, path: str) -> bytes:
        return os.fsencode(self.home / path)


@pytest.fixture
def bench(home: Path) -> Iterator[Bench]:
    bench = Bench(home)
    yield bench
    bench.tree.close()


def errno_of(call: object, *arguments: object) -> int | None:
    assert callable(call)
    with pytest.raises(OSError) as caught:
        call(*arguments)
    return caught.value.errno


@pytest.mark.parametrize(
    ("mode", "kind"),
    [
        (stat.S_IFREG, FileKind.FILE),
        (stat.S_IFDIR, FileKind.DIRECTORY),
        (stat.S_IFLNK, FileKind.SYMLINK),
        (stat.S_IFIFO, FileKind.FIFO),
        (stat.S_IFSOCK, FileKind.SOCKET),
        (stat.S_IFCHR, FileKind.DEVICE),
        (stat.S_IFBLK, FileKind.DEVICE),
    ],
)
def test_kinds(mode: int, kind: FileKind) -> None:
    assert kind_of(mode | 0o644) is kind


class TestTarget:
    def test_a_free_name(self, bench: Bench) -> None:
        (bench.home / "d").mkdir()
        with bench.entry("d/x") as target:
            assert target.fd == -1
            assert target.path() == bench.real("d/x")
            assert target.stands()
            subject = target.subject()
        assert (subject.path, subject.exists, subject.identity) == (bench.real("d/x"), False, None)
        assert subject.parent is not None
        assert subject.parent.ino == os.lstat(bench.home / "d").st_ino

    def test_a_file_is_described_as_it_is(self, bench: Bench) -> None:
        (bench.home / "d").mkdir()
        (bench.home / "d/x").write_bytes(b"12345")
        os.link(bench.home / "d/x", bench.home / "other")
        there = os.lstat(bench.home / "d/x")
        with bench.entry("d/x") as target:
            names = (bench.real("d/x"), bench.real("other"))
            subject = target.subject(names)
        assert subject.path == bench.real("d/x")
        assert subject.kind is FileKind.FILE
        assert (subject.size, subject.links, subject.unlinked) == (5, 2, False)
        assert (subject.mtime_ns, subject.ctime_ns) == (there.st_mtime_ns, there.st_ctime_ns)
        assert subject.other_names == (bench.real("other"),)
        assert subject.identity is not None
        assert subject.identity.ino == there.st_ino
        assert subject.lines is None

    def test_a_link_is_described_itself(self, bench: Bench) -> None:
        (bench.home / "file").touch()
        (bench.home / "l").symlink_to("file")
        with bench.entry("l") as target:
            assert target.subject().kind is FileKind.SYMLINK
            assert target.path() == bench.real("l")

    def test_its_path_is_where_it_is_now(self, bench: Bench) -> None:
        (bench.home / "d").mkdir()
        (bench.home / "d/x").touch()
        with bench.entry("d/x") as target:
            os.rename(bench.home / "d", bench.home / "e")
            assert target.path() == bench.real("e/x")
            assert target.stands()

    def test_another_object_under_its_name_is_noticed_and_can_be_taken(self, bench: Bench) -> None:
        (bench.home / "x").touch()
        with bench.entry("x") as target:
            before = target.subject().identity
            (bench.home / "new").touch()
            os.rename(bench.home / "new", bench.home / "x")
            assert not target.stands()
            assert target.subject().unlinked
            assert target.subject().identity == before
            target.refresh()
            assert target.stands()
            assert target.subject().identity != before
            assert not target.subject().unlinked

    def test_what_is_gone_is_noticed(self, bench: Bench) -> None:
        (bench.home / "x").touch()
        with bench.entry("x") as target:
            os.unlink(bench.home / "x")
            assert not target.stands()
            target.refresh()
            assert target.fd == -1
            assert target.stands()
            (bench.home / "x").touch()
            assert not target.stands()

    def test_a_link_put_in_its_place_is_not_followed(self, bench: Bench, tmp_path: Path) -> None:
        (tmp_path / "secret").write_bytes(b"secret")
        (bench.home / "x").touch()
        with bench.entry("x") as target:
            os.unlink(bench.home / "x")
            (bench.home / "x").symlink_to(tmp_path / "secret")
            assert not target.stands()
            target.refresh()
            assert target.subject().kind is FileKind.SYMLINK

    def test_an_inode_number_that_is_used_again_is_another_identity(self, bench: Bench) -> None:
        """Where the file system gives the number again at once, birth and generation differ."""
        seen = set()
        for _ in range(5):
            (bench.home / "x").touch()
            with bench.entry("x") as target:
                seen.add(target.subject().identity)
            os.unlink(bench.home / "x")
        assert len(seen) == 5

    def test_what_is_held_without_a_name_stands(self, bench: Bench) -> None:
        with bench.tree.directory(bench.tree.inodes.root) as target:
            assert target.dirfd == -1
            assert target.stands()
            target.refresh()
            assert target.path() == os.fsencode(bench.home)
            assert target.subject().parent is None
            assert target.subject().is_directory


class TestDirectory:
    def test_it_has_its_place(self, bench: Bench) -> None:
        (bench.home / "a/b").mkdir(parents=True)
        with bench.tree.directory(bench.inode("a/b")) as target:
            assert (target.path(), target.name) == (bench.real("a/b"), b"b")
            assert target.stands()
            assert target.subject().parent is not None

    def test_one_that_moved_away_leaves_no_descriptor_open(self, bench: Bench) -> None:
        (bench.home / "a/b").mkdir(parents=True)
        inode = bench.inode("a/b")
        bench.tree.directories.forget(inode)
        os.rename(bench.home / "a/b", bench.home / "c")
        assert errno_of(bench.tree.directory, inode) == errno.ESTALE

    def test_a_parent_that_is_gone_leaves_no_descriptor_open(self, bench: Bench) -> None:
        (bench.home / "a/b").mkdir(parents=True)
        inode = bench.inode("a/b")
        bench.tree.directories.fd(inode)
        assert inode.parent is not None
        bench.tree.directories.forget(inode.parent)
        os.rename(bench.home / "a", bench.home / "c")
        assert errno_of(bench.tree.directory, inode) == errno.ESTALE


class TestEntry:
    def test_in_a_folder_that_moved_away_nothing_is_opened(self, bench: Bench) -> None:
        (bench.home / "a").mkdir()
        inode = bench.inode("a")
        os.rename(bench.home / "a", bench.home / "c")
        assert errno_of(bench.tree.entry, inode, b"x") == errno.ESTALE

    def test_an_error_of_the_kernel_leaves_no_descriptor_open(self, bench: Bench) -> None:
        assert errno_of(bench.tree.entry, bench.tree.inodes.root, b"n" * 300) == errno.ENAMETOOLONG

    def test_an_unknown_number_is_stale(self, bench: Bench) -> None:
        assert bench.tree.inode(1) is bench.tree.inodes.root
        assert errno_of(bench.tree.inode, 4711) == errno.ESTALE


class TestPaths:
    def test_every_name_that_still_leads_to_the_file_is_known(self, bench: Bench) -> None:
        (bench.home / "d").mkdir()
        (bench.home / "a").touch()
        for name in ("b", "c", "d/e"):
            os.link(bench.home / "a", bench.home / name)
        for name in ("a", "b", "c", "d/e"):
            inode = bench.inode(name)
        assert sorted(bench.tree.known_paths(inode)) == [
            bench.real(name) for name in ("a", "b", "c", "d/e")
        ]
        os.unlink(bench.home / "a")
        os.unlink(bench.home / "d/e")
        (bench.home / "a").touch()
        os.rename(bench.home / "d", bench.home / "moved")
        for _ in range(2):
            assert sorted(bench.tree.known_paths(inode)) == [bench.real("b"), bench.real("c")]
        for name in ("b", "c"):
            os.unlink(bench.home / name)
        assert bench.tree.known_paths(inode) == ()

    def test_a_name_in_a_folder_that_moved_is_known_at_its_new_place(self, bench: Bench) -> None:
        (bench.home / "d").mkdir()
        (bench.home / "d/x").touch()
        inode = bench.inode("d/x")
        os.rename(bench.home / "d", bench.home / "e")
        assert bench.tree.known_paths(inode) == (bench.real("e/x"),)

    def test_where_the_kernel_takes_a_folder_to_be(self, bench: Bench) -> None:
        (bench.home / "a/b/c").mkdir(parents=True)
        inode = bench.inode("a/b/c")
        assert bench.tree.shown_path(inode) == bench.real("a/b/c")
        assert bench.tree.directory_path(inode) == bench.real("a/b/c")
        os.rename(bench.home / "a/b", bench.home / "z")
        assert bench.tree.shown_path(inode) == bench.real("a/b/c")
        assert bench.tree.directory_path(inode) == bench.real("z/c")
        assert bench.tree.shown_path(bench.tree.inodes.root) == os.fsencode(bench.home)

    def test_that_of_a_folder_without_a_place_is_unknown(self, bench: Bench) -> None:
        (bench.home / "a/b").mkdir(parents=True)
        inode = bench.inode("a/b")
        parent = inode.parent
        assert parent is not None
        parent.add_name(inode, b"loop")
        assert bench.tree.shown_path(inode) is None
        inode.drop_name(parent, b"b")
        assert bench.tree.shown_path(inode) is None


class TestNameless:
    def keep(self, bench: Bench, name: str) -> Inode:
        """Remove the file *name*, which somebody has open."""
        (bench.home / name).touch()
        inode = bench.inode(name)
        with bench.entry(name) as target:
            os.unlink(bench.home / name)
            bench.tree.keep_nameless(inode, target.fd)
            bench.tree.keep_nameless(inode, target.fd)
        return inode

    def test_it_is_held_until_it_is_forgotten(self, bench: Bench) -> None:
        inode = self.keep(bench, "x")
        fd = bench.tree.nameless(inode)
        assert fd is not None
        assert syscalls.fstat(fd).links == 0
        bench.tree.forget(inode)
        bench.tree.forget(inode)
        assert bench.tree.nameless(inode) is None

    def test_the_oldest_are_let_go(self, bench: Bench) -> None:
        inodes = [self.keep(bench, name) for name in "xyz"]
        held = [bench.tree.nameless(inode) is not None for inode in inodes]
        assert held == [False, True, True]

    def test_another_object_under_the_number_is_not_taken_for_it(self, bench: Bench) -> None:
        inode = self.keep(bench, "x")
        fd = bench.tree.nameless(inode)
        assert fd is not None
        inode.become(syscalls.fstat(fd)._replace(birth_ns=1), 7)
        assert bench.tree.nameless(inode) is None
