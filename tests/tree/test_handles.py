"""Open handles, by the number that the kernel got for them."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from lamfuse.tree import syscalls
from lamfuse.tree.handles import DirectoryHandle, FileHandle, Handles
from lamfuse.tree.inodes import Inode, Inodes


@pytest.fixture
def inode(top: int) -> Inode:
    return Inodes(syscalls.fstat(top)).seen(
        syscalls.fstat(top)._replace(ino=4711, mode=stat.S_IFREG), Inode.__new__(Inode), b"x"
    )


def open_file(inode: Inode, home: Path, flags: int = os.O_RDONLY) -> FileHandle:
    fd = os.open(home / "file", flags | os.O_CREAT)
    return FileHandle(inode, fd, flags, "claude-1", 1)


def is_open(fd: int) -> bool:
    return os.path.lexists(f"/proc/self/fd/{fd}")


@pytest.mark.parametrize(
    ("flags", "writes"),
    [
        pytest.param(os.O_RDONLY, False, id="read"),
        pytest.param(os.O_WRONLY, True, id="write"),
        pytest.param(os.O_RDWR, True, id="both"),
        pytest.param(os.O_ACCMODE, True, id="the fourth mode"),
        pytest.param(os.O_RDONLY | os.O_APPEND, False, id="read, append"),
        pytest.param(os.O_WRONLY | os.O_APPEND, True, id="append"),
    ],
)
def test_what_a_handle_is_for(inode: Inode, flags: int, *, writes: bool) -> None:
    handle = FileHandle(inode, 0, flags, "s", 1)
    assert handle.writes is writes
    assert handle.appends is bool(flags & os.O_APPEND)


def test_a_handle_is_found_by_its_number_until_it_is_released(inode: Inode, home: Path) -> None:
    handles = Handles(most=10)
    first, second = open_file(inode, home), open_file(inode, home, os.O_RDWR)
    numbers = [handles.add(first), handles.add(second)]
    assert len(set(numbers)) == len(handles) == 2
    assert handles.file(numbers[0]) is handles.get(numbers[0]) is first
    assert list(handles.of(inode)) == [first, second]
    assert list(handles.writers()) == [second]
    assert handles.release(numbers[0]) is first
    assert not is_open(first.fd)
    assert list(handles.of(inode)) == [second]
    handles.release(numbers[1])
    assert inode.handles is None
    assert len(handles) == 0
    with pytest.raises(KeyError):
        handles.file(numbers[0])


def test_numbers_are_never_given_twice(inode: Inode, home: Path) -> None:
    handles = Handles(most=10)
    first = handles.add(open_file(inode, home))
    handles.release(first)
    second = handles.add(open_file(inode, home))
    assert second != first
    handles.close()


def test_a_directory_is_no_file_and_a_file_no_directory(inode: Inode, home: Path) -> None:
    handles = Handles(most=10)
    directory = handles.add(DirectoryHandle(inode, "s"))
    file = handles.add(open_file(inode, home))
    virtual = handles.add(object())
    assert isinstance(handles.directory(directory), DirectoryHandle)
    with pytest.raises(TypeError):
        handles.file(directory)
    for number in (file, virtual):
        with pytest.raises(TypeError):
            handles.directory(number)
    assert list(handles.writers()) == []
    for number in (directory, virtual):
        handles.release(number)
    handles.close()


def test_closing_closes_every_descriptor(inode: Inode, home: Path) -> None:
    handles = Handles(most=10)
    opened = [open_file(inode, home) for _ in range(3)]
    for handle in opened:
        handles.add(handle)
    handles.close()
    assert not any(is_open(handle.fd) for handle in opened)
    assert len(handles) == 0


def test_at_most_so_many_files_are_open(inode: Inode, home: Path) -> None:
    handles = Handles(most=2)
    numbers = [handles.add(open_file(inode, home)) for _ in range(2)]
    handles.add(DirectoryHandle(inode, "s"))
    with pytest.raises(OSError) as caught:
        handles.check_room()
    assert caught.value.errno == errno.ENFILE
    handles.release(numbers[0])
    handles.check_room()
    handles.close()
