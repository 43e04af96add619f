"""``lamfuse doctor`` itself: its parts, its words, its exit codes, and the real thing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from lamfuse.cli import doctor, views
from lamfuse.cli.doctor import SECTIONS, Section, examine
from lamfuse.cli.exit_codes import ExitCode
from lamfuse.cli.probes import apart
from lamfuse.cli.probes.configuration import HOME_CHECK
from lamfuse.cli.probes.finding import Finding, Level, note, ok, problem
from lamfuse.cli.probes.subject import Subject
from lamfuse.cli.probes.view import DAEMON_CHECK
from lamfuse.core.errors import RefusedError
from lamfuse.store.dirs import Dirs
from lamfuse.tree.mounts import mounts
from tests.cli.fake_daemon import lamfuse
from tests.cli.fake_machine import FakeMachine, must_be_useful, only

pytestmark = pytest.mark.requirement("L8")

GOOD = ok("a.good", "Good.", "Because.")
NOTE = note("a.note", "Well.", "Because.", "Do this.")
BAD = problem("a.bad", "Bad.", "Because.", "Do that.")
LACKING = problem("a.lacking", "None.", "Because.", "Get it.", lacking=True)
HOMELESS = problem(HOME_CHECK, "No home.", "Because.", "Give one.")

SUBJECT = Subject(FakeMachine())


def section(*findings: Finding, **options: Any) -> Section:
    return Section("A part", lambda _subject: findings, **{"seconds": 10.0, **options})


def all_of(*sections: Section) -> list[Finding]:
    return [finding for _, found in examine(SUBJECT, sections) for finding in found]


# --- exit codes


@pytest.mark.parametrize(
    ("found", "code"),
    [
        pytest.param([], ExitCode.DONE, id="nothing"),
        pytest.param([GOOD, NOTE], ExitCode.DONE, id="notes"),
        pytest.param([GOOD, BAD], ExitCode.FAILED, id="problem"),
        pytest.param([LACKING, BAD], ExitCode.MACHINE, id="lacking"),
        pytest.param([BAD, NOTE, LACKING], ExitCode.MACHINE, id="lacking-later"),
    ],
)
def test_the_exit_code_is_that_of_the_worst(found: list[Finding], code: ExitCode) -> None:
    assert doctor.code_for(found) is code


# --- parts


def test_findings_come_back_as_they_were_made() -> None:
    assert all_of(section(GOOD, NOTE, BAD, LACKING)) == [GOOD, NOTE, BAD, LACKING]


def test_a_part_that_hangs_keeps_what_it_said_and_is_a_problem() -> None:
    cleared: list[Subject] = []

    def look(_subject: Subject) -> Iterator[Finding]:
        yield GOOD
        signal.pause()

    first, second, third = all_of(
        Section("Slow part", look, 0.2, clear_up=cleared.append), section(NOTE)
    )

    assert (first, third) == (GOOD, NOTE)
    assert (second.check, second.level) == ("doctor.slow_part", Level.PROBLEM)
    assert "did not end within 0.2 s" in second.what
    must_be_useful(second)
    assert cleared == [SUBJECT]


def test_a_part_that_ends_is_not_cleared_up_after() -> None:
    def clear_up(_subject: Subject) -> None:
        pytest.fail("there is nothing to be cleared up")

    assert all_of(section(GOOD, clear_up=clear_up)) == [GOOD]


def test_what_cannot_be_cleared_up_is_a_problem_too() -> None:
    def look(_subject: Subject) -> Iterator[Finding]:
        signal.pause()
        yield GOOD

    def clear_up(_subject: Subject) -> None:
        raise RefusedError("/tmp/x\x1b is still mounted.")

    _, left = all_of(Section("Slow", look, 0.1, clear_up=clear_up))

    assert "/tmp/x\\x1b is still mounted" in left.what
    must_be_useful(left)


def test_a_part_with_a_fault_is_a_problem_and_the_others_go_on() -> None:
    def look(_subject: Subject) -> Iterator[Finding]:
        yield GOOD
        raise ValueError("odd\x1b")

    first, second, third = all_of(Section("Broken", look, 10.0), section(NOTE))

    assert (first, third) == (GOOD, NOTE)
    assert second.level is Level.PROBLEM
    assert "ValueError: odd\\x1b" in second.what
    must_be_useful(second)


def test_without_a_home_what_needs_one_is_not_looked_at() -> None:
    needing, other = section(BAD), section(NOTE, needs_home=False)

    found = all_of(section(HOMELESS, needs_home=False), needing, other)

    assert [item.what for item in found] == [
        "No home.", "Not examined: the home is not known.", "Well.",
    ]  # fmt: skip
    must_be_useful(found[1])


def test_a_mute_daemon_is_waited_for_once() -> None:
    seen: list[Finding] = []

    def look(subject: Subject) -> Iterator[Finding]:
        yield ok("a.mute", str(subject.is_mute), subject.ask_daemon().fault or "asked")

    mute = problem(DAEMON_CHECK, "Mute.", "Because.", "End it.")
    seen += all_of(section(mute), Section("After", look, 10.0))

    assert (seen[1].what, seen[1].why) == ("True", "it is mute")


def test_where_nothing_can_be_mounted_nothing_is_tried_on_a_mount() -> None:
    found = all_of(section(LACKING), section(BAD, needs_mounts=True), section(NOTE))

    assert [item.level for item in found] == [Level.PROBLEM, Level.NOTE, Level.NOTE]
    assert "nothing can be mounted" in found[1].what


def test_every_part_ends() -> None:
    assert all(0 < part.seconds <= 150 for part in SECTIONS)
    assert len({part.title for part in SECTIONS}) == len(SECTIONS)


# --- words


@pytest.fixture
def parts(person: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "SECTIONS", (section(GOOD, NOTE), section(BAD)))


@pytest.mark.usefixtures("parts")
def test_a_person_reads_what_why_and_how() -> None:
    result = lamfuse("doctor")

    assert result.code == 1
    assert result.out == (
        "A part\n"
        "  ok       Good.\n"
        "  note     Well.\n"
        "           Because.\n"
        "           -> Do this.\n"
        "\n"
        "A part\n"
        "  PROBLEM  Bad.\n"
        "           Because.\n"
        "           -> Do that.\n"
        "\n"
        "1 problem, 1 note.\n"
    )


@pytest.mark.usefixtures("parts")
def test_a_program_reads_the_same() -> None:
    result = lamfuse("doctor", "--json")

    assert result.code == 1
    data = result.data
    assert {key: data[key] for key in ("problems", "notes", "can_mount")} == {
        "problems": 1, "notes": 1, "can_mount": True,
    }  # fmt: skip
    assert data["findings"][1] == {
        "section": "A part", "check": "a.note", "level": "note", "what": "Well.",
        "why": "Because.", "remedy": "Do this.", "lacking": False,
    }  # fmt: skip


def test_a_machine_that_cannot_mount_is_said_last(
    person: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "SECTIONS", (section(LACKING),))

    result = lamfuse("doctor")

    assert result.code == 4
    assert result.out.endswith("1 problem, 0 notes, nothing can be mounted on this machine.\n")


def test_a_test_question_is_put_only_when_it_is_asked_for(
    person: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "SECTIONS", (section(GOOD),))
    monkeypatch.setattr(doctor, "_TRIAL", Section("Test question", lambda _s: [NOTE], 10.0))

    assert "Test question" not in lamfuse("doctor").out
    assert "Test question\n  note     Well.\n" in lamfuse("doctor", "--notify").out


def test_without_a_bus_the_test_question_says_so(
    person: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "SECTIONS", ())

    result = lamfuse("doctor", "--notify", "--json")

    assert result.code == 1
    (found,) = result.data["findings"]
    assert found["check"] == "asking.trial"
    assert "no session bus" in found["what"]


# --- the real command


def run(
    *arguments: str, environ: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lamfuse", "doctor", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
        env={**os.environ, **(environ or {})},
    )


def findings_of(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    assert done.stderr == ""
    found: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    for item in found:
        assert item["what"]
        assert item["why"]
        assert item["remedy"] or item["level"] == "ok"
    return found


def problems_in(found: list[dict[str, Any]]) -> list[str]:
    """Return the problems; the dead views of others on this machine are none of this test."""
    here = os.environ["XDG_RUNTIME_DIR"]
    return [
        item["what"] for item in found
        if item["level"] == "problem" and (item["check"] != "view.dead" or here in item["what"])
    ]  # fmt: skip


@pytest.fixture
def nothing_left(person: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The place for temporary files is empty again, and nothing is mounted there."""
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    yield
    assert list(place.iterdir()) == []
    assert not [mount for mount in mounts() if mount.path.startswith(bytes(place))]


@pytest.mark.mount
@pytest.mark.usefixtures("nothing_left")
class TestReal:
    def test_this_machine_is_examined(self, person: Path) -> None:
        done = run("--json")
        found = findings_of(done)

        assert problems_in(found) == []
        assert done.returncode == 0
        checks = {item["check"] for item in found}
        assert checks >= {
            "fuse.device", "fuse.fusermount3", "fuse.mount_max", "fuse.kernel", "fuse.library",
            "sandbox.namespaces", "sandbox.bubblewrap", "programs.ripgrep", "config.home",
            "config.file", "files.own", "journal.writable", "journal.whole", "rules.hide",
            "view.daemon", "view.dead", "asking.bus", "asking.channels", "asking.kernel_limit",
            "inotify.watches", "inotify.instances", "inotify.home", "boundary.cooperation",
        }  # fmt: skip
        assert {item["section"] for item in found} == {part.title for part in SECTIONS}
        assert sorted(path.name for path in person.iterdir()) == []  # it has made nothing

    @pytest.mark.requirement("H5", "H21")
    def test_a_broken_rule_is_reported(self, tmp_path: Path) -> None:
        """The denylist of every process here fails for one name, as by a mistake in it."""
        (tmp_path / "broken").mkdir()
        (tmp_path / "broken/sitecustomize.py").write_text(
            "from lamfuse.core import patterns\n"
            "was = patterns.Pattern.matches\n"
            "patterns.Pattern.matches = lambda self, *a, **k:"
            " self.text != 'id_ed25519' and was(self, *a, **k)\n"
        )
        above = os.environ.get("PYTHONPATH")
        broken = os.pathsep.join([str(tmp_path / "broken"), *([above] if above else [])])

        done = run("--json", environ={"PYTHONPATH": broken})

        assert done.returncode == 1
        (what,) = problems_in(findings_of(done))
        assert what.startswith("The default rule id_ed25519 does not hide ~/id_ed25519, ")

    def test_every_error_of_the_configuration_is_reported_and_the_rest_still_proved(
        self, person: Path, dirs: Dirs
    ) -> None:
        os.makedirs(dirs.config_dir, mode=0o700)
        config = Path(os.fsdecode(dirs.config_file))
        config.write_text('deny = ["secrets/", "["]\nwrite_rots = []\n')
        config.chmod(0o600)

        done = run("--json")
        found = findings_of(done)

        assert done.returncode == 1
        told = [what.partition("config.toml: ")[2] for what in problems_in(found)]
        assert [key.partition(":")[0] for key in told] == ["write_rots", "deny[1]"]
        (proved,) = [item["what"] for item in found if item["check"] == "rules.hide"]
        assert "and 1 of yours hide" in proved

    def test_without_fusermount3_nothing_is_tried_and_the_code_is_4(self, tmp_path: Path) -> None:
        (tmp_path / "bin").mkdir()

        done = run("--json", environ={"PATH": str(tmp_path / "bin")})
        found = findings_of(done)

        assert done.returncode == 4
        assert json.loads(done.stdout)["can_mount"] is False
        assert problems_in(found) == ["fusermount3 is not installed."]
        assert "Not examined" in only_one(found, "doctor.deny_rules")

    def test_a_home_that_is_not_there_is_reported(self) -> None:
        done = run("--json", "--home", "/no/such/home")
        found = findings_of(done)

        assert done.returncode == 1
        (what,) = problems_in(found)
        assert what.startswith("The home /no/such/home does not exist. Give the directory ")
        assert "fuse.device" in {item["check"] for item in found}
        assert "boundary.cooperation" in {item["check"] for item in found}

    def test_a_running_view_is_alive_and_a_killed_one_is_reported(
        self, person: Path, dirs: Dirs
    ) -> None:
        mounted = subprocess.run(
            [sys.executable, "-m", "lamfuse", "mount"], capture_output=True, check=False, timeout=30
        )
        assert mounted.returncode == 0, mounted.stderr
        try:
            done = run("--json")
            found = findings_of(done)
            assert "is alive" in only_one(found, "view.mount")
            assert problems_in(found) == [
                "Nobody can be asked now: no channel of the daemon is ready."
            ]
            assert "whole: 1 line" in only_one(found, "journal.whole")
            status = lamfuse("status", "--json").data
            os.kill(status["pid"], signal.SIGKILL)

            found = findings_of(run("--json"))

            (what,) = problems_in(found)
            assert what.startswith("A dead view is mounted at ")
        finally:
            mount = views.mount_at(dirs.mountpoint)
            if mount is not None:
                views.take_away(mount)

    def test_a_stopped_daemon_does_not_hold_it_up(self, person: Path, dirs: Dirs) -> None:
        mounted = subprocess.run(
            [sys.executable, "-m", "lamfuse", "mount"], capture_output=True, check=False, timeout=30
        )
        assert mounted.returncode == 0, mounted.stderr
        pid = lamfuse("status", "--json").data["pid"]
        os.kill(pid, signal.SIGSTOP)
        try:
            found = findings_of(run("--json"))
        finally:
            os.kill(pid, signal.SIGCONT)
            assert lamfuse("unmount").code == 0

        whats = problems_in(found)
        assert [what for what in whats if what.startswith("The daemon does not answer")]
        assert [what for what in whats if "does not answer within 5 s" in what]
        assert "16 default rules hide" in only_one(found, "rules.hide")

    def test_ctrl_c_takes_the_private_view_away(self, tmp_path: Path) -> None:
        place = os.fsencode(tmp_path / "tmp")
        with subprocess.Popen(
            [sys.executable, "-m", "lamfuse", "doctor"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        ) as process:
            while not [mount for mount in mounts() if mount.path.startswith(place)]:
                assert process.poll() is None
            os.killpg(process.pid, signal.SIGINT)
            out, _ = process.communicate(timeout=30)  # its child holds the pipe to its own end
            assert process.returncode == ExitCode.INTERRUPTED
        assert b"Deny rules" not in out


def only_one(found: list[dict[str, Any]], check: str) -> str:
    (what,) = [item["what"] for item in found if item["check"] == check]
    return str(what)


def test_the_doctor_imports_no_loop_before_it_forks() -> None:
    code = (
        "import sys, lamfuse.cli.doctor, threading;"
        "print('pyfuse3' in sys.modules, threading.active_count())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False 1\n"


def test_only_and_apart_are_of_use() -> None:
    """What stands above is read by these two; a mistake in them would make it mean nothing."""
    with pytest.raises(ValueError, match="not enough values"):
        only([GOOD], "a.bad")
    assert apart.gather(list, 5.0).has_ended
