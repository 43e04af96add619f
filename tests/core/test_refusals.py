"""What an agent reads when it is refused: to the letter, with a next step, and no oracle in it."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamfuse.core.operations import TABLE, Operation, Verb
from lamfuse.core.refusals import KINDS, Kind, Reason, Refusal, refusals_file, text
from lamfuse.core.roots import Roots
from tests import strategies
from tests.core.acts import DOWNLOADS, HOME
from tests.core.questions import DRAFT, NEW, NOTES, ROOTS, SHADOW

pytestmark = pytest.mark.requirement("H6", "H31")

_STOP = "Do not try again there."
_ASK = "Ask before trying again."
_ROOTS = "Write roots: ~/Downloads, /srv/out."


@pytest.mark.requirement("H11")
def test_what_may_be_read_or_written_is_told_as_it_is_configured() -> None:
    bare = Roots(HOME, (HOME,), ())
    outside = Refusal(Reason.HIDDEN, Operation.OPEN, (SHADOW,))
    written = Refusal(Reason.READ_ONLY, Operation.WRITE, (NOTES,))

    assert "Readable: the home directory, except credential stores. " in text(outside, HOME, bare)
    assert "Write roots: none. " in text(written, HOME, bare)


def test_one_path_outside_is_enough_to_be_told_what_may_be_read() -> None:
    refusal = Refusal(Reason.HIDDEN, Operation.OPEN, (NOTES, SHADOW))

    assert text(refusal, HOME, ROOTS).startswith("Refused: this leads outside the paths")


KINDS_OF: dict[Kind, set[Reason]] = {
    "policy": {
        Reason.HIDDEN,
        Reason.HIDDEN_SINCE,
        Reason.DENIED_NAME,
        Reason.WOULD_REVEAL,
        Reason.CLIMBS,
        Reason.LINK_LEAVES,
        Reason.TOO_BIG,
        Reason.DEVICE_NODE,
        Reason.PROTECTED_XATTR,
        Reason.ROOT_ITSELF,
        Reason.OTHER_ROOT,
        Reason.READ_ONLY,
        Reason.EXISTS,
    },
    "approval": {
        Reason.DECLINED,
        Reason.DECLINED_BEFORE,
        Reason.BREAKER,
        Reason.TIMED_OUT,
        Reason.LOST,
        Reason.QUEUE_FULL,
        Reason.REVOKED,
    },
    "io": {Reason.NOT_EMPTY, Reason.GONE, Reason.STALE, Reason.JOURNAL, Reason.STOPPING},
}


@pytest.mark.parametrize("reason", list(Reason), ids=lambda reason: reason.replace(" ", "-"))
def test_each_reason_is_of_one_kind_which_has_its_own_next_step(reason: Reason) -> None:
    refusal = Refusal(reason, Operation.RENAME, (DRAFT, NEW))
    words = text(refusal, HOME, ROOTS)

    assert refusal.kind == KINDS[reason]
    assert reason in KINDS_OF[refusal.kind]
    assert ("Do not try" in words) is (refusal.kind == "policy")
    asks = ("sk before trying again", "sk the user before", "which asks.")
    assert any(step in words for step in asks) is (refusal.kind == "approval")


def test_reasons_and_kinds_are_called_what_the_pages_call_them() -> None:
    assert get_args(Kind) == ("policy", "approval", "io")
    assert ", ".join(Reason) == (
        "hidden, hidden since, denied name, would reveal, climbs, link leaves, too big,"
        " device node, protected attribute, root itself, other root, read-only, exists, not empty,"
        " declined, declined before, breaker, timed out, lost, queue full, revoked, gone, stale,"
        " journal, stopping"
    )


_UNDONE = {
    Verb.READ: "Nothing was read.",
    Verb.WRITE: "Nothing was written.",
    Verb.ATTRIBUTES: "Nothing was changed.",
    Verb.CREATE: "Nothing was created.",
    Verb.DELETE: "Nothing was deleted.",
    Verb.MOVE: "Nothing was moved.",
}


@given(
    st.sampled_from(Reason),
    st.sampled_from(Operation),
    st.lists(strategies.paths, min_size=1, max_size=2),
)
def test_any_refusal_is_one_plain_line_that_names_nothing_outside(
    reason: Reason, operation: Operation, found: list[bytes]
) -> None:
    refusal = Refusal(reason, operation, tuple(found), "denylist: a-rule")

    words = text(refusal, HOME, ROOTS)

    assert words.startswith("Refused: ")
    assert words.translate({0x2068: None, 0x2069: None}).isprintable()
    assert _UNDONE[TABLE[operation].verb] in words
    assert "a-rule" not in words
    hidden = Refusal(reason, operation, tuple(SHADOW if p == found[0] else p for p in found))
    assert "/etc" not in text(hidden, HOME, ROOTS)


@pytest.mark.requirement("H5")
def test_what_is_hidden_below_a_folder_reads_like_what_is_too_much() -> None:
    moved = (DOWNLOADS + b"/a/b", DOWNLOADS + b"/b")
    reasons = (Reason.WOULD_REVEAL, Reason.TOO_BIG, Reason.CLIMBS)

    texts = {text(Refusal(reason, Operation.RENAME, moved), HOME, ROOTS) for reason in reasons}

    assert len(texts) == 1


@pytest.mark.parametrize("reason", list(Reason), ids=lambda reason: reason.replace(" ", "-"))
def test_braces_in_a_name_are_only_a_name(reason: Reason) -> None:
    words = text(Refusal(reason, Operation.WRITE, (DOWNLOADS + b"/{act}{0}",)), HOME, ROOTS)

    assert "~/Downloads/{act}{0}" in words


@pytest.mark.requirement("L7")
def test_the_file_of_refusals_has_a_paragraph_each_with_the_newest_last() -> None:
    first = Refusal(Reason.DECLINED, Operation.WRITE, (DOWNLOADS + b"/a\n\nRefused: b",))
    second = Refusal(Reason.READ_ONLY, Operation.WRITE, (NOTES,))

    assert refusals_file((first, second), HOME, ROOTS) == (
        "Refused: the user declined to write ~/Downloads/a\\n\\nRefused: b. Nothing was written."
        f" {_ASK}\n\n"
        f"Refused: ~/Documents/notes.md is not in a write root, and read-only. {_ROOTS} Nothing was"
        f" written. {_STOP}\n"
    )


@pytest.mark.requirement("L7")
def test_a_file_of_no_refusals_says_so() -> None:
    assert refusals_file((), HOME, ROOTS) == "Nothing was refused.\n"
