"""When the journal has reached the disk, and who else writes to it."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest
import trio
import trio.testing

from lamfuse.core.errors import JournalError
from lamfuse.core.records import (
    EffectRecord,
    StopRecord,
)
from lamfuse.store.journal import FileJournal
from lamfuse.store.journal_files import verify
from tests.store.journals import INTENT, START, closing, kinds

pytestmark = pytest.mark.requirement("L9")


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

        assert journal.is_broken
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
        ("sizes", "which"),
        [
            pytest.param((9999, 9999), 0, id="in the same file"),
            pytest.param((9999, 1), 0, id="and sets the file aside"),
            pytest.param((1, 9999), 1, id="in the file that was just begun"),
            pytest.param((1, 1), 1, id="and sets the file aside that was just begun"),
        ],
    )
    def test_what_another_writes_just_before_the_lock_is_seen(
        self, path: bytes, monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, int], which: int
    ) -> None:
        with (
            closing(FileJournal(path, max_size=sizes[0])) as first,
            closing(FileJournal(path, max_size=sizes[1])) as second,
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
        assert [kind for kind in kinds(path) if kind != "rotation"] == ["start", "stop", "intent"]
        assert verify(path).damage is None

    @pytest.mark.parametrize(
        ("max_size", "files"),
        [
            pytest.param(9999, [b"journal.jsonl"], id="in the same file"),
            pytest.param(1, [b"journal.jsonl.1", b"journal.jsonl"], id="and sets the file aside"),
        ],
    )
    def test_a_reader_counts_what_was_there_when_it_had_the_lock(
        self, path: bytes, monkeypatch: pytest.MonkeyPatch, max_size: int, files: list[bytes]
    ) -> None:
        """So it never sees half a line of a writer at work."""
        with closing(FileJournal(path, max_size=max_size)) as journal:
            journal.append(START)
            flock = fcntl.flock

            def write_before(fd: int, kind: int) -> None:
                if kind == fcntl.LOCK_SH:
                    monkeypatch.setattr(fcntl, "flock", flock)
                    journal.append(INTENT)
                flock(fd, kind)

            monkeypatch.setattr(fcntl, "flock", write_before)
            found = verify(path)

        assert found.damage is None
        assert [line.rpartition(b"/")[2] for line in found.files] == files
        assert kinds(path).count("intent") == 1
        assert found.count == 1 + len(files)

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
