"""Everyday tools work in a view as they do elsewhere, and ask a bearable number of questions."""

import re
from pathlib import Path

import pytest

from tests.mounting import Mounted, which
from tests.person import Answers, decline
from tests.workloads.measuring import BY_FILE, BY_FOLDER, Measured, measure
from tests.workloads.tasks import TASKS, Task

_PAGE = Path(__file__).parents[2] / "docs/questions.md"
_READING = [pytest.param(task, id=task.name) for task in TASKS if task.reads]
_CHANGING = [pytest.param(task, id=task.name) for task in TASKS if not task.reads]


def _check(measured: Measured) -> None:
    assert measured.complaints == ""
    done, expected = measured.done, measured.expected
    assert (done.status, done.said, done.evidence) == (0, expected.said, expected.evidence)
    assert expected.status == 0
    assert dict(done.tree.items() - expected.tree.items()) == {}
    assert done.tree.keys() == expected.tree.keys()
    assert measured.unexplained == ()
    assert measured.outside == ()


@pytest.mark.mount
@pytest.mark.requirement("H1", "L1")
@pytest.mark.parametrize("task", _READING)
def test_reading_asks_nothing_and_says_the_same(
    task: Task, shared: Mounted, tmp_path: Path
) -> None:
    with shared.watchdog():
        measured = measure(task, shared, tmp_path, BY_FILE)

    _check(measured)
    assert measured.operations == ()


@pytest.mark.mount
@pytest.mark.requirement("H2", "H4", "H9", "H10", "L1", "L9")
@pytest.mark.parametrize(
    "answers", [pytest.param(BY_FILE, id="by file"), pytest.param(BY_FOLDER, id="by folder")]
)
@pytest.mark.parametrize("task", _CHANGING)
def test_changing_asks_and_does_the_same(
    task: Task, answers: Answers, shared: Mounted, tmp_path: Path
) -> None:
    which("git", "vim", "rsync", "sqlite3", "tar", "python3")
    with shared.watchdog():
        measured = measure(task, shared, tmp_path, answers)

    _check(measured)
    assert measured.count > 0
    if answers is BY_FOLDER and task.most_by_folder is not None:
        assert measured.count <= task.most_by_folder, measured.operations


@pytest.mark.mount
@pytest.mark.requirement("L1")
def test_git_says_the_same_when_its_lock_is_declined(shared: Mounted, tmp_path: Path) -> None:
    (task,) = (task for task in TASKS if task.name == "git status")

    measured = measure(task, shared, tmp_path, decline)

    _check(measured)
    assert measured.operations == ("create",)


@pytest.mark.mount
@pytest.mark.requirement("L9")
def test_the_journal_of_it_all_is_whole(shared: Mounted) -> None:
    verified = shared.place.lamfuse("log", "--verify")

    assert verified.returncode == 0, verified.stdout


def test_the_table_in_the_documents_has_every_task() -> None:
    rows = re.findall(r"^\| (.+?) \| \d+ \| \d+ \|", _PAGE.read_text(), re.MULTILINE)

    assert rows == [task.name for task in TASKS]
