"""Attacks on grants: none reaches further than what the person was shown."""

import errno
import os
from pathlib import Path

import pytest

from tests.fuse.bench import Bench
from tests.fuse.changes import errno_of
from tests.person import decline, plain_yes, widest

pytestmark = [pytest.mark.mount, pytest.mark.requirement("H4", "H9", "H10", "L3")]


def _granted_folder(bench: Bench) -> Path:
    """Have a new folder made and granted; everything is declined from then on."""
    bench.person.forget(widest)
    folder = bench.here / "folder"
    os.mkdir(folder)
    bench.person.forget(decline)
    return folder


def test_a_write_of_ours_does_not_make_ours_what_somebody_else_changed(bench: Bench) -> None:
    folder = _granted_folder(bench)
    ours = os.open(folder / "notes", os.O_CREAT | os.O_WRONLY)
    try:
        (bench.real / "folder/notes").write_bytes(b"their own thoughts\n")
        os.pwrite(ours, b"x", 0)
    finally:
        os.close(ours)
    assert bench.person.asked == []
    assert errno_of(lambda: os.unlink(folder / "notes")) == errno.EACCES
    assert bench.person.operations == ["unlink"]


def test_a_file_that_somebody_moves_away_is_not_written_to_by_an_old_handle(bench: Bench) -> None:
    (bench.real / "file").write_bytes(b"content\n")
    bench.person.forget(plain_yes)
    handle = os.open(bench.here / "file", os.O_WRONLY)
    try:
        os.write(handle, b"C")
        bench.person.forget(decline)
        (bench.real / "file").rename(bench.closed_real / "kept")
        assert errno_of(lambda: os.write(handle, b"O")) == errno.EROFS
        assert errno_of(lambda: os.ftruncate(handle, 0)) in {errno.EROFS, errno.ESTALE}
        assert (bench.closed_real / "kept").read_bytes() == b"Content\n"
        (bench.closed_real / "kept").rename(bench.real / "file")
        os.write(handle, b"O")  # the file grant of this turn holds for it here
    finally:
        os.close(handle)
    assert (bench.real / "file").read_bytes() == b"COntent\n"


@pytest.mark.parametrize("by_move", [False, True], ids=["by somebody", "by an allowed move"])
def test_a_folder_grant_covers_no_file_that_came_after_it_was_counted(
    bench: Bench, *, by_move: bool
) -> None:
    folder = bench.real / "folder"
    folder.mkdir()
    (folder / "counted").write_bytes(b"counted\n")
    bench.person.forget(widest)
    (bench.here / "folder/new").write_bytes(b"new")
    (question,) = bench.person.asked
    assert [scope.existing for scope in question.scopes][-1] == 1
    if by_move:
        (bench.real / "thesis").write_bytes(b"thesis\n")
        os.rename(bench.here / "thesis", bench.here / "folder/thesis")
    else:
        (folder / "thesis").write_bytes(b"thesis\n")
    bench.person.forget(decline)
    (bench.here / "folder/counted").write_bytes(b"changed\n")
    assert bench.person.asked == []
    assert errno_of(lambda: os.truncate(bench.here / "folder/thesis", 0)) == errno.EACCES
    assert errno_of(lambda: (bench.here / "folder/thesis").chmod(0o777)) == errno.EACCES
    assert (
        errno_of(lambda: os.rename(bench.here / "folder/new", bench.here / "folder/thesis"))
        == errno.EACCES
    )
    assert (folder / "thesis").read_bytes() == b"thesis\n"
    assert "replace" not in bench.person.operations


def test_a_grant_for_a_new_folder_covers_no_file_that_somebody_puts_there(bench: Bench) -> None:
    folder = _granted_folder(bench)
    (bench.real / "folder/theirs").write_bytes(b"theirs\n")
    assert errno_of(lambda: os.truncate(folder / "theirs", 0)) == errno.EACCES
    (folder / "ours").write_bytes(b"ours")
    assert bench.person.operations == ["truncate"]


@pytest.mark.parametrize("reused", [False, True], ids=["changed", "another of that number"])
def test_a_folder_of_ours_with_something_of_theirs_is_not_moved_unasked(
    bench: Bench, *, reused: bool
) -> None:
    folder = _granted_folder(bench)
    os.mkdir(folder / "inner")
    (folder / "inner/file").write_bytes(b"ours")
    os.rename(folder / "inner", folder / "moved")
    assert bench.person.asked == []
    there = bench.real / "folder/moved/file"
    if reused:
        there.unlink()
    there.write_bytes(b"theirs")
    assert errno_of(os.rename, folder / "moved", folder / "again") == errno.EACCES
    assert bench.person.operations == ["rename"]
