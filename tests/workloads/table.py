"""Writes docs/questions.md, what everyday tasks cost; scripts/questions is the way in."""

import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pyfuse3

from tests import residue, run
from tests.mounting import Mounted, make_home, mounted, place
from tests.workloads.measuring import BY_FILE, BY_FOLDER, measure
from tests.workloads.tasks import TASKS, Task

__all__ = ["main"]

_PAGE = Path(__file__).resolve().parents[2] / "docs/questions.md"
_TOOLS = ("git", "vim", "rsync", "tar", "sqlite3")

_TEXT = """\
# What everyday tasks cost in questions

<!-- scripts/questions writes this page. -->

How often a person is asked while common tools do common work in a write root of a view.
With "this file", each question is answered *this file for this turn*.
A delete or a move has no such answer; it gets a yes for once.
With "this folder", the answer is *this folder for this turn* wherever it is offered.

| task | this file | this folder |
|---|---:|---:|
{counts}

## What was asked

| task | with this file | with this folder |
|---|---|---|
{kinds}

Reading asks nothing.
With "this file", a question stands for each new name, each old file that is changed, and each
delete and each move; no yes to a file reaches these two, also for what was made a moment ago.
So a tool that works with temporary files costs two or three questions a file, and git dozens.
A temporary file that is renamed over an old one is a save: the question is about the old one.
With "this folder", the first question says how many files the folder holds.
The yes covers these files and all that is made in the folder in this turn, deletes and moves too.
What stood there before the turn costs a question for each delete and each move all the same.
The second question of `git clone` and `git init` is about `.git/config` and its lock.
These run on your machine later, and no folder grant covers them.
`cp -a, then rm -r` ends with a question about the granted folder itself.
`git status` asks because it locks its index to freshen it.
It says the same when that is declined, and does not ask with `GIT_OPTIONAL_LOCKS=0`.

## How it was measured

With `scripts/questions`, on {date}: on a real mount, as an ordinary user, with approvals on.
Each task had a fresh folder and a turn of its own.
The same steps ran in a plain folder too, and left the same there.
`tests/workloads` checks that, and that the journal accounts for every change.
Other versions of the tools may ask more often, or less.

Linux {kernel}, Python {python}, pyfuse3 {pyfuse3}, {tools}.
"""


def main(arguments: list[str]) -> int:
    """Write the page, or with ``--print`` measure as whoever one is and print it."""
    if arguments == ["--print"]:
        sys.stdout.write(_page())
        return 0
    _PAGE.write_text(_measured_by(run.ordinary_user()))
    return 0


def _measured_by(user: run.User) -> str:
    """Let *user* measure, in places of its own, and return the page."""
    private = Path(tempfile.mkdtemp(prefix="lfq-"))
    private.chmod(0o711)
    own = user.uid == os.geteuid()
    try:
        checkout = run.ROOT if own else run.reachable_checkout(user, private)
        env = run.environment(checkout, run.make_place(private, 0, user), owned=own)
        return subprocess.run(
            [checkout / ".venv/bin/python", "-B", "-m", "tests.workloads.table", "--print"],
            cwd=checkout,
            env={**env, "PYTHONPATH": str(checkout)},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            user=None if own else user.uid,
            group=None if own else user.gid,
            extra_groups=None if own else [],
        ).stdout
    finally:
        residue.remove(private)


def _page() -> str:
    """Run every task twice, and return the page."""
    with place() as base, mounted(make_home(base)) as here:
        asked = [(task, _asked(task, here)) for task in TASKS]
    return _TEXT.format(
        counts="\n".join(
            f"| {task.name} | {' | '.join(str(len(each)) for each in operations)} |"
            for task, operations in asked
        ),
        kinds="\n".join(
            f"| {task.name} | {' | '.join(map(_kinds, operations))} |"
            for task, operations in asked
            if any(operations)
        ),
        date=time.strftime("%Y-%m-%d"),
        kernel=platform.release(),
        python=platform.python_version(),
        pyfuse3=pyfuse3.__version__,
        tools=", ".join(map(_version, _TOOLS)),
    )


def _asked(task: Task, here: Mounted) -> list[tuple[str, ...]]:
    """Return the operations that *task* was asked about: with file scope, with folder scope."""
    asked = []
    for answers in (BY_FILE, BY_FOLDER):
        with tempfile.TemporaryDirectory() as elsewhere:
            measured = measure(task, here, Path(elsewhere), answers)
        if measured.done != measured.expected or measured.done.status != 0:
            raise SystemExit(f"{task.name}: it did not work: {measured.complaints}")
        asked.append(measured.operations)
    return asked


def _kinds(operations: tuple[str, ...]) -> str:
    counted = Counter(operations)
    return ", ".join(f"{count} {operation}" for operation, count in counted.most_common())


def _version(tool: str) -> str:
    done = subprocess.run([tool, "--version"], capture_output=True, text=True, check=True)
    found = re.search(r"\d+(\.\d+)+", done.stdout)
    return f"{tool} {found.group() if found else '?'}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
