"""The account finds what the journal does not explain: a check that never fails checks nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.workloads.accounts import Account

_FOLDER = Path("/home/lam/Downloads/t")
_A, _B = str(_FOLDER / "a"), str(_FOLDER / "b")


def _answer(*granted: str, outcome: str = "allowed", scope: str = "file") -> dict[str, Any]:
    return {
        "kind": "answer", "question": "k7f2", "outcome": outcome, "scope": scope,
        "granted": list(granted),
    }  # fmt: skip


def _intent(*paths: str, decision: str, operation: str = "write") -> dict[str, Any]:
    return {
        "kind": "intent", "seq": 7, "operation": operation, "paths": list(paths),
        "decision": decision, "question": "k7f2" if decision == "answer" else "",
    }  # fmt: skip


def _effect(errno: int = 0) -> dict[str, Any]:
    return {"kind": "effect", "intent": 7, "errno": errno}


def _wrong(tmp_path: Path, lines: list[dict[str, Any]], *changed: str) -> list[str]:
    journal = tmp_path / "journal"
    journal.write_text('{"kind": "of an earlier time"}\n')
    account = Account(journal, _FOLDER)
    with journal.open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    return list(account.unexplained(map(Path, changed)))


@pytest.mark.parametrize(
    ("lines", "changed"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([_answer(), _intent(_A, decision="answer"), _effect()], [_A], id="answered"),
        pytest.param([_answer(_A), _intent(_A, decision="grant"), _effect()], [_A], id="this file"),
        pytest.param(
            [_answer(str(_FOLDER), scope="folder"), _intent(_A, decision="grant"), _effect()],
            [_A],
            id="this folder",
        ),
        pytest.param(
            [_answer(), _intent(_A, _B, decision="answer", operation="rename"), _effect()],
            [_A, f"{_A}/below", _B, f"{_B}/below"],
            id="what is below a moved folder",
        ),
        pytest.param(
            [_answer(_B), _intent(_A, _B, decision="grant", operation="replace"), _effect()],
            [_A, _B],
            id="a save is judged by its destination",
        ),
    ],
)
def test_what_was_allowed_is_explained(
    tmp_path: Path, lines: list[dict[str, Any]], changed: list[str]
) -> None:
    assert _wrong(tmp_path, lines, *changed) == []


@pytest.mark.parametrize(
    ("lines", "changed", "complaint"),
    [
        pytest.param([], [_A], "no intent", id="a change out of nowhere"),
        pytest.param(
            [_answer(), _intent(_A, decision="answer"), _effect()], [_B], "no intent", id="another"
        ),
        pytest.param(
            [_answer(), _intent(_A, decision="answer"), _effect(13)], [_A], "no intent", id="failed"
        ),
        pytest.param(
            [_answer(), _intent(_A, decision="answer"), _effect()],
            [f"{_A}/below"],
            "no intent",
            id="below what was written to",
        ),
        pytest.param(
            [_answer(outcome="declined"), _intent(_A, decision="answer"), _effect()],
            [_A],
            "not allowed",
            id="declined",
        ),
        pytest.param(
            [_answer(_A, outcome="timed out"), _intent(_A, decision="grant"), _effect()],
            [_A],
            "not allowed",
            id="a grant that nobody gave",
        ),
        pytest.param(
            [_answer(_A), _intent(f"{_A}/x", decision="grant"), _effect()],
            [f"{_A}/x"],
            "not allowed",
            id="below a granted file",
        ),
        pytest.param(
            [_answer(_A), _intent(_A, _B, decision="grant", operation="rename"), _effect()],
            [_A, _B],
            "not allowed",
            id="a move to a name that was not granted",
        ),
        pytest.param(
            [_intent(_A, decision="handle"), _effect()], [_A], "not allowed", id="never opened"
        ),
        pytest.param(
            [_intent(_A, decision="unasked"), _effect()], [_A], "not allowed", id="not asked"
        ),
        pytest.param(
            [_answer(), _intent(f"{_FOLDER}x", decision="answer"), _effect()],
            [],
            "outside",
            id="beside the folder",
        ),
    ],
)
def test_what_was_not_allowed_is_found(
    tmp_path: Path, lines: list[dict[str, Any]], changed: list[str], complaint: str
) -> None:
    (found,) = _wrong(tmp_path, lines, *changed)

    assert found.startswith(complaint)
