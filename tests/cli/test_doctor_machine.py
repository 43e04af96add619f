"""What the doctor finds about the machine: each thing good, and bad in each way that is known."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lamfuse.cli.probes import fuse, inotify, programs
from lamfuse.cli.probes.finding import Level
from lamfuse.cli.probes.machine import Done, Here, Machine, number
from lamfuse.cli.probes.subject import Subject
from lamfuse.tree.mounts import Mount
from tests.cli.fake_machine import FakeMachine, must_be_useful, only, status

pytestmark = pytest.mark.requirement("L8")

Break = Callable[[FakeMachine], None]


def test_a_good_machine_has_nothing_wrong() -> None:
    machine = FakeMachine.good()
    found = [*fuse.look(machine), *programs.look(machine)]
    found += [inotify._watches(machine, 10), inotify._instances(machine, 3)]

    assert {finding.level for finding in found} == {Level.OK}
    assert len({finding.check for finding in found}) == len(found)
    for finding in found:
        must_be_useful(finding)


def test_versions_are_said() -> None:
    text = " ".join(finding.what for finding in fuse.look(FakeMachine.good()))

    for version in ("version 3.14.0", "6.18.0-1-amd64", "pyfuse3 3.5.0", "libfuse 3.14.0", "0666"):
        assert version in text


def lacks_device(machine: FakeMachine) -> None:
    machine.refusals["/dev/fuse"] = errno.ENOENT
    del machine.stats["/dev/fuse"]


def closed_device(machine: FakeMachine) -> None:
    machine.refusals["/dev/fuse"] = errno.EACCES
    machine.stats["/dev/fuse"] = status(stat.S_IFCHR | 0o600)


def lacks_fusermount(machine: FakeMachine) -> None:
    machine.programs.remove("fusermount3")


def plain_fusermount(machine: FakeMachine) -> None:
    machine.stats["/usr/bin/fusermount3"] = status(stat.S_IFREG | 0o755)


def foreign_fusermount(machine: FakeMachine) -> None:
    machine.stats["/usr/bin/fusermount3"] = status(stat.S_IFREG | stat.S_ISUID | 0o755, uid=1001)


def many_mounts(machine: FakeMachine) -> None:
    machine.texts["/proc/self/mounts"] = "x /m fuse.x rw 0 0\n" * 3 + "y /n fuseblk rw 0 0\n"
    machine.texts["/etc/fuse.conf"] = "#mount_max = 9\n mount_max = 4\n"


def old_kernel(machine: FakeMachine) -> None:
    machine.texts["/proc/sys/kernel/osrelease"] = "4.19.0\n"


def no_library(machine: FakeMachine) -> None:
    error = "Traceback\nImportError: libfuse3.so.3: cannot open\x1b[2J shared object file\n"
    machine.said["pyfuse3.__version__"] = Done(1, "", error)


def mute_library(machine: FakeMachine) -> None:
    machine.said["pyfuse3.__version__"] = Done(None)


def old_library(machine: FakeMachine) -> None:
    machine.said["pyfuse3.__version__"] = Done(0, '["3.2.1", ""]')


@pytest.mark.parametrize(
    ("damage", "check", "words", "remedy"),
    [
        pytest.param(lacks_device, "fuse.device", "is not there", "modprobe fuse", id="no-device"),
        pytest.param(closed_device, "fuse.device", "(mode 0600)", "chmod 0666", id="closed-device"),
        pytest.param(
            lacks_fusermount, "fuse.fusermount3", "not installed", "fuse3", id="no-fusermount"
        ),
        pytest.param(plain_fusermount, "fuse.fusermount3", "set-uid", "chmod u+s", id="no-set-uid"),
        pytest.param(foreign_fusermount, "fuse.fusermount3", "set-uid", "chmod", id="not-roots"),
        pytest.param(
            many_mounts, "fuse.mount_max", "4 FUSE file systems mounted, 4 may", "/etc/fuse.conf",
            id="mount-max",
        ),
        pytest.param(old_kernel, "fuse.kernel", "Linux 4.19.0", "later kernel", id="kernel"),
        pytest.param(no_library, "fuse.library", "open\\x1b[2J shared", "libfuse3-3", id="no-lib"),
        pytest.param(mute_library, "fuse.library", "did not end in time", "libfuse3", id="mute"),
        pytest.param(old_library, "fuse.library", "3.4 or later", "Install", id="old-library"),
    ],
)  # fmt: skip
def test_what_keeps_this_machine_from_mounting_is_said(
    damage: Break, check: str, words: str, remedy: str
) -> None:
    machine = FakeMachine.good()
    damage(machine)

    found = only(fuse.look(machine), check)

    assert (found.level, found.lacking) == (Level.PROBLEM, True)
    assert words in found.what
    assert remedy in found.remedy
    must_be_useful(found)


def test_root_needs_neither_set_uid_nor_heeds_mount_max() -> None:
    machine = FakeMachine.good()
    plain_fusermount(machine)
    many_mounts(machine)
    machine.uid = 0

    assert {finding.level for finding in fuse.look(machine)} == {Level.OK}


@pytest.mark.parametrize(
    "text", ["", "mount_max = 5\n", "mount_max = -1\n", "#mount_max = 1\n"], ids=str
)
def test_mount_max_that_is_not_reached_is_fine(text: str) -> None:
    machine = FakeMachine.good()
    many_mounts(machine)
    machine.texts["/etc/fuse.conf"] = text

    assert only(fuse.look(machine), "fuse.mount_max").level is Level.OK


def test_an_elder_kernel_is_a_note() -> None:
    machine = FakeMachine.good()
    machine.texts["/proc/sys/kernel/osrelease"] = "6.1.0-18-amd64\n"

    assert only(fuse.look(machine), "fuse.kernel").level is Level.NOTE


# --- what holds an agent


def no_clone(machine: FakeMachine) -> None:
    machine.texts["/proc/sys/kernel/unprivileged_userns_clone"] = "0\n"


def none_at_all(machine: FakeMachine) -> None:
    machine.texts["/proc/sys/user/max_user_namespaces"] = "0\n"


def apparmor(machine: FakeMachine) -> None:
    machine.texts["/proc/sys/kernel/apparmor_restrict_unprivileged_userns"] = "1\n"


def unshare_fails(machine: FakeMachine) -> None:
    machine.said["unshare"] = Done(1, "", "unshare: unshare failed: Operation not permitted\n")


def no_bwrap(machine: FakeMachine) -> None:
    machine.programs.remove("bwrap")


def bwrap_fails(machine: FakeMachine) -> None:
    machine.said["bwrap --unshare"] = Done(1, "", "bwrap: setting up uid map: Permission denied\n")


def bwrap_hangs(machine: FakeMachine) -> None:
    machine.said["bwrap --unshare"] = Done(None)


def no_rg(machine: FakeMachine) -> None:
    machine.programs.remove("rg")


def rg_fails(machine: FakeMachine) -> None:
    machine.said["rg --version"] = Done(127, "", "rg: wrong ELF class\n")


@pytest.mark.parametrize(
    ("damage", "check", "words", "remedy"),
    [
        pytest.param(
            no_clone, "sandbox.namespaces", "unprivileged_userns_clone is 0", "sysctl", id="clone"
        ),
        pytest.param(
            none_at_all, "sandbox.namespaces", "max_user_namespaces is 0", "sysctl", id="max"
        ),
        pytest.param(
            apparmor, "sandbox.namespaces", "apparmor_restrict", "bwrap-userns-restrict",
            id="apparmor",
        ),
        pytest.param(
            unshare_fails, "sandbox.namespaces", "Operation not permitted", "container", id="tried"
        ),
        pytest.param(no_bwrap, "sandbox.bubblewrap", "not installed", "bubblewrap", id="no-bwrap"),
        pytest.param(
            bwrap_fails, "sandbox.bubblewrap", "Permission denied", "user namespaces", id="bwrap"
        ),
        pytest.param(
            bwrap_hangs, "sandbox.bubblewrap", "did not end in time", "dead mount", id="bwrap-hangs"
        ),
        pytest.param(no_rg, "programs.ripgrep", "not installed", "ripgrep", id="no-ripgrep"),
        pytest.param(rg_fails, "programs.ripgrep", "wrong ELF class", "again", id="ripgrep-fails"),
    ],
)  # fmt: skip
def test_what_is_missing_to_shut_an_agent_in_is_a_note(
    damage: Break, check: str, words: str, remedy: str
) -> None:
    machine = FakeMachine.good()
    damage(machine)

    found = only(programs.look(machine), check)

    assert (found.level, found.lacking) == (Level.NOTE, False)
    assert words in found.what
    assert remedy in found.remedy
    must_be_useful(found)


def test_every_reason_against_user_namespaces_is_said_at_once() -> None:
    machine = FakeMachine.good()
    for damage in (no_clone, none_at_all, apparmor):
        damage(machine)

    found = only(programs.look(machine), "sandbox.namespaces")

    assert found.what.count(" is ") == 3
    assert ["unshare" for command in machine.ran if command[0] == "unshare"] == []


def test_what_the_kernel_forbids_to_users_is_tried_by_root() -> None:
    machine = FakeMachine.good()
    no_clone(machine)
    machine.uid = 0

    assert only(programs.look(machine), "sandbox.namespaces").level is Level.OK


def test_without_unshare_it_is_said_that_nothing_was_tried() -> None:
    machine = FakeMachine.good()
    machine.programs.remove("unshare")

    assert "was not tried" in only(programs.look(machine), "sandbox.namespaces").what


# --- inotify


@pytest.mark.parametrize(
    ("most", "used", "level", "share"),
    [
        pytest.param("192536", 10, Level.OK, "48,134", id="many"),
        pytest.param("8192", 10, Level.NOTE, "2,048", id="few"),
        pytest.param("192536", 190000, Level.NOTE, "2,536", id="used-up"),
        pytest.param("192536", 200000, Level.NOTE, "at most 0", id="over"),
    ],
)
def test_the_watches_that_a_view_can_take_are_counted(
    most: str, used: int, level: Level, share: str
) -> None:
    machine = FakeMachine.good()
    machine.texts["/proc/sys/fs/inotify/max_user_watches"] = most

    found = inotify._watches(machine, used)

    assert found.level is level
    assert share in found.what
    must_be_useful(found)


@pytest.mark.parametrize(
    ("used", "level"),
    [pytest.param(120, Level.OK, id="enough"), pytest.param(121, Level.NOTE, id="few")],
)
def test_the_instances_that_are_left_are_counted(used: int, level: Level) -> None:
    found = inotify._instances(FakeMachine.good(), used)

    assert found.level is level
    must_be_useful(found)


def test_unknown_limits_are_notes() -> None:
    machine = FakeMachine()

    for found in (inotify._watches(machine, 0), inotify._instances(machine, 0)):
        assert found.level is Level.NOTE
        must_be_useful(found)


@pytest.mark.parametrize(
    ("kinds", "level"),
    [
        pytest.param([(b"/", b"ext4")], Level.OK, id="local"),
        pytest.param([(b"/", b"ext4"), (b"/home", b"nfs4")], Level.NOTE, id="nfs"),
        pytest.param([(b"/", b"nfs4"), (b"/home/lam", b"btrfs")], Level.OK, id="local-on-nfs"),
        pytest.param([(b"/", b"ext4"), (b"/home/la", b"nfs4")], Level.OK, id="not-its-parent"),
        pytest.param([(b"/home", b"ext4"), (b"/home", b"fuse.sshfs")], Level.NOTE, id="topmost"),
        pytest.param([], Level.OK, id="unknown"),
    ],
)
def test_a_home_that_others_change_unheard_is_a_note(
    kinds: list[tuple[bytes, bytes]], level: Level
) -> None:
    table = [Mount(path, kind, b"x") for path, kind in kinds]

    found = inotify._kind(b"/home/lam", table)

    assert found.level is level
    must_be_useful(found)


def test_the_home_of_the_subject_is_looked_at(person: Path) -> None:
    checks = {finding.check for finding in inotify.look(Subject(FakeMachine.good()))}

    assert checks == {"inotify.watches", "inotify.instances", "inotify.home"}


# --- this machine


def test_this_machine_is_read(tmp_path: Path) -> None:
    here: Machine = Here()
    (tmp_path / "text").write_bytes(b"12\n\xff")
    (tmp_path / "number").write_text("-3\n")

    assert here.uid == os.getuid()
    assert here.text(str(tmp_path / "text")) == "12\n\ufffd"
    assert here.text(str(tmp_path / "absent")) is None
    assert here.stat(str(tmp_path / "absent")) is None
    assert here.stat(str(tmp_path)) is not None
    assert here.refusal(os.devnull) == 0
    assert here.refusal(str(tmp_path / "absent")) == errno.ENOENT
    assert here.find("sh") is not None
    assert here.find("no-such-program") is None
    assert number(here, str(tmp_path / "number")) == -3
    assert number(here, str(tmp_path / "text")) is None


def test_programs_of_this_machine_are_run_in_the_root_and_for_so_long_only() -> None:
    here = Here()

    assert here.run(["pwd"], 5.0) == Done(0, "/\n", "")
    assert here.run(["cat"], 5.0) == Done(0, "", "")  # there is no input
    assert here.run(["sleep", "30"], 0.05).code is None
    failed = here.run(["/no/such/program"], 5.0)
    assert failed.complaint == "No such file or directory"
    assert here.run(["sh", "-c", "echo a; echo b >&2; exit 3"], 5.0).complaint == "b"
    assert Done(3).complaint == "exit status 3"


def test_inotify_of_the_users_own_processes_is_counted(tmp_path: Path) -> None:
    code = (
        "import ctypes, sys; libc = ctypes.CDLL(None); fd = libc.inotify_init();"
        "[libc.inotify_add_watch(fd, p.encode(), 2) for p in sys.argv[1:]];"
        "print(flush=True); sys.stdin.read()"
    )
    (tmp_path / "a").mkdir()
    before = Here().inotify_use()
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path), str(tmp_path / "a")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        instances, watches = Here().inotify_use()
    assert instances >= before[0] + 1
    assert watches >= before[1] + 2
