"""Attacks on what a daemon has only so many of: the callers cannot use up its descriptors."""

import errno
import os
from collections.abc import Iterator

import pytest

from tests.mounting import Mounted, make_home, mounted, place
from tests.person import plain_yes

pytestmark = [pytest.mark.mount, pytest.mark.requirement("L1")]

_LIMIT = 256


@pytest.fixture(scope="module")
def limited() -> Iterator[Mounted]:
    with place() as base, mounted(make_home(base), limits=[f"--nofile={_LIMIT}:{_LIMIT}"]) as here:
        yield here


def _open_all(here: Mounted) -> tuple[list[int], set[int | None]]:
    """Open files until nothing opens any more; returns descriptors and the errno of the rest."""
    held: list[int] = []
    refused: set[int | None] = set()
    for _ in range(2 * _LIMIT):
        try:
            held.append(os.open(here.view / "Documents/letter.txt", os.O_RDONLY))
        except OSError as error:
            refused.add(error.errno)
    return held, refused


def test_open_files_leave_the_daemon_room_for_everything_else(limited: Mounted) -> None:
    limited.person.forget(plain_yes)
    held, refused = _open_all(limited)
    try:
        assert refused == {errno.ENFILE}
        assert len(held) > _LIMIT // 4
        folders = [folder for folder, _, _ in os.walk(limited.view)]
        assert len(folders) > 10
        assert limited.person.status().descriptors < _LIMIT
        (limited.view / "Downloads/old.txt").rename(limited.view / "Downloads/renamed.txt")
        (limited.view / "Downloads/made").mkdir()
        os.truncate(limited.view / "Downloads/renamed.txt", 1)
        assert limited.person.operations == ["rename", "mkdir", "truncate"]
    finally:
        for file in held:
            os.close(file)
    (limited.view / "Downloads/renamed.txt").write_bytes(b"again")
    assert (limited.home / "Downloads/renamed.txt").read_bytes() == b"again"


def test_objects_without_a_name_leave_room_as_well(limited: Mounted) -> None:
    limited.person.forget(plain_yes)
    held: list[int] = []
    try:
        for number in range(60):
            folder = limited.view / f"Downloads/gone{number}"
            folder.mkdir()
            held.append(os.open(folder, os.O_PATH))
            folder.rmdir()
        assert limited.person.status().descriptors < _LIMIT // 2
    finally:
        for folder_held in held:
            os.close(folder_held)
