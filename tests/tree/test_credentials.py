"""A hard link to a credential is the credential: its inode is known from the fixed places."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamfuse.core.rules import CREDENTIAL_PLACES
from lamfuse.tree import credentials, syscalls
from lamfuse.tree.credentials import CredentialInodes

pytestmark = pytest.mark.requirement("H5")

#: Long after every file of the tests was made.
LATER = 1 << 62


class Bench:
    def __init__(self, home: Path, top: int) -> None:
        self.home = home
        self.now = LATER
        self.known = CredentialInodes(top, CREDENTIAL_PLACES, now_ns=lambda: self.now)

    def holds(self, path: str) -> bool:
        fd = syscalls.open_root(os.fsencode(self.home))
        try:
            name, folder = os.path.basename(path), os.path.dirname(path)
            dirfd = syscalls.open_beneath(fd, os.fsencode(folder))
            try:
                return self.known.holds(syscalls.stat_at(dirfd, os.fsencode(name)))
            finally:
                syscalls.close(dirfd)
        finally:
            syscalls.close(fd)

    def write(self, path: str) -> Path:
        place = self.home / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(path)
        return place


@pytest.fixture
def bench(home: Path, top: int) -> Bench:
    return Bench(home, top)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Note each directory that is read."""
    found: list[int] = []
    scan = syscalls.scan

    def note(dirfd: int) -> Iterator[tuple[bytes, int, int]]:
        found.append(dirfd)
        return scan(dirfd)

    monkeypatch.setattr(syscalls, "scan", note)
    return found


@pytest.mark.parametrize(
    "path",
    [
        ".ssh/id_ed25519",
        ".ssh/keys/deep/down/key",
        ".gnupg/private-keys-v1.d/k.key",
        ".aws/credentials",
        ".config/gh/hosts.yml",
        ".docker/config.json",
        ".netrc",
    ],
)
class TestPlaces:
    def test_a_link_made_before_and_one_made_after_are_known(self, bench: Bench, path: str) -> None:
        secret = bench.write(path)
        bench.write("notes")
        os.link(secret, bench.home / "before")
        assert bench.holds("before")
        assert not bench.holds("notes")
        os.link(secret, bench.home / "after")
        assert bench.holds("after")

    def test_a_credential_that_is_made_or_replaced_later_is_known(
        self, bench: Bench, path: str
    ) -> None:
        assert not bench.holds(bench.write("notes").name)
        os.link(bench.write(path), bench.home / "first")
        assert bench.holds("first")
        os.unlink(bench.home / path)
        bench.write("new")
        os.link(bench.home / "new", bench.home / path)
        assert bench.holds("new")
        assert not bench.holds("notes")


def test_what_is_not_in_a_place_is_not_known(bench: Bench) -> None:
    for path in (".ssh2/id", "x/.ssh/id", ".docker/other.json", ".config/ghost/x", "a"):
        place = bench.write(path)
        os.link(place, bench.home / "link")
        assert not bench.holds("link")
        os.unlink(bench.home / "link")


def test_without_any_place_nothing_is_known(bench: Bench) -> None:
    bench.write("a")
    assert not bench.holds("a")


def test_the_places_are_read_once_while_nothing_changes(bench: Bench, reads: list[int]) -> None:
    os.link(bench.write(".ssh/keys/id"), bench.home / "link")
    for _ in range(5):
        assert bench.holds("link")
    assert len(reads) == 2
    bench.write(".ssh/keys/id2")
    assert bench.holds("link")
    assert len(reads) == 4
    bench.write(".ssh/config")
    assert bench.holds("link")
    assert len(reads) == 6


def test_what_changed_within_the_tick_of_the_clock_is_read_again(
    bench: Bench, reads: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two changes of a directory within one tick have the same ctime."""
    os.link(bench.write(".ssh/id"), bench.home / "link")
    same = syscalls.fstat
    monkeypatch.setattr(syscalls, "fstat", lambda fd: same(fd)._replace(ctime_ns=1_000_000_000))
    bench.now = 1_000_000_000 + 50_000_000
    assert bench.holds("link")
    os.link(bench.write(".ssh/id2"), bench.home / "link2")
    assert bench.holds("link2")
    bench.now = 1_000_000_000 + 150_000_000
    assert bench.holds("link2")
    count = len(reads)
    assert bench.holds("link2")
    assert len(reads) == count


def test_a_link_in_a_place_is_known_itself_and_not_followed(bench: Bench) -> None:
    bench.write("elsewhere/key")
    (bench.home / ".ssh").mkdir()
    os.symlink(bench.home / "elsewhere/key", bench.home / ".ssh/key")
    os.link(bench.home / ".ssh/key", bench.home / "link", follow_symlinks=False)
    assert bench.holds("link")
    assert not bench.holds("elsewhere/key")


def test_a_place_that_is_a_link_is_not_followed(bench: Bench) -> None:
    bench.write("dotfiles/ssh/key")
    os.symlink(bench.home / "dotfiles/ssh", bench.home / ".ssh")
    assert not bench.holds("dotfiles/ssh/key")


def test_with_too_many_to_know_everything_is_one(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "_MOST_ENTRIES", 3)
    for number in range(3):
        bench.write(f".ssh/{number}")
    bench.write("a")
    assert not bench.holds("a")
    bench.write(".ssh/3")
    assert bench.holds("a")
    os.unlink(bench.home / ".ssh/3")
    assert not bench.holds("a")


def test_where_a_place_cannot_be_read_everything_is_one(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(dirfd: int) -> Iterator[tuple[bytes, int, int]]:
        raise PermissionError(errno.EACCES, "no")

    bench.write(".ssh/id")
    bench.write("a")
    monkeypatch.setattr(syscalls, "scan", refuse)
    assert bench.holds("a")
