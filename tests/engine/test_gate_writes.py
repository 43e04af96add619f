"""The gate on what is judged as a write: saves, and writes that never wait."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest
import trio
import trio.testing

from lamfuse.core.approval import Scope
from lamfuse.core.operations import Verb
from lamfuse.core.records import Basis, EffectRecord
from lamfuse.core.refusals import Reason, Refusal
from lamfuse.core.target import Below, Request
from lamfuse.engine.gate import Permit
from tests.core.acts import DOWNLOADS, HOME, SESSION, act, directory, file, free, make_policy, rule
from tests.engine.gate_bench import (
    WRITE,
    A,
    B,
    Bench,
    Looked,
    O,
    at_once,
)

pytestmark = pytest.mark.requirement("H4")


@pytest.mark.requirement("H10")
class TestAtomicSave:
    def born(self, bench: Bench, path: bytes = DOWNLOADS + b"/.tmp", ino: int = 40) -> Request:
        source = file(path, ino, size=2180)
        bench.sessions.get(SESSION).ledger.note_birth(source, trio.current_time())
        return act(O.REPLACE, source, file(A))

    async def test_the_question_is_about_the_destination(self, bench: Bench) -> None:
        call = await bench.asked(Looked(self.born(bench)))
        assert bench.person.question is not None
        shown = bench.person.question.request
        assert (shown.operation, shown.paths, shown.truncates) == (O.WRITE, (A,), True)
        assert (shown.new_size, shown.new_lines) == (2180, 40)
        assert bench.person.question.default is Scope.FILE
        await bench.allow()
        assert call.permit.request.operation is O.REPLACE
        (intent,) = bench.journal.intents()
        assert (intent.operation, intent.destroyed) == (O.REPLACE, 100)
        assert bench.ledger_files == {A}
        assert bench.journal.synced != []

    async def test_a_write_that_was_declined_is_not_asked_again_as_a_save(
        self, bench: Bench
    ) -> None:
        call = await bench.asked(Looked(self.born(bench)))
        await bench.decline()
        assert (call.refusal.operation, call.refusal.paths) == (O.WRITE, (A,))
        again = await bench.call(Looked(self.born(bench, DOWNLOADS + b"/.tmp2", 41)))
        assert again.refusal.reason is Reason.DECLINED_BEFORE
        written = await bench.call(Looked(WRITE))
        assert written.refusal.reason is Reason.DECLINED_BEFORE

    async def test_a_source_that_was_not_born_is_moved(self, bench: Bench) -> None:
        move = act(O.REPLACE, file(DOWNLOADS + b"/old", 40), file(A))
        await bench.allowed(Looked(WRITE), Scope.FILE)
        await bench.asked(Looked(move))
        assert bench.person.question is not None
        assert bench.person.question.request.operation is O.REPLACE
        assert [offer.scope for offer in bench.person.question.offers] == [Scope.ONCE]

    async def test_a_rule_for_writing_covers_it(self, bench: Bench) -> None:
        bench.gate.policy = make_policy(standing=[rule("~/Downloads/a", verbs=[Verb.WRITE])])
        call = await bench.call(Looked(self.born(bench)))
        assert call.permit.request.operation is O.REPLACE
        moved = await bench.call(Looked(act(O.REPLACE, file(B, 50), file(A))))
        assert moved.result is None

    async def test_a_rule_against_writing_or_moving_refuses_it(self, bench: Bench) -> None:
        for verb in (Verb.WRITE, Verb.MOVE):
            bench.gate.policy = make_policy(
                standing=[rule("~/Downloads/**", verbs=[verb], allow=False)]
            )
            call = await bench.call(Looked(self.born(bench)))
            assert call.refusal.reason is Reason.DECLINED

    async def test_a_rule_for_writing_covers_no_source_that_runs_later(self, bench: Bench) -> None:
        bench.gate.policy = make_policy(standing=[rule("~/Downloads/a", verbs=[Verb.WRITE])])
        call = await bench.call(Looked(self.born(bench, DOWNLOADS + b"/.envrc")))
        assert call.result is None
        assert bench.person.question is not None


class TestAtOnce:
    """Writes never wait: they are covered, or refused."""

    async def test_it_never_asks(self, bench: Bench) -> None:
        refusal = bench.gate.authorize_at_once(WRITE)
        assert isinstance(refusal, Refusal)
        assert refusal.reason is Reason.REVOKED
        assert bench.person.asked == []
        assert bench.journal.questions() == []

    async def test_what_the_ledger_or_a_rule_covers_goes_on(self, bench: Bench) -> None:
        await bench.allowed(Looked(WRITE), Scope.FILE)
        permit = bench.gate.authorize_at_once(WRITE)
        assert isinstance(permit, Permit)
        assert bench.journal.intents()[-1].decision is Basis.GRANT
        bench.sessions.new_turn(SESSION)
        bench.gate.policy = make_policy(standing=[rule("~/Downloads/**")])
        permit = bench.gate.authorize_at_once(WRITE)
        assert isinstance(permit, Permit)
        assert permit.epoch == bench.sessions.get(SESSION).ledger.epoch
        assert bench.journal.intents()[-1].decision is Basis.RULE

    @pytest.mark.parametrize(
        ("request_", "reason"),
        [
            pytest.param(act(O.WRITE, file(HOME + b"/x")), Reason.READ_ONLY, id="read-only"),
            pytest.param(
                act(O.WRITE, file(DOWNLOADS + b"/.env")), Reason.HIDDEN_SINCE, id="hidden"
            ),
            pytest.param(WRITE, Reason.REVOKED, id="over"),
        ],
    )
    @pytest.mark.requirement("L9")
    async def test_a_refused_one_is_recorded_once_until_grants_end(
        self, bench: Bench, request_: Request, reason: Reason
    ) -> None:
        for _ in range(5):
            refusal = bench.gate.authorize_at_once(request_)
            assert isinstance(refusal, Refusal)
            assert (refusal.reason, refusal.paths) == (reason, request_.paths)
        (intent,) = bench.journal.intents()
        assert intent.decision is Basis.REFUSED
        assert bench.journal.effects() == [EffectRecord(intent=1, errno=errno.EACCES)]
        assert len(bench.sessions.get(SESSION).refusals) == 1
        bench.gate.authorize_at_once(act(O.WRITE, file(B)))
        assert len(bench.journal.intents()) == 2
        bench.sessions.new_turn(SESSION)
        bench.gate.authorize_at_once(request_)
        assert len(bench.journal.intents()) == 3

    async def test_without_a_journal_nothing_goes_on(self, bench: Bench) -> None:
        bench.journal.full = True
        bench.gate.policy = make_policy(standing=[rule("~/Downloads/**")])
        for request in (WRITE, act(O.WRITE, file(HOME + b"/x"))):
            refusal = bench.gate.authorize_at_once(request)
            assert isinstance(refusal, Refusal)
            assert refusal.reason is Reason.JOURNAL


async def test_a_big_move_is_decided_in_a_thread(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    threaded: list[object] = []

    async def note(function: Callable[..., object], *arguments: object) -> object:
        threaded.append(function)
        return await at_once(function, *arguments)

    monkeypatch.setattr(trio.to_thread, "run_sync", note)
    small, big = (Below(tuple(b"%d" % number for number in range(size))) for size in (500, 501))
    decide = bench.gate.policy.decide
    await bench.call(Looked(act(O.RENAME, directory(A, below=small), free(B))))
    assert decide not in threaded
    await bench.call(Looked(act(O.RENAME, directory(A, below=big), free(B))))
    assert decide in threaded


async def test_counting_runs_in_a_thread_and_delays_nobody(nursery: trio.Nursery) -> None:
    bench = Bench(nursery)
    await nursery.start(bench.run_broker)
    here = trio.lowlevel.current_trio_token()
    counted = trio.Event()

    class Counted(Looked):
        def measure(self, request: Request) -> Request:
            trio.from_thread.run_sync(counted.set, trio_token=here)  # fails in the loop's thread
            return request

    call = bench.start(Counted(WRITE))
    with trio.fail_after(5):
        await counted.wait()
    call.scope.cancel()
    nursery.cancel_scope.cancel()
