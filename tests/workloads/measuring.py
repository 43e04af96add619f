"""Runs a task in a view, counts what was asked, and compares with the same task elsewhere."""

import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lamfuse.core.approval import Scope
from tests.mounting import Mounted
from tests.person import Answers, yes
from tests.workloads import accounts, tasks
from tests.workloads.looking import changed, comparable, look

__all__ = ["BY_FILE", "BY_FOLDER", "Measured", "measure"]

#: repository/.git/index holds times of the second, and inode numbers.
_ALWAYS_VARIES = ("repository/.git/index",)


#: Yes to this file for this turn; to a delete or a move, which have no such offer, once.
BY_FILE = yes(Scope.FILE)
#: Yes to this folder for this turn where there is such an offer; else a plain yes.
BY_FOLDER = yes(Scope.FOLDER)


@dataclass(frozen=True)
class Outcome:
    """What one run printed and left: exit status, what was said, evidence, and the tree."""

    status: int
    said: str
    evidence: str
    tree: dict[str, tuple[object, ...]]


@dataclass(frozen=True)
class Measured:
    """What came of a task: in the view, elsewhere, and what was asked meanwhile.

    *unexplained*: changes that the journal does not account for, or accounts for wrongly.
    *outside*: what changed in the home, but not in the folder of the task.
    """

    done: Outcome
    expected: Outcome
    complaints: str
    operations: tuple[str, ...]
    unexplained: tuple[str, ...]
    outside: tuple[str, ...]

    @property
    def count(self) -> int:
        """How many questions it cost."""
        return len(self.operations)


def measure(task: tasks.Task, here: Mounted, elsewhere: Path, answers: Answers) -> Measured:
    """Run *task* in a fresh folder of the view, with every question answered by *answers*.

    The folder *elsewhere* is empty and no view; the same task runs there.
    """
    environment = here.place.environment()
    name = here.fresh()
    folder = here.home / name
    tasks.prepare(folder, environment)
    tasks.prepare(elsewhere, environment)
    here.person.new_turn()
    here.person.forget(answers)
    account = accounts.Account(here.place.journal, folder)
    before = look(folder)
    around = _around(here, folder)

    done = tasks.run(task.steps, here.view / name, environment | {"HOME": os.fspath(here.view)})

    after = look(folder)
    asked = tuple(here.person.operations)
    outside = around ^ _around(here, folder)
    expected = tasks.run(task.steps, elsewhere, environment)
    return Measured(
        _outcome(task, done, folder, here.view / name, environment),
        _outcome(task, expected, elsewhere, elsewhere, environment),
        done.stderr,
        asked,
        tuple(account.unexplained(changed(before, after))),
        tuple(map(str, outside)),
    )


def _outcome(
    task: tasks.Task,
    done: "subprocess.CompletedProcess[str]",
    folder: Path,
    place: Path,
    environment: dict[str, str],
) -> Outcome:
    """Look at *folder*, which the task knew as *place*; the evidence may change it afterwards."""
    varies = (*_ALWAYS_VARIES, *task.varies)
    tree = comparable(look(folder), folder, place, varies)
    evidence = tasks.run(task.evidence, folder, environment)
    return Outcome(done.returncode, done.stdout, f"{evidence.returncode} {evidence.stdout}", tree)


def _around(here: Mounted, folder: Path) -> set[tuple[object, ...]]:
    """Return path, identity and all times of what stands in the home, but for *folder*."""
    own = here.place.journal.parent
    found: set[tuple[object, ...]] = set()
    for path in _walk(here.home, {folder, own}):
        seen = path.lstat()
        found.add(
            (path, seen.st_ino, seen.st_mode, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
        )
    return found


def _walk(top: Path, without: Iterable[Path]) -> Iterable[Path]:
    left_out = set(without)
    for directory, folders, files in os.walk(top):
        folders[:] = [name for name in folders if Path(directory, name) not in left_out]
        yield from (Path(directory, name) for name in (*folders, *files))
