"""A gate with the real broker in it, an examination that changes at will, and calls that wait."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import trio
import trio.testing

from lamfuse.core.approval import Answer, Scope
from lamfuse.core.errors import InternalError
from lamfuse.core.ledger import Limits as LedgerLimits
from lamfuse.core.operations import Operation
from lamfuse.core.records import EffectRecord, IntentRecord
from lamfuse.core.refusals import Refusal
from lamfuse.core.target import FileId, Request
from lamfuse.engine.broker import Broker, Limits
from lamfuse.engine.gate import Gate, Permit
from lamfuse.engine.turns import Sessions
from tests.core.acts import DOWNLOADS, SESSION, act, file, free, identity, make_policy
from tests.engine.fakes import FakeCallers, FakeJournal, FakeNotifier, describe

__all__ = [
    "CREATE",
    "FOLDER",
    "UNLINK",
    "WRITE",
    "A",
    "B",
    "Bench",
    "Call",
    "Looked",
    "O",
    "SyncedJournal",
    "at_once",
    "settled",
]

O = Operation  # noqa: E741 - requests are read by it
A, B = DOWNLOADS + b"/a", DOWNLOADS + b"/b"
FOLDER = DOWNLOADS + b"/w"

WRITE = act(O.WRITE, file(A))
CREATE = act(O.CREATE, free(A))
UNLINK = act(O.UNLINK, file(A))


class SyncedJournal(FakeJournal):
    """Tells in which order things came, and can be made to fail or to wait at the sync."""

    def __init__(self) -> None:
        super().__init__()
        self.synced: list[int] = []
        self.sync_fault: BaseException | None = None
        self.while_syncing: Callable[[], None] = lambda: None
        self.gate: trio.Event | None = None

    async def sync(self) -> None:
        await super().sync()
        if self.gate is not None:
            await self.gate.wait()
        self.while_syncing()
        if self.sync_fault is not None:
            raise self.sync_fault
        self.synced.append(len(self.records))

    def intents(self) -> list[IntentRecord]:
        return [record for record in self.records if isinstance(record, IntentRecord)]

    def effects(self) -> list[EffectRecord]:
        return [record for record in self.records if isinstance(record, EffectRecord)]


@dataclass
class Looked:
    """An examination whose object the test changes at will."""

    request: Request
    gone: bool = False
    looks: int = 0
    counted: list[bytes] = field(default_factory=list)
    files: frozenset[FileId] | None = frozenset({identity(10).file_id})

    def look(self) -> Request:
        self.looks += 1
        if self.gone:
            raise OSError(errno.ESTALE, "gone")
        return self.request

    def measure(self, request: Request) -> Request:
        subjects = tuple(replace(subject, lines=40) for subject in request.subjects)
        return replace(request, subjects=subjects)

    def list_files(self, folder: bytes) -> frozenset[FileId] | None:
        self.counted.append(folder)
        return self.files

    def change(self, **changes: object) -> None:
        """Let the (last) object be another, or changed."""
        *others, subject = self.request.subjects
        changed = replace(subject, **changes)  # type: ignore[arg-type]  # any field, by its name
        self.request = replace(self.request, subjects=(*others, changed))


@dataclass
class Call:
    """A call that waits at the gate."""

    result: Permit | Refusal | BaseException | None = None
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)

    @property
    def permit(self) -> Permit:
        assert isinstance(self.result, Permit), self.result
        return self.result

    @property
    def refusal(self) -> Refusal:
        assert isinstance(self.result, Refusal), self.result
        return self.result


class Bench:
    """A gate with the real broker, and fakes around both."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.nursery = nursery
        self.journal = SyncedJournal()
        self.callers = FakeCallers()
        self.person = FakeNotifier()
        self.broker = Broker([self.person], self.journal, self.callers, Limits(), describe)
        self.sessions = Sessions(LedgerLimits(), trio.current_time)
        self.gate = Gate(
            make_policy(),
            self.sessions,
            self.broker,
            self.journal,
            self.callers,
            now=trio.current_time,
        )

    async def run_broker(self, *, task_status: trio.TaskStatus[None]) -> None:
        await self.broker.run(task_status=task_status)

    @property
    def ledger_files(self) -> set[bytes]:
        return set(self.sessions.get(SESSION).ledger.files)

    def has_no_grant(self) -> bool:
        ledger = self.sessions.get(SESSION).ledger
        return not (ledger.files or ledger.folders or ledger.listed)

    async def call(self, examination: Looked, *, by_handle: bool = False) -> Call:
        """Start a call, and return when everything has settled."""
        call = self.start(examination, by_handle=by_handle)
        await settled()
        return call

    def start(self, examination: Looked, *, by_handle: bool = False) -> Call:
        call = Call()

        async def run() -> None:
            with call.scope:
                try:
                    call.result = await self.gate.authorize(examination, by_handle=by_handle)
                except (OSError, InternalError) as error:
                    call.result = error

        self.nursery.start_soon(run)
        return call

    async def asked(self, examination: Looked) -> Call:
        """Start a call that must ask."""
        call = await self.call(examination)
        assert call.result is None, call.result
        assert self.person.question is not None
        return call

    async def say(self, *, allow: bool, scope: Scope | None = None) -> None:
        self.person.say(Answer(allow, scope))
        await settled()

    async def allow(self, scope: Scope | None = None) -> None:
        await self.say(allow=True, scope=scope)

    async def decline(self) -> None:
        await self.say(allow=False)

    async def allowed(self, examination: Looked, scope: Scope | None = None) -> Permit:
        """Ask, answer yes, and return the permit."""
        call = await self.asked(examination)
        await self.allow(scope)
        return call.permit


settled = trio.testing.wait_all_tasks_blocked


async def at_once(function: Callable[..., object], *arguments: object) -> object:
    await trio.lowlevel.checkpoint()
    return function(*arguments)
