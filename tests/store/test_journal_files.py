"""Reading the journal: what is damaged, and what goes over several files."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lamfuse.core.errors import JournalError
from lamfuse.core.records import (
    GENESIS,
    EffectRecord,
    RotationRecord,
    StartRecord,
    StopRecord,
    TornRecord,
)
from lamfuse.store.journal import FileJournal
from lamfuse.store.journal_files import verify, walk
from tests.store.journals import INTENT, START, closing, content, file_size_limit, kinds

pytestmark = pytest.mark.requirement("L9")


class TestTorn:
    """A write that a crash cut short."""

    @pytest.fixture
    def whole(self, path: bytes) -> bytes:
        with closing(FileJournal(path)) as journal:
            journal.append(START)
            journal.append(INTENT)
        return content(path)

    def test_it_is_kept_ended_and_noted(self, path: bytes, whole: bytes) -> None:
        torn = whole[: len(whole) - 60]
        Path(os.fsdecode(path)).write_bytes(torn)

        with closing(FileJournal(path)) as journal:
            journal.append(INTENT)

        assert content(path).startswith(torn + b"\n")
        assert kinds(path) == ["start", "?", "torn", "intent"]
        [_, _, note, _] = walk(path)
        size = len(torn) - len(whole.splitlines(keepends=True)[0])
        assert note.entry
        assert isinstance(note.entry.record, TornRecord)
        assert note.entry.record.size == size

    def test_verify_names_exactly_that_line_and_goes_on(self, path: bytes, whole: bytes) -> None:
        Path(os.fsdecode(path)).write_bytes(whole[:-60])
        with closing(FileJournal(path)) as journal:
            journal.append(INTENT)
            head = journal.head

        found = verify(path)

        assert (found.damaged, found.count, found.head) == (1, 3, head)
        assert found.damage
        assert (found.damage.file, found.damage.number) == (path, 2)
        assert "cut short" in found.damage.problem

    def test_a_line_that_lacks_only_its_newline_is_whole(self, path: bytes, whole: bytes) -> None:
        Path(os.fsdecode(path)).write_bytes(whole[:-1])

        with closing(FileJournal(path)) as journal:
            assert journal.count == 2

        assert content(path) == whole

    def test_a_line_of_another_chain_is_not_taken_for_one_that_lacks_its_newline(
        self, path: bytes, whole: bytes
    ) -> None:
        first = whole.splitlines(keepends=True)[0]
        Path(os.fsdecode(path)).write_bytes(whole + first[:-1])

        with closing(FileJournal(path)) as journal:
            assert journal.count == 3

        assert kinds(path) == ["start", "intent", "start", "torn"]
        found = verify(path)
        assert found.damage
        assert (found.damage.number, found.damaged) == (3, 1)

    def test_it_may_be_the_very_first_line(self, path: bytes, whole: bytes) -> None:
        Path(os.fsdecode(path)).write_bytes(whole[:20])

        with closing(FileJournal(path)) as journal:
            journal.append(START)

        assert kinds(path) == ["?", "torn", "start"]
        assert verify(path).damaged == 1

    def test_nothing_is_glued_to_it_while_the_disk_is_full(self, path: bytes, whole: bytes) -> None:
        torn = whole[:-60]
        Path(os.fsdecode(path)).write_bytes(torn)

        with file_size_limit(len(torn) + 30), pytest.raises(JournalError):
            FileJournal(path)
        assert content(path) == torn

        with closing(FileJournal(path)) as journal:
            with open(path, "ab") as other:
                other.write(b"torn again")
            with file_size_limit(len(content(path)) + 30), pytest.raises(JournalError):
                journal.append(START)
            journal.append(START)

        assert kinds(path) == ["start", "?", "torn", "?", "torn", "start"]

    def test_garbage_with_a_newline_is_stepped_over(self, path: bytes, whole: bytes) -> None:
        Path(os.fsdecode(path)).write_bytes(whole + b"garbage\n\n")

        with closing(FileJournal(path)) as journal:
            assert journal.append(START) == 3

        assert verify(path).damaged == 2
        assert kinds(path) == ["start", "intent", "?", "?", "start"]


class TestVerify:
    """Damage and edits are found, and where."""

    @pytest.mark.parametrize(
        ("edit", "number"),
        [
            pytest.param(lambda lines: [lines[1], lines[0], *lines[2:]], 1, id="order"),
            pytest.param(lambda lines: [lines[0], *lines[2:]], 2, id="removed"),
            pytest.param(lambda lines: lines[1:], 1, id="first removed"),
            pytest.param(lambda lines: [*lines, lines[-1]], 5, id="repeated"),
            pytest.param(
                lambda lines: [lines[0], lines[1].replace(b"/home/lam/a", b"/home/lam/b")],
                2,
                id="path",
            ),
        ],
    )
    def test_an_edit_is_found(
        self, path: bytes, edit: Callable[[list[bytes]], list[bytes]], number: int
    ) -> None:
        with closing(FileJournal(path)) as journal:
            for record in (START, INTENT, EffectRecord(2, 0), StopRecord()):
                journal.append(record)
        lines = content(path).splitlines(keepends=True)
        Path(os.fsdecode(path)).write_bytes(b"".join(edit(lines)))

        found = verify(path)

        assert found.damage
        assert found.damage.number == number

    def test_a_journal_that_never_was_holds_nothing(self, path: bytes) -> None:
        found = verify(path)

        assert (found.count, found.head, found.files, found.damage) == (0, GENESIS, (), None)

    def test_a_journal_that_cannot_be_read_is_an_error(self, path: bytes) -> None:
        os.makedirs(path)
        with pytest.raises(JournalError, match="is not a file"):
            verify(path)

        os.rmdir(path)
        os.symlink("elsewhere", path)
        with pytest.raises(JournalError, match="cannot be read"):
            verify(path)

    def test_lines_cut_off_in_use_leave_a_gap_that_shows(
        self, journal: FileJournal, path: bytes, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The numbers go on from what the daemon remembers."""
        journal.append(START)
        end = len(content(path))
        journal.append(INTENT)
        os.truncate(path, end)

        with caplog.at_level(logging.WARNING):
            assert journal.append(START) == 3

        assert "lost lines 2 to 2" in caplog.text
        caplog.clear()
        found = verify(path)
        assert found.damage
        assert (found.damage.number, found.damaged) == (2, 1)
        assert "number 3 stands where 2 belongs" in found.damage.problem

    def test_a_journal_removed_in_use_is_begun_anew_with_a_gap(
        self, journal: FileJournal, path: bytes, caplog: pytest.LogCaptureFixture
    ) -> None:
        journal.append(START)
        os.unlink(path)

        assert journal.append(INTENT) == 2

        caplog.clear()
        damage = verify(path).damage
        assert damage
        assert damage.number == 1


class TestRotation:
    """A file that has grown is set aside; the chain goes on."""

    def test_the_chain_goes_over_all_files(self, path: bytes) -> None:
        with closing(FileJournal(path, max_size=1000)) as journal:
            for _ in range(20):
                journal.append(INTENT)
            count, head = journal.count, journal.head

        found = verify(path)

        assert found.damage is None
        assert (found.count, found.head) == (count, head)
        assert len(found.files) > 3
        assert found.files[0] == path + b".1"
        assert found.files[-1] == path
        assert kinds(path).count("intent") == 20
        assert all(os.stat(file).st_mode & 0o777 == 0o600 for file in found.files)

    def test_each_new_file_says_where_it_goes_on(self, path: bytes) -> None:
        with closing(FileJournal(path, max_size=1)) as journal:
            for _ in range(12):
                journal.append(INTENT)

        firsts = [line.entry.record for line in walk(path) if line.number == 1 and line.entry]

        assert firsts[0] == INTENT
        assert firsts[1:] == [RotationRecord(f"journal.jsonl.{n}") for n in range(1, 12)]

    def test_a_removed_file_is_found(self, path: bytes) -> None:
        with closing(FileJournal(path, max_size=1)) as journal:
            for _ in range(4):
                journal.append(INTENT)
        os.unlink(path + b".2")

        damage = verify(path).damage

        assert damage
        assert (damage.file, damage.number) == (path + b".3", 1)

    def test_a_crash_between_the_two_files_loses_nothing(self, path: bytes) -> None:
        with closing(FileJournal(path)) as journal:
            journal.append(START)
            journal.append(INTENT)
        os.rename(path, path + b".1")

        with closing(FileJournal(path)) as journal:
            assert journal.append(INTENT) == 4

        assert kinds(path) == ["start", "intent", "rotation", "intent"]
        assert verify(path).damage is None

    def test_a_disk_that_is_full_in_between_loses_nothing(self, path: bytes) -> None:
        with closing(FileJournal(path, max_size=500)) as journal:
            journal.append(StartRecord("1.0", 7, b"/" * 500))
            with file_size_limit(20), pytest.raises(JournalError):
                journal.append(INTENT)
            assert content(path) == b""
            journal.append(INTENT)

        assert kinds(path) == ["start", "rotation", "intent"]
        assert verify(path).damage is None

    async def test_what_is_set_aside_was_synced(
        self, path: bytes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        synced = []
        monkeypatch.setattr(os, "fdatasync", lambda fd: synced.append(os.fstat(fd).st_ino))
        with closing(FileJournal(path, max_size=1)) as journal:
            journal.append(START)
            journal.append(INTENT)
            await journal.sync()

        assert synced == [os.stat(path + b".1").st_ino, os.stat(path).st_ino]

    def test_other_files_beside_it_are_left_alone(self, path: bytes) -> None:
        with closing(FileJournal(path, max_size=1)) as journal:
            for name in (b".1.gz", b".01", b".-1", b".x", b""):
                Path(os.fsdecode(os.path.dirname(path) + b"/copy" + name)).touch()
                Path(os.fsdecode(path + name + b"~")).write_bytes(b"mine")
            journal.append(START)
            journal.append(INTENT)

        assert verify(path).files == (path + b".1", path)
