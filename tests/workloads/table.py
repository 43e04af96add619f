"""Writes docs/questions.md, what everyday tasks cost; scripts/questions is the way in."""

import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyfuse3

from lamfuse.core.approval import Scope
from tests.mounting import Mounted, make_home, mounted, place
from tests.workloads.measuring import measure
from tests.workloads.tasks import TASKS, Task

__all__ = ["main"]

_PAGE = Path(__file__).resolve().parents[2] / "docs/questions.md"

_TEXT = """\
# What everyday tasks cost in questions

Each task ran in a fresh folder of a write root, in a turn of its own.
Every question was answered yes, with the scope at the head of the column where it is offered.
Deleting and moving is always asked about, but for what was born in a granted folder in this turn.

| task | this file | this folder | what the latter are |
|---|---:|---:|---|
{rows}

Measured on {date} with `scripts/questions`.
Linux {kernel}, Python {python}, pyfuse3 {pyfuse3}, {git}.

A folder grant covers changes of what stood there before as well: its question says how many files.
The second question of git is about `.git/config.lock` and `.git/config`.
They run on your machine later, so no folder grant covers them.
What is moved or deleted and was there before the turn is asked about by itself.
"""


def main() -> int:
    """Run every task twice, and write the page; returns the exit status."""
    with place() as base, mounted(make_home(base)) as here:
        rows = [_row(task, here) for task in TASKS]
    git = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout
    _PAGE.write_text(
        _TEXT.format(
            rows="\n".join(rows),
            date=time.strftime("%Y-%m-%d"),
            kernel=platform.release(),
            python=platform.python_version(),
            pyfuse3=pyfuse3.__version__,
            git=git.strip(),
        )
    )
    return 0


def _row(task: Task, here: Mounted) -> str:
    counts = []
    operations: tuple[str, ...] = ()
    for scope in (Scope.FILE, Scope.FOLDER):
        with tempfile.TemporaryDirectory() as elsewhere:
            measured = measure(task, here, Path(elsewhere), scope)
        if measured.done.returncode != 0 or measured.tree != measured.expected_tree:
            raise SystemExit(f"{task.name}: it did not work: {measured.done.stderr}")
        counts.append(str(measured.count))
        operations = measured.operations
    return f"| {task.name} | {counts[0]} | {counts[1]} | {', '.join(operations)} |"


if __name__ == "__main__":
    sys.exit(main())
