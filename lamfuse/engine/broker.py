"""The broker: keeps the open questions and gives each exactly one end.

Everything that can end a question (an answer, a deadline, lost channels, callers that left, the end
of the daemon) goes through :meth:`Broker._decide`, and every answer through :meth:`Broker._accept`.
Only an answer that is offered, in time and given while the question is shown allows. It must not
know what is asked about: grants and declines belong to the gate.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

import trio

from lamfuse.core.approval import Answer, Offer, Question, Scope, State, Text
from lamfuse.core.errors import InternalError, JournalError
from lamfuse.core.refusals import Reason
from lamfuse.core.target import Request
from lamfuse.engine.display import Desk, Display, Signal
from lamfuse.engine.events import Event, EventKind, Feed
from lamfuse.engine.limits import Limits
from lamfuse.engine.open_questions import Entry, OpenQuestions, Standing, Waiter
from lamfuse.engine.outcomes import Outcome, Reply, ReplyKind
from lamfuse.engine.ports import CallerWatch, Journal, Notifier
from lamfuse.engine.recording import question_record, record_end
from lamfuse.engine.turns import OTHER

__all__ = ["Broker", "Describe", "Limits", "Outcome", "Reply", "ReplyKind", "Standing"]

_log = logging.getLogger(__name__)


class Describe(Protocol):
    """Puts a request into words, for the question with *question_id*."""

    def __call__(
        self,
        request: Request,
        question_id: str,
        offers: tuple[Offer, ...],
        runs_later: tuple[bytes, ...],
        /,
    ) -> Text:
        """Return the text of the question."""


class Broker:
    """Asks a person through *notifiers*, and lets each call wait for its outcome.

    ``notifiers`` and ``limits`` may be replaced at any time: a new channel gets the current
    question, new limits hold for new questions. :meth:`run` must be running to ask anything.
    """

    def __init__(
        self,
        notifiers: Sequence[Notifier],
        journal: Journal,
        callers: CallerWatch,
        limits: Limits,
        describe: Describe,
    ) -> None:
        self.notifiers: Sequence[Notifier] = tuple(notifiers)
        self.limits = limits
        self._open = OpenQuestions()
        self._changed = Signal()
        self._journal = journal
        self._callers = callers
        self._describe = describe
        self._feed = Feed()
        self._watchers = 0
        self._display = Display(
            Desk(
                notifiers=lambda: self.notifiers,
                watchers=lambda: self._watchers,
                open=self._open,
                changed=self._changed,
                asked=lambda entry: self._feed.tell(EventKind.ASKED, entry.question),
                shown=self._show,
                accept=self._accept,
                lose=self._lose,
            )
        )
        self._running = False
        self._closed = False

    # --- its life ---

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Show the questions, keep the time and watch the callers; refuses all when it ends."""
        self._running = True
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._display.run)
                nursery.start_soon(self._keep_time)
                nursery.start_soon(self._watch_callers)
                task_status.started()
        finally:
            self.close()
            self._running = False

    def close(self) -> None:
        """Refuse every open question, and every later one at once. It may be called again."""
        self._closed = True
        self.refuse_all("lamfuse stops", Reason.STOPPING)

    def refuse_all(self, detail: str, reason: Reason | None = None) -> None:
        """Refuse every open question for *detail*; what is asked later is asked as ever."""
        for entry in self._open:
            self._decide(entry, State.LOST, reason=reason, detail=detail)

    # --- those who ask ---

    async def ask(
        self,
        request: Request,
        offers: tuple[Offer, ...],
        default: Scope,
        key: Hashable,
        *,
        runs_later: tuple[bytes, ...] = (),
        turn: int = 0,
    ) -> Outcome:
        """Wait for a person's answer to *request* and return how it ended.

        An identical question of the same session (same *key*, and what is shown of the rest) is
        joined. *default*, what a plain yes means, must be among the *offers*. Cancellation takes
        the question back when nobody else waits for it. Raises InternalError for a default that is
        not offered; what the description raises passes through. In both cases nothing is asked.
        """
        await trio.lowlevel.checkpoint()
        if not any(offer.scope is default for offer in offers):
            raise InternalError(f"the default scope {default} is not offered")
        if self._closed or not self._running:
            return Outcome(State.LOST, reason=Reason.STOPPING, detail="nobody is asked any more")
        if self._is_full(request.session):
            return Outcome(State.LOST, reason=Reason.QUEUE_FULL, detail="too many calls wait")
        whole_key = (request.session, key, default, offers, runs_later)
        entry = self._open.joined(whole_key)
        if entry is None:
            if self._is_full_of_questions(request.session):
                return Outcome(State.LOST, reason=Reason.QUEUE_FULL, detail="too many questions")
            question = self._new_question(request, offers, default, runs_later)
            try:
                self._journal.append(question_record(question, turn))
            except JournalError as error:
                return Outcome(State.LOST, reason=Reason.JOURNAL, detail=str(error))
            entry = self._enter(question, whole_key)
        return await self._wait(entry, Waiter(request.caller))

    async def _wait(self, entry: Entry, waiter: Waiter) -> Outcome:
        entry.waiters.append(waiter)
        entry.question.waiters = len(entry.waiters)
        try:
            await waiter.done.wait()
        finally:
            self._leave(entry, waiter)
        if waiter.outcome is None:
            raise InternalError(f"question {entry.question.id} ended without an outcome")
        return waiter.outcome

    def reconsider(self, which: Callable[[Question], bool]) -> int:
        """Take back the open questions that *which* picks, to be decided anew; returns how many.

        Their calls get an outcome with ``again``: for questions that a grant or new rules overtook.
        """
        picked = [entry for entry in self._open if which(entry.question)]
        for entry in picked:
            self._decide(entry, State.GONE, detail="decided anew", again=True)
        return len(picked)

    # --- those who answer ---

    def answer(self, question_id: str, answer: Answer) -> Reply:
        """Answer a question by its id; the reply says what became of the answer."""
        entry = self._open.get(question_id)
        if entry is not None:
            return self._accept(entry, answer)
        decided = self._open.decided(question_id)
        if decided is None:
            return Reply(ReplyKind.UNKNOWN)
        return Reply(ReplyKind.DECIDED, decided.state, decided.channel, decided.scope)

    def mark_shown(self, question_id: str) -> bool:
        """Note that somebody has an open question on screen outside the channels.

        It can be answered from now on, and its clock starts. It then also outlives the loss of
        every channel, since a person has it in view. Returns False when no such question is open.
        """
        entry = self._open.get(question_id)
        if entry is None:
            return False
        entry.looked_at = True
        self._show(entry)
        return not entry.question.is_final

    def questions(self) -> tuple[Question, ...]:
        """Return the open questions, oldest first."""
        return tuple(entry.question for entry in self._open)

    def question(self, question_id: str) -> Question | None:
        """Return an open question, or None."""
        entry = self._open.get(question_id)
        return entry.question if entry is not None else None

    def standing(self, question: Question) -> Standing:
        """Tell how much time a question has left (0: it is decided), and how many others stand."""
        entry = self._open.get(question.id)
        if entry is None:
            return Standing(0.0, len(self._open))
        left = max(0.0, entry.deadline - trio.current_time())
        if question.shown is None:
            left = min(left, self.limits.shown_timeout_s)
        return Standing(left, len(self._open) - 1)

    @property
    def current(self) -> Question | None:
        """The question that is being put to the person now."""
        return self._display.current.question if self._display.current is not None else None

    # --- those who watch ---

    @property
    def watchers(self) -> int:
        """How many watchers are attached."""
        return self._watchers

    @contextlib.contextmanager
    def attach_watch(self) -> Iterator[None]:
        """Count as a channel that can show every question, for as long as the context lasts.

        No question is lost meanwhile for want of a channel. The watcher hears by an ASKED event
        whose turn it is, puts that question on screen and calls :meth:`mark_shown`; until then
        nobody has seen it and it cannot be answered.
        """
        self._watchers += 1
        self._changed.fire()
        try:
            yield
        finally:
            self._watchers -= 1
            self._changed.fire()

    @contextlib.contextmanager
    def events(self) -> Iterator[trio.MemoryReceiveChannel[Event]]:
        """Give a channel of what happens to the questions, beginning with the current one.

        The broker never waits for it: the channel ends when its reader does not keep up.
        """
        current = self.current
        standing = (Event(EventKind.ASKED, current, current.state),) if current is not None else ()
        with self._feed.subscribe(standing) as channel:
            yield channel

    # --- the one way to an end ---

    def _decide(
        self,
        entry: Entry,
        state: State,
        *,
        answer: Answer | None = None,
        reason: Reason | None = None,
        detail: str = "",
        again: bool = False,
    ) -> None:
        """End a question. What the journal does not hold is never allowed."""
        question = entry.question
        problem = record_end(self._journal, question, state, answer)
        if problem is not None and state is State.ALLOWED:
            state, answer, reason, detail = State.LOST, None, Reason.JOURNAL, problem
        question.move(state)
        question.answer = answer
        question.channel = answer.channel if answer is not None else ""
        self._open.remove(entry)
        outcome = Outcome(state, answer, question, reason, detail, again)
        for waiter in tuple(entry.waiters):
            waiter.settle(outcome)
        self._feed.tell(EventKind.CLOSED, question)
        self._changed.fire()

    def _accept(self, entry: Entry, answer: Answer) -> Reply:
        """Judge an answer to an open question."""
        question = entry.question
        if trio.current_time() >= entry.deadline:
            self._decide(entry, State.TIMED_OUT)
        else:
            self._release_gone(entry)
        if question.is_final:
            return Reply(ReplyKind.DECIDED, question.state)
        offered = tuple(offer.scope for offer in question.offers)
        if question.state is not State.SHOWN:
            return Reply(ReplyKind.NOT_SHOWN, question.state, offered=offered)
        scope = (answer.scope or question.default) if answer.allow else None
        if scope is not None and question.offer(scope) is None:
            return Reply(ReplyKind.NOT_OFFERED, question.state, offered=offered)
        wanted = State.ALLOWED if answer.allow else State.DECLINED
        self._decide(entry, wanted, answer=replace(answer, scope=scope))
        kind = ReplyKind.ACCEPTED if question.state is wanted else ReplyKind.DECIDED
        return Reply(kind, question.state, question.channel, scope, offered)

    # --- parts ---

    def _is_full(self, session: str) -> bool:
        if self._open.waiting() >= self.limits.waiting_in_all:
            return True
        return session != OTHER and self._open.waiting(session) >= self.limits.waiting_in_session

    def _is_full_of_questions(self, session: str) -> bool:
        if len(self._open) >= self.limits.open_in_all:
            return True
        # "Other" is everybody who was not started by lamfuse: no one agent that could crowd others.
        return session != OTHER and self._open.of_session(session) >= self.limits.open_in_session

    def _new_question(
        self, request: Request, offers: tuple[Offer, ...], default: Scope, later: tuple[bytes, ...]
    ) -> Question:
        question_id = self._open.new_id()
        text = self._describe(request, question_id, offers, later)
        now = trio.current_time()
        return Question(question_id, request, text, offers, default, now, runs_later=later)

    def _enter(self, question: Question, key: Hashable) -> Entry:
        question.move(State.QUEUED)
        entry = self._open.add(question, key, question.created + self.limits.total_timeout_s)
        self._feed.tell(EventKind.OPENED, question)
        self._changed.fire()
        return entry

    def _show(self, entry: Entry) -> None:
        now = trio.current_time()
        question = entry.question
        if question.is_final or question.state is State.SHOWN:
            return
        if now >= entry.deadline:
            self._decide(entry, State.TIMED_OUT)
            return
        question.move(State.SHOWN)
        question.shown = now
        entry.deadline = min(entry.deadline, now + self.limits.shown_timeout_s)
        self._feed.tell(EventKind.SHOWN, question)
        self._changed.fire()

    def _lose(self, entry: Entry) -> None:
        if not self.limits.wait_for_cli and not entry.looked_at:
            self._decide(entry, State.LOST, detail="no channel could show the question")

    def _leave(self, entry: Entry, waiter: Waiter) -> None:
        """Take a call that no longer waits off a question; the last one ends it."""
        if waiter in entry.waiters:
            entry.waiters.remove(waiter)
        entry.question.waiters = len(entry.waiters)
        if not entry.waiters and not entry.question.is_final:
            self._decide(entry, State.GONE, detail="the caller left")

    def _release_gone(self, entry: Entry) -> None:
        for waiter in tuple(entry.waiters):
            if not waiter.unwatched and not self._is_waiting(waiter):
                waiter.settle(
                    Outcome(State.GONE, question=entry.question, detail="the caller left")
                )
                self._leave(entry, waiter)

    def _is_waiting(self, waiter: Waiter) -> bool:
        try:
            return self._callers.is_waiting(waiter.caller)
        except Exception:  # noqa: BLE001 - logged once: not twenty times a second
            # The deadline still ends the waiting.
            waiter.unwatched = True
            _log.exception("cannot tell whether the caller %s still waits", waiter.caller)
            return True

    async def _keep_time(self) -> None:
        while True:
            changed = self._changed.event
            now = trio.current_time()
            for entry in self._open:
                if now >= entry.deadline:
                    self._decide(entry, State.TIMED_OUT)
            soonest = min((entry.deadline for entry in self._open), default=float("inf"))
            with trio.move_on_at(soonest):
                await changed.wait()

    async def _watch_callers(self) -> None:
        while True:
            changed = self._changed.event
            if not len(self._open):
                await changed.wait()
                continue
            await trio.sleep(self.limits.poll_s)
            for entry in self._open:
                self._release_gone(entry)
            # The channels are asked again whether they are ready.
            self._changed.fire()
