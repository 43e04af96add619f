"""Bounded looks at content and at what is below a directory."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamfuse.core.target import Below, FileId
from lamfuse.tree import survey, syscalls
from lamfuse.tree.survey import count_lines, leading_climb, list_files, look_below


def count(path: Path) -> int | None:
    fd = syscalls.open_root(os.fsencode(path.parent))
    try:
        target = syscalls.open_path(fd, os.fsencode(path.name))
        try:
            return count_lines(target)
        finally:
            syscalls.close(target)
    finally:
        syscalls.close(fd)


@pytest.mark.requirement("H14")
class TestLines:
    @pytest.mark.parametrize(
        ("content", "lines"),
        [
            pytest.param(b"", 0, id="empty"),
            pytest.param(b"\n", 1, id="an empty line"),
            pytest.param(b"a", 1, id="no newline at the end"),
            pytest.param(b"a\n", 1, id="a line"),
            pytest.param(b"a\nb", 2, id="the last without newline"),
            pytest.param(b"a\n\n\nb\n", 4, id="empty lines"),
            pytest.param(b"a\r\nb\rc\n", 2, id="carriage returns do not count"),
            pytest.param(b"\xff\xfe\n\x80\n", 2, id="stray bytes"),
            pytest.param(b"a\0b\n", None, id="binary"),
            pytest.param(b"a\n" * 4095 + b"x\0", None, id="binary at the end of the probe"),
            pytest.param(b"a\n" * 4096 + b"\0\n", 4097, id="binary behind the probe"),
            pytest.param(b"x" * (1 << 18) + b"\n", 1, id="a line longer than a chunk"),
            pytest.param(b"\n" * (1 << 18), 1 << 18, id="a chunk that ends in a newline"),
        ],
    )
    def test_they_are_counted(self, home: Path, content: bytes, lines: int | None) -> None:
        (home / "x").write_bytes(content)
        assert count(home / "x") == lines

    def test_a_file_over_the_bound_is_not_counted(
        self, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(survey, "_COUNTED_BYTES", 10)
        (home / "x").write_bytes(b"\n" * 10)
        assert count(home / "x") == 10
        (home / "x").write_bytes(b"\n" * 11)
        assert count(home / "x") is None

    def test_a_file_that_grows_over_the_bound_meanwhile_is_not_counted(
        self, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (home / "x").write_bytes(b"\n" * 8)
        monkeypatch.setattr(survey, "_COUNTED_BYTES", 10)
        monkeypatch.setattr(syscalls, "read", lambda fd, size, offset: b"\n" * 6)
        assert count(home / "x") is None

    @pytest.mark.parametrize("call", ["reopen", "read", "fstat"])
    def test_an_unreadable_file_is_not_counted(
        self, home: Path, monkeypatch: pytest.MonkeyPatch, call: str
    ) -> None:
        def refuse(*arguments: object) -> object:
            raise PermissionError(errno.EACCES, "no")

        (home / "x").write_bytes(b"a\n")
        monkeypatch.setattr(syscalls, call, refuse)
        assert count(home / "x") is None

    def test_a_fifo_delays_nobody(self, home: Path) -> None:
        os.mkfifo(home / "x")
        assert count(home / "x") is None


@pytest.fixture
def closed(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder that cannot be listed, for any user."""
    folder = home / "closed"
    folder.mkdir()
    (folder / "x").touch()
    scan = syscalls.scan

    def refuse(dirfd: int) -> Iterator[tuple[bytes, int, int]]:
        if syscalls.real_path(dirfd) == os.fsencode(folder):
            raise PermissionError(errno.EACCES, "no")
        return scan(dirfd)

    monkeypatch.setattr(syscalls, "scan", refuse)
    return folder


def file_id(path: Path) -> FileId:
    fd = syscalls.open_root(os.fsencode(path.parent))
    try:
        seen = syscalls.stat_at(fd, os.fsencode(path.name))
    finally:
        syscalls.close(fd)
    return seen.dev, seen.ino, seen.birth_ns


@pytest.mark.requirement("H9")
class TestFiles:
    def test_everything_that_is_no_directory_counts(self, home: Path, top: int) -> None:
        assert list_files(top) == frozenset()
        (home / "a/b/c").mkdir(parents=True)
        (home / "a/b/f").touch()
        (home / "g").touch()
        (home / "link").symlink_to("a")
        os.mkfifo(home / "a/fifo")
        found = [home / name for name in ("a/b/f", "g", "link", "a/fifo")]
        assert list_files(top) == frozenset(map(file_id, found))

    def test_a_link_to_a_folder_is_not_followed(self, home: Path, top: int, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere/f").touch()
        (home / "link").symlink_to(tmp_path / "elsewhere")
        assert list_files(top) == frozenset([file_id(home / "link")])

    def test_too_many_are_not_counted(
        self, home: Path, top: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(survey, "_COUNTED_FILES", 3)
        (home / "a").mkdir()
        for name in ("b", "a/c"):
            (home / name).touch()
        files = list_files(top)
        assert files is not None
        assert len(files) == 2
        (home / "d").touch()
        assert list_files(top) is None

    def test_what_cannot_be_read_is_left_out(self, home: Path, top: int, closed: Path) -> None:
        (home / "f").touch()
        assert list_files(top) == frozenset([file_id(home / "f")])

    def test_a_folder_that_cannot_be_read_itself_is_an_error(self, closed: Path) -> None:
        fd = syscalls.open_root(os.fsencode(closed))
        try:
            with pytest.raises(PermissionError):
                list_files(fd)
        finally:
            syscalls.close(fd)


@pytest.mark.requirement("H3")
class TestBelow:
    def test_everything_below_is_told(self, home: Path, top: int) -> None:
        assert look_below(top) == Below()
        (home / "a/b").mkdir(parents=True)
        (home / "a/b/.env").touch()
        (home / "x").touch()
        below = look_below(top)
        assert sorted(below.relative) == [b"a", b"a/b", b"a/b/.env", b"x"]
        assert below.directories == {b"a", b"a/b"}
        assert below.inodes == {
            os.lstat(home / path).st_ino for path in ("a", "a/b", "a/b/.env", "x")
        }
        assert (below.complete, below.climb, below.winds) == (True, 0, False)

    @pytest.mark.parametrize(
        ("place", "target", "climb"),
        [
            pytest.param("l", "x", 0, id="not at all"),
            pytest.param("l", "..", 1, id="above the folder itself"),
            pytest.param("l", "../../x", 2, id="twice"),
            pytest.param("a/l", "..", 0, id="to the folder itself"),
            pytest.param("a/l", "../../x", 1, id="from one below"),
            pytest.param("a/b/l", "../../../../x", 2, id="from two below"),
            pytest.param("l", "./.././../x", 2, id="written oddly"),
        ],
    )
    def test_how_far_links_climb(
        self, home: Path, top: int, place: str, target: str, climb: int
    ) -> None:
        (home / "a/b").mkdir(parents=True)
        (home / "a/c").symlink_to("b")
        (home / place).symlink_to(target)
        below = look_below(top)
        assert below.climb == climb
        assert (below.absolute, below.winds) == (frozenset(), False)

    def test_absolute_and_winding_targets_are_told(self, home: Path, top: int) -> None:
        (home / "a").mkdir()
        for name, target in (("l", "/usr/bin"), ("a/m", "/home/u/x"), ("a/n", "/usr/bin")):
            (home / name).symlink_to(target)
        below = look_below(top)
        assert below.absolute == {b"/usr/bin", b"/home/u/x"}
        assert (below.climb, below.winds) == (0, False)
        (home / "a/w").symlink_to("x/../../y")
        assert look_below(top).winds

    @pytest.mark.parametrize("target", ["../x/..", "x/..", "./x/../y", "../../x/y/.."])
    def test_what_winds(self, home: Path, top: int, target: str) -> None:
        (home / "l").symlink_to(target)
        assert look_below(top).winds

    @pytest.mark.parametrize("target", ["../x", "..", "x..", "x/...", "/x/../y", "./../x/."])
    def test_what_does_not_wind(self, home: Path, top: int, target: str) -> None:
        (home / "l").symlink_to(target)
        assert not look_below(top).winds

    def test_a_link_to_a_folder_is_not_followed(self, home: Path, top: int, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere/f").touch()
        (home / "link").symlink_to(tmp_path / "elsewhere")
        assert look_below(top).relative == (b"link",)

    def test_too_much_is_incomplete(
        self, home: Path, top: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(survey, "_BELOW", 3)
        for name in "abc":
            (home / name).touch()
        assert look_below(top).complete
        (home / "d").touch()
        assert not look_below(top).complete

    def test_what_cannot_be_read_is_incomplete(self, top: int, closed: Path) -> None:
        assert not look_below(top).complete

    def test_a_link_that_vanishes_meanwhile_is_incomplete(
        self, home: Path, top: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (home / "l").symlink_to("x")

        def gone(dirfd: int, name: bytes) -> int:
            raise FileNotFoundError(errno.ENOENT, "gone")

        monkeypatch.setattr(syscalls, "open_path", gone)
        assert not look_below(top).complete

    def test_a_deep_tree_needs_few_descriptors(self, home: Path, top: int) -> None:
        place = home
        for _ in range(60):
            place = place / "d"
            place.mkdir()
        assert len(look_below(top).relative) == 60


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (b"", 0),
        (b"x", 0),
        (b"..", 1),
        (b"../..", 2),
        (b"../../x/..", 2),
        (b"x/../..", 0),
        (b"./.././/../y", 2),
        (b"/..", 0),
        (b"/../..", 0),
        (b"...", 0),
        (b"..x/..", 0),
    ],
)
def test_leading_climb(target: bytes, expected: int) -> None:
    assert leading_climb(target) == expected
