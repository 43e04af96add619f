"""What the daemon does for a person at the control socket.

Every method is short and waits for nobody. Nothing here gives a permission: an answer goes to the
broker, a turn to the ledgers, new rules to the policy.
"""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field

import trio

from lamfuse.control import wire
from lamfuse.core import names, wording
from lamfuse.core.approval import Answer, Offer, Question, Scope
from lamfuse.core.errors import JournalError, LamfuseError
from lamfuse.core.policy import Policy
from lamfuse.core.records import ReloadRecord, TurnRecord
from lamfuse.engine.broker import Broker
from lamfuse.engine.events import Event, EventKind
from lamfuse.engine.turns import Session, Sessions
from lamfuse.fuse import mount
from lamfuse.fuse.context import Mounted
from lamfuse.store.journal import FileJournal

__all__ = ["DaemonBackend", "Facts"]

log = logging.getLogger(__name__)

_WATCH_BUFFER = 512
#: A page that somebody waits for cannot be dropped; the others must not wait for it (seconds).
_FORGET_S = 5.0


@dataclass(slots=True)
class Facts:
    """What a status tells that no part of the daemon knows by itself; *problems* in words."""

    version: str
    home: bytes
    mountpoint: bytes
    config: bytes
    file_access: bool
    started: float
    problems: list[str] = field(default_factory=list)


class DaemonBackend:
    """Implements :class:`lamfuse.control.server.Backend`.

    *reread* reads the configuration again and puts it into force; it raises ConfigError and then
    leaves everything as it was; it returns what is to be reported.
    """

    def __init__(
        self,
        facts: Facts,
        mounted: Mounted,
        broker: Broker,
        journal: FileJournal,
        reread: Callable[[], Awaitable[list[str]]],
    ) -> None:
        self._facts = facts
        self._mounted = mounted
        self._broker = broker
        self._journal = journal
        self._reread = reread

    async def status(self) -> wire.Status:
        """Say how the daemon is."""
        facts, roots = self._facts, self._policy.roots
        journal = wire.JournalView(
            path=self._path(self._journal.path),
            count=self._journal.count,
            head=self._journal.head,
            writable=not self._journal.is_broken,
        )
        return wire.Status(
            version=facts.version,
            pid=os.getpid(),
            home=self._path(facts.home),
            mountpoint=self._path(facts.mountpoint),
            config=self._path(facts.config),
            uptime_s=trio.current_time() - facts.started,
            file_access=facts.file_access,
            read_roots=tuple(self._path(root) for root in roots.read),
            write_roots=tuple(self._path(root) for root in roots.write),
            channels=tuple(
                wire.ChannelView(name=notifier.name, ready=notifier.is_ready())
                for notifier in self._broker.notifiers
            ),
            watchers=self._broker.watchers,
            sessions=tuple(self._session(session) for session in self._sessions.all()),
            open_questions=len(self._broker.questions()),
            journal=journal,
            problems=tuple(facts.problems),
            descriptors=len(os.listdir("/proc/self/fd")) - 1,
        )

    async def pending(self) -> tuple[wire.QuestionView, ...]:
        """Return the open questions, oldest first; looking at the list shows none of them."""
        return tuple(self._question(question) for question in self._broker.questions())

    async def show(self, question_id: str) -> wire.QuestionView | None:
        """Return an open question and mark it as shown to a person."""
        question = self._broker.question(question_id)
        if question is None or not self._broker.mark_shown(question_id):
            return None
        return self._question(question)

    async def answer(
        self, question_id: str, *, allow: bool, scope: Scope | None, channel: str
    ) -> wire.AnswerReply:
        """Hand an answer to the broker."""
        reply = self._broker.answer(question_id, Answer(allow, scope, channel))
        return wire.AnswerReply(
            outcome=wire.AnswerOutcome(reply.kind.value),
            state=reply.state,
            channel=reply.channel,
            scope=reply.scope,
            offered=reply.offered,
        )

    async def resume(self, session: str | None) -> wire.SessionReply:
        """Close the breaker of *session* (None: of all)."""
        chosen = self._choose(session)
        if chosen is None:
            return wire.SessionReply(sessions=(), known=False)
        for one in chosen:
            one.ledger.resume()
        return wire.SessionReply(sessions=tuple(one.name for one in chosen))

    async def turn(self, session: str | None) -> wire.SessionReply:
        """Begin a new turn of *session* (None: of all)."""
        if self._choose(session) is None:
            return wire.SessionReply(sessions=(), known=False)
        begun = self._sessions.new_turn(session)
        for one in begun:
            record = TurnRecord(session=one.name, turn=one.ledger.turn, cause="a person")
            try:
                self._journal.append(record)
            except JournalError as error:
                self._facts.problems.append(f"a turn is not in the journal: {error}")
        return wire.SessionReply(sessions=tuple(one.name for one in begun))

    async def reload(self) -> wire.ReloadReply:
        """Read the configuration again; a bad one leaves the old in force."""
        try:
            problems = await self._reread()
        except LamfuseError as error:
            self._note_reload(str(error))
            return wire.ReloadReply(done=False, message=str(error))
        self._note_reload("")
        self._broker.reconsider(lambda _: True)
        await self._forget_everything()
        return wire.ReloadReply(done=True, problems=tuple(problems))

    def stopping(self) -> wire.UnmountReply:
        """Describe what an unmount would end."""
        return wire.UnmountReply(refused_questions=len(self._broker.questions()))

    async def unmount(self) -> None:
        """Begin the orderly end."""
        self._broker.close()
        mount.end()

    def watch(self) -> AbstractAsyncContextManager[trio.MemoryReceiveChannel[wire.Event]]:
        """Attach a watcher for as long as the context lasts."""
        return self._watch()

    @asynccontextmanager
    async def _watch(self) -> AsyncIterator[trio.MemoryReceiveChannel[wire.Event]]:
        send, receive = trio.open_memory_channel[wire.Event](_WATCH_BUFFER)
        with self._broker.attach_watch(), self._broker.events() as events:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._pass_on, events, send)
                with receive:
                    yield receive
                nursery.cancel_scope.cancel()

    async def _pass_on(
        self,
        events: trio.MemoryReceiveChannel[Event],
        send: trio.MemorySendChannel[wire.Event],
    ) -> None:
        with send:
            async for event in events:
                told = self._told(event)
                if told is None:
                    continue
                try:
                    send.send_nowait(told)
                except (trio.WouldBlock, trio.BrokenResourceError):
                    return  # it does not keep up, or has left: the closed channel drops it

    def _told(self, event: Event) -> wire.Event | None:
        if event.kind is EventKind.ASKED:
            return wire.AskedEvent(question=self._question(event.question))
        if event.kind is EventKind.OPENED:
            return None
        return wire.ChangedEvent(
            id=event.question.id, state=event.state, channel=event.channel, scope=event.scope
        )

    async def _forget_everything(self) -> None:
        """Let the kernel forget what it was told under the old rules: hidden names, contents."""
        mounted = self._mounted
        hidden = mounted.view.hidden_names()
        nodeids = [inode.nodeid for inode in mounted.tree.inodes if inode not in mounted.virtual]
        with trio.move_on_after(_FORGET_S) as scope:
            await trio.to_thread.run_sync(
                mounted.cache.drop_all,
                hidden,
                nodeids,
                abandon_on_cancel=True,
                limiter=trio.CapacityLimiter(1),
            )
        if scope.cancelled_caught:
            log.warning("the kernel still forgets what it was told under the old rules")

    def _note_reload(self, problem: str) -> None:
        try:
            self._journal.append(ReloadRecord(file=self._facts.config, problem=problem))
        except JournalError as error:
            self._facts.problems.append(f"a reload is not in the journal: {error}")

    def _choose(self, session: str | None) -> list[Session] | None:
        known = self._sessions.all()
        if session is None:
            return known
        return [one for one in known if one.name == session] or None

    @property
    def _sessions(self) -> Sessions:
        return self._mounted.gate.sessions

    @property
    def _policy(self) -> Policy:
        return self._mounted.gate.policy

    def _path(self, path: bytes) -> wire.PathView:
        return wire.PathView(raw=path, text=names.show_path(path, self._policy.home))

    def _session(self, session: Session) -> wire.SessionView:
        ledger = session.ledger
        return wire.SessionView(
            name=session.name,
            turn=ledger.turn,
            grants=len(ledger.files) + len(ledger.folders),
            open=sum(
                question.request.session == session.name for question in self._broker.questions()
            ),
            refusals=ledger.refusals,
            breaker_open=ledger.breaker_is_open,
        )

    def _question(self, question: Question) -> wire.QuestionView:
        request, standing, now = (
            question.request,
            self._broker.standing(question),
            trio.current_time(),
        )
        return wire.QuestionView(
            id=question.id,
            operation=request.operation,
            paths=tuple(self._path(path) for path in request.paths),
            title=question.text.title,
            body=question.text.body,
            destructive=question.text.destructive,
            state=question.state,
            scopes=tuple(self._scope(offer) for offer in question.offers),
            default=question.default,
            deadline_s=standing.seconds_left,
            age_s=now - question.created,
            shown_s=None if question.shown is None else now - question.shown,
            caller=wire.CallerView(pid=request.caller.pid, exe=self._path(request.caller.exe)),
            session=request.session,
            waiting=standing.waiting,
        )

    def _scope(self, offer: Offer) -> wire.ScopeView:
        return wire.ScopeView(
            scope=offer.scope,
            label=wording.label(offer, self._policy.home),
            path=self._path(offer.path) if offer.path else None,
            existing=offer.existing,
        )
