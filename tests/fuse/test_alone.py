"""What no grant covers: set-id bits and access lists are asked about each time."""

import os
import stat
import struct

import pytest

from tests.fuse.bench import Bench
from tests.person import decline, widest

pytestmark = [pytest.mark.mount, pytest.mark.requirement("H9")]

_NOBODY = 0xFFFFFFFF
_OWNER, _USER, _GROUP = (1, 6, _NOBODY), (2, 6, 65534), (4, 4, _NOBODY)
_MASK, _OTHERS = (16, 6, _NOBODY), (32, 4, _NOBODY)


def _access_list(*entries: tuple[int, int, int]) -> bytes:
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


@pytest.fixture
def granted(bench: Bench) -> Bench:
    """A folder grant is in force, and from now on every question is declined."""
    bench.person.forget(widest)
    (bench.here / "made").mkdir()
    (bench.here / "made/tool").write_bytes(b"#!/bin/sh\n")
    bench.person.forget(decline)
    return bench


def test_an_ordinary_mode_is_covered(granted: Bench) -> None:
    (granted.here / "made/tool").chmod(0o755)

    assert granted.person.asked == []


@pytest.mark.parametrize("bit", [stat.S_ISUID, stat.S_ISGID], ids=["set-uid", "set-gid"])
def test_set_id_bits_are_asked_about_in_spite_of_a_grant(granted: Bench, bit: int) -> None:
    with pytest.raises(PermissionError):
        (granted.here / "made/tool").chmod(0o755 | bit)

    assert [question.operation for question in granted.person.asked] == ["chmod"]
    assert not (granted.real / "made/tool").stat().st_mode & bit


def test_set_id_bits_are_asked_about_in_spite_of_an_open_handle(granted: Bench) -> None:
    with (granted.here / "made/tool").open("ab") as tool, pytest.raises(PermissionError):
        os.fchmod(tool.fileno(), 0o4755)

    assert len(granted.person.asked) == 1


def test_a_file_that_is_born_with_set_id_bits_is_asked_about(granted: Bench) -> None:
    with pytest.raises(PermissionError):
        os.close(os.open(granted.here / "made/new", os.O_CREAT | os.O_WRONLY, 0o4755))

    (question,) = granted.person.asked
    assert "With mode 4755: whoever runs it gets your rights." in question.body
    assert not (granted.real / "made/new").exists()


_SHARED = _access_list(_OWNER, _USER, _GROUP, _MASK, _OTHERS)
_PLAIN = _access_list(_OWNER, _GROUP, _OTHERS)


def test_an_access_list_that_says_what_the_mode_says_is_covered(granted: Bench) -> None:
    os.setxattr(granted.here / "made/tool", "system.posix_acl_access", _PLAIN)

    assert granted.person.asked == []


def test_an_access_list_is_asked_about_in_spite_of_a_grant(granted: Bench) -> None:
    with pytest.raises(PermissionError):
        os.setxattr(granted.here / "made/tool", "system.posix_acl_access", _SHARED)

    assert [question.operation for question in granted.person.asked] == ["set-xattr"]
