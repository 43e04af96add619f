from __future__ import annotations

import json

import msgspec
import pytest

from lamfuse.control import wire
from lamfuse.core.approval import State
from tests.cli.fake_daemon import FakeDaemon, lamfuse
from tests.control.fake_backend import make_question

pytestmark = pytest.mark.requirement("L8")

_OF_THE_DAEMON = [
    ["status"],
    ["pending"],
    ["show", "k7f2"],
    ["resume"],
    ["turn"],
    ["reload"],
    ["unmount"],
    ["watch", "--json"],
]


@pytest.mark.parametrize("arguments", _OF_THE_DAEMON, ids=lambda arguments: str(arguments[0]))
def test_without_a_daemon_the_exit_code_is_3(person: object, arguments: list[str]) -> None:
    result = lamfuse(*arguments)
    assert result.code == 3
    assert result.err.startswith("lamfuse: ")
    assert result.out == ""


def test_status_says_how_it_is(daemon: FakeDaemon) -> None:
    result = lamfuse("status")
    assert result.code == 0
    lines = dict(line.split("  ", 1) for line in result.out.splitlines())
    assert lines["home"].strip() == "/home/lam"
    assert lines["daemon"].strip() == "lamfuse 0.1.0, pid 4000, for 1 h 1 min"
    assert "12 lines" in lines["journal"]
    assert lines["questions"].strip() == "1 open"


def test_status_for_programs(daemon: FakeDaemon) -> None:
    data = lamfuse("status", "--json").data
    assert data["pid"] == 4000
    assert data["home"] == {"raw": "/home/lam", "text": "/home/lam"}
    assert data["journal"]["count"] == 12
    assert data["journal"]["head"] == "ab" * 32


@pytest.mark.parametrize("arguments", [[], ["--json"]])
def test_pending_tells_all_of_what_is_open_and_counts_as_shown(
    daemon: FakeDaemon, arguments: list[str]
) -> None:
    daemon.backend.questions = {name: make_question(name) for name in ("k7f2", "m3qd")}
    result = lamfuse("pending", *arguments)
    assert result.code == 0
    for words in ("[k7f2]", "[m3qd]", "/home/lam/Downloads/report.md", "Replaces 1,240 bytes"):
        assert words in result.out
    assert daemon.backend.asked == [("show", "k7f2"), ("show", "m3qd")]


def test_pending_says_when_nothing_is_open(daemon: FakeDaemon) -> None:
    assert lamfuse("pending").out == "No question is open.\n"
    assert lamfuse("pending", "--json").data == []


def test_a_file_name_that_is_no_text_reaches_programs_whole(daemon: FakeDaemon) -> None:
    daemon.backend.questions = {"k7f2": make_question("k7f2", path=b"/home/lam/\xff")}
    (question,) = lamfuse("pending", "--json").data
    assert question["paths"] == [{"raw": {"b64": "L2hvbWUvbGFtL/8="}, "text": "/home/lam/\\xff"}]


def test_show_tells_everything_and_counts_as_shown(daemon: FakeDaemon) -> None:
    daemon.backend.questions = {"k7f2": make_question("k7f2")}
    result = lamfuse("show", "k7f2")
    assert result.code == 0
    assert result.out.startswith("Overwrite report.md? [k7f2]\n")
    assert "/home/lam/Downloads/report.md" in result.out
    assert "Replaces 1,240 bytes" in result.out
    assert "python3.12" in result.out
    assert "lamfuse deny k7f2" in result.out
    assert "lamfuse allow k7f2 --scope folder  Allow folder this turn (3 files in it)" in result.out
    assert daemon.backend.asked == [("show", "k7f2")]


def test_show_of_what_is_not_open_fails(daemon: FakeDaemon) -> None:
    result = lamfuse("show", "zzzz")
    assert result.code == 1
    assert "zzzz" in result.err


@pytest.mark.parametrize("command", ["turn", "resume"])
def test_a_session_is_named_or_all_are_meant(daemon: FakeDaemon, command: str) -> None:
    assert lamfuse(command, "other").code == 0
    assert lamfuse(command).code == 0
    assert daemon.backend.asked == [(command, "other"), (command, None)]
    result = lamfuse(command, "nobody")
    assert result.code == 1
    assert "claude-1, other" in result.err


def test_reload_says_that_the_new_one_is_in_force(daemon: FakeDaemon) -> None:
    assert lamfuse("reload").out == "The new configuration is in force.\n"


def test_reload_of_a_bad_file_fails_and_says_that_the_old_one_stays(daemon: FakeDaemon) -> None:
    daemon.backend.reload_reply = wire.ReloadReply(done=False, message="config.toml: bad.")
    result = lamfuse("reload")
    assert result.code == 1
    assert "config.toml: bad. The old configuration stays in force." in result.err
    assert lamfuse("reload", "--json").data["done"] is False


def test_a_refused_command_prints_the_reason_of_the_daemon(
    daemon: FakeDaemon, caplog: pytest.LogCaptureFixture
) -> None:
    daemon.backend.fault = ZeroDivisionError("boom")
    result = lamfuse("status")
    assert result.code == 1
    assert "fault of the daemon" in result.err
    assert "Traceback" not in result.err
    caplog.clear()


def test_json_is_one_line(daemon: FakeDaemon) -> None:
    daemon.backend.questions = {
        name: make_question(name, state=State.SHOWN) for name in ("k7f2", "m3qd")
    }
    out = lamfuse("pending", "--json").out
    assert out.count("\n") == 1
    assert len(json.loads(out)) == 2


def test_status_shows_what_is_wrong(daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = daemon.backend.status

    async def status() -> wire.Status:
        found = await whole()
        journal = msgspec.structs.replace(found.journal, writable=False)
        session = msgspec.structs.replace(found.sessions[0], breaker_open=True)
        return msgspec.structs.replace(
            found, journal=journal, sessions=(session,), problems=("read_roots: x",), watchers=2
        )

    monkeypatch.setattr(daemon.backend, "status", status)
    out = lamfuse("status").out
    assert "CANNOT BE WRITTEN" in out
    assert "breaker open" in out
    assert "read_roots: x" in out
    assert "watch (2 attached)" in out
