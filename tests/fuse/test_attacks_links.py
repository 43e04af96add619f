"""Attacks with links: no text that readlink gives leads out, from wherever it is followed."""

import errno
import os
from pathlib import Path

import pytest

from tests.fuse.bench import Bench
from tests.fuse.changes import errno_of
from tests.person import widest

pytestmark = [pytest.mark.mount, pytest.mark.requirement("H3", "H20")]


def _outside(bench: Bench, shown: Path) -> str:
    """Return the relative target that leads from *shown* in the view to a file outside of it."""
    climb = len(shown.relative_to(bench.view).parts)
    return "../" * climb + "outside/foreign.txt"


def test_a_link_with_a_second_shallower_name_says_nothing_that_leads_out(bench: Bench) -> None:
    bench.person.forget(widest)
    os.makedirs(bench.here / "a/b/c")
    deep, shallow = bench.here / "a/b/c/link", bench.here / "link"
    os.symlink(_outside(bench, shallow), deep)
    os.link(deep, shallow, follow_symlinks=False)
    for first, second in ((shallow, deep), (deep, shallow)):
        os.listdir(first.parent)
        os.listdir(second.parent)
        assert errno_of(lambda: os.readlink(shallow)) == errno.EACCES
        assert errno_of(lambda: os.open(shallow, os.O_RDONLY)) == errno.EACCES


def test_a_link_with_two_names_of_the_same_depth_still_says_its_target(bench: Bench) -> None:
    bench.person.forget(widest)
    os.mkdir(bench.here / "a")
    os.mkdir(bench.here / "b")
    os.symlink("../../../Pictures/photo.bin", bench.here / "a/link")
    os.link(bench.here / "a/link", bench.here / "b/link", follow_symlinks=False)
    for name in ("a/link", "b/link"):
        assert os.readlink(bench.here / name) == "../../../Pictures/photo.bin"
        assert (bench.here / name).read_bytes()[:2] == b"\0\1"


def test_a_folder_that_somebody_moves_deeper_gives_its_old_place_no_way_out(bench: Bench) -> None:
    folder, elsewhere = bench.closed_real / "folder", bench.closed_real / "p/q"
    folder.mkdir()
    elsewhere.mkdir(parents=True)
    (folder / "link").symlink_to(_outside(bench, bench.closed / "folder/link"))
    held = os.open(bench.closed / "folder", os.O_PATH)
    try:
        assert errno_of(lambda: os.readlink("link", dir_fd=held)) == errno.EACCES
        folder.rename(elsewhere / "folder")
        assert errno_of(lambda: os.readlink("link", dir_fd=held)) == errno.EACCES
        assert errno_of(lambda: os.open("link", os.O_RDONLY, dir_fd=held)) == errno.EACCES
    finally:
        os.close(held)


def test_links_with_many_names_do_not_mix_up_the_folder_that_is_listed(bench: Bench) -> None:
    listed = bench.closed_real / "listed"
    listed.mkdir()
    for number in range(600):  # more folders than the daemon keeps open
        link = listed / f"link{number}"
        link.symlink_to("../../x")
        folder = bench.closed_real / f"folder{number}"
        folder.mkdir()
        os.link(link, folder / "link", follow_symlinks=False)
        os.lstat(bench.closed / f"folder{number}/link")
    found = {entry.name: entry.inode() for entry in os.scandir(bench.closed / "listed")}
    assert found == {entry.name: entry.inode() for entry in os.scandir(listed)}
