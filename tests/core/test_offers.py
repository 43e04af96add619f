"""Which scopes a question offers, and what a plain yes means."""

from __future__ import annotations

import pytest

from lamfuse.core import offers
from lamfuse.core.approval import Offer, Scope
from lamfuse.core.operations import CHANGES, TABLE, Operation, Verb
from lamfuse.core.roots import Roots
from lamfuse.core.target import FileId, Request
from tests.core.acts import DOWNLOADS, HOME, act, directory, file, free, identity

pytestmark = pytest.mark.requirement("H9")

O = Operation  # noqa: E741 - the rows are read by it
ROOTS = Roots(HOME, [b"/srv/docs"], [DOWNLOADS, HOME + b"/Documents/Lam Agent", b"/srv/out"])
ONCE = Offer(Scope.ONCE)
FOLDER = DOWNLOADS + b"/w"
A = FOLDER + b"/a"


def _files(number: int) -> frozenset[FileId]:
    return frozenset(identity(ino).file_id for ino in range(10, 10 + number))


def _folder(path: bytes, existing: int) -> Offer:
    return Offer(Scope.FOLDER, path, existing, _files(existing))


def _request(operation: Operation, path: bytes = A) -> Request:
    if operation in {O.LINK, O.RENAME}:
        return act(operation, file(FOLDER + b"/old"), free(path))
    if TABLE[operation].two_paths:
        return act(operation, file(FOLDER + b"/old"), file(path, 11))
    if TABLE[operation].verb is Verb.CREATE:
        return act(operation, free(path))
    return act(operation, directory(path) if operation is O.RMDIR else file(path))


@pytest.mark.parametrize("operation", sorted(CHANGES))
def test_a_plain_yes_is_for_the_file_where_content_is_made_and_once_elsewhere(
    operation: Operation,
) -> None:
    expected = Scope.FILE if TABLE[operation].verb in {Verb.CREATE, Verb.WRITE} else Scope.ONCE
    request = _request(operation)
    assert offers.default_scope(request) is expected
    assert any(offer.scope is expected for offer in offers.offers(request, (), ROOTS, _files(3)))


@pytest.mark.requirement("H10")
@pytest.mark.parametrize("operation", [O.UNLINK, O.RMDIR, O.RENAME, O.REPLACE, O.EXCHANGE])
def test_deleting_and_moving_is_once_only(operation: Operation) -> None:
    request = _request(operation)
    assert offers.folder_of(request, ()) is None
    assert offers.offers(request, (), ROOTS, _files(3)) == (ONCE,)


@pytest.mark.parametrize("operation", [O.CREATE, O.SYMLINK, O.MKNOD, O.LINK, O.WRITE, O.CHMOD])
def test_content_can_be_widened_to_the_folder(operation: Operation) -> None:
    request = _request(operation)
    assert offers.folder_of(request, ()) == FOLDER
    assert offers.offers(request, (), ROOTS, _files(3)) == (
        ONCE,
        Offer(Scope.FILE, A),
        _folder(FOLDER, 3),
    )


def test_a_new_folder_is_its_own_folder_and_holds_nothing_yet() -> None:
    request = _request(O.MKDIR)
    assert offers.folder_of(request, ()) == A
    assert offers.offers(request, (), ROOTS, None)[-1] == Offer(Scope.FOLDER, A, 0)


@pytest.mark.parametrize("operation", [O.CREATE, O.WRITE, O.CHMOD, O.MKDIR])
def test_what_runs_later_is_never_widened(operation: Operation) -> None:
    request = _request(operation, FOLDER + b"/.envrc")
    assert offers.folder_of(request, request.paths) is None
    scopes = [offer.scope for offer in offers.offers(request, request.paths, ROOTS, _files(3))]
    assert scopes == [Scope.ONCE, Scope.FILE]


@pytest.mark.parametrize(
    ("path", "existing", "expected"),
    [
        pytest.param(A, None, Offer(Scope.FOLDER, FOLDER, None), id="uncounted, below a root"),
        pytest.param(A, 0, _folder(FOLDER, 0), id="none yet"),
        pytest.param(DOWNLOADS + b"/a", 17, _folder(DOWNLOADS, 17), id="a root, counted"),
        pytest.param(DOWNLOADS + b"/a", 0, Offer(Scope.FOLDER, DOWNLOADS, 0), id="an empty root"),
        pytest.param(DOWNLOADS + b"/a", None, None, id="a root, too many to count"),
        pytest.param(b"/srv/out/a", None, None, id="an extra root, too many to count"),
        pytest.param(DOWNLOADS, 3, None, id="a root that is made: its parent is no write root"),
        pytest.param(HOME + b"/Documents/x", 3, None, id="not in a write root"),
    ],
)
def test_a_root_itself_is_offered_only_with_the_number_of_its_files(
    path: bytes, existing: int | None, expected: Offer | None
) -> None:
    found = [
        offer
        for offer in offers.offers(
            _request(O.CREATE, path), (), ROOTS, None if existing is None else _files(existing)
        )
        if offer.scope is Scope.FOLDER
    ]
    assert found == ([] if expected is None else [expected])


def test_the_chain_of_a_root_is_never_offered_as_a_folder() -> None:
    chain = offers.offers(_request(O.MKDIR, HOME + b"/Documents"), (), ROOTS, None)
    assert [offer.scope for offer in chain] == [Scope.ONCE, Scope.FILE]
    root = offers.offers(_request(O.MKDIR, HOME + b"/Documents/Lam Agent"), (), ROOTS, None)
    assert root[-1] == Offer(Scope.FOLDER, HOME + b"/Documents/Lam Agent", 0)
