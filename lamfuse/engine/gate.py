"""The gate: the only way to a permission.

:meth:`Gate.authorize` is the one function that lets a change through: the policy decides, the
ledger covers, the broker asks, the object is looked at once more, and the journal has the intent
before the permit is handed out. It must not touch files; it sees them through an
:class:`Examination`.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import trio

from lamfuse.core import essence
from lamfuse.core import offers as core_offers
from lamfuse.core.approval import Offer, State
from lamfuse.core.errors import InternalError, JournalError
from lamfuse.core.operations import Operation
from lamfuse.core.policy import Decision, Policy, Verdict
from lamfuse.core.records import Basis, EffectRecord, IntentRecord
from lamfuse.core.refusals import Reason, Refusal
from lamfuse.core.target import FileId, Request, Subject
from lamfuse.engine.broker import Broker, Outcome
from lamfuse.engine.ports import CallerWatch, Journal
from lamfuse.engine.turns import Session, Sessions

__all__ = ["Examination", "Gate", "Permit"]

#: How often an object may change while its question stands before the call is given up.
_ATTEMPTS = 8
#: From this many entries below a moved directory on, the decision is made in a thread.
_MANY = 500
_REASONS = {
    State.DECLINED: Reason.DECLINED,
    State.TIMED_OUT: Reason.TIMED_OUT,
    State.LOST: Reason.LOST,
    State.GONE: Reason.GONE,
}


class Examination(Protocol):
    """Looks at the objects of a request, through descriptors that stay the same.

    ``look`` is cheap and describes them as they are now; it raises OSError when one is gone.
    ``measure`` counts lines for the text of a question and may take long (it is run in a thread).
    ``list_files`` returns which files a folder holds, None when too many to count (in a
    thread).
    """

    def look(self) -> Request:
        """Describe the request as it is now."""
        ...

    def measure(self, request: Request) -> Request:
        """Return *request* with line counts filled in."""
        ...

    def list_files(self, folder: bytes) -> frozenset[FileId] | None:
        """Return the files in *folder* and below."""
        ...


@dataclass(frozen=True, slots=True)
class Permit:
    """A permission for one act. Whoever gets one must call :meth:`Gate.finish`."""

    request: Request
    session: Session
    intent: int
    epoch: int


@dataclass(frozen=True, slots=True)
class _Grounds:
    """Why something may be done, for the journal, and the grant that it leaves once it is done.

    The grant is entered last, when the object was seen to be what the person saw.
    """

    basis: Basis
    rule: str
    question: str = ""
    channel: str = ""
    shown: Request | None = None
    offer: Offer | None = None
    classed: tuple[bytes, ...] = ()


class Gate:
    """Authorises every change of one view."""

    def __init__(
        self,
        policy: Policy,
        sessions: Sessions,
        broker: Broker,
        journal: Journal,
        callers: CallerWatch,
        *,
        now: Callable[[], float],
    ) -> None:
        self.policy = policy
        self.sessions = sessions
        self._broker = broker
        self._journal = journal
        self._callers = callers
        self._now = now

    async def authorize(
        self, examination: Examination, *, by_handle: bool = False
    ) -> Permit | Refusal:
        """Return a permit for what *examination* describes, or the refusal.

        *by_handle* says that the session holds an open write handle on the object, which covers its
        truncation and its attributes. OSError of ``look`` passes through. What changes meanwhile
        (the object, the rules, the turn) leads back to the beginning.
        """
        request = examination.look()
        epoch = self.sessions.get(request.session).ledger.epoch
        for _ in range(_ATTEMPTS):
            policy = self.policy
            by_handle = by_handle and epoch == self.sessions.get(request.session).ledger.epoch
            grounds = await self._grounds(request, examination, by_handle=by_handle)
            if grounds is None:
                request = examination.look()
                continue
            if isinstance(grounds, Refusal):
                return grounds
            if grounds.question:
                fresh = examination.look()
                if policy is not self.policy or not essence.is_same(request, fresh):
                    request = fresh
                    continue
            permit = await self._intend(request, grounds, examination, policy)
            if (
                isinstance(permit, Permit)
                and grounds.shown is not None
                and grounds.offer is not None
            ):
                self._grant(permit.session, grounds.shown, grounds.offer, grounds.classed)
            if permit is not None:
                return permit
            request = examination.look()
        return self.refuse(request, Reason.STALE, "it kept changing")

    def authorize_at_once(self, request: Request) -> Permit | Refusal:
        """Return a permit if *request* needs no question, else a refusal.

        For writes, which never wait.
        """
        session = self.sessions.get(request.session)
        decision = self.policy.decide(request)
        if decision.verdict is Verdict.REFUSE:
            reason = decision.reason or Reason.READ_ONLY
            return self._refuse_late(session, request, reason, decision.rule)
        grounds = _Grounds(Basis.RULE, decision.rule)
        if decision.verdict is not Verdict.ALLOW:
            covered = session.ledger.covers(request, decision.runs_later)
            if covered is None:
                return self._refuse_late(
                    session, request, Reason.REVOKED, "what allowed it is over"
                )
            grounds = _Grounds(Basis.GRANT, covered)
        try:
            return self._append_intent(session, request, grounds)
        except JournalError as error:
            return self.refuse(request, Reason.JOURNAL, str(error))

    def _refuse_late(
        self, session: Session, request: Request, reason: Reason, rule: str
    ) -> Refusal:
        """Refuse a write that comes too late, which is recorded: it had begun.

        Once for each file while the same grants hold: write-back comes page by page.
        """
        if not session.is_first_late(request.paths[0]):
            return Refusal(reason, request.operation, request.paths, rule or None)
        try:
            permit = self._append_intent(session, request, _Grounds(Basis.REFUSED, rule))
            self.finish(permit, errno.EACCES)
        except JournalError as error:
            return self.refuse(request, Reason.JOURNAL, str(error))
        return self.refuse(request, reason, rule)

    def refuse(self, request: Request, reason: Reason, rule: str = "") -> Refusal:
        """Make a refusal, and keep it where the agent can read it."""
        refusal = Refusal(reason, request.operation, request.paths, rule or None)
        self.sessions.get(request.session).refusals.append(refusal)
        return refusal

    def finish(self, permit: Permit, error: int = 0) -> None:
        """Write the effect of an act (*error*: errno, 0 when it was done) to the journal.

        Raises JournalError when that fails; the journal then refuses every further intent.
        """
        self._journal.append(EffectRecord(intent=permit.intent, errno=error))

    def note_birth(self, permit: Permit, created: Subject) -> None:
        """Enter an object that was created under *permit*."""
        permit.session.ledger.note_birth(created, self._now())

    async def _grounds(
        self, request: Request, examination: Examination, *, by_handle: bool
    ) -> _Grounds | Refusal | None:
        """Find out why *request* may be carried out, asking a person if need be.

        None: look again.
        """
        session = self.sessions.get(request.session)
        ledger = session.ledger
        saves = ledger.saves(request)
        decision = await self._decide(request, saves=saves)
        if decision.verdict is Verdict.REFUSE:
            return self.refuse(request, decision.reason or Reason.READ_ONLY, decision.rule)
        if decision.verdict is Verdict.ALLOW:
            return _Grounds(Basis.RULE, decision.rule)
        if by_handle and not request.alone:
            return _Grounds(Basis.HANDLE, "an open write handle")
        covered = ledger.covers(request, decision.runs_later)
        if covered is not None:
            return _Grounds(Basis.GRANT, covered)
        if ledger.was_declined(request):
            return self.refuse(request, Reason.DECLINED_BEFORE, "declined in this turn")
        if ledger.breaker_is_open:
            return self.refuse(request, Reason.BREAKER, "too many refusals in this turn")
        return await self._ask(session, request, decision, examination, saves=saves)

    async def _decide(self, request: Request, *, saves: bool) -> Decision:
        entries = sum(len(subject.below.relative) for subject in request.subjects if subject.below)
        if entries > _MANY:
            decision = await trio.to_thread.run_sync(self.policy.decide, request)
        else:
            decision = self.policy.decide(request)
        if not saves or decision.verdict is not Verdict.ASK:
            return decision
        as_write = self.policy.decide(essence.as_write(request))
        if as_write.verdict is Verdict.ALLOW and decision.runs_later != as_write.runs_later:
            return decision
        return replace(as_write, runs_later=decision.runs_later)

    async def _ask(
        self,
        session: Session,
        request: Request,
        decision: Decision,
        examination: Examination,
        *,
        saves: bool,
    ) -> _Grounds | Refusal | None:
        measured = await trio.to_thread.run_sync(examination.measure, request)
        shown = essence.as_write(measured) if saves else measured
        folder = core_offers.folder_of(shown, decision.runs_later)
        existing = None
        if folder is not None and shown.operation is not Operation.MKDIR:
            existing = await trio.to_thread.run_sync(examination.list_files, folder)
        offers = core_offers.offers(shown, decision.runs_later, self.policy.roots, existing)
        outcome = await self._broker.ask(
            shown,
            offers,
            core_offers.default_scope(shown),
            (essence.of(request), essence.of(shown)),
            runs_later=decision.runs_later,
            turn=session.ledger.turn,
        )
        if outcome.again:
            return None
        if outcome.state is not State.ALLOWED:
            return self._refuse_outcome(session, shown, outcome)
        return _accepted(shown, decision, outcome)

    def _grant(
        self, session: Session, shown: Request, offer: Offer, classed: tuple[bytes, ...]
    ) -> None:
        """Enter a grant, and take back what is being asked although it is covered now."""
        ledger = session.ledger
        ledger.grant(shown, offer, classed, self._now())
        self._broker.reconsider(
            lambda question: (
                question.request.session == session.name
                and ledger.covers(question.request, self.policy.runs_later(question.request))
                is not None
            )
        )

    def _refuse_outcome(self, session: Session, shown: Request, outcome: Outcome) -> Refusal:
        if outcome.state is State.DECLINED:
            session.ledger.note_declined(shown)
        if outcome.question is not None and outcome.was_shown and outcome.state is not State.GONE:
            session.ledger.note_refusal(outcome.question.id)
        reason = outcome.reason or _REASONS[outcome.state]
        return self.refuse(shown, reason, outcome.detail)

    async def _intend(
        self, request: Request, grounds: _Grounds, examination: Examination, policy: Policy
    ) -> Permit | Refusal | None:
        """Write the intent; None when something changed while the journal was being synced."""
        session = self.sessions.get(request.session)
        if grounds.question and not self._callers.is_waiting(request.caller):
            return self.refuse(request, Reason.GONE, "the caller left")
        try:
            permit = self._append_intent(session, request, grounds)
            if not essence.needs_sync(request):
                return permit
            return await self._settle(permit, examination, policy, asked=bool(grounds.question))
        except JournalError as error:
            return self.refuse(request, Reason.JOURNAL, str(error))

    async def _settle(
        self, permit: Permit, examination: Examination, policy: Policy, *, asked: bool
    ) -> Permit | Refusal | None:
        """Bring the intent to the disk, and look once more; what is not done gets its effect.

        None when the object, the rules or the turn changed meanwhile.
        """
        request = permit.request
        try:
            await self._journal.sync()
            if not self._callers.is_waiting(request.caller):
                self.finish(permit, errno.EINTR)
                return self.refuse(request, Reason.GONE, "the caller left")
            fresh = examination.look()
        except JournalError:
            raise
        except BaseException as error:
            number = error.errno or errno.ESTALE if isinstance(error, OSError) else errno.EINTR
            with contextlib.suppress(JournalError):  # why it ends here is told, not the second
                self.finish(permit, number)
            raise
        if policy is self.policy and permit.epoch == permit.session.ledger.epoch:
            if essence.is_same(request, fresh):
                return permit
            if not asked and self._needs_no_question(request, fresh):
                return replace(permit, request=fresh)
        self.finish(permit, errno.ESTALE)
        return None

    def _needs_no_question(self, request: Request, fresh: Request) -> bool:
        """Whether a covered opening for writing stays one although the content changed meanwhile.

        Nobody was shown anything, so nothing is to be compared with it: others may write to the
        file all the time.
        """
        if not essence.opens_the_same(request, fresh):
            return False
        decision = self.policy.decide(fresh)
        if decision.verdict is Verdict.ALLOW:
            return True
        ledger = self.sessions.get(fresh.session).ledger
        return (
            decision.verdict is Verdict.ASK
            and ledger.covers(fresh, decision.runs_later) is not None
        )

    def _append_intent(self, session: Session, request: Request, grounds: _Grounds) -> Permit:
        sequence = self._journal.append(
            IntentRecord(
                session=session.name,
                turn=session.ledger.turn,
                operation=request.operation,
                paths=request.paths,
                decision=grounds.basis,
                rule=grounds.rule,
                question=grounds.question,
                channel=grounds.channel,
                pid=request.caller.pid,
                exe=request.caller.exe,
                destroyed=essence.destroyed(request),
            )
        )
        return Permit(request, session, sequence, session.ledger.epoch)


def _accepted(shown: Request, decision: Decision, outcome: Outcome) -> _Grounds:
    question, answer = outcome.question, outcome.answer
    if question is None or answer is None:
        raise InternalError("allowed without an answer")
    scope = answer.scope or question.default
    return _Grounds(
        Basis.ANSWER,
        f"answered: {scope}",
        question.id,
        answer.channel,
        shown,
        question.offer(scope),
        decision.runs_later,
    )
