from __future__ import annotations

import os
from pathlib import Path

import pytest

from lamfuse.core import records
from lamfuse.core.approval import Scope, State
from lamfuse.core.operations import Operation
from lamfuse.store.dirs import Dirs
from lamfuse.store.journal import FileJournal
from tests.cli.fake_daemon import lamfuse

pytestmark = pytest.mark.requirement("L8", "L9")

_TARGET = b"Downloads/draft.md"


@pytest.fixture
def journal(dirs: Dirs, person: Path) -> Dirs:
    """A short history: one change that was allowed, one that was declined, one that failed."""
    target = bytes(person) + b"/" + _TARGET
    other = bytes(person) + b"/Downloads/\x1b\xff"
    history: list[records.Record] = [
        records.StartRecord(version="0.1.0", pid=42, home=bytes(person), mountpoint=b"/mnt/view"),
        records.QuestionRecord("k7f2", "claude-1", 1, Operation.WRITE, (target,)),
        records.AnswerRecord("k7f2", "claude-1", State.ALLOWED, Scope.FILE, "terminal"),
        records.IntentRecord(
            "claude-1", 1, Operation.WRITE, (target,), records.Basis.ANSWER, question="k7f2"
        ),
        records.EffectRecord(intent=4, errno=0),
        records.QuestionRecord("m3qd", "other", 1, Operation.UNLINK, (other,)),
        records.AnswerRecord("m3qd", "other", State.DECLINED, None, "watch"),
        records.IntentRecord(
            "other", 1, Operation.CREATE, (target,), records.Basis.RULE, rule="mine"
        ),
        records.EffectRecord(intent=8, errno=28),
        records.StopRecord(),
    ]
    store = FileJournal(dirs.journal)
    for record in history:
        store.append(record)
    store.close()
    return dirs


def test_without_a_journal_there_is_nothing_to_tell(dirs: Dirs) -> None:
    result = lamfuse("log")
    assert (result.code, result.out) == (0, "")


def test_every_line_is_told_in_order(journal: Dirs) -> None:
    result = lamfuse("log")
    assert result.code == 0
    lines = result.out.splitlines()
    assert [line.split()[2] for line in lines] == [f"#{number}" for number in range(1, 11)]
    assert "k7f2 claude-1: write ~/Downloads/draft.md" in lines[1]
    assert "k7f2 allowed (file) by terminal: write ~/Downloads/draft.md" in lines[2]
    assert "of #4: done: write ~/Downloads/draft.md" in lines[4]
    assert "m3qd declined by watch: unlink ~/Downloads/" in lines[6]
    assert "of #8: ENOSPC (No space left on device): create" in lines[8]


def test_names_are_made_visible(journal: Dirs) -> None:
    assert "\x1b" not in lamfuse("log").out


def test_the_last_lines(journal: Dirs) -> None:
    lines = lamfuse("log", "-n", "2").out.splitlines()
    assert [line.split()[2] for line in lines] == ["#9", "#10"]


@pytest.mark.parametrize("number", ["0", "-1", "x"])
def test_a_number_of_lines_that_makes_no_sense_is_refused(journal: Dirs, number: str) -> None:
    assert lamfuse("log", "-n", number).code == 2


def test_only_what_was_refused_or_failed(journal: Dirs) -> None:
    lines = lamfuse("log", "--denied").out.splitlines()
    assert [line.split()[2] for line in lines] == ["#7", "#9"]


def test_only_one_session_with_the_effects_of_its_intents(journal: Dirs) -> None:
    lines = lamfuse("log", "--session", "claude-1").out.splitlines()
    assert [line.split()[2] for line in lines] == ["#2", "#3", "#4", "#5"]


def test_data_for_programs(journal: Dirs, person: Path) -> None:
    import json  # noqa: PLC0415 - the option has the same name

    lines = [json.loads(line) for line in lamfuse("log", "--json").out.splitlines()]
    assert [line["seq"] for line in lines] == list(range(1, 11))
    assert lines[1]["paths"] == [f"{person}/Downloads/draft.md"]
    assert set(lines[5]["paths"][0]) == {"b64"}
    assert lines[6]["outcome"] == "declined"


def test_it_follows_rotation(dirs: Dirs, person: Path) -> None:
    store = FileJournal(dirs.journal, max_size=600)
    for number in range(20):
        store.append(records.TurnRecord("other", number, "a person"))
    store.close()
    assert len(os.listdir(dirs.state_dir)) > 2
    lines = [line for line in lamfuse("log").out.splitlines() if " turn " in line]
    assert [int(line.split("turn ")[2].split(",")[0]) for line in lines] == list(range(20))
    assert lamfuse("log", "--verify").code == 0


def test_a_whole_journal_is_verified_and_the_limits_are_said(journal: Dirs) -> None:
    result = lamfuse("log", "--verify")
    assert result.code == 0
    assert "10 lines, all whole" in result.out
    assert "cannot find" in result.out
    data = lamfuse("log", "--verify", "--json").data
    assert (data["whole"], data["count"], data["damage"]) == (True, 10, None)
    assert data["head"] in result.out


def test_an_edited_journal_is_found_and_the_rest_is_still_told(journal: Dirs) -> None:
    place = Path(os.fsdecode(journal.journal))
    place.write_bytes(place.read_bytes().replace(b'"declined"', b'"allowed"', 1))
    result = lamfuse("log", "--verify")
    assert result.code == 1
    assert "journal.jsonl, line 7" in result.err
    data = lamfuse("log", "--verify", "--json").data
    assert (data["whole"], data["damage"]["line"]) == (False, 7)
    told = lamfuse("log")
    assert told.code == 0
    assert "DAMAGED journal.jsonl, line 7" in told.out
    assert "#10" in told.out
    assert "DAMAGED" in lamfuse("log", "--denied").out


def test_a_journal_that_cannot_be_read_is_named(dirs: Dirs) -> None:
    os.makedirs(dirs.journal)
    result = lamfuse("log")
    assert result.code == 1
    assert "journal.jsonl" in result.err
    assert "Traceback" not in result.err
