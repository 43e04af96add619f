"""The journal on disk: one record, one line."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from lamfuse.core.errors import JournalError
from lamfuse.core.records import (
    GENESIS,
    EffectRecord,
    StopRecord,
    TurnRecord,
)
from lamfuse.engine.ports import Journal
from lamfuse.store.journal import FileJournal
from lamfuse.store.journal_files import verify, walk
from tests.store.journals import (
    INTENT,
    START,
    broken,
    closing,
    content,
    file_size_limit,
    fill,
    kinds,
)

pytestmark = pytest.mark.requirement("L9")


class TestAppend:
    """One record is one line."""

    def test_it_is_the_journal_that_the_engine_wants(self, journal: FileJournal) -> None:
        port: Journal = journal

        assert port.append(START) == 1
        assert port.append(StopRecord()) == 2

    def test_lines_are_numbered_timed_and_chained(self, journal: FileJournal, path: bytes) -> None:
        for record in (START, INTENT, EffectRecord(2, 0)):
            journal.append(record)

        lines = [line.entry for line in walk(path)]

        assert [entry.seq for entry in lines if entry] == [1, 2, 3]
        assert [entry.record for entry in lines if entry] == [START, INTENT, EffectRecord(2, 0)]
        assert {entry.time for entry in lines if entry} == {"2023-11-14T22:13:20.123Z"}
        assert (journal.count, journal.head) == (3, lines[-1].hash if lines[-1] else "")

    def test_nobody_else_can_read_it(self, journal: FileJournal, path: bytes) -> None:
        journal.append(START)

        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700

    def test_an_empty_journal_holds_nothing(self, journal: FileJournal, path: bytes) -> None:
        assert (journal.count, journal.head) == (0, GENESIS)
        assert content(path) == b""
        assert verify(path).count == 0

    def test_a_journal_goes_on_where_it_ended(self, path: bytes) -> None:
        for expected in (1, 2, 3):
            with closing(FileJournal(path)) as journal:
                assert journal.count == expected - 1
                assert journal.append(START) == expected

        assert verify(path).damage is None
        assert verify(path).count == 3

    def test_a_long_last_line_is_found(self, path: bytes) -> None:
        """Longer than the blocks that the end is read in."""
        with closing(FileJournal(path)) as journal:
            journal.append(START)
            journal.append(StopRecord("x" * 200_000))
        with closing(FileJournal(path)) as journal:
            assert journal.count == 2
            assert journal.append(START) == 3

        assert verify(path).damage is None

    def test_text_that_cannot_be_recorded_refuses(self, journal: FileJournal, path: bytes) -> None:
        with pytest.raises(JournalError, match="Unicode"):
            journal.append(TurnRecord("\udc80", 1, "person"))

        assert not broken(journal)
        assert content(path) == b""

    def test_close_gives_the_descriptor_back(self, path: bytes) -> None:
        before = len(os.listdir("/proc/self/fd"))

        journal = FileJournal(path)
        journal.append(START)
        journal.close()
        journal.close()

        assert len(os.listdir("/proc/self/fd")) == before
        with pytest.raises(JournalError, match="closed"):
            journal.append(INTENT)
        with pytest.raises(JournalError, match="closed"):
            journal.append(START)
        assert verify(path).count == 1


class TestOpen:
    """What may not be the journal."""

    @pytest.mark.parametrize(
        ("spoil", "why"),
        [
            pytest.param(lambda p: p.symlink_to("elsewhere"), "symbolic links", id="link"),
            pytest.param(lambda p: p.mkdir(), "directory", id="directory"),
            pytest.param(lambda p: os.mkfifo(p, 0o600), "not a file", id="fifo"),
            pytest.param(lambda p: p.touch(0o644) or p.chmod(0o644), "chmod 600", id="readable"),
            pytest.param(
                lambda p: p.touch(0o600) or p.with_name("b").hardlink_to(p),
                "other names",
                id="hard link",
            ),
        ],
    )
    def test_it_is_refused_with_the_reason(
        self, path: bytes, spoil: Callable[[Path], object], why: str
    ) -> None:
        os.mkdir(os.path.dirname(path), 0o700)
        spoil(Path(os.fsdecode(path)))
        before = len(os.listdir("/proc/self/fd"))

        with pytest.raises(JournalError, match=why):
            FileJournal(path)

        assert len(os.listdir("/proc/self/fd")) == before
        assert not (Path(os.fsdecode(path)).parent / "elsewhere").exists()

    def test_a_directory_open_to_others_is_refused(self, path: bytes) -> None:
        os.mkdir(os.path.dirname(path))
        os.chmod(os.path.dirname(path), 0o755)

        with pytest.raises(JournalError, match="chmod 700"):
            FileJournal(path)

    def test_a_journal_of_another_user_is_refused(
        self, path: bytes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with closing(FileJournal(path)) as journal:
            journal.append(START)
        real = os.getuid()
        answers = iter([real, real + 1])
        monkeypatch.setattr(os, "getuid", lambda: next(answers))

        with pytest.raises(JournalError, match="another user"):
            FileJournal(path)


class TestFullDisk:
    """Nothing of a refused record stays, and nothing may change unrecorded."""

    def test_a_short_write_is_taken_back(self, journal: FileJournal, path: bytes) -> None:
        journal.append(START)
        before = content(path)

        with (
            file_size_limit(len(before) + 50),
            pytest.raises(JournalError, match="part of the line"),
        ):
            journal.append(INTENT)
        assert content(path) == before
        assert broken(journal)

        assert journal.append(INTENT) == 2
        assert not broken(journal)
        assert verify(path).damage is None

    def test_a_failed_write_says_why(self, journal: FileJournal, path: bytes) -> None:
        journal.append(START)
        before = content(path)
        assert not broken(journal)

        with file_size_limit(len(before)), pytest.raises(JournalError, match="File too large"):
            journal.append(INTENT)

        assert content(path) == before
        assert journal.count == 1

    def test_a_lost_effect_stops_intents_until_it_is_written(
        self, journal: FileJournal, path: bytes
    ) -> None:
        intent = journal.append(INTENT)
        size = len(content(path))

        with file_size_limit(size):
            with pytest.raises(JournalError):
                journal.append(EffectRecord(intent, 0))
            with pytest.raises(JournalError):
                journal.append(INTENT)
        assert len(content(path)) == size
        assert broken(journal)

        assert journal.append(INTENT) == 3
        effect = [*walk(path)][1].entry
        assert effect
        assert effect.record == EffectRecord(intent, 0)
        assert not broken(journal)
        assert verify(path).damage is None

    def test_no_intent_gets_through_where_the_effect_still_does_not_fit(
        self, journal: FileJournal, path: bytes
    ) -> None:
        """A short intent might fit where a long effect did not; it must not go first."""
        intent = journal.append(INTENT)
        size = len(content(path))
        with file_size_limit(size), pytest.raises(JournalError):
            journal.append(EffectRecord(intent, 0))

        with file_size_limit(size + 300), pytest.raises(JournalError):
            journal.append(INTENT)

        assert kinds(path) == ["intent", "effect"]
        assert journal.append(INTENT) == 3

    @pytest.mark.root
    def test_a_real_full_file_system_refuses_and_recovers(self, tmp_path: Path) -> None:
        """ENOSPC comes as a short write first, then as an error."""
        disk = tmp_path / "disk"
        disk.mkdir()
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=16k,mode=700", "lamfuse-test", str(disk)],
            check=False,
            capture_output=True,
            text=True,
        )
        if mounted.returncode:
            pytest.skip(f"cannot mount a tmpfs: {mounted.stderr.strip()}")
        try:
            path = os.fsencode(disk / "journal.jsonl")
            with closing(FileJournal(path)) as journal:
                with pytest.raises(JournalError):
                    fill(journal)
                count = journal.count
                assert verify(path).count == count
                assert verify(path).damage is None
                (disk / "filler").touch()
                with pytest.raises(JournalError):
                    journal.append(EffectRecord(count, 0))

                subprocess.run(
                    ["mount", "-o", "remount,size=64k", str(disk)], check=True, capture_output=True
                )
                assert journal.append(INTENT) == count + 2
                assert verify(path).damage is None
        finally:
            subprocess.run(["umount", str(disk)], check=True, capture_output=True)
