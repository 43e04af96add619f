"""The journal on disk: appended to, never rewritten, synced when it must be.

A line is written with one ``write`` on an ``O_APPEND`` descriptor, under a short lock on the file,
so that a daemon and servers beside it can share a journal: whoever appends first reads what the
others added. A line that was cut short by a crash stays as it is; the next one to open the journal
ends it and says so in a line of its own. The act itself must not happen when ``append`` raises.

A full disk refuses, and nothing of the line is left. A failed sync leaves unknown what reached the
disk, so nothing more may change until the journal is opened anew.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import logging
import os
import stat
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import trio

from lamfuse.core.errors import JournalError, RefusedError
from lamfuse.core.records import (
    GENESIS,
    EffectRecord,
    Entry,
    IntentRecord,
    Record,
    RecordError,
    RotationRecord,
    TornRecord,
    decode,
    encode,
)
from lamfuse.store.dirs import make_private
from lamfuse.store.journal_files import is_current, last_entry, rotated_files

__all__ = ["FLUSH_S", "MAX_SIZE", "FileJournal"]

_log = logging.getLogger(__name__)

#: Bytes after which a file is set aside and the next one begun.
MAX_SIZE = 64 * 1024 * 1024

#: Seconds after which ``run`` syncs what nobody waited for: with the sync itself within one second.
FLUSH_S = 0.5

_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class FileJournal:
    """Implements :class:`lamfuse.engine.ports.Journal`; to be used from one thread.

    The directory is made (0700) and the file opened (0600) at once; raises JournalError. *clock*
    gives seconds since 1970, *max_size* is in bytes. :meth:`close` closes the descriptor.
    """

    def __init__(
        self, path: bytes, *, max_size: int = MAX_SIZE, clock: Callable[[], float] = time.time
    ) -> None:
        self.path = path
        self._max_size = max_size
        self._clock = clock
        self._fd = -1
        self._pid = os.getpid()
        self._seq = 0
        self._head = GENESIS
        self._end = 0  # of the last line that was read or written; 0: nothing looked at yet
        self._unwritten: list[EffectRecord] = []
        self._unsafe = ""
        self._failing = False
        self._appended = 0
        self._synced = 0
        self._syncing: trio.Event | None = None
        self._dirty = trio.Event()
        try:
            make_private(os.path.dirname(path))
        except RefusedError as error:
            raise JournalError(str(error)) from error
        try:
            with self._locked():
                self._read_on()
        except BaseException:
            if self._fd >= 0:
                os.close(self._fd)
            raise

    @property
    def count(self) -> int:
        """How many records the chain holds, as far as this process has seen."""
        return self._seq

    @property
    def head(self) -> str:
        """The hash of the last record."""
        return self._head

    @property
    def is_broken(self) -> bool:
        """Whether intents are refused, as far as the last attempt to write or sync tells."""
        return bool(self._unsafe or self._unwritten or self._failing)

    def append(self, record: Record) -> int:
        """Write one record and return its sequence number; it is not synced yet.

        Raises JournalError, and then nothing of the record is in the file. An effect that could not
        be written is kept and written before the next intent: until that works, intents raise.
        """
        if self._unsafe and isinstance(record, IntentRecord):
            raise JournalError(self._unsafe)
        try:
            with self._locked():
                self._read_on()
                if self._end >= self._max_size:
                    self._rotate()
                self._write_kept(required=isinstance(record, IntentRecord))
                return self._write(record)
        except JournalError:
            if isinstance(record, EffectRecord):
                self._unwritten.append(record)
            raise

    async def sync(self) -> None:
        """Return once everything appended so far has reached the disk; raises JournalError.

        Those who wait at the same time share one sync. One that began before the append of a waiter
        does not count for it.
        """
        wanted = self._appended
        while self._synced < wanted:
            if self._unsafe:
                raise JournalError(self._unsafe)
            if self._syncing is not None:
                await self._syncing.wait()
            else:
                await self._sync_once()
        await trio.lowlevel.checkpoint()

    async def run(self) -> None:
        """Sync what nobody waits for, within a second; runs until it is cancelled."""
        while True:
            await self._dirty.wait()
            await trio.sleep(FLUSH_S)
            self._dirty = trio.Event()
            try:
                await self.sync()
            except JournalError as error:
                # Intents are refused from now on, so the person hears of it; the loop lives on.
                _log.error("%s", error)

    def close(self) -> None:
        """Sync and close; may be called again. Raises JournalError when the sync fails."""
        if self._fd < 0:
            return
        try:
            if os.getpid() == self._pid and self._synced < self._appended:
                os.fdatasync(self._fd)
        except OSError as error:
            raise self._error("cannot be synced", error) from error
        finally:
            os.close(self._fd)
            self._fd = -1
            self._unsafe = "The journal is closed."

    async def _sync_once(self) -> None:
        fd = self._duplicate()
        event = self._syncing = trio.Event()
        covered = self._appended
        try:
            await trio.to_thread.run_sync(os.fdatasync, fd)
        except OSError as error:
            raise self._sync_failed(error) from error
        else:
            self._synced = max(self._synced, covered)
        finally:
            os.close(fd)
            self._syncing = None
            event.set()

    def _duplicate(self) -> int:
        """Return a descriptor for the thread that syncs: a rotation meanwhile closes the other."""
        try:
            return os.dup(self._fd)
        except OSError as error:
            raise self._error("cannot be synced", error) from error

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock of the file that is the journal right now."""
        if self._unsafe and self._fd < 0:
            raise JournalError(self._unsafe)
        try:
            if os.getpid() != self._pid:
                self._leave_parent()
            if self._fd < 0:
                self._open()
            self._lock()
            yield
        except OSError as error:
            self._failing = True
            raise self._error("cannot be used", error) from error
        finally:
            if self._fd >= 0:
                fcntl.flock(self._fd, fcntl.LOCK_UN)

    def _leave_parent(self) -> None:
        """After a fork: a lock is shared with the parent, so the child needs a file of its own."""
        os.close(self._fd)
        self._fd = -1
        self._pid = os.getpid()
        self._unwritten.clear()
        self._synced = self._appended
        self._syncing = None

    def _lock(self) -> None:
        """Lock the file that has the name once the lock is held."""
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        while not is_current(self._fd, self.path):
            self._open()
            fcntl.flock(self._fd, fcntl.LOCK_EX)

    def _open(self) -> None:
        fd = os.open(self.path, _FLAGS, 0o600)
        try:
            self._check(os.fstat(fd))
            if os.fstat(fd).st_size == 0:
                _sync_directory(os.path.dirname(self.path))
        except BaseException:
            os.close(fd)
            raise
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = fd
        self._end = 0

    def _check(self, found: os.stat_result) -> None:
        """Refuse a file that another could read, or reach by another name."""
        shown = os.fsdecode(self.path)
        if not stat.S_ISREG(found.st_mode):
            raise JournalError(f"The journal {shown} is not a file. Remove it.")
        if found.st_uid != os.getuid():
            raise JournalError(f"The journal {shown} belongs to another user. Move it away.")
        if found.st_mode & 0o077:
            raise JournalError(f"The journal {shown} is open to others. Run: chmod 600 {shown}")
        if found.st_nlink > 1:
            raise JournalError(f"The journal {shown} has other names. Remove them.")

    def _read_on(self) -> None:
        """Take over what is in the file but was not read or written by this object."""
        size = os.fstat(self._fd).st_size
        if size == self._end and size > 0:
            return
        entry, torn, end = last_entry(self._fd, size)
        before = rotated_files(self.path)[-1:] if entry is None else []
        if before:
            entry = _last_of(before[0])
        self._adopt(entry)
        self._end = end + len(torn)
        if torn:
            try:
                self._end_torn(torn)
            except JournalError:
                self._end = 0  # the next append has to end it first
                raise
        elif size == 0 and before:
            self._write(RotationRecord(os.fsdecode(os.path.basename(before[0]))))

    def _adopt(self, entry: Entry | None) -> None:
        """Go on after *entry*, unless more than that was seen already: then lines are gone.

        In that case the numbers go on from what was seen, so that a check finds the gap.
        """
        seq, head = (entry.seq, entry.hash) if entry else (0, GENESIS)
        if seq >= self._seq:
            self._seq, self._head = seq, head
        else:
            _log.warning("The journal lost lines %d to %d.", seq + 1, self._seq)

    def _end_torn(self, torn: bytes) -> None:
        """End a line without newline: it is whole but for that, or a line says that it is not."""
        with contextlib.suppress(RecordError):
            entry = decode(torn + b"\n")
            if (entry.seq, entry.previous) == (self._seq + 1, self._head):
                self._write_bytes(b"\n")
                self._seq, self._head = entry.seq, entry.hash
                return
        record = TornRecord(len(torn), hashlib.sha256(torn).hexdigest())
        self._write(record, before=b"\n")

    def _write_kept(self, *, required: bool) -> None:
        """Write the effects that could not be written; if *required*, raise when it fails again."""
        while self._unwritten:
            try:
                self._write(self._unwritten[0])
            except JournalError:
                if required:
                    raise
                return
            del self._unwritten[0]

    def _write(self, record: Record, before: bytes = b"") -> int:
        moment = datetime.fromtimestamp(self._clock(), UTC)
        written = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        try:
            line, head = encode(record, self._seq + 1, written, self._head)
        except RecordError as error:
            raise JournalError(f"This cannot be recorded: {error}.") from error
        self._write_bytes(before + line)
        self._seq, self._head = self._seq + 1, head
        return self._seq

    def _write_bytes(self, content: bytes) -> None:
        """Append *content* whole, or leave the file as it was and raise JournalError."""
        try:
            written = os.write(self._fd, content)
            failure: OSError | None = None
        except OSError as error:
            written, failure = 0, error
        self._failing = written != len(content)
        if not self._failing:
            self._end += written
            self._appended += 1
            self._dirty.set()
            return
        if written:
            os.ftruncate(self._fd, self._end)
        raise self._error("cannot be written", failure)

    def _rotate(self) -> None:
        """Set the file aside under the next number and begin a new one."""
        try:
            os.fdatasync(self._fd)
        except OSError as error:
            raise self._sync_failed(error) from error
        self._synced = self._appended
        taken = rotated_files(self.path)
        number = int(taken[-1].rpartition(b".")[2]) + 1 if taken else 1
        os.rename(self.path, b"%s.%d" % (self.path, number))
        self._open()
        self._lock()  # another may have been first, and even have set the new file aside as well
        self._read_on()

    def _sync_failed(self, error: OSError) -> JournalError:
        """Remember that it is unknown what reached the disk: another sync would not tell either."""
        failure = self._error("cannot be synced", error)
        self._unsafe = f"{failure} Nothing may change until lamfuse is started again."
        return JournalError(self._unsafe)

    def _error(self, what: str, error: OSError | None) -> JournalError:
        why = error.strerror if error is not None else "it took only a part of the line"
        return JournalError(f"The journal {os.fsdecode(self.path)} {what}: {why}.")


def _last_of(path: bytes) -> Entry | None:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return last_entry(fd, os.fstat(fd).st_size)[0]
    finally:
        os.close(fd)


def _sync_directory(path: bytes) -> None:
    """Let the name of a new file reach the disk as well."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
