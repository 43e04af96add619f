"""Attacks by way of places: roots themselves, removed folders, hidden objects under other names."""

import ctypes
import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fuse.bench import Bench
from tests.fuse.changes import errno_of
from tests.mounting import HIDDEN, Home, Mounted, make_home, mounted, place
from tests.person import decline, plain_yes, widest

pytestmark = [pytest.mark.mount]


def _extra(throw_away: Home) -> Path:
    return throw_away.outside / "extra"


@pytest.fixture(scope="module")
def config(throw_away: Home) -> str:
    (_extra(throw_away) / "nested").mkdir(parents=True)
    (_extra(throw_away) / "nested/file").write_bytes(b"nested\n")
    roots = [str(_extra(throw_away)), str(_extra(throw_away) / "nested")]
    return f"write_roots = {roots}\n".replace("'", '"')


def _shown(bench: Bench, path: Path) -> Path:
    return bench.view / ".lamfuse/roots" / path.relative_to("/")


@pytest.mark.requirement("H23")
def test_a_root_within_a_root_is_shown_in_it(bench: Bench) -> None:
    extra = _shown(bench, _extra(bench.mount.place))
    assert os.listdir(extra) == ["nested"]
    assert (extra / "nested/file").read_bytes() == b"nested\n"
    assert os.path.realpath(extra / "nested/..") == str(extra)


_ON_A_ROOT: dict[str, Callable[[Path], None]] = {
    "chmod": lambda root: root.chmod(0o700),
    "utimens": lambda root: os.utime(root, ns=(10**18, 10**18)),
    "set-xattr": lambda root: os.setxattr(root, "user.a", b"b"),
}


@pytest.mark.requirement("H4")
@pytest.mark.parametrize("operation", _ON_A_ROOT)
def test_attributes_of_an_extra_root_itself_change_after_asking(
    bench: Bench, operation: str
) -> None:
    extra = _shown(bench, _extra(bench.mount.place))
    assert errno_of(_ON_A_ROOT[operation], extra) == errno.EACCES
    assert bench.person.operations == [operation]
    bench.person.new_turn()
    bench.person.forget(plain_yes)
    _ON_A_ROOT[operation](extra)
    assert bench.person.operations == [operation]


def test_a_handle_without_a_name_takes_attributes(bench: Bench) -> None:
    bench.person.forget(widest)
    handle = os.open(bench.here / "file", os.O_CREAT | os.O_RDWR)
    try:
        os.unlink(bench.here / "file")
        os.setxattr(handle, "user.a", b"b")
        assert os.getxattr(handle, "user.a") == b"b"
        os.removexattr(handle, "user.a")
        os.fchmod(handle, 0o600)
    finally:
        os.close(handle)


@pytest.mark.requirement("H4")
def test_nobody_is_asked_about_a_folder_that_is_gone(bench: Bench) -> None:
    (bench.real / "folder").mkdir()
    held = os.open(bench.here / "folder", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.listdir(held)
        (bench.real / "folder").rmdir()
        for act in (
            lambda: os.mkdir("new", dir_fd=held),
            lambda: os.open("new", os.O_CREAT | os.O_WRONLY, dir_fd=held),
            lambda: os.rename(bench.view / "Downloads/old.txt", "new", dst_dir_fd=held),
        ):
            assert errno_of(act) in {errno.ENOENT, errno.ESTALE}
        assert bench.person.asked == []
    finally:
        os.close(held)


@pytest.fixture(scope="module")
def linked() -> Iterator[Mounted]:
    """A view of a home in which a credential has other names."""
    with place() as base:
        made = make_home(base)
        for name in ("Downloads/hard", "spare/hard"):
            os.link(made.home / ".ssh/id_ed25519", made.home / name)
        with mounted(made) as here:
            yield here


_MAKES: dict[str, Callable[[Path], object]] = {
    "mkdir": os.mkdir,
    "symlink": lambda path: os.symlink("old.txt", path),
    "create": lambda path: os.open(path, os.O_CREAT | os.O_WRONLY),
    "mkfifo": os.mkfifo,
    "rename": lambda path: os.rename(path.parent / "victim", path),
    "link": lambda path: os.link(path.parent / "victim", path),
}


@pytest.mark.requirement("H5")
@pytest.mark.parametrize("make", _MAKES.values(), ids=_MAKES)
@pytest.mark.parametrize("folder", ["Downloads", "spare"])
def test_another_name_of_a_credential_is_denied_to_those_who_would_make_it(
    linked: Mounted, folder: str, make: Callable[[Path], object]
) -> None:
    linked.person.new_turn()
    linked.person.forget(decline)
    (linked.home / folder / "victim").write_bytes(b"victim")
    assert errno_of(make, linked.view / folder / "hard") == errno.EACCES
    assert linked.person.asked == []
    assert (linked.home / ".ssh/id_ed25519").read_bytes() == HIDDEN


def test_a_listing_that_begins_in_the_middle_goes_on_to_the_end(bench: Bench) -> None:
    for number in range(20):
        (bench.closed_real / f"file{number}").write_bytes(b"")
    folder = os.open(bench.closed, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.lseek(folder, 10, os.SEEK_SET)
        buffer = ctypes.create_string_buffer(8192)
        got = ctypes.CDLL(None).getdents64(folder, buffer, len(buffer))
        assert buffer.raw[:got].count(b"file") == 12
    finally:
        os.close(folder)
