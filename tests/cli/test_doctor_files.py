"""What the doctor finds about the configuration, lamfuse's own files and the journal."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from lamfuse.cli.probes import configuration, files, talk
from lamfuse.cli.probes.finding import Finding, Level
from lamfuse.cli.probes.subject import Subject
from lamfuse.cli.probes.talk import Said
from lamfuse.control import wire
from lamfuse.core.records import StopRecord
from lamfuse.store import journal_files
from lamfuse.store.dirs import Dirs
from lamfuse.store.journal import FileJournal
from tests.cli.fake_machine import FakeMachine, must_be_useful, only
from tests.control.fake_backend import make_status

pytestmark = pytest.mark.requirement("L8")


@pytest.fixture
def subject(person: Path) -> Subject:
    return Subject(FakeMachine(environ=os.environ))


def configure(dirs: Dirs, text: str) -> Path:
    os.makedirs(dirs.config_dir, mode=0o700, exist_ok=True)
    file = Path(os.fsdecode(dirs.config_file))
    file.write_text(text)
    file.chmod(0o600)
    return file


def problems(findings: list[Finding]) -> list[Finding]:
    for finding in findings:
        must_be_useful(finding)
    return [finding for finding in findings if finding.level is Level.PROBLEM]


# --- the configuration


def test_without_a_file_everything_is_well(subject: Subject) -> None:
    found = list(configuration.look(subject))

    assert {finding.level for finding in found} == {Level.OK}
    assert "lamfuse init" in only(found, "config.file").what
    assert os.fsdecode(subject.dirs.home) in only(found, "config.home").what
    assert not problems(found)


def test_a_right_file_is_right(subject: Subject, dirs: Dirs) -> None:
    configure(dirs, 'deny = ["secrets/"]\n')

    assert only(configuration.look(subject), "config.file").what.endswith("is right.")


def test_every_error_comes_with_file_key_and_remedy(subject: Subject, dirs: Dirs) -> None:
    (Path(os.fsdecode(dirs.home)) / "file").touch()
    file = configure(
        dirs, 'denyy = []\ndeny = ["x", "["]\nread_roots = ["~/file", "no", "~/.ssh"]\n'
    )

    found = problems(list(configuration.look(subject)))

    whats = [finding.what for finding in found]
    assert len(found) == 5
    assert all(what.startswith((str(file), "~/.config/lamfuse/config.toml")) for what in whats)
    assert ": denyy: there is no such key." in whats[0]
    assert found[0].remedy == "Did you mean deny?"
    assert ": deny[1]: " in whats[1]
    assert "a root is a directory" in whats[2]
    assert "is hidden (/.ssh)" in whats[3]
    assert "'no' is not used as a root" in whats[4]


def test_a_name_in_an_error_is_made_visible(subject: Subject, dirs: Dirs) -> None:
    configure(dirs, '"a\\u001b[2Jb" = 1\n"c\\u202ed" = 1\n')

    for finding in problems(list(configuration.look(subject))):
        assert "\\x1b" in finding.what or "\\u202e" in finding.what


def test_a_file_that_others_may_write_is_not_trusted(subject: Subject, dirs: Dirs) -> None:
    configure(dirs, "").chmod(0o666)

    (found,) = problems(list(configuration.look(subject)))

    assert "others may write it (mode 0666)" in found.what
    assert found.remedy.startswith("Run: chmod go-w ")


def test_without_a_home_it_ends_with_that(person: Path) -> None:
    subject = Subject(FakeMachine(), home=b"/no/such/home")

    (found,) = configuration.look(subject)

    assert (found.check, found.level) == (configuration.HOME_CHECK, Level.PROBLEM)
    assert "/no/such/home does not exist" in found.what
    must_be_useful(found)


def test_a_runtime_directory_of_the_temporary_kind_is_a_note(
    person: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR")

    found = only(configuration.look(Subject(FakeMachine(environ=os.environ))), "config.runtime_dir")

    assert found.level is Level.NOTE
    must_be_useful(found)


# --- lamfuse's own files


@pytest.fixture
def own(dirs: Dirs) -> Dirs:
    """All the files of lamfuse, as it makes them."""
    dirs.make_state_dir()
    dirs.make_runtime_dir()
    configure(dirs, "")
    for place in (dirs.journal, dirs.journal + b".1", dirs.log_file, dirs.lock_file):
        with open(os.open(place, os.O_CREAT | os.O_WRONLY, 0o600), "wb"):
            pass
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("/proc/self/cwd/../run/lamfuse/" + Path(os.fsdecode(dirs.socket)).name)
    os.chmod(dirs.socket, 0o600)
    return dirs


def test_files_as_lamfuse_makes_them_are_well(subject: Subject, own: Dirs) -> None:
    (found,) = files.look(subject)

    assert found.level is Level.OK
    assert found.what.startswith("9 files")


def test_no_files_are_well_too(subject: Subject) -> None:
    (found,) = files.look(subject)

    assert found.level is Level.OK


def replace_by_link(path: bytes) -> None:
    os.rename(path, path + b".real")
    os.symlink(path + b".real", path)


def link(path: bytes) -> None:
    os.link(path, path + b".other")


@pytest.mark.parametrize(
    ("name", "damage", "words", "remedy"),
    [
        pytest.param("state_dir", lambda p: os.chmod(p, 0o755), "mode 0755", "go-rwx", id="state"),
        pytest.param("runtime_dir", lambda p: os.chmod(p, 0o710), "0710", "go-rwx", id="runtime"),
        pytest.param("config_dir", lambda p: os.chmod(p, 0o770), "0770", "go-w", id="config-dir"),
        pytest.param("config_file", lambda p: os.chmod(p, 0o620), "0620", "go-w", id="config"),
        pytest.param("journal", lambda p: os.chmod(p, 0o640), "0640", "go-rwx", id="journal"),
        pytest.param("log_file", lambda p: os.chmod(p, 0o644), "0644", "go-rwx", id="log"),
        pytest.param("socket", lambda p: os.chmod(p, 0o666), "0666", "go-rwx", id="socket"),
        pytest.param("journal", replace_by_link, "is not a file", "away", id="journal-is-a-link"),
        pytest.param("state_dir", replace_by_link, "is not a directory", "away", id="dir-is-link"),
        pytest.param("journal", link, "1 other name", "Remove", id="hard-link"),
    ],
)
def test_what_others_could_reach_is_a_problem(
    subject: Subject, own: Dirs, name: str, damage: Callable[[bytes], Any], words: str, remedy: str
) -> None:
    damage(getattr(own, name))

    (found,) = problems(list(files.look(subject)))

    assert words in found.what
    assert remedy in found.remedy


def test_a_configuration_for_others_to_read_is_fine(subject: Subject, own: Dirs) -> None:
    os.chmod(own.config_dir, 0o755)
    os.chmod(own.config_file, 0o644)

    assert problems(list(files.look(subject))) == []


def test_a_rotated_journal_is_looked_at_too(subject: Subject, own: Dirs) -> None:
    os.chmod(own.journal + b".1", 0o604)

    (found,) = problems(list(files.look(subject)))

    assert "journal.jsonl.1 is open to others" in found.what


@pytest.mark.root
def test_a_file_of_another_user_is_a_problem(subject: Subject, own: Dirs) -> None:
    os.chown(own.journal, 12345, -1)

    (found,) = problems(list(files.look(subject)))

    assert "belongs to another user (uid 12345)" in found.what


# --- the journal


@pytest.fixture
def journal(dirs: Dirs) -> Dirs:
    """A journal of three lines."""

    async def write() -> None:
        written = FileJournal(dirs.journal)
        for number in range(3):
            written.append(StopRecord(reason=f"test {number}"))
        await written.sync()
        written.close()

    trio.run(write)
    return dirs


def told(monkeypatch: pytest.MonkeyPatch, said: Said) -> None:
    monkeypatch.setattr(talk, "status_of", lambda _socket: said)


def status_with(count: int, head: str) -> Said:
    status = make_status()
    view = wire.JournalView(path=status.journal.path, count=count, head=head, writable=True)
    return Said(msgspec.structs.replace(status, journal=view))


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    told(monkeypatch, Said())


@pytest.mark.usefixtures("nobody")
class TestJournal:
    def test_none_yet_can_be_made(self, subject: Subject) -> None:
        found = list(files.look_at_journal(subject))

        assert {finding.level for finding in found} == {Level.OK}
        assert "can be made" in only(found, "journal.writable").what

    def test_a_whole_one_is_told_with_count_and_head(self, subject: Subject, journal: Dirs) -> None:
        found = only(files.look_at_journal(subject), "journal.whole")

        last = Path(os.fsdecode(journal.journal)).read_text().splitlines()[-1]
        assert found.level is Level.OK
        assert "3 lines, last hash " in found.what
        assert found.what.split()[-1].rstrip(".") in last

    @pytest.mark.requirement("L9")
    def test_damage_is_a_problem(self, subject: Subject, journal: Dirs) -> None:
        file = Path(os.fsdecode(journal.journal))
        file.write_bytes(file.read_bytes().replace(b"test 1", b"best 1"))

        (found,) = problems(list(files.look_at_journal(subject)))

        assert "journal.jsonl, line 2" in found.what
        assert "lamfuse log" in found.remedy

    def test_something_else_in_its_place_is_a_problem(self, subject: Subject, dirs: Dirs) -> None:
        dirs.make_state_dir()
        os.mkdir(dirs.journal)

        (found,) = problems(list(files.look_at_journal(subject)))

        assert "is not a file" in found.what

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
    @pytest.mark.parametrize("place", ["journal", "state_dir"])
    def test_one_that_cannot_be_written_is_a_problem(
        self, subject: Subject, dirs: Dirs, place: str
    ) -> None:
        dirs.make_state_dir()
        if place == "journal":
            Path(os.fsdecode(dirs.journal)).touch()
        os.chmod(getattr(dirs, place), 0o500)
        try:
            found = only(files.look_at_journal(subject), "journal.writable")
        finally:
            os.chmod(getattr(dirs, place), 0o700)

        assert found.level is Level.PROBLEM
        assert "is closed to you" in found.what
        must_be_useful(found)

    @pytest.mark.parametrize(
        ("free", "flags", "level", "words"),
        [
            pytest.param(0, 0, Level.PROBLEM, "is full", id="full"),
            pytest.param(100, 0, Level.NOTE, "409,600 bytes left", id="nearly-full"),
            pytest.param(10**6, os.ST_RDONLY, Level.PROBLEM, "read-only", id="read-only"),
            pytest.param(10**6, 0, Level.OK, "can be", id="room"),
        ],
    )
    def test_a_file_system_without_room(
        self,
        subject: Subject,
        monkeypatch: pytest.MonkeyPatch,
        free: int,
        flags: int,
        level: Level,
        words: str,
    ) -> None:
        room = os.statvfs_result((4096, 4096, 10**7, free, free, 0, 0, 0, flags, 255))
        monkeypatch.setattr(os, "statvfs", lambda _path: room)

        found = only(files.look_at_journal(subject), "journal.writable")

        assert found.level is level
        assert words in found.what
        must_be_useful(found)


@pytest.mark.requirement("L9")
@pytest.mark.parametrize(
    ("count", "same", "words"),
    [
        pytest.param(3, True, "", id="the-same"),
        pytest.param(2, False, "", id="written-on-by-another"),
        pytest.param(3, False, "not the one that the daemon wrote", id="another"),
        pytest.param(5, False, "lacks the last 2 lines", id="cut-off"),
    ],
)
def test_the_journal_is_compared_with_what_the_daemon_wrote(
    subject: Subject,
    journal: Dirs,
    monkeypatch: pytest.MonkeyPatch,
    count: int,
    same: bool,
    words: str,
) -> None:
    head = journal_files.verify(journal.journal).head
    told(monkeypatch, status_with(count, head if same else "ab" * 32))

    found = problems(list(files.look_at_journal(subject)))

    assert [finding for finding in found if words in finding.what] == found
    assert len(found) == bool(words)
