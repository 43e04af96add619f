"""Runs the whole suite in phases and looks at what it leaves behind; scripts/test is the way in.

As root, what needs root runs as root, and everything else as an ordinary user, because that is who
mounts a view. Each run has a private temp, home and runtime directory, and is the reaper of all its
descendants: whatever still runs or is still mounted afterwards fails it. This module must not
import the package.
"""

import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests import residue

__all__ = ["main"]

ROOT = Path(__file__).resolve().parent.parent
PR_SET_CHILD_SUBREAPER = 36
# What has been told to end may need a moment for it; what needs longer is left over.
GRACE_S = 5.0
PHASE_LIMIT_S = 25 * 60
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
NO_TESTS = 5  # pytest's exit status when nothing was selected


@dataclass(frozen=True)
class User:
    """Who runs a phase."""

    uid: int
    gid: int
    name: str


@dataclass(frozen=True)
class Phase:
    """One run of pytest: its title, the expression that selects its tests, and its user."""

    title: str
    marks: str
    user: User


@dataclass
class Outcome:
    """The counts of all phases, and what is wrong beside failed tests."""

    counts: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


def ordinary_user() -> User:
    """Return the user of the mount tests: oneself, or as root an account made when needed."""
    if os.geteuid() != 0:
        entry = pwd.getpwuid(os.geteuid())
        return User(entry.pw_uid, entry.pw_gid, entry.pw_name)
    name = os.environ.get("LAMFUSE_TEST_USER", "lamfuse-test")
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        command = ["useradd", "--system", "--user-group", "--no-create-home", name]
        subprocess.run([*command, "--shell", "/usr/sbin/nologin"], check=True)
        print(f"test: made the user {name}", flush=True)
        entry = pwd.getpwnam(name)
    if entry.pw_uid == 0:
        sys.exit(f"test: LAMFUSE_TEST_USER={name} is root; name an ordinary user")
    return User(entry.pw_uid, entry.pw_gid, entry.pw_name)


def plan(user: User) -> list[Phase]:
    """Return the phases in order; times are compared last, with nothing else running."""
    phases = [Phase("as an ordinary user", "not root and not timing", user)]
    if os.geteuid() == 0:
        phases.append(Phase("as root", "root and not timing", User(0, 0, "root")))
    phases.append(Phase("times, alone", "timing and not root", user))
    return phases


def start(argv: Sequence[str], user: User, cwd: str, env: dict[str, str]) -> int:
    """Run a program as *user*, reap whatever ends meanwhile, and return the program's status."""
    foreign = user.uid != os.geteuid()
    process = subprocess.Popen(
        argv,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        user=user.uid if foreign else None,
        group=user.gid if foreign else None,
        extra_groups=[] if foreign else None,
    )
    # A test that hangs beyond its own limit (in a finally, say) must not hang the run.
    signal.signal(signal.SIGALRM, lambda *_: process.kill())
    signal.alarm(PHASE_LIMIT_S)
    # Orphans of the tests become our children; one that is not reaped would look alive to a test.
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == process.pid:
            signal.alarm(0)
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode


def reachable_checkout(user: User, private: Path) -> Path:
    """Return the checkout, or a copy of it below *private* where *user* cannot reach it."""
    probe = [str(ROOT / ".venv/bin/python"), "-c", "import pytest, lamfuse, tests.residue"]
    env = {"PATH": os.defpath, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            probe,
            cwd="/",
            env=env,
            check=False,
            capture_output=True,
            user=user.uid,
            group=user.gid,
            extra_groups=[],
        )
        if done.returncode == 0:
            return ROOT
    except PermissionError:
        pass  # the very Python is out of reach: copied, like the rest
    print(f"test: {user.name} cannot reach {ROOT}; testing a copy", flush=True)
    copy = private / "checkout"
    ignore = shutil.ignore_patterns(".git", ".mypy_cache", ".ruff_cache", ".hypothesis")
    shutil.copytree(ROOT, copy, symlinks=True, ignore=ignore)
    subprocess.run(["chmod", "-R", "a+rX", str(copy)], check=True)
    install = [str(copy / ".venv/bin/python"), "-m", "pip", "install", "--quiet"]
    install += ["--disable-pip-version-check", "--no-build-isolation", "--no-deps", "-e", "."]
    subprocess.run(install, cwd=copy, check=True)
    return copy


def split_marks(arguments: Sequence[str]) -> tuple[str | None, list[str]]:
    """Take the caller's own -m out of *arguments*: each phase has to narrow it."""
    marks = None
    rest: list[str] = []
    remaining = iter(arguments)
    for argument in remaining:
        if argument == "-m":
            marks = next(remaining, "")
        elif argument.startswith("-m"):
            marks = argument.removeprefix("-m").removeprefix("=")
        else:
            rest.append(argument)
    return marks or None, rest


def environment(checkout: Path, place: Path, *, owned: bool) -> dict[str, str]:
    """Return the environment of a phase: nothing of the person's but language and markers of CI."""
    kept = ("CI", "LAMFUSE_NO_SKIPS", "TERM", "COLUMNS", "TZ", "PYTHONWARNINGS")
    env = {name: os.environ[name] for name in kept if name in os.environ}
    env |= {
        "PATH": f"{checkout}/.venv/bin:{SYSTEM_PATH}",
        "LANG": "C.UTF-8",
        "HOME": str(place / "home"),
        "TMPDIR": str(place / "tmp"),
        "XDG_RUNTIME_DIR": str(place / "run"),
    }
    if not owned:
        env["PYTHONDONTWRITEBYTECODE"] = "1"
        env["HYPOTHESIS_STORAGE_DIRECTORY"] = str(place / "hypothesis")
    return env


def make_place(private: Path, number: int, user: User) -> Path:
    """Make the folders of one phase, its user's own."""
    place = private / str(number)
    for folder in (place, place / "home", place / "tmp", place / "run"):
        folder.mkdir(mode=0o700)
        os.chown(folder, user.uid, user.gid)
    return place


def count(report: Path, outcome: Outcome) -> None:
    """Add the counts of one junit report."""
    for suite in ET.parse(report).getroot().iter("testsuite"):
        of = {
            name: int(suite.get(name, "0")) for name in ("tests", "failures", "errors", "skipped")
        }
        failed = of["failures"] + of["errors"]
        outcome.counts["failed"] += failed
        outcome.counts["skipped"] += of["skipped"]
        outcome.counts["passed"] += max(0, of["tests"] - failed - of["skipped"])


def run_phase(phase: Phase, checkout: Path, place: Path, arguments: Sequence[str]) -> Outcome:
    """Run one phase and look at what it leaves."""
    outcome = Outcome()
    marks, rest = split_marks(arguments)
    expression = f"({marks}) and ({phase.marks})" if marks else phase.marks
    report = place / "report.xml"
    owned = os.access(checkout, os.W_OK) and os.stat(checkout).st_uid == phase.user.uid
    argv = [str(checkout / ".venv/bin/python"), "-m", "pytest", f"--junitxml={report}"]
    if not owned:
        argv += ["-o", f"cache_dir={place}/cache"]
    print(f"\ntest: {phase.title}, {phase.user.name}: -m '{expression}'", flush=True)
    before = residue.view_mounts()
    env = environment(checkout, place, owned=owned)
    status = start([*argv, *rest, "-m", expression], phase.user, str(checkout), env)
    if report.exists():
        count(report, outcome)
    if status not in {0, 1, NO_TESTS} or not report.exists():
        outcome.problems.append(f"{phase.title}: pytest ended with status {status}")
    outcome.problems += [f"left running: {line}" for line in end_leftovers()]
    for mount in sorted(residue.view_mounts() - before, key=lambda mount: mount.number):
        # A person may mount a view of their own meanwhile; the account made for tests has none.
        of_account = mount.uid == phase.user.uid and phase.user.uid not in {0, os.geteuid()}
        if of_account or mount.is_below(os.fsencode(place)):
            outcome.problems.append(f"left mounted: {os.fsdecode(mount.point)}")
            residue.unmount(mount)
    return outcome


def end_leftovers() -> list[str]:
    """End every descendant that does not end by itself, and describe those that had to be."""
    deadline = time.monotonic() + GRACE_S
    described: dict[int, str] = {}
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return sorted(described.values())
        if pid == 0:
            if time.monotonic() >= deadline:  # again and again: what a killed one had is ours now
                for child in children():
                    described.setdefault(child, command_of(child))
                    os.kill(child, signal.SIGKILL)
                if time.monotonic() >= deadline + GRACE_S:
                    return sorted(described.values())  # it waits in the kernel and cannot be ended
            time.sleep(0.05)


def children() -> list[int]:
    """Return the processes whose parent is this one."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        if int(fields[1]) == os.getpid():
            found.append(int(entry.name))
    return found


def command_of(pid: int) -> str:
    """Return the command line of a process, for people."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        words = []
    return f"{pid} {os.fsdecode(b' '.join(words)).strip()}"


def strays(user: User) -> set[str]:
    """Return what *user* owns in the shared temporary folders."""
    found = set()
    for folder in ("/tmp", "/var/tmp", "/dev/shm"):
        if not os.path.isdir(folder):
            continue
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.stat(follow_symlinks=False).st_uid == user.uid:
                    found.add(entry.path)
    return found


def main(arguments: Sequence[str]) -> int:
    """Run all phases; return 0 when every test passed and nothing was left behind."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    user = ordinary_user()
    dedicated = user.uid != os.geteuid()
    private = Path(tempfile.mkdtemp(prefix="lft-"))
    private.chmod(0o711)
    total = Outcome()
    stray = strays(user) if dedicated else set()
    try:
        checkout = reachable_checkout(user, private) if dedicated else ROOT
        for number, phase in enumerate(plan(user)):
            of_root = phase.user.uid == 0
            place = make_place(private, number, phase.user)
            outcome = run_phase(phase, ROOT if of_root else checkout, place, arguments)
            total.counts.update(outcome.counts)
            total.problems += outcome.problems
    finally:
        end_leftovers()
        residue.remove(private)
    if dedicated:
        total.problems += [f"left behind: {path}" for path in sorted(strays(user) - stray)]
    for problem in total.problems:
        print(f"test: {problem}")
    failed = total.counts["failed"] + len(total.problems)
    if not total.counts["passed"] + failed:
        print("test: no test was selected")
    line = f"{total.counts['passed']} passed, {failed} failed"
    print(f"{line}, {total.counts['skipped']} skipped" if total.counts["skipped"] else line)
    return 1 if failed or not total.counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
