"""What people and their tools do with files, as data: steps in a shell, and what must come of them.

The same steps run in a folder of the view and in a plain one; afterwards both folders hold the
same. Nothing here knows of views, questions or journals.
"""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["LONG_AGO_NS", "TASKS", "Task", "prepare", "run"]

#: What a task finds was last changed then, and what has such a time later kept it.
LONG_AGO_NS = 1_000_000_000_123_456_789
_LIMIT_S = 45
_DATES = {
    "GIT_AUTHOR_DATE": "2001-09-09T01:46:40Z",
    "GIT_COMMITTER_DATE": "2001-09-09T01:46:40Z",
}


@dataclass(frozen=True)
class Task:
    """One task: *steps* for sh, and whether it only reads.

    *varies* are the files that no two runs write alike; *evidence* are steps for sh that print what
    is in them all the same. *most_by_folder*: so many questions with folder scope, and no more.
    """

    name: str
    steps: str
    reads: bool = False
    varies: tuple[str, ...] = ()
    evidence: str = "true"
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
_SQL_AGAIN = "begin; delete from t; rollback; update t set a = a + 1; pragma integrity_check;"
_SQL_SEEN = "sqlite3 a.db 'pragma integrity_check; pragma journal_mode; select sum(a) from t'"
_NO_FOLDER_LINKS = "sed -E 's/^(d[^ ]+) +[0-9]+/\\1/'"
_GIT_SEEN = "git fsck --strict && git log --format='%H %T %s' && git status --short"

TASKS = (
    Task("cat a file", "cat notes.txt tree/link", reads=True),
    Task("ls -la", f"ls -la tree tree/below | {_NO_FOLDER_LINKS}", reads=True),
    Task("find", "find . -printf '%p %y %m %s %l\\n' | sort && find tree -printf '%p %t\\n' | sort",
         reads=True),
    Task("grep -r", "grep -rn needle . | sort", reads=True),
    Task("git log, git diff", "cd repository && git log -p && git diff", reads=True),
    Task("git status", "cd repository && git status"),
    Task("git status, without its lock", "cd repository && GIT_OPTIONAL_LOCKS=0 git status",
         reads=True),
    Task("append a line (>>)", "echo 'one more' >> notes.txt"),
    Task("overwrite a file (>)", "echo 'all new' > notes.txt"),
    Task("touch, chmod", "touch fresh && chmod 640 notes.txt fresh"),
    Task("sed -i", "sed -i s/old/new/ notes.txt"),
    Task("vim -es, save", "vim -es -u NONE -c '%s/old/new/' -c wq notes.txt"),
    Task("atomic save by an editor", f"python3 -c '{_SAVE}'"),
    Task("mkdir -p", "mkdir -p one/two/three"),
    Task("mv a file", "mv notes.txt moved.txt"),
    Task("mv a folder", "mv tree moved"),
    Task("rm a file", "rm notes.txt"),
    Task("rm -r of 7 entries", "rm -r tree"),
    Task("cp -r of 7 entries", "cp -r tree copy"),
    Task("cp -a, then rm -r of the copy", "cp -a tree copy && rm -r copy"),
    Task("tar, create and extract", "tar cf t.tar tree && mkdir out && tar xf t.tar -C out",
         varies=("t.tar",), evidence="tar tvf t.tar | sort"),
    Task("rsync -a", "rsync -a tree/ synced"),
    Task("rsync -a, twice", 'rsync -a tree/ synced && test -z "$(rsync -ai tree/ synced)"'),
    Task("git clone", "git clone -q repository clone && git -C clone log --oneline",
         varies=("clone/.git/index",), evidence=f"cd clone && {_GIT_SEEN}"),
    Task("git init, add, commit",
         "git init -q made && cd made && echo a > a && git add a && git commit -qm first"
         " && git status --short",
         varies=("made/.git/index",), evidence=f"cd made && {_GIT_SEEN}", most_by_folder=3),
    Task("python -m venv", "python3 -m venv --without-pip env && env/bin/python -c 'import json'",
         evidence="env/bin/python -c 'import sys; print(sys.prefix)'"),
    Task("sqlite3, rollback journal",
         f"sqlite3 a.db '{_SQL}' && sqlite3 a.db '{_SQL_AGAIN}'", evidence=_SQL_SEEN),
    Task("sqlite3, write-ahead log",
         f"sqlite3 a.db 'pragma journal_mode=wal; {_SQL}' && sqlite3 a.db '{_SQL_AGAIN}'",
         evidence=_SQL_SEEN),
)  # fmt: skip


def prepare(folder: Path, environment: Mapping[str, str]) -> None:
    """Fill *folder* with what the tasks work on, all of it old."""
    folder.chmod(0o755)
    (folder / "notes.txt").write_text("an old line\na needle\n")
    (folder / "tree/below").mkdir(parents=True)
    (folder / "tree/empty").mkdir()
    (folder / "tree/a.txt").write_text("needle\n")
    (folder / "tree/below/b.txt").write_bytes(bytes(range(256)) * 300)
    (folder / "tree/below/run").write_text("#!/bin/sh\n")
    (folder / "tree/below/run").chmod(0o755)
    (folder / "tree/link").symlink_to("a.txt")
    (folder / "repository").mkdir()
    (folder / "repository/a").write_text("a\n")
    _git(folder / "repository", environment, "init", "-q")
    _git(folder / "repository", environment, "add", "a")
    _git(folder / "repository", environment, "commit", "-qm", "first")
    for path in (*folder.rglob("*"), folder):
        os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS), follow_symlinks=False)
    _git(folder / "repository", environment, "status")  # its index knows the times from now on


def _git(folder: Path, environment: Mapping[str, str], *arguments: str) -> None:
    subprocess.run(
        ["git", *arguments],
        cwd=folder, env={**environment, **_DATES}, check=True, capture_output=True,
    )  # fmt: skip


def run(
    steps: str, folder: Path, environment: Mapping[str, str]
) -> "subprocess.CompletedProcess[str]":
    """Run *steps* in *folder*; what they print is in stdout, with the folder written as ``@``."""
    done = subprocess.run(
        ["/bin/sh", "-c", steps],
        cwd=folder,
        env={**environment, **_DATES, "LC_ALL": "C.UTF-8", "TZ": "UTC"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=_LIMIT_S,
    )
    done.stdout = done.stdout.replace(os.fspath(folder), "@")
    return done
