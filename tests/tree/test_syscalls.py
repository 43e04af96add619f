"""The only system calls on files: each on descriptors, none through a link."""

from __future__ import annotations

import errno
import os
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lamfuse.tree import syscalls

pytestmark = pytest.mark.requirement("H33")


@contextmanager
def opened(top: int, name: bytes) -> Iterator[int]:
    """Give an O_PATH descriptor of *name*."""
    fd = syscalls.open_path(top, name)
    try:
        yield fd
    finally:
        syscalls.close(fd)


def errno_of(call: Callable[..., object], *arguments: object) -> int | None:
    with pytest.raises(OSError) as caught:
        call(*arguments)
    return caught.value.errno


@pytest.fixture
def tree(home: Path) -> Path:
    """Make one of each kind."""
    (home / "d").mkdir()
    (home / "d/e").mkdir()
    (home / "d/e/f").touch()
    (home / "file").write_bytes(b"0123456789")
    (home / "link").symlink_to("file")
    (home / "dirlink").symlink_to("d")
    (home / "dangling").symlink_to("nothing")
    os.mkfifo(home / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        where = os.getcwd()
        os.chdir(home)  # a socket's path may have 107 bytes
        try:
            server.bind("socket")
        finally:
            os.chdir(where)
    return home


@pytest.mark.usefixtures("tree")
class TestOpening:
    @pytest.mark.parametrize(
        ("name", "kind"),
        [
            (b"file", stat.S_IFREG),
            (b"d", stat.S_IFDIR),
            (b"link", stat.S_IFLNK),
            (b"dirlink", stat.S_IFLNK),
            (b"dangling", stat.S_IFLNK),
            (b"fifo", stat.S_IFIFO),
            (b"socket", stat.S_IFSOCK),
        ],
    )
    def test_a_name_is_opened_itself(self, top: int, name: bytes, kind: int) -> None:
        with opened(top, name) as fd:
            assert stat.S_IFMT(syscalls.fstat(fd).mode) == kind
            assert syscalls.fstat(fd) == syscalls.stat_at(top, name)
            assert not os.get_inheritable(fd)

    @pytest.mark.parametrize(
        ("name", "number"),
        [
            (b"file", errno.ENOTDIR),
            (b"link", errno.ENOTDIR),
            (b"dirlink", errno.ENOTDIR),
            (b"fifo", errno.ENOTDIR),
            (b"nothing", errno.ENOENT),
        ],
    )
    def test_only_a_directory_is_opened_as_one(self, top: int, name: bytes, number: int) -> None:
        assert errno_of(syscalls.open_directory, top, name) == number
        fd = syscalls.open_directory(top, b"d")
        assert stat.S_ISDIR(syscalls.fstat(fd).mode)
        syscalls.close(fd)

    def test_beneath_goes_name_by_name(self, top: int, tree: Path) -> None:
        for relative in (b"", b"d", b"d/e/f", b"link"):
            fd = syscalls.open_beneath(top, relative)
            expected = os.path.join(os.fsencode(tree), relative) if relative else os.fsencode(tree)
            assert syscalls.real_path(fd) == expected
            syscalls.close(fd)

    @pytest.mark.requirement("H3")
    @pytest.mark.parametrize("opens", [syscalls.open_beneath, syscalls.open_here])
    def test_no_link_on_the_way_is_followed(
        self, top: int, opens: Callable[[int, bytes], int]
    ) -> None:
        for relative in (b"dirlink/e", b"dangling/x", b"link/x"):
            assert errno_of(opens, top, relative) in {errno.ENOTDIR, errno.ELOOP}
        assert errno_of(opens, top, b"d/nothing/x") == errno.ENOENT

    @pytest.mark.requirement("H3")
    def test_here_stays_below_and_on_its_file_system(self, top: int, tree: Path) -> None:
        for relative, name in ((b"", ""), (b"d", "d"), (b"d/e", "d/e")):
            fd = syscalls.open_here(top, relative)
            assert syscalls.real_path(fd) == os.fsencode(tree / name)
            syscalls.close(fd)
        assert errno_of(syscalls.open_here, top, b"file") == errno.ENOTDIR
        assert errno_of(syscalls.open_here, top, b"dirlink") in {errno.ELOOP, errno.ENOTDIR}
        root = syscalls.open_root(b"/")
        try:
            assert errno_of(syscalls.open_here, root, b"proc") == errno.EXDEV
        finally:
            syscalls.close(root)

    def test_the_very_object_is_reopened(self, top: int, tree: Path) -> None:
        with opened(top, b"file") as fd:
            os.rename(tree / "file", tree / "moved")
            (tree / "file").write_bytes(b"another")
            again = syscalls.reopen(fd, os.O_RDONLY)
            assert os.read(again, 20) == b"0123456789"
            assert not os.get_inheritable(again)
            syscalls.close(again)
        with opened(top, b"link") as fd:
            assert errno_of(syscalls.reopen, fd, os.O_RDONLY) == errno.ELOOP
        with opened(top, b"fifo") as fd:
            assert errno_of(syscalls.reopen, fd, os.O_WRONLY | os.O_NONBLOCK) == errno.ENXIO

    def test_a_duplicate_is_of_its_own(self, top: int) -> None:
        with opened(top, b"file") as fd:
            other = syscalls.duplicate(fd)
        assert syscalls.fstat(other).size == 10
        syscalls.close(other)


@pytest.mark.usefixtures("tree")
class TestLooking:
    def test_stat_tells_what_the_kernel_tells(self, top: int, tree: Path) -> None:
        for name in ("file", "d", "link", "fifo"):
            seen, expected = syscalls.stat_at(top, name.encode()), os.lstat(tree / name)
            assert (seen.mode, seen.links, seen.uid, seen.gid, seen.size, seen.ino) == (
                expected.st_mode,
                expected.st_nlink,
                expected.st_uid,
                expected.st_gid,
                expected.st_size,
                expected.st_ino,
            )
            assert (seen.atime_ns, seen.mtime_ns, seen.ctime_ns) == (
                expected.st_atime_ns,
                expected.st_mtime_ns,
                expected.st_ctime_ns,
            )
            assert seen.blocks == expected.st_blocks
            assert os.makedev(seen.dev >> 32, seen.dev & 0xFFFFFFFF) == expected.st_dev
            assert 0 <= seen.birth_ns <= seen.ctime_ns
        assert errno_of(syscalls.stat_at, top, b"nothing") == errno.ENOENT

    def test_devices_have_their_numbers(self) -> None:
        root = syscalls.open_root(b"/dev")
        try:
            assert syscalls.stat_at(root, b"null").rdev == os.lstat("/dev/null").st_rdev
        finally:
            syscalls.close(root)

    def test_a_mount_is_told_from_another(self, top: int) -> None:
        root = syscalls.open_root(b"/")
        try:
            proc = syscalls.stat_at(root, b"proc")
            assert proc.mount != syscalls.fstat(root).mount
        finally:
            syscalls.close(root)
        assert syscalls.stat_at(top, b"file").mount == syscalls.fstat(top).mount

    @pytest.mark.requirement("L3")
    def test_an_identity_is_that_of_the_object_whatever_it_is_called(
        self, top: int, tree: Path
    ) -> None:
        def identity(name: bytes) -> object:
            with opened(top, name) as fd:
                return syscalls.identity(fd, syscalls.fstat(fd))

        before = identity(b"file")
        assert identity(b"link") != before
        assert identity(b"d") != before
        (tree / "file").write_bytes(b"changed")
        os.chmod(tree / "file", 0o600)
        os.link(tree / "file", tree / "other")
        assert identity(b"file") == identity(b"other") == before
        os.unlink(tree / "other")
        os.rename(tree / "file", tree / "d/file")
        with opened(top, b"d") as folder, opened(folder, b"file") as fd:
            assert syscalls.identity(fd, syscalls.fstat(fd)) == before

    def test_names_are_listed(self, top: int, tree: Path) -> None:
        (tree / os.fsdecode(b"\xff\n")).touch()
        assert sorted(syscalls.list_names(top)) == sorted(os.listdir(os.fsencode(tree)))
        assert b"\xff\n" in syscalls.list_names(top)

    def test_scanning_tells_the_kinds(self, top: int, tree: Path) -> None:
        found = {name: (kind, ino) for name, kind, ino in syscalls.scan(top)}
        assert found == {
            name: (kind, os.lstat(tree / os.fsdecode(name)).st_ino)
            for name, kind in {
                b"d": stat.S_IFDIR,
                b"file": stat.S_IFREG,
                b"link": stat.S_IFLNK,
                b"dirlink": stat.S_IFLNK,
                b"dangling": stat.S_IFLNK,
                b"fifo": stat.S_IFREG,
                b"socket": stat.S_IFREG,
            }.items()
        }
        for _ in syscalls.scan(top):
            break  # an unfinished scan leaves no descriptor open

    def test_a_link_is_read_not_followed(self, top: int) -> None:
        with opened(top, b"dangling") as fd:
            assert syscalls.read_link(fd) == b"nothing"
        with opened(top, b"file") as fd:
            assert errno_of(syscalls.read_link, fd) == errno.ENOENT

    def test_real_paths_follow_the_object(self, top: int, tree: Path) -> None:
        with opened(top, b"file") as fd:
            os.rename(tree / "file", tree / "d/moved")
            assert syscalls.real_path(fd) == os.fsencode(tree / "d/moved")
            os.unlink(tree / "d/moved")
            assert syscalls.real_path(fd).endswith(b" (deleted)")
            assert syscalls.fstat(fd).links == 0

    def test_rights_are_those_of_the_process(self, top: int, tree: Path) -> None:
        os.chmod(tree / "file", 0o600)
        with opened(top, b"file") as fd:
            assert syscalls.has_access(fd, os.R_OK | os.W_OK)
            assert not syscalls.has_access(fd, os.X_OK)
        with opened(top, b"dangling") as fd:
            assert syscalls.has_access(fd, os.F_OK)

    def test_figures_of_the_file_system(self, top: int, tree: Path) -> None:
        assert syscalls.statvfs(top).f_bsize == os.statvfs(tree).f_bsize


@pytest.mark.usefixtures("tree")
class TestMaking:
    def test_a_file_is_made_only_where_nothing_stands(self, top: int, tree: Path) -> None:
        fd = syscalls.create(top, b"new", os.O_WRONLY, 0o640)
        os.write(fd, b"x")
        syscalls.close(fd)
        assert (tree / "new").read_bytes() == b"x"
        for name in (b"new", b"file", b"d", b"dangling", b"link"):
            assert errno_of(syscalls.create, top, name, os.O_WRONLY, 0o644) == errno.EEXIST
        assert not (tree / "nothing").exists()

    def test_directories_links_and_nodes(self, top: int, tree: Path) -> None:
        syscalls.make_directory(top, b"n", 0o700)
        assert stat.S_IMODE(os.lstat(tree / "n").st_mode) == 0o700
        syscalls.make_symlink(top, b"l", b"../any\xff")
        assert os.readlink(os.fsencode(tree / "l")) == b"../any\xff"
        syscalls.make_node(top, b"p", stat.S_IFIFO | 0o600)
        assert stat.S_ISFIFO(os.lstat(tree / "p").st_mode)
        syscalls.make_node(top, b"r", stat.S_IFREG | 0o600)
        assert os.lstat(tree / "r").st_size == 0
        assert errno_of(syscalls.make_directory, top, b"n", 0o700) == errno.EEXIST
        assert errno_of(syscalls.make_symlink, top, b"n", b"x") == errno.EEXIST

    def test_the_very_object_gets_one_more_name(self, top: int, tree: Path) -> None:
        with opened(top, b"file") as fd:
            os.rename(tree / "file", tree / "moved")
            (tree / "file").write_bytes(b"another")
            syscalls.link(fd, top, b"name")
        assert (tree / "name").read_bytes() == b"0123456789"
        with opened(top, b"dangling") as fd:
            syscalls.link(fd, top, b"link2")
        assert os.readlink(tree / "link2") == "nothing"

    def test_names_are_removed_not_what_they_lead_to(self, top: int, tree: Path) -> None:
        syscalls.unlink(top, b"link")
        assert (tree / "file").exists()
        assert errno_of(syscalls.unlink, top, b"d") in {errno.EISDIR, errno.EPERM}
        assert errno_of(syscalls.remove_directory, top, b"d") == errno.ENOTEMPTY
        assert errno_of(syscalls.remove_directory, top, b"dirlink") == errno.ENOTDIR
        (tree / "empty").mkdir()
        syscalls.remove_directory(top, b"empty")
        assert not (tree / "empty").exists()


@pytest.mark.usefixtures("tree")
class TestRenaming:
    def test_a_free_name(self, top: int, tree: Path) -> None:
        with opened(top, b"d") as folder:
            syscalls.rename(top, b"file", folder, b"x", syscalls.NOREPLACE)
        assert (tree / "d/x").read_bytes() == b"0123456789"

    def test_onto_another(self, top: int, tree: Path) -> None:
        (tree / "new").write_bytes(b"new")
        assert (
            errno_of(syscalls.rename, top, b"new", top, b"file", syscalls.NOREPLACE) == errno.EEXIST
        )
        syscalls.rename(top, b"new", top, b"file", 0)
        assert (tree / "file").read_bytes() == b"new"

    def test_exchanging(self, top: int, tree: Path) -> None:
        syscalls.rename(top, b"file", top, b"d", syscalls.EXCHANGE)
        assert (tree / "file").is_dir()
        assert (tree / "d").read_bytes() == b"0123456789"
        assert (
            errno_of(syscalls.rename, top, b"d", top, b"nothing", syscalls.EXCHANGE) == errno.ENOENT
        )

    def test_links_are_renamed_themselves(self, top: int, tree: Path) -> None:
        syscalls.rename(top, b"link", top, b"renamed", 0)
        assert os.readlink(tree / "renamed") == "file"


@pytest.mark.usefixtures("tree")
class TestAttributes:
    def test_modes(self, top: int, tree: Path) -> None:
        for name in (b"file", b"d", b"fifo"):
            with opened(top, name) as fd:
                syscalls.chmod(fd, 0o500)
            assert stat.S_IMODE(os.lstat(tree / os.fsdecode(name)).st_mode) == 0o500
        os.chmod(tree / "d", 0o700)
        before = os.lstat(tree / "file").st_mode
        with opened(top, b"link") as fd:
            assert errno_of(syscalls.chmod, fd, 0o777) == errno.EOPNOTSUPP
        assert os.lstat(tree / "file").st_mode == before

    @pytest.mark.root
    def test_owners(self, top: int, tree: Path) -> None:
        for name in (b"file", b"link"):
            with opened(top, name) as fd:
                syscalls.chown(fd, 12, -1)
                syscalls.chown(fd, -1, 34)
            seen = os.lstat(tree / os.fsdecode(name))
            assert (seen.st_uid, seen.st_gid) == (12, 34)
        assert os.lstat(tree / "dangling").st_uid == 0

    def test_owners_that_stay(self, top: int, tree: Path) -> None:
        before = os.lstat(tree / "link")
        with opened(top, b"link") as fd:
            syscalls.chown(fd, -1, -1)
        after = os.lstat(tree / "link")
        assert (before.st_uid, before.st_gid) == (after.st_uid, after.st_gid)

    @pytest.mark.parametrize("name", [b"file", b"link", b"d", b"fifo"])
    def test_times(self, top: int, tree: Path, name: bytes) -> None:
        path = tree / os.fsdecode(name)
        target = os.lstat(tree / "file").st_mtime_ns
        with opened(top, name) as fd:
            syscalls.set_times(fd, 1_000_000_001, 2_999_999_999)
            assert (os.lstat(path).st_atime_ns, os.lstat(path).st_mtime_ns) == (
                1_000_000_001,
                2_999_999_999,
            )
            syscalls.set_times(fd, None, 5)
            assert (os.lstat(path).st_atime_ns, os.lstat(path).st_mtime_ns) == (1_000_000_001, 5)
            syscalls.set_times(fd, 7, None)
            assert (os.lstat(path).st_atime_ns, os.lstat(path).st_mtime_ns) == (7, 5)
        if name != b"file":
            assert os.lstat(tree / "file").st_mtime_ns == target

    def test_times_before_1970(self, top: int, tree: Path) -> None:
        with opened(top, b"file") as fd:
            syscalls.set_times(fd, -1, -1_500_000_000)
        assert os.lstat(tree / "file").st_mtime_ns == -1_500_000_000
        assert syscalls.stat_at(top, b"file").mtime_ns == -1_500_000_000
        assert syscalls.stat_at(top, b"file").atime_ns == -1

    def test_extended_attributes(self, top: int, tree: Path) -> None:
        with opened(top, b"file") as fd:
            syscalls.set_xattr(fd, b"user.a", b"\0value\xff")
            assert syscalls.get_xattr(fd, b"user.a") == b"\0value\xff"
            assert b"user.a" in syscalls.list_xattrs(fd)
            syscalls.remove_xattr(fd, b"user.a")
            assert errno_of(syscalls.get_xattr, fd, b"user.a") == errno.ENODATA
            assert errno_of(syscalls.remove_xattr, fd, b"user.a") == errno.ENODATA
        with opened(top, b"link") as fd:
            assert b"user.a" not in syscalls.list_xattrs(fd)


@pytest.mark.usefixtures("tree")
class TestContent:
    @pytest.fixture
    def fd(self, top: int) -> Iterator[int]:
        with opened(top, b"file") as path:
            fd = syscalls.reopen(path, os.O_RDWR)
        yield fd
        syscalls.close(fd)

    @pytest.mark.parametrize(
        ("size", "offset", "expected"),
        [
            pytest.param(4, 0, b"0123", id="the beginning"),
            pytest.param(4, 3, b"3456", id="the middle"),
            pytest.param(99, 8, b"89", id="up to the end"),
            pytest.param(4, 10, b"", id="at the end"),
            pytest.param(4, 99, b"", id="behind the end"),
            pytest.param(0, 0, b"", id="nothing"),
            pytest.param(10, 0, b"0123456789", id="all"),
        ],
    )
    def test_reading(self, fd: int, size: int, offset: int, expected: bytes) -> None:
        assert syscalls.read(fd, size, offset) == expected
        assert syscalls.read_cached(fd, size, offset) in {expected, None}

    def test_short_reads_are_put_together(self, fd: int, monkeypatch: pytest.MonkeyPatch) -> None:
        read = os.pread
        monkeypatch.setattr(os, "pread", lambda fd, size, at: read(fd, min(size, 3), at))
        assert syscalls.read(fd, 8, 1) == b"12345678"
        assert syscalls.read(fd, 99, 1) == b"123456789"

    def test_a_partly_cached_range_is_no_answer(
        self, fd: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def part(fd: int, buffers: list[bytearray], offset: int, flags: int) -> int:
            buffers[0][:3] = b"012"
            return 3

        monkeypatch.setattr(os, "preadv", part)
        assert syscalls.read_cached(fd, 8, 0) is None
        assert syscalls.read_cached(fd, 8, 7) == b"012"  # the end of the file: that is all of it
        assert syscalls.read_cached(fd, 3, 0) == b"012"

    @pytest.mark.parametrize(
        ("number", "raised"),
        [(errno.EAGAIN, False), (errno.EOPNOTSUPP, False), (errno.EIO, True)],
    )
    def test_what_is_not_cached_is_no_answer(
        self, fd: int, monkeypatch: pytest.MonkeyPatch, number: int, *, raised: bool
    ) -> None:
        def fail(*arguments: object) -> int:
            raise OSError(number, "no")

        monkeypatch.setattr(os, "preadv", fail)
        if raised:
            assert errno_of(syscalls.read_cached, fd, 8, 0) == number
        else:
            assert syscalls.read_cached(fd, 8, 0) is None

    def test_writing(self, fd: int, tree: Path) -> None:
        assert syscalls.write(fd, b"AB", 3, append=False) == 2
        assert (tree / "file").read_bytes() == b"012AB56789"
        assert syscalls.write(fd, b"CD", 3, append=True) == 2
        assert (tree / "file").read_bytes() == b"012AB56789CD"
        assert syscalls.write(fd, b"E", 13, append=False) == 1
        assert (tree / "file").read_bytes() == b"012AB56789CD\0E"

    def test_truncating_and_syncing(self, fd: int, tree: Path) -> None:
        syscalls.truncate(fd, 3)
        assert (tree / "file").read_bytes() == b"012"
        syscalls.truncate(fd, 5)
        assert (tree / "file").read_bytes() == b"012\0\0"
        syscalls.sync(fd, data_only=True)
        syscalls.sync(fd, data_only=False)

    def test_a_descriptor_for_reading_cannot_be_written_to(self, top: int) -> None:
        with opened(top, b"file") as path:
            fd = syscalls.reopen(path, os.O_RDONLY)
            try:
                for call, arguments in (
                    (syscalls.truncate, (fd, 0)),
                    (lambda: syscalls.write(fd, b"x", 0, append=False), ()),
                ):
                    assert errno_of(call, *arguments) in {errno.EBADF, errno.EINVAL}
            finally:
                syscalls.close(fd)
