"""A backend that answers from memory and records what it was asked."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

import msgspec
import trio

from lamfuse.control import wire
from lamfuse.core.approval import Scope, State
from lamfuse.core.operations import Operation

__all__ = ["FakeBackend", "make_question", "make_status", "view"]


def view(path: bytes) -> wire.PathView:
    return wire.PathView(raw=path, text=path.decode("ascii", "backslashreplace"))


def make_question(
    question_id: str,
    *,
    path: bytes = b"/home/lam/Downloads/report.md",
    state: State = State.SHOWN,
    age_s: float = 5.0,
    shown_s: float | None = 4.0,
) -> wire.QuestionView:
    return wire.QuestionView(
        id=question_id,
        operation=Operation.WRITE,
        paths=(view(path),),
        title=f"Overwrite report.md? [{question_id}]",
        body=("~/Downloads/report.md", "Replaces 1,240 bytes, 40 lines, last changed 3 days ago."),
        destructive=False,
        state=state,
        scopes=(
            wire.ScopeView(scope=Scope.ONCE, label="Allow once"),
            wire.ScopeView(scope=Scope.FILE, label="Allow"),
            wire.ScopeView(
                scope=Scope.FOLDER,
                label="Allow folder this turn (3 files in it)",
                path=view(b"/home/lam/Downloads"),
                existing=3,
            ),
        ),
        default=Scope.FILE,
        deadline_s=41.5,
        age_s=age_s,
        caller=wire.CallerView(pid=4411, exe=view(b"/usr/bin/python3.12")),
        session="claude-1",
        waiting=2,
        shown_s=shown_s,
    )


def make_status() -> wire.Status:
    return wire.Status(
        version="0.1.0",
        pid=4000,
        home=view(b"/home/lam"),
        mountpoint=view(b"/run/user/1000/lamfuse/home"),
        config=view(b"/home/lam/.config/lamfuse/config.toml"),
        uptime_s=3661.0,
        file_access=False,
        read_roots=(),
        write_roots=(view(b"/home/lam/Downloads"),),
        channels=(wire.ChannelView(name="terminal", ready=True),),
        watchers=0,
        sessions=(
            wire.SessionView(
                name="other", turn=2, grants=1, open=1, refusals=0, breaker_open=False
            ),
        ),
        open_questions=1,
        journal=wire.JournalView(
            path=view(b"/home/lam/.local/state/lamfuse/journal.jsonl"),
            count=12,
            head="ab" * 32,
            writable=True,
        ),
    )


@dataclass
class FakeBackend:
    """Questions by id; ``asked`` lists the calls, ``unmounted`` is set by unmount."""

    questions: dict[str, wire.QuestionView] = field(default_factory=dict)
    asked: list[object] = field(default_factory=list)
    unmounted: trio.Event = field(default_factory=trio.Event)
    watchers: list[trio.MemorySendChannel[wire.Event]] = field(default_factory=list)
    reload_reply: wire.ReloadReply = field(default_factory=lambda: wire.ReloadReply(done=True))
    fault: Exception | None = None

    async def status(self) -> wire.Status:
        await trio.lowlevel.checkpoint()
        if self.fault is not None:
            raise self.fault
        return msgspec.structs.replace(make_status(), watchers=len(self.watchers))

    async def pending(self) -> tuple[wire.QuestionView, ...]:
        await trio.lowlevel.checkpoint()
        return tuple(self.questions.values())

    async def show(self, question_id: str) -> wire.QuestionView | None:
        await trio.lowlevel.checkpoint()
        self.asked.append(("show", question_id))
        return self.questions.get(question_id)

    async def answer(
        self, question_id: str, *, allow: bool, scope: Scope | None, channel: str
    ) -> wire.AnswerReply:
        await trio.lowlevel.checkpoint()
        self.asked.append(("answer", question_id, allow, scope, channel))
        question = self.questions.get(question_id)
        if question is None:
            return wire.AnswerReply(outcome=wire.AnswerOutcome.UNKNOWN)
        if question.state is State.QUEUED:
            return wire.AnswerReply(outcome=wire.AnswerOutcome.NOT_SHOWN, state=State.QUEUED)
        if question.state is not State.SHOWN:
            return wire.AnswerReply(
                outcome=wire.AnswerOutcome.DECIDED, state=question.state, channel="terminal"
            )
        offered = tuple(offer.scope for offer in question.scopes)
        if allow and scope is not None and scope not in offered:
            return wire.AnswerReply(outcome=wire.AnswerOutcome.NOT_OFFERED, offered=offered)
        state = State.ALLOWED if allow else State.DECLINED
        self.questions[question_id] = msgspec.structs.replace(question, state=state)
        granted = (scope or question.default) if allow else None
        self.tell(wire.ChangedEvent(id=question_id, state=state, channel=channel, scope=granted))
        return wire.AnswerReply(
            outcome=wire.AnswerOutcome.ACCEPTED, state=state, channel=channel, scope=granted
        )

    async def resume(self, session: str | None) -> wire.SessionReply:
        return await self._session("resume", session)

    async def turn(self, session: str | None) -> wire.SessionReply:
        return await self._session("turn", session)

    async def _session(self, verb: str, session: str | None) -> wire.SessionReply:
        await trio.lowlevel.checkpoint()
        self.asked.append((verb, session))
        if session not in {None, "other", "claude-1"}:
            return wire.SessionReply(sessions=("claude-1", "other"), known=False)
        return wire.SessionReply(sessions=("claude-1", "other") if session is None else (session,))

    async def reload(self) -> wire.ReloadReply:
        await trio.lowlevel.checkpoint()
        return self.reload_reply

    def stopping(self) -> wire.UnmountReply:
        return wire.UnmountReply(refused_questions=len(self.questions))

    async def unmount(self) -> None:
        await trio.lowlevel.checkpoint()
        self.unmounted.set()

    @contextlib.asynccontextmanager
    async def watch(self) -> AsyncGenerator[trio.MemoryReceiveChannel[wire.Event], None]:
        send, receive = trio.open_memory_channel[wire.Event](16)
        self.watchers.append(send)
        for question in self.questions.values():
            if question.state is State.SHOWN:
                send.send_nowait(wire.AskedEvent(question=question))
        try:
            async with receive:
                yield receive
        finally:
            if send in self.watchers:
                self.watchers.remove(send)
            send.close()

    def tell(self, event: wire.Event) -> None:
        for watcher in list(self.watchers):
            try:
                watcher.send_nowait(event)
            except trio.WouldBlock:
                self.watchers.remove(watcher)
                watcher.close()
