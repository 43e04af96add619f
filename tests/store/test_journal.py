"""The journal on disk."""

from __future__ import annotations

import fcntl
import logging
import os
import resource
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio
import trio.testing

from lamfuse.core.errors import JournalError
from lamfuse.core.operations import Operation
from lamfuse.core.records import (
    GENESIS,
    Basis,
    EffectRecord,
    IntentRecord,
    RotationRecord,
    StartRecord,
    StopRecord,
    TornRecord,
    TurnRecord,
)
from lamfuse.engine.ports import Journal
from lamfuse.store.journal import FileJournal
from lamfuse.store.journal_files import verify, walk

pytestmark = pytest.mark.requirement("L9")

START = StartRecord("1.0", 7, b"/home/lam")
INTENT = IntentRecord("s", 1, Operation.UNLINK, (b"/home/lam/a",), Basis.ANSWER, question="k7f2")


@pytest.fixture
def path(tmp_path: Path) -> bytes:
    """Where the journal is to be; its directory does not exist yet."""
    return os.fsencode(tmp_path / "state/journal.jsonl")


@pytest.fixture
def journal(path: bytes) -> Iterator[FileJournal]:
    """An empty journal with a clock that stands still."""
    with closing(FileJournal(path, clock=lambda: 1_700_000_000.1239)) as opened:
        yield opened


@contextmanager
def closing(journal: FileJournal) -> Iterator[FileJournal]:
    try:
        yield journal
    finally:
        journal.close()


def kinds(path: bytes) -> list[str]:
    """Return the kinds of all records, and ``?`` for a line that cannot be read."""
    return [
        type(line.entry.record).__name__.removesuffix("Record").lower() if line.entry else "?"
        for line in walk(path)
    ]


def content(path: bytes) -> bytes:
    return Path(os.fsdecode(path)).read_bytes()


def fill(journal: FileJournal) -> None:
    """Append until it raises."""
    for _ in range(1000):
        journal.append(INTENT)


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Let no file of this process grow over *size* bytes: a full disk without a disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


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

        assert journal.append(INTENT) == 2
        assert verify(path).damage is None

    def test_a_failed_write_says_why(self, journal: FileJournal, path: bytes) -> None:
        journal.append(START)
        before = content(path)

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

        assert journal.append(INTENT) == 3
        effect = [*walk(path)][1].entry
        assert effect
        assert effect.record == EffectRecord(intent, 0)
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


class TestSync:
    """Once ``sync`` returns, the disk has it."""

    @pytest.fixture
    def disk(self, monkeypatch: pytest.MonkeyPatch) -> Disk:
        disk = Disk()
        monkeypatch.setattr(os, "fdatasync", disk.sync)
        return disk

    async def test_waiters_share_one_sync(self, journal: FileJournal, disk: Disk) -> None:
        for _ in range(5):
            journal.append(INTENT)

        with trio.fail_after(5):
            async with trio.open_nursery() as nursery:
                for _ in range(5):
                    nursery.start_soon(journal.sync)
                await disk.begun(1)
                disk.gate.set()

        assert disk.count == 1

    async def test_a_sync_that_began_before_the_append_does_not_count(
        self, journal: FileJournal, disk: Disk
    ) -> None:
        journal.append(INTENT)

        with trio.fail_after(5):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(journal.sync)
                await disk.begun(1)
                journal.append(INTENT)
                nursery.start_soon(journal.sync)
                nursery.start_soon(journal.sync)
                await trio.testing.wait_all_tasks_blocked()
                disk.gate.set()

        assert disk.count == 2

    async def test_nothing_to_sync_is_no_sync(self, journal: FileJournal, disk: Disk) -> None:
        await journal.sync()

        assert disk.count == 0

    async def test_after_a_failed_sync_nothing_may_change(
        self, journal: FileJournal, disk: Disk
    ) -> None:
        """The kernel reports such an error once: a second sync that works proves nothing."""
        intent = journal.append(INTENT)
        disk.gate.set()
        disk.error = OSError(5, "Input/output error")

        with pytest.raises(JournalError, match="cannot be synced: Input/output error"):
            await journal.sync()
        disk.error = None

        with pytest.raises(JournalError, match="started again"):
            journal.append(INTENT)
        with pytest.raises(JournalError, match="started again"):
            await journal.sync()
        assert journal.append(EffectRecord(intent, 0)) == 2

    async def test_all_waiters_hear_of_a_failed_sync(
        self, journal: FileJournal, disk: Disk
    ) -> None:
        journal.append(INTENT)
        disk.error = OSError(5, "Input/output error")
        heard = []

        async def wait() -> None:
            try:
                await journal.sync()
            except JournalError as error:
                heard.append(error)

        with trio.fail_after(5):
            async with trio.open_nursery() as nursery:
                for _ in range(3):
                    nursery.start_soon(wait)
                await disk.begun(1)
                await trio.testing.wait_all_tasks_blocked()
                disk.gate.set()

        assert len(heard) == 3
        assert disk.count == 1

    async def test_a_cancelled_leader_does_not_leave_the_others_waiting(
        self, journal: FileJournal, disk: Disk
    ) -> None:
        journal.append(INTENT)

        with trio.fail_after(5):
            async with trio.open_nursery() as nursery:
                with trio.CancelScope() as scope:
                    scope.cancel()
                    await journal.sync()
                assert scope.cancelled_caught
                nursery.start_soon(journal.sync)
                await disk.begun(1)
                disk.gate.set()

        assert disk.count == 1


class TestFlush:
    """What nobody waits for reaches the disk within a second."""

    @pytest.fixture
    def synced(self, monkeypatch: pytest.MonkeyPatch) -> list[float]:
        """The times of all syncs, made without a thread: threads do not know the test's clock."""
        times: list[float] = []

        async def run_here(function: Callable[[int], None], fd: int) -> None:
            await trio.lowlevel.checkpoint()
            function(fd)

        monkeypatch.setattr(os, "fdatasync", lambda fd: times.append(trio.current_time()))
        monkeypatch.setattr(trio.to_thread, "run_sync", run_here)
        return times

    async def test_each_record_is_flushed_within_a_second_and_only_once(
        self,
        journal: FileJournal,
        synced: list[float],
        autojump_clock: trio.testing.MockClock,
    ) -> None:
        appended = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(journal.run)
            await trio.sleep(10)
            assert synced == []
            for _ in range(3):
                appended.append(trio.current_time())
                journal.append(INTENT)
                journal.append(INTENT)
                await trio.sleep(10)
            nursery.cancel_scope.cancel()

        assert len(synced) == 3
        assert all(0 < done - begun < 1 for begun, done in zip(appended, synced, strict=True))

    async def test_it_lives_on_after_an_error(
        self,
        journal: FileJournal,
        monkeypatch: pytest.MonkeyPatch,
        synced: list[float],
        autojump_clock: trio.testing.MockClock,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        def fail(fd: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fdatasync", fail)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(journal.run)
            for _ in range(2):
                journal.append(EffectRecord(1, 0))
                await trio.sleep(2)
            nursery.cancel_scope.cancel()
        monkeypatch.undo()

        assert caplog.text.count("No space left") == 2
        caplog.clear()
        with pytest.raises(JournalError, match="No space left"):
            journal.append(INTENT)


class Disk:
    """Stands for the disk: counts syncs, and lets none end before the gate opens."""

    def __init__(self) -> None:
        self.count = 0
        self.gate = threading.Event()
        self.error: OSError | None = None
        self._send, self._receive = trio.open_memory_channel[None](100)

    def sync(self, fd: int) -> None:
        os.fstat(fd)  # a descriptor that is closed by then would be an error
        self.count += 1
        trio.from_thread.run_sync(self._send.send_nowait, None)
        assert self.gate.wait(5)
        if self.error:
            raise self.error

    async def begun(self, count: int) -> None:
        """Wait until *count* syncs have begun."""
        while self.count < count:
            await self._receive.receive()


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


class TestSeveralWriters:
    """A daemon, and servers beside it, share a journal."""

    def test_two_writers_make_one_chain(self, path: bytes) -> None:
        with (
            closing(FileJournal(path, max_size=2000)) as first,
            closing(FileJournal(path, max_size=2000)) as second,
        ):
            numbers = [writer.append(INTENT) for _ in range(10) for writer in (first, second)]

        assert numbers == sorted({*numbers})
        assert verify(path).damage is None
        assert kinds(path).count("intent") == 20

    @pytest.mark.parametrize(
        ("max_size", "which"),
        [
            pytest.param(10_000, 0, id="at the first lock"),
            pytest.param(1, 1, id="at the lock of the file that was just begun"),
        ],
    )
    def test_what_another_writes_just_before_the_lock_is_seen(
        self, path: bytes, monkeypatch: pytest.MonkeyPatch, max_size: int, which: int
    ) -> None:
        with (
            closing(FileJournal(path, max_size=max_size)) as first,
            closing(FileJournal(path)) as second,
        ):
            first.append(START)
            locks = []
            flock = fcntl.flock

            def write_before(fd: int, kind: int) -> None:
                if kind == fcntl.LOCK_EX:
                    locks.append(fd)
                    if len(locks) == which + 1:
                        monkeypatch.setattr(fcntl, "flock", flock)
                        if which:
                            flock(fd, fcntl.LOCK_UN)
                        second.append(StopRecord())
                flock(fd, kind)

            monkeypatch.setattr(fcntl, "flock", write_before)
            first.append(INTENT)

        assert len(locks) == which + 1
        assert kinds(path)[-2:] == ["stop", "intent"]
        assert verify(path).damage is None

    def test_a_reader_counts_what_was_there_when_it_had_the_lock(
        self, path: bytes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """So it never sees half a line of a writer at work."""
        with closing(FileJournal(path)) as journal:
            journal.append(START)
            flock = fcntl.flock

            def write_before(fd: int, kind: int) -> None:
                if kind == fcntl.LOCK_SH:
                    journal.append(INTENT)
                flock(fd, kind)

            monkeypatch.setattr(fcntl, "flock", write_before)

            assert verify(path).count == 2

    def test_processes_that_write_at_the_same_time_make_one_chain(self, path: bytes) -> None:
        program = (
            "import os, sys\n"
            "from lamfuse.core.records import StopRecord\n"
            "from lamfuse.store.journal import FileJournal\n"
            "journal = FileJournal(os.fsencode(sys.argv[1]), max_size=20_000)\n"
            "print('ready', flush=True)\n"
            "sys.stdin.readline()\n"
            "for n in range(500):\n"
            "    journal.append(StopRecord(str(n)))\n"
            "journal.close()\n"
        )
        writers = [
            subprocess.Popen(
                [sys.executable, "-c", program, os.fsdecode(path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            for _ in range(3)
        ]
        for writer in writers:
            assert writer.stdout
            assert writer.stdout.readline() == b"ready\n"
        for writer in writers:
            assert writer.stdin
            writer.stdin.write(b"\n")
            writer.stdin.flush()
        for writer in writers:
            writer.communicate(timeout=30)
            assert writer.returncode == 0

        found = verify(path)

        assert found.damage is None
        assert kinds(path).count("stop") == 1500
        assert found.count == 1500 + kinds(path).count("rotation")

    def test_a_forked_child_writes_with_a_lock_of_its_own(self, path: bytes) -> None:
        with closing(FileJournal(path)) as journal:
            journal.append(START)
            flags = fcntl.fcntl(journal._fd, fcntl.F_GETFL)
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    code = 0 if journal.append(INTENT) == 2 else 2
                    # A lock belongs to the open file, as these flags do: they must not be shared.
                    fcntl.fcntl(journal._fd, fcntl.F_SETFL, flags ^ os.O_NONBLOCK)
                    journal.close()
                finally:
                    os._exit(code)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            assert fcntl.fcntl(journal._fd, fcntl.F_GETFL) == flags
            assert journal.append(StopRecord()) == 3

        assert kinds(path) == ["start", "intent", "stop"]
        assert verify(path).damage is None
