"""The handlers: none of pyfuse3's is forgotten, and a fault in one is no fault of the mount."""

import errno
import inspect
import os
from collections.abc import Iterator

import pyfuse3
import pytest

from lamfuse.fuse.operations import UNSUPPORTED, ViewOperations, reads_only
from tests.fuse.changes import errno_of
from tests.mounting import Mounted, make_home, mounted, place
from tests.person import plain_yes

#: Handlers get a fault of our own whenever they meet a certain word.
_FAULTY = """
from lamfuse.fuse import creating, reading, removing, writing
from lamfuse.tree import syscalls

def fail_at(module, function, word):
    inner = getattr(module, function)
    def outer(*arguments, **named):
        if any(word in a for a in arguments if isinstance(a, bytes)):
            raise ZeroDivisionError("a fault of our own")
        return inner(*arguments, **named)
    setattr(module, function, outer)

fail_at(syscalls, "stat_at", b"boom")
fail_at(syscalls, "make_directory", b"bang")
fail_at(syscalls, "get_xattr", b"boom")
fail_at(syscalls, "write", b"boom")
"""


def _handlers() -> set[str]:
    return {
        name
        for name, member in inspect.getmembers(pyfuse3.Operations, inspect.isfunction)
        if not name.startswith("_")
    }


@pytest.mark.requirement("L1")
def test_every_handler_is_implemented_or_deliberately_left_out() -> None:
    own = {name for name in vars(ViewOperations) if not name.startswith("_")}
    implemented = _handlers() & own
    assert implemented | set(UNSUPPORTED) == _handlers()
    assert not implemented & set(UNSUPPORTED)
    assert all(reason for reason in UNSUPPORTED.values())


@pytest.mark.requirement("L1")
def test_every_handler_takes_what_pyfuse3_gives() -> None:
    for name in _handlers() - set(UNSUPPORTED):
        given = list(inspect.signature(getattr(pyfuse3.Operations, name)).parameters)
        taken = list(inspect.signature(getattr(ViewOperations, name)).parameters)
        assert len(given) == len(taken), name


@pytest.mark.requirement("H4")
@pytest.mark.parametrize(
    ("flags", "reads"),
    [
        pytest.param(os.O_RDONLY, True, id="RDONLY"),
        pytest.param(os.O_RDONLY | os.O_NONBLOCK, True, id="NONBLOCK"),
        pytest.param(os.O_RDONLY | os.O_DIRECTORY, True, id="DIRECTORY"),
        pytest.param(os.O_WRONLY, False, id="WRONLY"),
        pytest.param(os.O_RDWR, False, id="RDWR"),
        pytest.param(3, False, id="access mode 3"),
        pytest.param(os.O_RDONLY | os.O_TRUNC, False, id="RDONLY and TRUNC"),
        pytest.param(3 | os.O_TRUNC, False, id="access mode 3 and TRUNC"),
    ],
)
def test_reading_is_access_mode_0_without_truncation(flags: int, reads: bool) -> None:
    assert reads_only(flags) is reads


@pytest.fixture(scope="module")
def faulty() -> Iterator[Mounted]:
    with place() as base:
        expected = ["a fault of our own", "fault in lookup", "fault in mkdir", "Traceback"]
        expected += ["fault in write", "fault in getxattr", "fault in readdir"]
        made = make_home(base)
        (made.home / "spare/boom").touch()
        with mounted(made, before=_FAULTY, expected=expected) as here:
            yield here


@pytest.mark.mount
@pytest.mark.requirement("L1")
def test_a_fault_of_our_own_is_eio_and_the_mount_lives_on(faulty: Mounted) -> None:
    with faulty.watchdog():
        faulty.person.forget(plain_yes)
        assert errno_of(os.stat, faulty.view / "spare/boom") == errno.EIO
        assert errno_of(os.mkdir, faulty.view / "Downloads/bang") == errno.EIO
        with (faulty.view / "Downloads/fine").open("wb", buffering=0) as file:
            assert errno_of(file.write, b"boom") == errno.EIO
            assert file.write(b"good") == 4
        assert errno_of(os.getxattr, faulty.view / "Downloads/fine", "user.boom") == errno.EIO
        assert errno_of(os.listdir, faulty.view / "spare") == errno.EIO
        assert (faulty.view / "Documents/letter.txt").read_bytes().startswith(b"Dear")
        assert (faulty.home / "Downloads/fine").read_bytes() == b"good"
        assert faulty.daemon.process.poll() is None
