"""lamfuse's own files: nobody else may reach them, and the journal can be written and is whole."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from lamfuse.cli import render
from lamfuse.cli.probes.finding import Finding, note, ok, problem
from lamfuse.cli.probes.subject import Subject
from lamfuse.control.wire import JournalView
from lamfuse.core import names, paths
from lamfuse.core.errors import LamfuseError
from lamfuse.store import journal_files
from lamfuse.store.dirs import Dirs

__all__ = ["look", "look_at_journal"]

_WHY: Final = (
    "Whoever can write these files decides what an agent may do; whoever can read them learns what"
    " it did."
)
_WHY_JOURNAL: Final = "What cannot be recorded is refused: without the journal nothing may change."
_WHY_HEAD: Final = (
    "The journal says who allowed what. Its hashes show damage and edits, but not a rewrite by the"
    " same user: compare count and hash with those in the system log."
)
_WHY_LOST: Final = "It says who allowed what, and can no longer be relied on."
_OTHERS: Final = 0o077
_OTHERS_WRITE: Final = 0o022
#: Bytes that a journal should still have room for.
_LITTLE_ROOM: Final = 16 << 20
_HASH_SHOWN: Final = 16


@dataclass(frozen=True, slots=True)
class _Own:
    """A file of lamfuse: its path, whether it is a directory, and what others may not have."""

    path: bytes
    is_directory: bool
    forbidden: int = _OTHERS
    by_root: bool = False
    may_be_link: bool = False


def look(subject: Subject) -> Iterator[Finding]:
    """Yield what is wrong with owner, kind and mode of lamfuse's own files."""
    wrong = there = 0
    for own in _own_files(subject.dirs):
        try:
            found = os.stat(own.path) if own.may_be_link else os.lstat(own.path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            wrong += 1
            shown = render.person_path(own.path)
            what = f"{shown} cannot be looked at: {error.strerror}."
            yield problem("files.own", what, _WHY, f"See: ls -ld {_quoted(own.path)}")
            continue
        there += 1
        for finding in _judge(own, found):
            wrong += 1
            yield finding
    if not wrong:
        what = f"{names.count(there, 'file')} and folders of lamfuse are there, all yours alone."
        yield ok("files.own", what, _WHY)


def _own_files(dirs: Dirs) -> Iterator[_Own]:
    for directory in (dirs.config_dir, dirs.state_dir, dirs.runtime_dir):
        forbidden = _OTHERS_WRITE if directory == dirs.config_dir else _OTHERS
        yield _Own(directory, is_directory=True, forbidden=forbidden)
    yield _Own(
        dirs.config_file, is_directory=False, forbidden=_OTHERS_WRITE, by_root=True,
        may_be_link=True,
    )  # fmt: skip
    for file in (dirs.log_file, dirs.socket, dirs.lock_file):
        yield _Own(file, is_directory=False)
    yield _Own(dirs.journal, is_directory=False)
    if os.path.isdir(dirs.state_dir):
        for file in journal_files.rotated_files(dirs.journal):
            yield _Own(file, is_directory=False)


def _judge(own: _Own, found: os.stat_result) -> Iterator[Finding]:
    shown, quoted = render.person_path(own.path), _quoted(own.path)
    check = "files.own"
    if own.is_directory and not stat.S_ISDIR(found.st_mode):
        yield problem(check, f"{shown} is not a directory.", _WHY, f"Move it away: {quoted}")
        return
    if not own.is_directory and (stat.S_ISDIR(found.st_mode) or stat.S_ISLNK(found.st_mode)):
        yield problem(check, f"{shown} is not a file.", _WHY, f"Move it away: {quoted}")
        return
    owners = {os.getuid(), 0} if own.by_root else {os.getuid()}
    if found.st_uid not in owners:
        what = f"{shown} belongs to another user (uid {found.st_uid})."
        yield problem(check, what, _WHY, f"Move it away, or: sudo chown {os.getuid()} {quoted}")
    if found.st_mode & own.forbidden:
        mode = stat.S_IMODE(found.st_mode)
        what = f"{shown} is open to others (mode {mode:04o})."
        change = "go-w" if own.forbidden == _OTHERS_WRITE else "go-rwx"
        yield problem(check, what, _WHY, f"Run: chmod {change} {quoted}")
    if stat.S_ISREG(found.st_mode) and found.st_nlink > 1 and not own.may_be_link:
        what = f"{shown} has {names.count(found.st_nlink - 1, 'other name')}."
        yield problem(check, what, _WHY, "Remove those: a copy elsewhere may be visible.")


def _quoted(path: bytes) -> str:
    return shlex.quote(names.show_path(path, b""))


# --- the journal


def look_at_journal(subject: Subject) -> Iterator[Finding]:
    """Yield whether the journal can be written, and whether it is whole."""
    path = subject.dirs.journal
    shown = render.person_path(path)
    yield _writable(path, shown)
    try:
        found = journal_files.verify(path)
    except LamfuseError as error:
        what = render.printable(str(error))
        yield problem("journal.whole", what, _WHY_LOST, f"See: ls -l {_quoted(path)}")
        return
    if found.damage is not None:
        where = f"{render.person_path(found.damage.file)}, line {found.damage.number}"
        what = (
            f"The journal is damaged: {where}: {names.show_text(found.damage.problem)}"
            f" ({names.count(found.damaged, 'line')} damaged, {found.count} whole)."
        )
        remedy = "lamfuse log shows the damaged lines. Keep a copy, and move the journal away."
        yield problem("journal.whole", what, _WHY_LOST, remedy)
        return
    status = subject.ask_daemon().status
    finding = _compare(found, status.journal) if status is not None else None
    head = found.head[:_HASH_SHOWN]
    said = f"The journal is whole: {names.count(found.count, 'line')}, last hash {head}."
    yield finding or ok("journal.whole", said, _WHY_HEAD)


def _compare(found: journal_files.Verification, told: JournalView) -> Finding | None:
    """Compare the file with what the daemon wrote; it may have written more meanwhile."""
    remedy = "Keep a copy of both, and look at what else of yours has changed."
    if told.count < found.count or (told.count == found.count and told.head == found.head):
        return None  # whoever shares the journal may have written after the daemon last looked
    if told.count == found.count:
        what = "The journal is not the one that the daemon wrote: the last hash differs."
        return problem("journal.whole", what, _WHY_LOST, remedy)
    again = told.count - found.count
    what = f"The journal lacks the last {names.count(again, 'line')} that the daemon wrote."
    return problem("journal.whole", what, _WHY_LOST, remedy)


def _writable(path: bytes, shown: str) -> Finding:
    check = "journal.writable"
    place = path
    while not os.path.lexists(place) and place != b"/":
        place = paths.parent(place)
    if place == path:
        what = f"The journal {shown} can be written."
        wanted = os.W_OK | os.R_OK
    else:
        what = f"There is no journal yet; {shown} can be made."
        wanted = os.W_OK | os.X_OK
    if not os.access(place, wanted):
        bad = (
            f"The journal {shown} cannot be written: {render.person_path(place)} is closed to you."
        )
        return problem(check, bad, _WHY_JOURNAL, f"See: ls -ld {_quoted(place)}")
    room = os.statvfs(place)
    if room.f_flag & os.ST_RDONLY:
        bad = f"The journal {shown} cannot be written: its file system is read-only."
        return problem(check, bad, _WHY_JOURNAL, "Mount that file system for writing.")
    left = room.f_bavail * room.f_frsize
    if left == 0:
        bad = f"The journal {shown} cannot grow: its file system is full."
        return problem(check, bad, _WHY_JOURNAL, "Make room there.")
    if left < _LITTLE_ROOM:
        little = f"{what[:-1]}; its file system has {names.show_size(left)} left."
        return note(check, little, _WHY_JOURNAL, "Make room there.")
    return ok(check, what, _WHY_JOURNAL)
