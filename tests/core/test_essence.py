"""What a request comes to: whether it is another one, what it destroys, how a save is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lamfuse.core import essence
from lamfuse.core.operations import Operation
from lamfuse.core.target import Below, Caller, FileKind, Identity, Request
from tests.core.acts import DOWNLOADS, PARENT, act, directory, file, free

A, B = DOWNLOADS + b"/a", DOWNLOADS + b"/b"
REQUEST = act(Operation.RENAME, directory(A), free(B))
SOURCE = REQUEST.subjects[0]


def _moved(**changes: Any) -> Request:
    return replace(REQUEST, subjects=(replace(SOURCE, **changes), REQUEST.subjects[1]))


@pytest.mark.requirement("L3")
@pytest.mark.parametrize(
    "other",
    [
        pytest.param(_moved(identity=Identity(2, 20, 140, b"g20")), id="device"),
        pytest.param(_moved(identity=Identity(1, 21, 140, b"g20")), id="inode"),
        pytest.param(_moved(identity=Identity(1, 20, 141, b"g20")), id="birth"),
        pytest.param(_moved(identity=Identity(1, 20, 140, b"g21")), id="generation"),
        pytest.param(_moved(kind=FileKind.FILE), id="kind"),
        pytest.param(_moved(path=B), id="path"),
        pytest.param(_moved(size=101), id="size"),
        pytest.param(_moved(mtime_ns=6), id="mtime"),
        pytest.param(_moved(ctime_ns=7), id="ctime"),
        pytest.param(_moved(links=3), id="links"),
        pytest.param(_moved(parent=replace(PARENT, ino=99)), id="parent"),
        pytest.param(_moved(other_names=(B,)), id="other names"),
        pytest.param(_moved(unlinked=True), id="unlinked"),
        pytest.param(_moved(below=Below((b"x",))), id="below"),
        pytest.param(
            replace(REQUEST, subjects=(SOURCE, file(B, 11))), id="something stands there now"
        ),
        pytest.param(
            replace(REQUEST, subjects=(SOURCE, replace(free(B), parent=None))),
            id="parent of the destination",
        ),
        pytest.param(replace(REQUEST, operation=Operation.REPLACE), id="operation"),
        pytest.param(replace(REQUEST, session="other"), id="session"),
        pytest.param(replace(REQUEST, makes=FileKind.FIFO), id="what it makes"),
        pytest.param(replace(REQUEST, target=b"x"), id="link target"),
        pytest.param(replace(REQUEST, truncates=True), id="truncates"),
        pytest.param(replace(REQUEST, new_size=1), id="new size"),
        pytest.param(replace(REQUEST, detail="mode"), id="detail"),
    ],
)
def test_another_request(other: Request) -> None:
    assert not essence.is_same(REQUEST, other)
    assert not essence.is_same(other, REQUEST)
    assert essence.of(other) != essence.of(REQUEST)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(REQUEST, id="itself"),
        pytest.param(replace(REQUEST, caller=Caller(9, 9, b"/bin/cat")), id="another caller"),
        pytest.param(_moved(lines=12), id="lines were counted"),
        pytest.param(replace(REQUEST, new_lines=12), id="new lines were counted"),
    ],
)
def test_the_same_request(other: Request) -> None:
    assert essence.is_same(REQUEST, other)
    assert hash(essence.of(REQUEST)) == hash(essence.of(other))


@pytest.mark.requirement("H14")
def test_a_save_is_told_as_an_overwrite_of_its_destination() -> None:
    source = replace(file(A, 10, size=2180), lines=61)
    told = essence.as_write(act(Operation.REPLACE, source, file(B, 11, size=1240)))
    assert told.operation is Operation.WRITE
    assert told.paths == (B,)
    assert told.truncates
    assert (told.new_size, told.new_lines) == (2180, 61)
    assert told.subjects[0].size == 1240


def test_a_save_changes_nothing_under_the_other_names_of_its_destination() -> None:
    linked = file(B, 11, names=[A + b"/other"], links=3)
    told = essence.as_write(act(Operation.REPLACE, file(A, 10), linked))
    assert (told.subjects[0].links, told.subjects[0].other_names) == (1, ())


@pytest.mark.requirement("L9")
@pytest.mark.parametrize(
    ("request_", "synced", "destroyed"),
    [
        pytest.param(act(Operation.UNLINK, file(A)), True, 100, id="delete"),
        pytest.param(
            act(Operation.UNLINK, file(A, links=2)), True, 0, id="delete one of two names"
        ),
        pytest.param(act(Operation.RMDIR, directory(A)), True, None, id="delete a folder"),
        pytest.param(act(Operation.RENAME, file(A), free(B)), True, None, id="move"),
        pytest.param(act(Operation.EXCHANGE, file(A), file(B, 11)), True, None, id="exchange"),
        pytest.param(
            act(Operation.REPLACE, file(A), file(B, 11, size=7)), True, 7, id="move onto a file"
        ),
        pytest.param(
            act(Operation.REPLACE, directory(A), directory(B, 21)), True, 0, id="onto a folder"
        ),
        pytest.param(act(Operation.WRITE, file(A)), True, None, id="open for writing"),
        pytest.param(act(Operation.WRITE, file(A, size=0)), False, None, id="open an empty file"),
        pytest.param(act(Operation.WRITE, file(A, size=1)), True, None, id="open one byte"),
        pytest.param(
            act(Operation.REPLACE, directory(A), replace(directory(B, 21), links=1)),
            True,
            0,
            id="onto a folder where folders have one link",
        ),
        pytest.param(act(Operation.WRITE, file(A), truncates=True), True, 100, id="overwrite"),
        pytest.param(act(Operation.TRUNCATE, file(A)), True, 100, id="truncate"),
        pytest.param(
            replace(act(Operation.TRUNCATE, file(A)), new_size=40), True, 60, id="shorten"
        ),
        pytest.param(replace(act(Operation.TRUNCATE, file(A)), new_size=400), True, 0, id="extend"),
        pytest.param(act(Operation.CHMOD, file(A)), False, None, id="attributes"),
        pytest.param(act(Operation.CREATE, free(A)), False, None, id="create"),
        pytest.param(act(Operation.LINK, file(A), free(B)), False, None, id="link"),
    ],
)
def test_what_is_destroyed_and_what_is_synced_before(
    request_: Request, *, synced: bool, destroyed: int | None
) -> None:
    assert essence.needs_sync(request_) is synced
    assert essence.destroyed(request_) == destroyed


OPENED = act(Operation.WRITE, file(A))


@pytest.mark.parametrize(
    ("fresh", "expected"),
    [
        pytest.param(act(Operation.WRITE, file(A, size=7)), True, id="written to meanwhile"),
        pytest.param(
            act(Operation.WRITE, replace(file(A), mtime_ns=9, ctime_ns=9, lines=3)),
            True,
            id="at another time",
        ),
        pytest.param(act(Operation.WRITE, file(A, 11)), False, id="another object"),
        pytest.param(act(Operation.WRITE, file(A, links=2)), False, id="a further name"),
        pytest.param(act(Operation.WRITE, file(A, names=[B])), False, id="a further known name"),
        pytest.param(act(Operation.WRITE, file(B)), False, id="another place"),
        pytest.param(
            act(Operation.WRITE, replace(file(A), parent=None)), False, id="another parent"
        ),
        pytest.param(act(Operation.WRITE, file(A), truncates=True), False, id="truncated"),
        pytest.param(act(Operation.TRUNCATE, file(A)), False, id="another operation"),
    ],
)
def test_opening_for_writing_stays_the_same_while_others_write(
    fresh: Request, *, expected: bool
) -> None:
    assert essence.opens_the_same(OPENED, fresh) is expected


def test_other_operations_never_stay_the_same() -> None:
    for request in (act(Operation.UNLINK, file(A)), act(Operation.RENAME, file(A), free(B))):
        assert not essence.opens_the_same(request, request)
