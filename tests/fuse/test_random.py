"""Random operations of several callers, against a model of the policy.

Whatever is called in whatever order, and however the person answers: no hidden byte is read, and no
byte changes without an allowed intent in the journal. ``LAMFUSE_OPERATIONS`` says how many calls
are made.
"""

import errno
import mmap
import os
import shutil
import stat
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from lamfuse.control import wire
from lamfuse.core.approval import Scope
from tests.fuse.changes import EXCHANGE, NOREPLACE, rename2
from tests.fuse.journal_model import Ledger, changed, look
from tests.mounting import HIDDEN, Mounted, entries, make_home, mounted, place
from tests.person import DECLINE, Allow

pytestmark = [
    pytest.mark.mount,
    pytest.mark.requirement("H3", "H4", "H5", "H9", "H10", "H11", "L1", "L9"),
]

OPERATIONS = int(os.environ.get("LAMFUSE_OPERATIONS", "10000"))
_EXAMPLES = 100
_STEPS = 60
#: Objects without a name that the kernel may not have forgotten yet: the daemon's own bound.
_KEPT = 256
_CALLERS = 3

#: Names in a folder: free ones, folders, one that is hidden, links.
_PLAIN = [".", "a", "b", "c", "d/x", "d/y", "d", "e", "e/deep/z", "e/deep"]
_HIDDEN_NAMES = [".env", "id_rsa", "d/cert.pem", "e/.env"]
_LINKS = ["to-file", "to-folder", "to-hidden", "to-outside"]
_TARGETS = [
    "a",
    "d",
    "../../Pictures/photo.bin",
    ".env",
    "/etc/hostname",
    "../../.ssh/config",
    "..",
]

_names = st.sampled_from(_PLAIN * 2 + _HIDDEN_NAMES + _LINKS)
_places = st.sampled_from(["open", "open", "open", "closed"])
_paths = st.tuples(_places, _names)
_content = st.binary(max_size=20) | st.just(b"x" * 5000)

#: What a call may end with, whatever happened before it.
_USUAL = {
    errno.ENOENT, errno.EACCES, errno.EROFS, errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.EXDEV,
    errno.ENOTEMPTY, errno.EINVAL, errno.ELOOP, errno.ESTALE, errno.EPERM, errno.ENODATA,
    errno.EBUSY, errno.ENXIO,
}  # fmt: skip


@contextmanager
def _may_fail(numbers: Collection[int] = _USUAL) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in numbers:
            raise


@dataclass(frozen=True)
class Call:
    """One system call: what it does on *paths*, and whether it changes something."""

    act: Callable[..., bytes | None]
    paths: tuple[tuple[str, str], ...]
    arguments: tuple[object, ...] = ()


def _read(path: Path) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        return os.read(fd, 1 << 16) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    finally:
        os.close(fd)


def _map(path: Path) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        size = os.fstat(fd).st_size if stat.S_ISREG(os.fstat(fd).st_mode) else 0
        if not size:
            return b""
        with mmap.mmap(fd, size, prot=mmap.PROT_READ) as mapped:
            return mapped[:]
    finally:
        os.close(fd)


def _list(path: Path) -> bytes:
    return "\n".join(os.listdir(path)).encode()


def _link_text(path: Path) -> bytes:
    return os.fsencode(os.readlink(path))


def _write(path: Path, flags: int, content: bytes) -> None:
    fd = os.open(path, flags | os.O_NONBLOCK, 0o644)
    try:
        if content and flags & os.O_ACCMODE != os.O_RDONLY:
            os.write(fd, content)
    finally:
        os.close(fd)


_READS = [_read, _map, _list, _link_text]
_FLAGS = [
    os.O_WRONLY, os.O_RDWR | os.O_CREAT, os.O_WRONLY | os.O_CREAT | os.O_EXCL, os.O_TRUNC,
    os.O_WRONLY | os.O_CREAT | os.O_TRUNC, os.O_WRONLY | os.O_APPEND,
]  # fmt: skip
_ONE_PATH: list[Callable[[Path], object]] = [
    os.unlink, os.rmdir, os.mkdir, os.mkfifo, lambda p: os.chmod(p, 0o750), os.utime,
    lambda p: os.truncate(p, 3), lambda p: os.setxattr(p, "user.a", b"b"),
    lambda p: os.removexattr(p, "user.a"),
]  # fmt: skip
_TWO_PATHS: list[Callable[[Path, Path], object]] = [
    os.rename, os.rename, os.link, lambda p, q: rename2(p, q, NOREPLACE),
    lambda p, q: rename2(p, q, EXCHANGE),
]  # fmt: skip

_reads = st.builds(lambda act, path: Call(act, (path,)), st.sampled_from(_READS), _paths)
_writes = st.builds(
    lambda path, flags, content: Call(_write, (path,), (flags, content)),
    _paths, st.sampled_from(_FLAGS), _content,
)  # fmt: skip
_changes = st.builds(lambda act, path: Call(act, (path,)), st.sampled_from(_ONE_PATH), _paths)
_moves = st.builds(
    lambda act, old, new: Call(act, (old, new)), st.sampled_from(_TWO_PATHS), _paths, _paths
)
_links = st.builds(
    lambda target, path: Call(lambda p: os.symlink(target, p), (path,)),
    st.sampled_from(_TARGETS), _paths,
)  # fmt: skip


def _several(*kinds: st.SearchStrategy[Call]) -> st.SearchStrategy[list[Call]]:
    return st.lists(st.one_of(*kinds), min_size=2, max_size=_CALLERS)


class Callers(RuleBasedStateMachine):
    """Several callers in one folder of a write root and one of a read-only place."""

    here: ClassVar[Mounted]
    calls: ClassVar[int] = 0
    pool: ClassVar[ThreadPoolExecutor]

    def __init__(self) -> None:
        super().__init__()
        self.handles: list[tuple[int, int, bool]] = []
        self.mood = 0

    @initialize()
    def begin(self) -> None:
        here = self.here
        self.names = {"open": here.fresh(), "closed": here.fresh("spare")}
        for name in self.names.values():
            folder = here.home / name
            (folder / "d").mkdir()
            (folder / "e/deep").mkdir(parents=True)
            for file in ("a", "b", "d/x", "d/y", "e/deep/z"):
                (folder / file).write_bytes(b"shown\n")
            for file in _HIDDEN_NAMES:
                (folder / file).write_bytes(HIDDEN)
            for link, target in zip(_LINKS, ("a", "d", ".env", "/etc/hostname"), strict=True):
                (folder / link).symlink_to(target)
        here.person.new_turn()
        here.person.forget(self._answer)
        self.ledger = Ledger(here.place.journal)
        self.before = self._look()
        self.hidden = self._hidden()

    def _look(self) -> dict[str, tuple[int, tuple[object, ...]]]:
        return {
            p: s for name in self.names.values() for p, s in look(self.here.home / name).items()
        }

    def _hidden(self) -> dict[str, bytes]:
        """Return every hidden file of both folders, wherever it is by now."""
        return {
            path: seen[1][2]
            for path, seen in self.before.items()
            if isinstance(seen[1][2], bytes) and HIDDEN in seen[1][2]
        }

    def _answer(self, question: wire.QuestionView) -> Allow | str:
        moods: list[Allow | str] = [Allow(), Allow(Scope.FOLDER), Allow(Scope.ONCE), DECLINE]
        return moods[(self.mood + len(question.paths[0].raw)) % len(moods)]

    def _shown(self, path: tuple[str, str]) -> Path:
        return self.here.view / self.names[path[0]] / path[1]

    # --- what happens

    @rule(mood=st.integers(0, 3), new_turn=st.booleans())
    def the_person_changes_its_mind(self, mood: int, new_turn: bool) -> None:
        self.mood = mood
        if new_turn:
            self.here.person.new_turn()
            self.ledger.new_turn()
            self.handles = [(fd, ino, False) for fd, ino, _ in self.handles]

    @rule(calls=_several(_reads))
    def callers_read(self, calls: list[Call]) -> None:
        self._together(calls)

    @rule(calls=_several(_writes))
    def callers_write(self, calls: list[Call]) -> None:
        self._together(calls)

    @rule(calls=_several(_moves, _reads))
    def callers_move(self, calls: list[Call]) -> None:
        self._together(calls)

    @rule(calls=_several(_changes, _links))
    def callers_change(self, calls: list[Call]) -> None:
        self._together(calls)

    @rule(calls=_several(_reads, _writes, _changes, _moves, _links))
    def callers_do_anything(self, calls: list[Call]) -> None:
        self._together(calls)

    def _together(self, calls: list[Call]) -> None:
        done = list(self.pool.map(self._call, calls))
        Callers.calls += len(calls)
        self._account(set())
        for call, succeeded in zip(calls, done, strict=True):
            is_no_change = len(set(call.paths)) < len(call.paths)  # onto itself
            if succeeded and call.act not in _READS and not is_no_change:
                assert all(place == "open" for place, _ in call.paths), call
                assert not any(name in _HIDDEN_NAMES for _, name in call.paths), call

    @rule(path=_paths, flags=st.sampled_from([os.O_WRONLY, os.O_RDWR, os.O_RDWR | os.O_CREAT]))
    def somebody_opens_for_writing(self, path: tuple[str, str], flags: int) -> None:
        with _may_fail():
            fd = os.open(self._shown(path), flags | os.O_NONBLOCK, 0o644)
            if stat.S_ISREG(os.fstat(fd).st_mode):
                self.handles.append((fd, os.fstat(fd).st_ino, True))
            else:
                os.close(fd)
        self._account(set())

    @rule(which=st.integers(0, 5), content=st.binary(min_size=1, max_size=30))
    def somebody_writes_through_a_handle(self, which: int, content: bytes) -> None:
        if not self.handles:
            return
        which %= len(self.handles)
        fd, ino, is_current = self.handles[which]
        with _may_fail(frozenset({errno.EACCES})):
            os.pwrite(fd, content, 0)
            # Decided anew, and with an intent of its own, it may be used as before.
            self.handles[which] = (fd, ino, True)
        self._account({ino} if is_current else set())

    @rule(which=st.integers(0, 5))
    def somebody_closes(self, which: int) -> None:
        if self.handles:
            os.close(self.handles.pop(which % len(self.handles))[0])

    def _call(self, call: Call) -> bool:
        succeeded = False
        with _may_fail():
            got = call.act(*(self._shown(path) for path in call.paths), *call.arguments)
            succeeded = True
            if isinstance(got, bytes):
                assert HIDDEN not in got, call
                if call.act is _list:
                    names = set(got.decode().split("\n"))
                    assert not names & {Path(name).name for name in _HIDDEN_NAMES}, call
        return succeeded

    # --- what must hold

    def _account(self, held: set[int]) -> None:
        """See that the journal accounts for every change; *held* are inodes written by a handle."""
        after = self._look()
        intents = self.ledger.allowed()
        paths = {path for intent in intents for path in intent["paths"]}
        inodes = held | {
            side[path][0] for side in (self.before, after) for path in paths if path in side
        }
        moved = [
            path for intent in intents if intent["operation"] in _MOVES for path in intent["paths"]
        ]
        for path, there in changed(self.before, after).items():
            below_moved = any(path.startswith(f"{root}/") for root in moved)
            assert path in paths or there & inodes or below_moved, (path, intents)
        closed = os.fspath(self.here.home / self.names["closed"])
        assert {p: s for p, s in after.items() if p.startswith(closed)} == {
            p: s for p, s in self.before.items() if p.startswith(closed)
        }
        gone = {
            seen[0]
            for path, seen in self.before.items()
            if any(path == root or path.startswith(f"{root}/") for root in moved)
        }
        self.handles = [(fd, ino, ok and ino not in gone) for fd, ino, ok in self.handles]
        self.before = after

    @invariant()
    def what_is_hidden_stays_as_it_is(self) -> None:
        if hasattr(self, "hidden"):
            now = sorted(self._hidden().values())
            assert now == sorted(self.hidden.values())

    @invariant()
    def the_daemon_lives(self) -> None:
        assert self.here.daemon.process.poll() is None

    def teardown(self) -> None:
        for fd, _, _ in self.handles:
            os.close(fd)
        if hasattr(self, "names"):
            self.here.person.wait_no_questions()
            for name in self.names.values():
                shutil.rmtree(self.here.home / name)


_MOVES = {"rename", "replace", "exchange"}


@pytest.fixture(scope="module")
def crowd() -> Iterator[Mounted]:
    with place() as base, mounted(make_home(base), kept=_KEPT) as here:
        yield here


@pytest.mark.timeout(300)
def test_no_hidden_byte_is_read_and_no_byte_changes_without_an_allowed_intent(
    crowd: Mounted,
) -> None:
    Callers.here = crowd
    Callers.calls = 0
    chosen = settings(
        max_examples=_EXAMPLES,
        stateful_step_count=_STEPS,
        suppress_health_check=list(HealthCheck),
        deadline=None,
        database=None,
        derandomize=False,
        # What several callers do at once does not happen again in the same way.
        phases=[Phase.generate],
    )
    with ThreadPoolExecutor(_CALLERS) as Callers.pool:
        while Callers.calls < OPERATIONS:
            run_state_machine_as_test(Callers, settings=chosen)
    kinds = Counter(line["kind"] for line in entries(crowd.place.journal))
    assert kinds["intent"] > Callers.calls // 20, (Callers.calls, kinds)
    assert crowd.place.lamfuse("log", "--verify").returncode == 0
