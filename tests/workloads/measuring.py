"""Runs a task in a view, counts what was asked, and compares with the same task elsewhere."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from lamfuse.core.approval import Scope
from tests.mounting import Mounted, entries
from tests.person import yes
from tests.workloads import tasks

__all__ = ["Measured", "measure"]


@dataclass(frozen=True)
class Measured:
    """What came of a task: in the view, elsewhere, and what was asked meanwhile."""

    done: "subprocess.CompletedProcess[str]"
    expected: "subprocess.CompletedProcess[str]"
    tree: dict[str, tuple[int, bytes]]
    expected_tree: dict[str, tuple[int, bytes]]
    operations: tuple[str, ...]
    unexplained: tuple[str, ...]

    @property
    def count(self) -> int:
        """How many questions it cost."""
        return len(self.operations)


def measure(task: tasks.Task, here: Mounted, elsewhere: Path, scope: Scope) -> Measured:
    """Run *task* in a fresh folder of the view, with every question answered by *scope*.

    A question that does not offer it gets a plain yes.
    """
    environment = here.place.environment()
    name = here.fresh()
    tasks.prepare(here.home / name, environment)
    tasks.prepare(elsewhere, environment)
    here.person.new_turn()
    here.person.forget(yes(scope))
    before = len(entries(here.place.journal))
    done = tasks.run(task, here.view / name, environment)
    asked = tuple(here.person.operations)
    expected = tasks.run(task, elsewhere, environment)
    return Measured(
        done,
        expected,
        tasks.tree(here.home / name, task),
        tasks.tree(elsewhere, task),
        asked,
        tuple(_unexplained(here, name, before)),
    )


def _unexplained(here: Mounted, name: str, before: int) -> list[str]:
    """Return the changes since line *before* of the journal that nothing allowed, or outside."""
    folder = str(here.home / name)
    lines = entries(here.place.journal)[before:]
    allowed = {line["question"] for line in lines if line.get("outcome") == "allowed"}
    wrong = []
    for line in lines:
        if line["kind"] != "intent":
            continue
        outside = [path for path in line["paths"] if not str(path).startswith(folder)]
        by_nobody = line["decision"] == "answer" and line["question"] not in allowed
        if outside or by_nobody or line["decision"] == "refused":
            wrong.append(str(line))
    return wrong
