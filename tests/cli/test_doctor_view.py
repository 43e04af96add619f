"""What the doctor finds about the running view, and about what dead daemons left behind."""

from __future__ import annotations

import errno
import os
import signal
import socket
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

import msgspec
import pytest

from lamfuse.cli.probes import talk, view
from lamfuse.cli.probes.finding import Finding, Level
from lamfuse.cli.probes.subject import Subject
from lamfuse.cli.probes.talk import Said
from lamfuse.control import wire
from lamfuse.store.dirs import Dirs
from lamfuse.tree.mounts import Mount
from tests.cli.fake_daemon import FakeDaemon
from tests.cli.fake_machine import FakeMachine, must_be_useful, only
from tests.control.fake_backend import make_status

pytestmark = pytest.mark.requirement("L8")

PLACE = b"/run/user/1000/lamfuse/home"
OTHER = b"/tmp/o\x1bther view"


def running(**changes: object) -> wire.Status:
    changes = {"version": metadata.version("lamfuse"), **changes}
    return msgspec.structs.replace(make_status(), **changes)


def mount(path: bytes, kind: bytes = b"fuse", source: bytes = b"lamfuse") -> Mount:
    return Mount(path, kind, source)


def judge(
    said: Said, table: list[Mount], answers: Mapping[bytes, int | None]
) -> tuple[list[Finding], list[bytes]]:
    """Return the findings, and who was asked."""
    asked: list[bytes] = []

    def ask(place: bytes) -> int | None:
        asked.append(place)
        return answers.get(place, 0)

    found = list(view.judge(said, table, ask))
    for finding in found:
        must_be_useful(finding)
    return found, asked


def test_a_living_view_is_well() -> None:
    found, asked = judge(Said(running()), [mount(PLACE)], {})

    assert {finding.level for finding in found} == {Level.OK}
    assert asked == [PLACE]
    assert "is alive (pid 4000, for 1 h 1 min)" in only(found, "view.mount").what


def test_no_view_is_well_too() -> None:
    found, asked = judge(Said(), [mount(b"/", b"ext4", b"/dev/x")], {})

    assert {finding.level for finding in found} == {Level.OK}
    assert asked == []


@pytest.mark.parametrize(
    ("table", "answer", "words"),
    [
        pytest.param([mount(PLACE)], None, "does not answer within 5 s", id="mute"),
        pytest.param([mount(PLACE)], errno.ENOTCONN, "endpoint is not connected", id="dead"),
        pytest.param([mount(PLACE)], errno.EIO, "Input/output error", id="failing"),
        pytest.param([], 0, "is not mounted at", id="unmounted"),
        pytest.param([mount(PLACE), mount(PLACE, b"tmpfs", b"x")], 0, "not mounted", id="covered"),
        pytest.param([mount(PLACE, b"fuse", b"sshfs")], 0, "not mounted", id="another"),
    ],
)
def test_a_view_that_is_not_alive_is_a_problem(
    table: list[Mount], answer: int | None, words: str
) -> None:
    found, _ = judge(Said(running()), table, {PLACE: answer})

    finding = only(found, "view.mount")
    assert finding.level is Level.PROBLEM
    assert words in finding.what
    assert "lamfuse unmount" in finding.remedy


def test_a_mute_daemon_is_a_problem() -> None:
    found, _ = judge(Said(fault="it said \x1b nothing"), [], {})

    finding = only(found, "view.daemon")
    assert finding.level is Level.PROBLEM
    assert "it said \\x1b nothing" in finding.what


def test_a_daemon_of_another_version_and_its_own_reports_are_notes() -> None:
    status = running(version="0.0.1", problems=("the root /x is not shown",))

    found, _ = judge(Said(status), [mount(PLACE)], {})

    assert "0.0.1" in only(found, "view.version").what
    assert "the root /x is not shown" in only(found, "view.reported").what
    assert {f.level for f in found if f.check in {"view.version", "view.reported"}} == {Level.NOTE}


@pytest.mark.parametrize("answer", [errno.ENOTCONN, errno.ECONNABORTED, None])
def test_a_dead_view_is_a_problem_with_the_command_that_takes_it_away(answer: int | None) -> None:
    found, asked = judge(Said(), [mount(OTHER), mount(OTHER)], {OTHER: answer})

    finding = only(found, "view.dead")
    assert finding.level is Level.PROBLEM
    assert "o\\x1bther" in finding.what
    assert "fusermount3 -u '/tmp/o\\x1bther view'" in finding.remedy
    assert asked == [OTHER]


@pytest.mark.parametrize(
    ("other", "answer"),
    [
        pytest.param(mount(OTHER), 0, id="alive"),
        pytest.param(mount(OTHER), errno.EACCES, id="of-another-user"),
        pytest.param(mount(OTHER, b"fuse.sshfs", b"host:"), errno.ENOTCONN, id="no-view"),
        pytest.param(mount(OTHER, b"ext4", b"lamfuse"), errno.ENOTCONN, id="no-fuse"),
    ],
)
def test_what_is_no_dead_view_is_left_alone(other: Mount, answer: int) -> None:
    found, asked = judge(Said(running()), [mount(PLACE), other], {OTHER: answer})

    assert only(found, "view.dead").level is Level.OK
    assert (OTHER in asked) is (other.source == b"lamfuse" and other.kind == b"fuse")


def test_only_so_many_are_asked_and_the_rest_is_said() -> None:
    table = [mount(b"/m/%d" % number) for number in range(10)]

    found, asked = judge(Said(), table, {})

    assert len(asked) == 8
    assert "2 more views" in only(found, "view.dead").what


def test_what_no_view_can_promise_is_always_said() -> None:
    (found,) = view.boundary(Subject(FakeMachine()))

    assert found.level is Level.NOTE
    assert "merely pointed at a mount" in found.what
    must_be_useful(found)


# --- talking to what may not answer


def test_a_file_system_answers_or_says_why_not(tmp_path: Path) -> None:
    assert talk.answer_of(bytes(tmp_path)) == 0
    assert talk.answer_of(bytes(tmp_path / "absent")) == errno.ENOENT


def test_one_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _place: signal.pause())

    assert talk.answer_of(b"/", 0.1) is None


def test_no_daemon_says_nothing(dirs: Dirs) -> None:
    assert talk.status_of(dirs.socket) == Said()


# The fake daemon is a thread of this process, which forks.
forks_with_a_thread = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")


@forks_with_a_thread
def test_a_daemon_says_how_it_is(daemon: FakeDaemon, dirs: Dirs) -> None:
    status = talk.status_of(dirs.socket).status

    assert status is not None
    assert status.pid == 4000


def test_a_mute_daemon_is_given_up(short_dir: Path) -> None:
    path = bytes(short_dir / "s")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()

        said = talk.status_of(path, 0.1)

    assert said == Said(fault="it said nothing within 0.1 s")


@forks_with_a_thread
@pytest.mark.expects_log("a fault of our own while serving StatusRequest")
def test_a_daemon_that_refuses_says_why(daemon: FakeDaemon, dirs: Dirs) -> None:
    daemon.backend.fault = ValueError("broken")

    said = talk.status_of(dirs.socket)

    assert said.status is None
    assert said.fault
    assert "RefusedError" not in said.fault


def test_the_home_of_the_subject_is_looked_at(dirs: Dirs) -> None:
    found = only(view.look(Subject(FakeMachine())), "view.daemon")

    assert "No view of this home" in found.what
