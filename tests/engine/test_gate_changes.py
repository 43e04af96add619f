"""What happens between the question and the act: the object, the journal, the caller."""

from __future__ import annotations

import errno
from dataclasses import replace

import pytest
import trio
import trio.testing

from lamfuse.core.approval import Scope
from lamfuse.core.errors import JournalError
from lamfuse.core.records import AnswerRecord, QuestionRecord
from lamfuse.core.refusals import Reason
from lamfuse.core.target import Request
from tests.core.acts import HOME, SESSION, act, directory, file, free, make_policy, rule
from tests.engine.gate_bench import (
    CREATE,
    FOLDER,
    UNLINK,
    WRITE,
    A,
    B,
    Bench,
    Looked,
    O,
    settled,
)

pytestmark = pytest.mark.requirement("H4")


@pytest.mark.requirement("L3")
class TestChangedMeanwhile:
    @pytest.mark.parametrize(
        "change",
        [
            pytest.param({"ctime_ns": 7}, id="ctime"),
            pytest.param({"mtime_ns": 7}, id="mtime"),
            pytest.param({"size": 1}, id="size"),
            pytest.param({"identity": file(A, 11).identity}, id="another object"),
            pytest.param({"parent": file(A, 12).identity}, id="another parent"),
            pytest.param({"path": B}, id="moved"),
            pytest.param({"links": 2}, id="a further link"),
        ],
    )
    @pytest.mark.parametrize("scope", [Scope.ONCE, Scope.FILE, Scope.FOLDER])
    async def test_it_is_asked_anew_and_nothing_is_granted(
        self, bench: Bench, change: dict[str, object], scope: Scope
    ) -> None:
        examination = Looked(act(O.WRITE, file(FOLDER + b"/x")))
        call = await bench.asked(examination)
        first = bench.person.question
        examination.change(**change)
        await bench.allow(scope)
        assert call.result is None
        assert bench.person.question is not None
        assert bench.person.question is not first
        assert (
            bench.person.question.request.subjects[0].size == examination.request.subjects[0].size
        )
        assert bench.journal.intents() == []
        assert bench.has_no_grant()
        await bench.allow(scope)
        assert call.permit.request == examination.request

    async def test_something_stands_there_now(self, bench: Bench) -> None:
        examination = Looked(act(O.RENAME, file(A), free(B)))
        call = await bench.asked(examination)
        examination.request = act(O.REPLACE, file(A), file(B, 11))
        await bench.allow()
        assert call.result is None
        assert bench.person.question is not None
        assert bench.person.question.request.operation is O.REPLACE

    async def test_it_is_gone(self, bench: Bench) -> None:
        examination = Looked(UNLINK)
        call = await bench.asked(examination)
        examination.gone = True
        await bench.allow()
        assert isinstance(call.result, OSError)
        assert bench.journal.intents() == []
        assert bench.has_no_grant()

    async def test_it_may_not_be_changed_any_more(self, bench: Bench) -> None:
        examination = Looked(WRITE)
        call = await bench.asked(examination)
        examination.request = act(O.WRITE, file(HOME + b"/moved-away"))
        await bench.allow()
        assert call.refusal.reason is Reason.READ_ONLY

    async def test_it_changes_while_the_journal_is_synced(self, bench: Bench) -> None:
        examination = Looked(WRITE)
        call = await bench.asked(examination)
        bench.journal.while_syncing = lambda: examination.change(ctime_ns=examination.looks)
        await bench.allow(Scope.FILE)
        assert call.result is None
        assert bench.has_no_grant()
        (intent,) = bench.journal.intents()
        (effect,) = bench.journal.effects()
        assert effect.errno == errno.ESTALE
        assert bench.journal.records[effect.intent - 1] is intent
        bench.journal.while_syncing = lambda: None
        await bench.allow(Scope.FILE)
        assert call.permit.request == examination.request
        assert bench.ledger_files == {A}

    async def test_it_is_gone_after_the_sync(self, bench: Bench) -> None:
        examination = Looked(WRITE)

        def vanish() -> None:
            examination.gone = True

        bench.journal.while_syncing = vanish
        call = await bench.asked(examination)
        await bench.allow(Scope.FILE)
        assert isinstance(call.result, OSError)
        assert [effect.errno for effect in bench.journal.effects()] == [errno.ESTALE]
        assert bench.has_no_grant()

    async def test_what_never_stops_changing_is_given_up(self, bench: Bench) -> None:
        examination = Looked(WRITE)
        bench.journal.while_syncing = lambda: examination.change(ctime_ns=examination.looks)
        call = await bench.asked(examination)
        for _ in range(8):
            assert call.result is None
            await bench.allow(Scope.FILE)
        assert call.refusal.reason is Reason.STALE
        assert len(bench.journal.intents()) == len(bench.journal.effects()) == 8
        assert bench.has_no_grant()

    async def test_a_grant_reaches_nothing_that_changed_after_its_sync(self, bench: Bench) -> None:
        await bench.allowed(Looked(WRITE), Scope.FILE)
        examination = Looked(WRITE)
        bench.journal.while_syncing = lambda: examination.change(identity=file(A, 11).identity)
        call = await bench.call(examination)
        assert call.result is None
        assert bench.person.question is not None

    async def test_what_a_grant_covers_may_be_written_to_by_others_all_the_time(
        self, bench: Bench
    ) -> None:
        await bench.allowed(Looked(WRITE), Scope.FILE)
        examination = Looked(WRITE)
        bench.journal.while_syncing = lambda: examination.change(
            ctime_ns=examination.looks, size=examination.looks
        )
        call = await bench.call(examination)
        assert call.permit.request == examination.request
        assert call.permit.request != WRITE

    async def test_what_destroys_content_must_find_it_as_it_was(self, bench: Bench) -> None:
        truncating = act(O.WRITE, file(A), truncates=True)
        await bench.allowed(Looked(truncating), Scope.FILE)
        examination = Looked(truncating)
        bench.journal.while_syncing = lambda: examination.change(ctime_ns=examination.looks)
        call = await bench.call(examination)
        assert call.refusal.reason is Reason.STALE

    async def test_rules_that_hide_it_meanwhile_hold_for_the_answer(self, bench: Bench) -> None:
        call = await bench.asked(Looked(CREATE))
        bench.gate.policy = make_policy(person=["a"])
        await bench.allow(Scope.FILE)
        assert call.refusal.reason is Reason.DENIED_NAME
        assert bench.journal.intents() == []
        assert bench.has_no_grant()

    async def test_rules_that_hide_it_while_the_journal_is_synced_hold(self, bench: Bench) -> None:
        def reload() -> None:
            bench.gate.policy = make_policy(person=["a"])

        call = await bench.asked(Looked(UNLINK))
        bench.journal.while_syncing = reload
        await bench.allow()
        assert call.refusal.reason is Reason.HIDDEN_SINCE
        assert [effect.errno for effect in bench.journal.effects()] == [errno.ESTALE]

    @pytest.mark.requirement("H9")
    async def test_a_turn_that_ends_while_the_journal_is_synced_ends_the_grant(
        self, bench: Bench
    ) -> None:
        await bench.allowed(Looked(WRITE), Scope.FILE)
        bench.journal.while_syncing = lambda: end_turn(bench)
        call = await bench.call(Looked(WRITE))
        assert call.result is None
        assert bench.person.question is not None

    @pytest.mark.requirement("H9")
    async def test_a_turn_that_ends_while_the_journal_is_synced_revokes_the_handle(
        self, bench: Bench
    ) -> None:
        bench.journal.while_syncing = lambda: end_turn(bench)
        call = await bench.call(Looked(act(O.TRUNCATE, file(A))), by_handle=True)
        assert call.result is None
        assert bench.person.question is not None


def end_turn(bench: Bench) -> None:
    bench.journal.while_syncing = lambda: None
    bench.sessions.new_turn(SESSION)


@pytest.mark.requirement("L9")
class TestJournal:
    @pytest.mark.parametrize(
        "request_",
        [
            pytest.param(UNLINK, id="delete"),
            pytest.param(act(O.RMDIR, directory(A)), id="delete a folder"),
            pytest.param(act(O.RENAME, file(A), free(B)), id="move"),
            pytest.param(WRITE, id="open for writing"),
            pytest.param(replace(WRITE, truncates=True), id="overwrite"),
            pytest.param(act(O.TRUNCATE, file(A)), id="truncate"),
        ],
    )
    async def test_what_destroys_has_its_intent_on_the_disk_before(
        self, bench: Bench, request_: Request
    ) -> None:
        bench.journal.gate = trio.Event()
        call = await bench.asked(Looked(request_))
        await bench.allow()
        assert call.result is None
        assert len(bench.journal.intents()) == 1
        bench.journal.gate.set()
        await settled()
        assert bench.journal.synced == [call.permit.intent]

    @pytest.mark.parametrize(
        "request_",
        [
            pytest.param(CREATE, id="create"),
            pytest.param(act(O.CHMOD, file(A)), id="attributes"),
            pytest.param(act(O.WRITE, file(A, size=0)), id="an empty file"),
        ],
    )
    async def test_the_rest_is_not_waited_for(self, bench: Bench, request_: Request) -> None:
        call = await bench.asked(Looked(request_))
        await bench.allow()
        assert call.permit.intent == len(bench.journal.records)
        assert bench.journal.synced == []

    async def test_what_is_lost_is_in_the_intent(self, bench: Bench) -> None:
        await bench.allowed(Looked(UNLINK))
        assert bench.journal.intents()[-1].destroyed == 100

    async def test_a_question_that_cannot_be_recorded_is_not_asked(self, bench: Bench) -> None:
        bench.journal.full = True
        call = await bench.call(Looked(WRITE))
        assert call.refusal.reason is Reason.JOURNAL
        assert bench.person.asked == []

    @pytest.mark.expects_log("the end of question .* is not in the journal")
    async def test_an_answer_that_cannot_be_recorded_allows_nothing(self, bench: Bench) -> None:
        call = await bench.asked(Looked(WRITE))
        bench.journal.full = True
        bench.person.allow(Scope.FILE)
        await settled()
        assert call.refusal.reason is Reason.JOURNAL
        assert bench.has_no_grant()

    async def test_an_intent_that_cannot_be_recorded_allows_nothing(self, bench: Bench) -> None:
        bench.gate.policy = make_policy(standing=[rule("~/Downloads/**")])
        bench.journal.full = True
        for request in (CREATE, UNLINK):
            call = await bench.call(Looked(request))
            assert call.refusal.reason is Reason.JOURNAL
        assert bench.journal.records == []

    async def test_an_intent_of_an_answer_that_cannot_be_recorded_grants_nothing(
        self, bench: Bench
    ) -> None:
        examination = Looked(CREATE)
        call = await bench.asked(examination)
        look = examination.look

        def look_and_fill() -> Request:
            bench.journal.full = True
            return look()

        examination.look = look_and_fill  # type: ignore[method-assign]
        await bench.allow(Scope.FILE)
        assert isinstance(bench.journal.records[-1], AnswerRecord)
        assert call.refusal.reason is Reason.JOURNAL
        assert bench.has_no_grant()

    async def test_a_sync_that_fails_allows_nothing(self, bench: Bench) -> None:
        call = await bench.asked(Looked(WRITE))
        bench.journal.sync_fault = JournalError("disk gone")
        await bench.allow(Scope.FILE)
        assert call.refusal.reason is Reason.JOURNAL
        assert bench.has_no_grant()

    async def test_an_effect_that_cannot_be_recorded_is_told(self, bench: Bench) -> None:
        permit = await bench.allowed(Looked(CREATE))
        bench.journal.full = True
        with pytest.raises(JournalError):
            bench.gate.finish(permit)

    async def test_a_journal_that_fails_for_the_effect_of_nothing_done_is_a_refusal(
        self, bench: Bench
    ) -> None:
        examination = Looked(WRITE)
        call = await bench.asked(examination)

        def change_and_fill() -> None:
            examination.change(ctime_ns=99)
            bench.journal.full = True

        bench.journal.while_syncing = change_and_fill
        await bench.allow(Scope.FILE)
        assert call.refusal.reason is Reason.JOURNAL
        assert bench.has_no_grant()

    async def test_a_call_that_is_cancelled_at_the_sync_has_an_effect(self, bench: Bench) -> None:
        bench.journal.gate = trio.Event()
        call = await bench.asked(Looked(UNLINK))
        await bench.allow()
        call.scope.cancel()
        await settled()
        assert call.result is None
        assert [effect.errno for effect in bench.journal.effects()] == [errno.EINTR]

    async def test_a_question_is_recorded_with_its_turn(self, bench: Bench) -> None:
        bench.sessions.new_turn(SESSION)
        await bench.asked(Looked(WRITE))
        (record,) = [each for each in bench.journal.records if isinstance(each, QuestionRecord)]
        assert record.turn == 2


@pytest.mark.requirement("L4")
class TestCallerGone:
    async def test_while_the_question_stands(self, bench: Bench) -> None:
        call = await bench.asked(Looked(WRITE))
        bench.callers.gone.add(41)
        await trio.sleep(1)
        assert call.refusal.reason is Reason.GONE
        assert bench.broker.questions() == ()
        assert bench.sessions.get(SESSION).ledger.refusals == 0

    @pytest.mark.parametrize("request_", [CREATE, WRITE], ids=["unsynced", "synced"])
    async def test_between_the_answer_and_the_act(self, bench: Bench, request_: Request) -> None:
        examination = Looked(request_)
        call = await bench.asked(examination)
        look = examination.look

        def look_and_leave() -> Request:
            bench.callers.gone.add(41)
            return look()

        examination.look = look_and_leave  # type: ignore[method-assign]
        await bench.allow(Scope.FILE)
        assert call.refusal.reason is Reason.GONE
        assert bench.journal.intents() == []
        assert bench.has_no_grant()

    async def test_after_the_sync(self, bench: Bench) -> None:
        call = await bench.asked(Looked(WRITE))
        bench.journal.while_syncing = lambda: bench.callers.gone.add(41)
        await bench.allow(Scope.FILE)
        assert call.refusal.reason is Reason.GONE
        assert [effect.errno for effect in bench.journal.effects()] == [errno.EINTR]
        assert bench.has_no_grant()

    async def test_after_the_sync_of_what_was_covered(self, bench: Bench) -> None:
        await bench.allowed(Looked(WRITE), Scope.FILE)
        bench.journal.while_syncing = lambda: bench.callers.gone.add(41)
        call = await bench.call(Looked(WRITE))
        assert call.refusal.reason is Reason.GONE
