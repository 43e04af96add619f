"""What no grant of any kind covers: changes that are each asked about by themselves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lamfuse.core.approval import Offer, Scope
from lamfuse.core.ledger import Ledger
from lamfuse.core.operations import Operation
from lamfuse.core.target import Request
from tests.core.acts import DOWNLOADS, act, file, free, identity

FOLDER = DOWNLOADS + b"/w"
SCRIPT = FOLDER + b"/run"
ENVRC = FOLDER + b"/.envrc"


def granted(request: Request, offer: Offer, classed: tuple[bytes, ...] = ()) -> Ledger:
    ledger = Ledger()
    ledger.grant(request, offer, classed, 1.0)
    return ledger


def _of_a_file() -> Ledger:
    return granted(act(Operation.CHMOD, file(SCRIPT)), Offer(Scope.FILE, SCRIPT))


def _of_a_folder_that_holds_it() -> Ledger:
    offer = Offer(Scope.FOLDER, FOLDER, 1, frozenset([identity(10).file_id]))
    return granted(act(Operation.CREATE, free(FOLDER + b"/x")), offer)


def _of_a_folder_where_it_was_born() -> Ledger:
    ledger = granted(act(Operation.CREATE, free(SCRIPT)), Offer(Scope.FOLDER, FOLDER))
    ledger.note_birth(file(SCRIPT), 1.0)
    return ledger


@pytest.mark.requirement("H9")
@pytest.mark.parametrize(
    "ledger",
    [
        pytest.param(_of_a_file(), id="the file"),
        pytest.param(_of_a_folder_that_holds_it(), id="its folder"),
        pytest.param(_of_a_folder_where_it_was_born(), id="the folder in which it was born"),
    ],
)
@pytest.mark.parametrize("operation", [Operation.CHMOD, Operation.SET_XATTR])
def test_a_grant_covers_an_ordinary_change_but_none_that_is_asked_about_by_itself(
    ledger: Ledger, operation: Operation
) -> None:
    request = act(operation, file(SCRIPT))
    assert ledger.covers(request, ()) is not None
    assert ledger.covers(replace(request, alone=True), ()) is None


@pytest.mark.requirement("H9")
def test_not_even_one_that_names_what_runs_later() -> None:
    request = act(Operation.CHMOD, file(ENVRC))
    ledger = granted(request, Offer(Scope.FILE, ENVRC), (ENVRC,))
    assert ledger.covers(request, (ENVRC,)) is not None
    assert ledger.covers(replace(request, alone=True), (ENVRC,)) is None


@pytest.mark.requirement("H9")
def test_a_new_name_that_is_asked_about_by_itself_is_not_covered_by_its_folder() -> None:
    ledger = granted(act(Operation.CREATE, free(SCRIPT)), Offer(Scope.FOLDER, FOLDER))
    request = act(Operation.CREATE, free(FOLDER + b"/new"))
    assert ledger.covers(request, ()) is not None
    assert ledger.covers(replace(request, alone=True), ()) is None
