"""What the view shows of what it shows: real attributes, real contents, the truth about access."""

import ctypes
import errno
import os
import stat
from pathlib import Path

import pytest

from tests.fuse.bench import Bench
from tests.fuse.changes import errno_of, prepare

pytestmark = [pytest.mark.mount, pytest.mark.requirement("H11")]


def test_attributes_are_the_real_ones_but_for_the_links_of_a_folder(bench: Bench) -> None:
    prepare(bench.closed_real)
    (bench.closed_real / "set").write_bytes(b"x")
    (bench.closed_real / "set").chmod(0o6711)
    for name in ("file", "empty", "full/inner", "link", "set", "marked"):
        shown, real = os.lstat(bench.closed / name), os.lstat(bench.closed_real / name)
        for field in ("st_mode", "st_uid", "st_gid", "st_size", "st_ino", "st_blocks",
                      "st_mtime_ns", "st_ctime_ns", "st_blksize"):  # fmt: skip
            assert getattr(shown, field) == getattr(real, field), (name, field)
        expected = 1 if stat.S_ISDIR(real.st_mode) else real.st_nlink
        assert shown.st_nlink == expected


def test_the_view_is_a_file_system_of_its_own_with_the_figures_of_home(bench: Bench) -> None:
    shown, real = os.statvfs(bench.view), os.statvfs(bench.home)
    assert os.stat(bench.view).st_dev != os.stat(bench.home).st_dev
    assert (shown.f_blocks, shown.f_bsize, shown.f_namemax, shown.f_files) == (
        real.f_blocks, real.f_bsize, real.f_namemax, real.f_files,
    )  # fmt: skip
    lines = Path("/proc/self/mounts").read_text().splitlines()
    (options,) = [line for line in lines if f" {bench.view} " in line]
    assert options.startswith("lamfuse ")
    assert {"nosuid", "nodev"} <= set(options.split()[3].split(","))
    assert "allow_other" not in options
    assert "default_permissions" not in options


def test_access_tells_the_truth(bench: Bench) -> None:
    prepare(bench.closed_real)
    prepare(bench.real)
    closed, here = bench.closed / "file", bench.here / "file"
    assert os.access(closed, os.R_OK)
    assert not os.access(closed, os.W_OK)
    assert not os.access(closed.parent, os.W_OK)
    assert os.access(here, os.R_OK | os.W_OK)
    assert os.access(here.parent, os.R_OK | os.W_OK | os.X_OK)
    assert not os.access(here, os.X_OK)
    (bench.real / "file").chmod(0o000)
    assert not os.access(bench.here / "file", os.R_OK) or os.geteuid() == 0
    assert bench.person.asked == []


def test_access_for_writing_in_a_read_only_place_is_read_only_file_system(bench: Bench) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    prepare(bench.closed_real)
    for name in ("file", "empty"):
        assert libc.access(os.fsencode(bench.closed / name), os.W_OK) == -1
        assert ctypes.get_errno() == errno.EROFS


def test_permissions_hold_in_the_view(bench: Bench) -> None:
    prepare(bench.closed_real)
    (bench.closed_real / "file").chmod(0o000)
    (bench.closed_real / "full").chmod(0o000)
    try:
        assert errno_of(lambda: os.open(bench.closed / "file", os.O_RDONLY)) == errno.EACCES
        assert errno_of(lambda: os.listdir(bench.closed / "full")) == errno.EACCES
    finally:
        (bench.closed_real / "full").chmod(0o700)


def test_reading_at_any_offset_gives_what_the_disk_has(bench: Bench) -> None:
    content = os.urandom(3_000_001)
    (bench.closed_real / "big").write_bytes(content)
    assert (bench.closed / "big").read_bytes() == content
    fd = os.open(bench.closed / "big", os.O_RDONLY)
    try:
        for offset, size in (
            (0, 1),
            (4095, 2),
            (131_072, 131_073),
            (2_999_999, 10),
            (3_000_001, 5),
        ):
            assert os.pread(fd, size, offset) == content[offset : offset + size]
    finally:
        os.close(fd)


def test_extended_attributes_are_the_real_ones(bench: Bench) -> None:
    prepare(bench.closed_real)
    assert os.listxattr(bench.closed / "marked") == ["user.note"]
    assert os.getxattr(bench.closed / "marked", "user.note") == b"x"
    assert errno_of(lambda: os.getxattr(bench.closed / "file", "user.note")) == errno.ENODATA


def test_a_file_that_was_changed_outside_is_read_anew_when_it_is_opened(bench: Bench) -> None:
    path = bench.closed_real / "file"
    for content in (b"a" * 100, b"b" * 100, b"c" * 100):
        path.write_bytes(content)
        assert (bench.closed / "file").read_bytes() == content


@pytest.mark.parametrize("kind", ["fifo", "socket"])
def test_special_files_are_shown(bench: Bench, kind: str) -> None:
    mode = stat.S_IFIFO if kind == "fifo" else stat.S_IFSOCK
    os.mknod(bench.closed_real / "it", mode | 0o600)
    assert stat.S_IFMT(os.lstat(bench.closed / "it").st_mode) == mode


@pytest.mark.parametrize("count", [0, 1, 1000])
def test_every_entry_is_listed_exactly_once(bench: Bench, count: int) -> None:
    for number in range(count):
        (bench.closed_real / f"entry with a long name {number:05}").touch()
    assert sorted(os.listdir(bench.closed)) == sorted(os.listdir(bench.closed_real))
    with os.scandir(bench.closed) as found:
        assert {e.inode() for e in found} == {
            e.stat(follow_symlinks=False).st_ino for e in os.scandir(bench.closed_real)
        }


def test_names_may_be_any_bytes(bench: Bench) -> None:
    names = [b"\xff\xfe", "ü".encode(), b"a\nb", b" ", b"-rf", b"x" * 255, "e\u0301".encode()]
    for name in names:
        with open(os.fsencode(bench.closed_real) + b"/" + name, "wb") as file:
            file.write(name)
    assert sorted(os.listdir(os.fsencode(bench.closed))) == sorted(names)
    for name in names:
        with open(os.fsencode(bench.closed) + b"/" + name, "rb") as file:
            assert file.read() == name


def test_what_others_change_shows_at_once_where_nothing_was_known(bench: Bench) -> None:
    assert errno_of(lambda: os.stat(bench.closed / "later")) == errno.ENOENT
    (bench.closed_real / "later").write_bytes(b"x")
    assert (bench.closed / "later").read_bytes() == b"x"
    assert os.listdir(bench.closed) == ["later"]
