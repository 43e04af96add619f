"""Everything that can go wrong with an answer refuses: nothing changes, and the reason is there."""

import errno
import json
import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamfuse.core.approval import State
from tests.fuse.changes import CHANGES, Change, errno_of, prepare, snapshot
from tests.mounting import Home, Mounted, make_home, mounted, place, wait_until
from tests.person import Allow, plain_yes, silence

pytestmark = [pytest.mark.mount, pytest.mark.requirement("H17", "H31")]


@pytest.fixture
def home() -> Iterator[Home]:
    with place() as base:
        yield make_home(base)


def _program(home: Home, script: str) -> str:
    """Return a configuration whose channel is a program of that *script*."""
    path = home.outside / "channel"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return f'[approval]\nchannels = ["program"]\nprogram = ["{path}"]\n'


def _refused(here: Mounted, change: Change, word: str) -> None:
    """See that *change* is refused with EACCES and a reason with *word*, and does nothing."""
    folder = here.fresh()
    prepare(here.home / folder)
    before = snapshot(here.home / folder)
    assert errno_of(change.act, here.view / folder) == errno.EACCES
    assert snapshot(here.home / folder) == before
    last = here.refusals().strip().split("\n\n")[-1]
    assert folder in last
    assert word in last, last


_SOME = [change for change in CHANGES if change.id in {"create", "open WRONLY TRUNC", "rename"}]
_SOME += [change for change in CHANGES if change.id in {"unlink", "truncate", "chmod"}]


@pytest.fixture(scope="module")
def hurried() -> Iterator[Mounted]:
    config = "[approval]\nshown_timeout_s = 0.3\ntotal_timeout_s = 0.6\n"
    with place() as base, mounted(make_home(base), config) as here:
        yield here


@pytest.mark.parametrize("change", _SOME)
def test_no_answer_in_time_is_a_no(hurried: Mounted, change: Change) -> None:
    hurried.person.new_turn()
    hurried.person.forget(silence)
    with hurried.watchdog():
        _refused(hurried, change, "time")
    (question,) = hurried.person.asked
    assert hurried.person.wait_ended(question) is State.TIMED_OUT
    late = hurried.person.answer(question, Allow())
    assert late is not None
    assert late.outcome == "decided"


def test_eight_refusals_of_shown_questions_end_the_asking(hurried: Mounted) -> None:
    hurried.person.new_turn()
    hurried.person.forget(lambda _: "decline")
    folder = hurried.view / hurried.fresh()
    for number in range(9):
        assert errno_of((folder / str(number)).touch) == errno.EACCES
    assert len(hurried.person.asked) == 8
    hurried.person.new_turn()
    hurried.person.forget(plain_yes)
    (folder / "now").touch()
    assert len(hurried.person.asked) == 1


def test_with_nobody_to_show_it_a_question_is_lost_at_once(home: Home) -> None:
    with mounted(home) as here:
        here.person.stop_watching()
        folder = here.fresh()
        prepare(home.home / folder)
        before = snapshot(home.home / folder)
        with here.watchdog():
            assert errno_of(os.unlink, home.view / folder / "file") == errno.EACCES
        assert snapshot(home.home / folder) == before
        assert folder in here.refusals()


_BAD_PROGRAMS = {
    "crashes": "kill -SEGV $$",
    "ends with an error after a yes":
        'echo "{\\"id\\":\\"$ID\\",\\"answer\\":\\"allow\\"}"; exit 1',
    "prints garbage": "cat >/dev/null; head -c 3000 /dev/urandom",
    "prints nothing": "cat >/dev/null",
    "says yes to another question": 'cat >/dev/null; echo \'{"id":"zzzz","answer":"allow"}\'',
    "says yes with a scope that is not offered":
        'echo "{\\"id\\":\\"$ID\\",\\"answer\\":\\"allow\\",\\"scope\\":\\"listed\\"}"',
    "says something else": 'echo "{\\"id\\":\\"$ID\\",\\"answer\\":\\"maybe\\"}"',
    "says too much": 'echo "{\\"id\\":\\"$ID\\",\\"answer\\":\\"allow\\",\\"more\\":1}"',
    "says it twice": 'echo "{\\"id\\":\\"$ID\\",\\"answer\\":\\"allow\\"}{}"',
    "prints without end": "cat /dev/zero",
    "cannot be started": None,
}  # fmt: skip
_ID = 'ID=$(cat | sed \'s/.*"id": *"\\([a-z0-9]*\\)".*/\\1/\')\n'


@pytest.fixture(scope="module")
def programs() -> Iterator[Mounted]:
    """A view whose channel is a program that can be replaced; no person watches."""
    with place() as base:
        made = make_home(base)
        config = _program(made, "true") + "shown_timeout_s = 5\n"
        with mounted(made, config, expected=[]) as here:
            here.daemon.allowed.append(r"channel program|gave an answer that does not count")
            here.person.stop_watching()
            yield here


@pytest.mark.parametrize("name", list(_BAD_PROGRAMS))
def test_a_channel_that_misbehaves_allows_nothing(programs: Mounted, name: str) -> None:
    script = _BAD_PROGRAMS[name]
    path = programs.place.outside / "channel"
    if script is None:
        path.unlink()
    else:
        path.write_text(f"#!/bin/sh\n{_ID if '$ID' in script else ''}{script}\n")
        path.chmod(0o755)
    programs.person.new_turn()
    folder = programs.fresh()
    prepare(programs.home / folder)
    before = snapshot(programs.home / folder)
    with programs.watchdog():
        assert errno_of(os.unlink, programs.view / folder / "file") == errno.EACCES
    assert snapshot(programs.home / folder) == before
    assert folder in programs.refusals()


@pytest.mark.requirement("H4")
def test_a_program_that_answers_right_allows(programs: Mounted) -> None:
    path = programs.place.outside / "channel"
    path.write_text(f'#!/bin/sh\n{_ID}echo "{{\\"id\\":\\"$ID\\",\\"answer\\":\\"allow\\"}}"\n')
    path.chmod(0o755)
    programs.person.new_turn()
    folder = programs.fresh()
    (programs.view / folder / "new").write_bytes(b"x")
    assert (programs.home / folder / "new").read_bytes() == b"x"


def _fill(folder: Path) -> int:
    """Create files until that is refused; return how many there are then."""
    for number in range(100):
        try:
            (folder / str(number)).touch()
        except PermissionError:
            return number
    return 100


@pytest.mark.requirement("L9")
def test_without_room_for_the_journal_nothing_changes(home: Home) -> None:
    with mounted(home, limits=["--fsize=6000"]) as here, here.watchdog():
        here.daemon.allowed.append("not in the journal")
        here.person.forget(plain_yes)
        folder = here.fresh()
        assert 0 < _fill(here.view / folder) < 20
        assert "record of changes" in here.refusals().strip().split("\n\n")[-1]
        before = snapshot(home.home / folder)
        for act in (os.rmdir, os.mkfifo, os.unlink):
            assert errno_of(act, here.view / folder / ("new" if act is os.mkfifo else "0")) in {
                errno.EACCES, errno.ENOTDIR,
            }  # fmt: skip
        assert snapshot(home.home / folder) == before
        assert (here.view / "Documents/letter.txt").read_bytes().startswith(b"Dear")
        assert not here.person.status().journal.writable


@pytest.mark.requirement("H21")
def test_a_broken_configuration_on_reload_changes_nothing(home: Home) -> None:
    with mounted(home, 'deny = ["*.kdbx"]\n') as here, here.watchdog():
        (home.home / "spare/a.kdbx").write_bytes(b"x")
        for text in ("deny = [", "unknown = 1\n", 'deny = ["a\\\\"]\n', "[approval]\nx = 1\n"):
            home.configure(text)
            reply = here.person.reload()
            assert not reply.done
            assert "config.toml" in reply.message
            assert not (home.view / "spare/a.kdbx").exists()
        here.person.forget(plain_yes)
        (home.view / here.fresh() / "new").touch()
        home.configure('deny = ["*.kdbx"]\n')
        assert here.person.reload().done


def test_a_signal_reloads_and_a_broken_configuration_is_reported(home: Home) -> None:
    with mounted(home, expected=[r"the configuration is left as it was"]) as here:
        home.configure("nonsense\n")
        os.kill(here.daemon.pid, 1)
        here.daemon.wait_log(r"left as it was")
        home.configure('deny = ["photo*"]\n')
        os.kill(here.daemon.pid, 1)
        wait_until(lambda: not (home.view / "Pictures/photo.bin").exists())


def test_the_commands_answer_a_question(home: Home) -> None:
    with mounted(home, "[approval]\nwait_for_cli = true\n") as here, here.watchdog():
        here.person.stop_watching()
        folder = here.fresh()
        (home.home / folder / "file").touch()
        caller = subprocess.Popen(["rm", "-f", "file"], cwd=home.view / folder)
        wait_until(lambda: here.person.status().open_questions == 1)
        listed = json.loads(home.lamfuse("pending", "--json").stdout)
        (question,) = listed["questions"] if isinstance(listed, dict) else listed
        done = home.lamfuse("allow", question["id"])
        assert done.returncode == 0, done.stderr
        assert caller.wait(10) == 0
        assert os.listdir(home.home / folder) == []


@pytest.mark.root
@pytest.mark.requirement("L9")
def test_a_full_file_system_for_the_journal_refuses(home: Home) -> None:
    state = home.home / ".local/state"
    state.mkdir(parents=True)
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16k,mode=700", "tmpfs", str(state)], check=True
    )
    try:
        with mounted(home) as here, here.watchdog():
            here.daemon.allowed.append("not in the journal")
            here.person.forget(plain_yes)
            folder = here.fresh()
            assert 0 < _fill(here.view / folder) < 50
            assert "record of changes" in here.refusals().strip().split("\n\n")[-1]
            before = snapshot(home.home / folder)
            with pytest.raises(PermissionError):
                os.unlink(here.view / folder / "0")
            assert snapshot(home.home / folder) == before
            assert (here.view / "Documents/letter.txt").read_bytes().startswith(b"Dear")
    finally:
        subprocess.run(["umount", str(state)], check=True)


def test_the_control_files_are_for_nobody_else(home: Home) -> None:
    with mounted(home) as here:
        socket = Path(os.fsdecode(here.daemon.socket))
        assert stat.S_IMODE(socket.stat().st_mode) == 0o600
        assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700
        assert stat.S_IMODE(home.journal.stat().st_mode) == 0o600
