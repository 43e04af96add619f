"""Everyday tools work in a view as they do elsewhere, and ask a bearable number of questions."""

from pathlib import Path

import pytest

from lamfuse.core.approval import Scope
from tests.mounting import Mounted, which
from tests.workloads.measuring import Measured, measure
from tests.workloads.tasks import TASKS, Task

pytestmark = pytest.mark.mount

_READING = [pytest.param(task, id=task.name) for task in TASKS if task.reads]
_CHANGING = [pytest.param(task, id=task.name) for task in TASKS if not task.reads]
_SCOPES = [
    pytest.param(Scope.FILE, id="by file"),
    pytest.param(Scope.FOLDER, id="by folder"),
]


def _check(measured: Measured) -> None:
    assert measured.done.returncode == 0, measured.done.stderr
    assert measured.expected.returncode == 0, measured.expected.stderr
    assert measured.tree == measured.expected_tree
    assert measured.unexplained == ()


@pytest.mark.requirement("H1", "L1")
@pytest.mark.parametrize("task", _READING)
def test_reading_asks_nothing_and_says_the_same(
    task: Task, shared: Mounted, tmp_path: Path
) -> None:
    with shared.watchdog():
        measured = measure(task, shared, tmp_path, Scope.FILE)

    _check(measured)
    assert measured.operations == ()
    if task.name != "ls -la":  # which shows times and the link counts of folders
        assert measured.done.stdout == measured.expected.stdout


@pytest.mark.requirement("H2", "H9", "H10", "L1")
@pytest.mark.parametrize("scope", _SCOPES)
@pytest.mark.parametrize("task", _CHANGING)
def test_changing_asks_and_does_the_same(
    task: Task, scope: Scope, shared: Mounted, tmp_path: Path
) -> None:
    which("git", "vim", "rsync", "sqlite3", "tar", "python3")
    with shared.watchdog():
        measured = measure(task, shared, tmp_path, scope)

    _check(measured)
    assert measured.count > 0
    if scope is Scope.FOLDER and task.most_by_folder is not None:
        assert measured.count <= task.most_by_folder, measured.operations


@pytest.mark.requirement("L9")
def test_the_journal_of_it_all_is_whole(shared: Mounted) -> None:
    verified = shared.place.lamfuse("log", "--verify")

    assert verified.returncode == 0, verified.stdout


def test_the_table_in_the_documents_has_every_task() -> None:
    text = (Path(__file__).parents[2] / "docs/questions.md").read_text()

    assert [task.name for task in TASKS if f"| {task.name} |" not in text] == []
