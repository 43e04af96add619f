"""What people and their tools do with files, as data: steps in a shell, and what must come of them.

The same steps run in a folder of the view and in a plain one; afterwards both folders hold the
same.
"""

import os
import stat
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["TASKS", "Task", "prepare", "run", "tree"]

_LIMIT_S = 60


@dataclass(frozen=True)
class Task:
    """One task: *steps* for sh, and whether it only reads.

    *differs* are names whose content may differ between two runs (times, random numbers).
    """

    name: str
    steps: str
    reads: bool = False
    differs: tuple[str, ...] = ()
    most_by_folder: int | None = None


_SAVE = """\
import os
with open("notes.txt.tmp", "w") as file:
    file.write("saved at once\\n")
    file.flush()
    os.fsync(file.fileno())
os.replace("notes.txt.tmp", "notes.txt")
"""
_SQL = "create table t(a); begin; insert into t values(1); insert into t values(2); commit;"

TASKS = (
    Task("cat a file", "cat notes.txt", reads=True),
    Task("ls -la", "ls -la tree", reads=True),
    Task("find", "find . -name '*.txt' | sort", reads=True),
    Task("grep -r", "grep -rn needle . | sort", reads=True),
    Task("append a line (>>)", "echo 'one more' >> notes.txt"),
    Task("overwrite a file (>)", "echo 'all new' > notes.txt"),
    Task("sed -i", "sed -i s/old/new/ notes.txt"),
    Task("vim -es, save", "vim -es -u NONE -c '%s/old/new/' -c wq notes.txt"),
    Task("atomic save by an editor", f"python3 -c '{_SAVE}'"),
    Task("mkdir -p", "mkdir -p one/two/three"),
    Task("mv a file", "mv notes.txt moved.txt"),
    Task("rm a file", "rm notes.txt"),
    Task("cp -r of 7 entries", "cp -r tree copy"),
    Task("cp -a, then rm -r of the copy", "cp -a tree copy && rm -r copy"),
    Task("tar, create and extract", "tar cf t.tar tree && mkdir out && tar xf t.tar -C out",
         differs=("t.tar",)),
    Task("rsync -a, and again", 'rsync -a tree/ synced && test -z "$(rsync -ain tree/ synced)"'),
    Task("git clone", "git clone -q repository clone && git -C clone log --oneline",
         differs=("clone/.git",)),
    Task("git init, add, commit",
         "git init -q made && cd made && echo a > a && git add a && git commit -qm first"
         " && git status --short",
         differs=("made/.git",), most_by_folder=3),
    Task("python -m venv", "python3 -m venv --without-pip env && env/bin/python -c 'import json'",
         differs=("env",)),
    Task("sqlite3, rollback journal",
         f"sqlite3 a.db '{_SQL} pragma integrity_check; select sum(a) from t'"),
    Task("sqlite3, write-ahead log",
         f"sqlite3 a.db 'pragma journal_mode=wal; {_SQL} pragma integrity_check'",
         differs=("a.db",)),
)  # fmt: skip


def prepare(folder: Path, environment: Mapping[str, str]) -> None:
    """Fill *folder* with what the tasks work on."""
    (folder / "notes.txt").write_text("an old line\na needle\n")
    (folder / "tree/below").mkdir(parents=True)
    (folder / "tree/empty").mkdir()
    (folder / "tree/a.txt").write_text("needle\n")
    (folder / "tree/below/b.txt").write_bytes(bytes(range(256)) * 300)
    (folder / "tree/below/run").write_text("#!/bin/sh\n")
    (folder / "tree/below/run").chmod(0o755)
    (folder / "tree/link").symlink_to("below/b.txt")
    (folder / "repository").mkdir()
    (folder / "repository/a").write_text("a\n")
    for command in (["init", "-q"], ["add", "a"], ["commit", "-qm", "first"]):
        subprocess.run(
            ["git", *command], cwd=folder / "repository", env=dict(environment), check=True
        )


def run(
    task: Task, folder: Path, environment: Mapping[str, str]
) -> "subprocess.CompletedProcess[str]":
    """Run *task* in *folder*; what it prints is in stdout."""
    return subprocess.run(
        ["/bin/sh", "-c", task.steps],
        cwd=folder,
        env={**environment, "LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=_LIMIT_S,
    )


def tree(folder: Path, task: Task) -> dict[str, tuple[int, bytes]]:
    """Return mode and content (a link's target) of all below *folder* that is compared."""
    found: dict[str, tuple[int, bytes]] = {}
    for directory, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(directory, name)
            shown = str(path.relative_to(folder))
            differs = ("repository/.git", *task.differs)  # an index holds times and inode numbers
            if any(shown == other or shown.startswith(f"{other}/") for other in differs):
                continue
            mode = path.lstat().st_mode
            content = b""
            if stat.S_ISLNK(mode):
                content = os.readlink(bytes(path))
            elif stat.S_ISREG(mode):
                content = path.read_bytes()
            found[shown] = (mode, content)
    return found
