"""Attacks by exchange: what somebody puts in the place of a new object is not taken for it."""

import errno
import os
import time
from collections.abc import Iterator

import pytest

from tests.fuse.changes import errno_of
from tests.mounting import Mounted, make_home, mounted, place, wait_until
from tests.person import decline, widest

pytestmark = [pytest.mark.mount, pytest.mark.requirement("H10", "L3")]

_COARSE = 5  # the clock of file times, which ticks every few milliseconds
#: Somebody removes whatever is made as "gone", and puts theirs in the place of "swapped".
_SOMEBODY = """
import os
from lamfuse.tree import syscalls

def meddle(dirfd, name):
    if name == b"gone":
        try:
            os.unlink(name, dir_fd=dirfd)
        except IsADirectoryError:
            os.rmdir(name, dir_fd=dirfd)
    elif name == b"swapped":
        os.rename(b"theirs", name, src_dir_fd=dirfd, dst_dir_fd=dirfd)

def then_meddle(make):
    def made(dirfd, name, *rest):
        result = make(dirfd, name, *rest)
        meddle(dirfd, name)
        return result
    return made

for maker in ("create", "make_directory", "make_symlink", "make_node"):
    setattr(syscalls, maker, then_meddle(getattr(syscalls, maker)))
"""


@pytest.fixture(scope="module")
def meddled() -> Iterator[Mounted]:
    with place() as base, mounted(make_home(base), before=_SOMEBODY) as here:
        yield here


@pytest.fixture
def folder(meddled: Mounted) -> str:
    meddled.person.new_turn()
    meddled.person.forget(widest)
    name = meddled.fresh()
    os.mkdir(meddled.view / name / "granted")
    meddled.person.forget(decline)
    return f"{name}/granted"


def test_what_is_removed_at_once_is_stale(meddled: Mounted, folder: str) -> None:
    gone = meddled.view / folder / "gone"
    assert errno_of(lambda: os.open(gone, os.O_CREAT | os.O_WRONLY)) == errno.ESTALE
    assert errno_of(lambda: os.mkdir(gone)) == errno.ESTALE
    assert errno_of(lambda: os.symlink("x", gone)) == errno.ESTALE
    assert errno_of(lambda: os.mkfifo(gone)) == errno.ESTALE
    assert meddled.person.asked == []


@pytest.mark.parametrize("content", [b"theirs", b""], ids=["full", "empty"])
def test_a_file_in_the_place_of_a_new_one_is_not_born(
    meddled: Mounted, folder: str, content: bytes
) -> None:
    theirs = meddled.home / folder / "theirs"
    theirs.write_bytes(content)
    swapped = meddled.view / folder / "swapped"
    assert errno_of(lambda: os.open(swapped, os.O_CREAT | os.O_WRONLY)) == errno.EACCES
    assert errno_of(lambda: os.unlink(swapped)) == errno.EACCES
    assert meddled.person.operations == ["write", "unlink"]  # the kernel tries once more
    assert (meddled.home / folder / "swapped").read_bytes() == content


def test_a_folder_in_the_place_of_a_new_one_is_not_born(meddled: Mounted, folder: str) -> None:
    (meddled.home / folder / "theirs").mkdir()
    made = time.time_ns()
    wait_until(lambda: time.clock_gettime_ns(_COARSE) > made)
    swapped = meddled.view / folder / "swapped"
    os.mkdir(swapped)
    assert errno_of(lambda: os.rmdir(swapped)) == errno.EACCES
    assert meddled.person.operations == ["rmdir"]


def test_another_kind_in_the_place_of_a_new_link_is_not_taken_for_it(
    meddled: Mounted, folder: str
) -> None:
    (meddled.home / folder / "theirs").write_bytes(b"theirs")
    assert errno_of(lambda: os.symlink("x", meddled.view / folder / "swapped")) == errno.EEXIST
