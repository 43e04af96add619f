"""The values that describe objects and requests."""

from __future__ import annotations

from lamfuse.core.operations import Operation
from lamfuse.core.target import Below, Caller, FileKind, Identity, Subject
from tests.core.acts import DOWNLOADS, act, directory, file, free

A, B = DOWNLOADS + b"/a", DOWNLOADS + b"/b"


def test_kinds_have_the_names_that_a_person_reads() -> None:
    assert [str(kind) for kind in FileKind] == [
        "file",
        "folder",
        "link",
        "FIFO",
        "socket",
        "device",
    ]


def test_a_free_name_is_no_object() -> None:
    name = Subject(A)
    assert not name.exists
    assert not name.is_directory
    assert (name.identity, name.parent, name.lines, name.below) == (None, None, None, None)
    assert (name.size, name.mtime_ns, name.ctime_ns, name.links) == (0, 0, 0, 1)
    assert (name.other_names, name.unlinked) == ((), False)


def test_what_stands_there_exists() -> None:
    for kind in FileKind:
        there = Subject(A, kind)
        assert there.exists
        assert there.is_directory is (kind is FileKind.DIRECTORY)


def test_a_request_has_its_paths_in_order() -> None:
    request = act(Operation.RENAME, file(A), free(B))
    assert request.paths == (A, B)
    assert act(Operation.RMDIR, directory(A)).paths == (A,)
    assert (request.makes, request.target, request.truncates) == (None, b"", False)
    assert (request.new_size, request.new_lines, request.detail) == (None, None, "")


def test_what_is_not_known_is_nothing() -> None:
    assert Caller() == Caller(0, 0, b"")
    assert Identity(1, 2) == Identity(1, 2, 0, b"")
    assert Below() == Below((), frozenset(), frozenset(), True, 0, frozenset(), False)


def test_a_listing_tells_device_number_and_birth() -> None:
    assert Identity(1, 2, 3, b"g").file_id == (1, 2, 3)
