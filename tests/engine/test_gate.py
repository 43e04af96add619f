"""The gate: no permit without its grounds."""

from __future__ import annotations

import errno
from dataclasses import replace

import pytest
import trio
import trio.testing

from lamfuse.core.approval import Scope
from lamfuse.core.operations import Verb
from lamfuse.core.records import Basis, EffectRecord
from lamfuse.core.refusals import Reason
from lamfuse.core.target import Request
from tests.core.acts import DOWNLOADS, HOME, SESSION, act, directory, file, free, make_policy, rule
from tests.engine.gate_bench import (
    CREATE,
    FOLDER,
    WRITE,
    A,
    B,
    Bench,
    Looked,
    O,
    settled,
)

pytestmark = pytest.mark.requirement("H4")


@pytest.mark.requirement("H30", "H17")
class TestRefusedUnasked:
    @pytest.mark.parametrize(
        ("request_", "reason"),
        [
            pytest.param(act(O.WRITE, file(HOME + b"/x")), Reason.READ_ONLY, id="read-only"),
            pytest.param(act(O.CREATE, free(DOWNLOADS + b"/.env")), Reason.DENIED_NAME, id="name"),
            pytest.param(act(O.UNLINK, directory(DOWNLOADS)), Reason.ROOT_ITSELF, id="root"),
        ],
    )
    async def test_what_the_policy_refuses_reaches_nobody(
        self, bench: Bench, request_: Request, reason: Reason
    ) -> None:
        call = await bench.call(Looked(request_))
        assert call.refusal.reason is reason
        assert call.refusal.paths == request_.paths
        assert bench.person.asked == []
        assert bench.journal.records == []
        assert list(bench.sessions.get(SESSION).refusals) == [call.refusal]

    async def test_a_standing_decline_reaches_nobody(self, bench: Bench) -> None:
        bench.gate.policy = make_policy(standing=[rule("~/Downloads/**", allow=False)])
        call = await bench.call(Looked(WRITE))
        assert call.refusal.reason is Reason.DECLINED
        assert bench.person.asked == []

    async def test_what_cannot_be_looked_at_passes_on_the_errno(self, bench: Bench) -> None:
        call = await bench.call(Looked(WRITE, gone=True))
        assert isinstance(call.result, OSError)
        assert call.result.errno == errno.ESTALE
        assert bench.journal.records == []

    async def test_refusals_are_kept_per_session_and_bounded(self, bench: Bench) -> None:
        other = replace(WRITE, session="codex-1")
        for _ in range(60):
            bench.gate.refuse(WRITE, Reason.DECLINED)
        bench.gate.refuse(other, Reason.LOST, "why")
        assert len(bench.sessions.get(SESSION).refusals) == 50
        (kept,) = bench.sessions.get("codex-1").refusals
        assert (kept.reason, kept.rule) == (Reason.LOST, "why")
        assert bench.gate.refuse(WRITE, Reason.DECLINED).rule is None


class TestAnswered:
    async def test_a_yes_gives_a_permit_with_its_intent_in_the_journal(self, bench: Bench) -> None:
        examination = Looked(CREATE)
        call = await bench.asked(examination)
        assert bench.journal.intents() == []
        (question,) = bench.journal.questions()
        await bench.allow()
        permit = call.permit
        (intent,) = bench.journal.intents()
        assert bench.journal.records[permit.intent - 1] is intent
        assert intent.decision is Basis.ANSWER
        assert intent.rule == "answered: file"
        assert intent.question == question.question
        assert (intent.session, intent.turn, intent.pid) == (SESSION, 1, 40)
        assert (intent.operation, intent.paths) == (O.CREATE, (A,))
        assert bench.ledger_files == {A}
        bench.gate.finish(permit)
        bench.gate.finish(permit, errno.ENOSPC)
        assert bench.journal.effects() == [
            EffectRecord(intent=permit.intent, errno=0),
            EffectRecord(intent=permit.intent, errno=errno.ENOSPC),
        ]

    @pytest.mark.requirement("H9")
    async def test_file_for_this_turn_asks_no_more(self, bench: Bench) -> None:
        await bench.allowed(Looked(WRITE), Scope.FILE)
        call = await bench.call(Looked(WRITE))
        assert bench.journal.intents()[-1].decision is Basis.GRANT
        assert bench.journal.intents()[-1].rule == "this file for this turn"
        assert call.permit.request == WRITE
        assert len(bench.person.asked) == 1

    @pytest.mark.requirement("H9")
    async def test_once_asks_again(self, bench: Bench) -> None:
        await bench.allowed(Looked(WRITE), Scope.ONCE)
        assert bench.has_no_grant()
        await bench.asked(Looked(WRITE))

    @pytest.mark.requirement("H9")
    async def test_a_folder_is_granted_as_it_was_offered(self, bench: Bench) -> None:
        examination = Looked(act(O.CREATE, free(FOLDER + b"/x")))
        await bench.allowed(examination, Scope.FOLDER)
        assert examination.counted == [FOLDER]
        (grant,) = bench.sessions.get(SESSION).ledger.folders
        assert (grant.path, grant.files) == (FOLDER, examination.files)
        await bench.call(Looked(act(O.CREATE, free(FOLDER + b"/y"))))
        assert len(bench.person.asked) == 1

    @pytest.mark.requirement("H9", "L9")
    async def test_the_journal_has_every_path_that_a_yes_to_this_file_reaches(
        self, bench: Bench
    ) -> None:
        config = FOLDER + b"/.git/config"
        await bench.allowed(Looked(act(O.CREATE, free(config + b".lock"))), Scope.FILE)
        (answer,) = bench.journal.answers()
        assert sorted(answer.granted) == [config, config + b".lock"]

    async def test_the_journal_has_no_path_for_a_yes_to_one_call(self, bench: Bench) -> None:
        await bench.allowed(Looked(act(O.CREATE, free(FOLDER + b"/.git/config.lock"))), Scope.ONCE)
        (answer,) = bench.journal.answers()
        assert answer.granted == ()

    async def test_a_new_folder_is_not_counted(self, bench: Bench) -> None:
        examination = Looked(act(O.MKDIR, free(FOLDER)))
        await bench.allowed(examination, Scope.FOLDER)
        assert examination.counted == []

    @pytest.mark.requirement("H9")
    async def test_a_new_turn_asks_again(self, bench: Bench) -> None:
        await bench.allowed(Looked(WRITE), Scope.FILE)
        bench.sessions.new_turn(SESSION)
        await bench.asked(Looked(WRITE))

    @pytest.mark.requirement("H9")
    async def test_another_session_asks_for_itself(self, bench: Bench) -> None:
        await bench.allowed(Looked(WRITE), Scope.FILE)
        await bench.asked(Looked(replace(WRITE, session="codex-1")))

    @pytest.mark.requirement("H14")
    async def test_the_question_has_the_measured_request(self, bench: Bench) -> None:
        await bench.asked(Looked(WRITE))
        assert bench.person.question is not None
        assert bench.person.question.request.subjects[0].lines == 40

    async def test_a_standing_rule_allows_unasked(self, bench: Bench) -> None:
        bench.gate.policy = make_policy(standing=[rule("~/Downloads/**", verbs=[Verb.CREATE])])
        call = await bench.call(Looked(CREATE))
        assert call.permit.request == CREATE
        (intent,) = bench.journal.intents()
        assert (intent.decision, intent.rule) == (Basis.RULE, "your rule ~/Downloads/**")
        assert bench.has_no_grant()

    async def test_a_birth_is_entered_for_the_session_of_the_permit(self, bench: Bench) -> None:
        permit = await bench.allowed(Looked(CREATE))
        bench.gate.note_birth(permit, file(A))
        assert bench.sessions.get(SESSION).ledger.is_born(file(A))


class TestRefused:
    async def test_a_no_is_refused_and_stays(self, bench: Bench) -> None:
        call = await bench.asked(Looked(WRITE))
        await bench.decline()
        assert call.refusal.reason is Reason.DECLINED
        assert bench.journal.intents() == []
        assert bench.has_no_grant()
        again = await bench.call(Looked(WRITE))
        assert again.refusal.reason is Reason.DECLINED_BEFORE
        assert len(bench.person.asked) == 1
        bench.sessions.new_turn(SESSION)
        await bench.asked(Looked(WRITE))

    async def test_a_question_that_times_out_may_be_asked_again(self, bench: Bench) -> None:
        call = await bench.asked(Looked(WRITE))
        await trio.sleep(61)
        assert call.refusal.reason is Reason.TIMED_OUT
        assert bench.sessions.get(SESSION).ledger.refusals == 1
        await bench.asked(Looked(WRITE))

    @pytest.mark.requirement("H17")
    async def test_nobody_to_ask_is_a_refusal_that_counts_for_nothing(self, bench: Bench) -> None:
        bench.person.ready = False
        call = await bench.call(Looked(WRITE))
        assert call.refusal.reason is Reason.LOST
        assert bench.sessions.get(SESSION).ledger.refusals == 0
        bench.person.ready = True
        await bench.asked(Looked(WRITE))

    async def test_eight_refusals_open_the_breaker_until_it_is_resumed(self, bench: Bench) -> None:
        await bench.allowed(Looked(act(O.WRITE, file(B))), Scope.FILE)
        for number in range(8):
            await bench.asked(Looked(act(O.WRITE, file(FOLDER + b"/%d" % number, 30 + number))))
            await bench.decline()
        call = await bench.call(Looked(WRITE))
        assert call.refusal.reason is Reason.BREAKER
        covered = await bench.call(Looked(act(O.WRITE, file(B))))
        assert covered.permit.request.paths == (B,)
        bench.sessions.get(SESSION).ledger.resume()
        await bench.asked(Looked(WRITE))

    async def test_one_declined_question_counts_once_for_all_that_joined_it(
        self, bench: Bench
    ) -> None:
        calls = [bench.start(Looked(WRITE)) for _ in range(9)]
        await settled()
        assert len(bench.person.asked) == 1
        await bench.decline()
        assert {call.refusal.reason for call in calls} == {Reason.DECLINED}
        assert bench.sessions.get(SESSION).ledger.refusals == 1

    async def test_the_end_of_the_daemon_refuses(self, bench: Bench) -> None:
        call = await bench.asked(Looked(WRITE))
        bench.broker.close()
        await settled()
        assert call.refusal.reason is Reason.STOPPING


@pytest.mark.requirement("L3", "H30")
class TestJoining:
    """Calls share a question only when all that is shown is the same."""

    @pytest.mark.parametrize(
        "other",
        [
            pytest.param(replace(WRITE, truncates=True), id="truncation"),
            pytest.param(act(O.TRUNCATE, file(A)), id="another operation"),
            pytest.param(act(O.WRITE, file(A, size=101)), id="another size"),
            pytest.param(act(O.WRITE, file(A, 11)), id="another object"),
            pytest.param(replace(WRITE, session="codex-1"), id="another session"),
        ],
    )
    async def test_another_question(self, bench: Bench, other: Request) -> None:
        await bench.asked(Looked(WRITE))
        second = await bench.call(Looked(other))
        assert len(bench.broker.questions()) == 2
        await bench.allow(Scope.ONCE)
        assert second.result is None

    @pytest.mark.parametrize(
        ("first", "second"),
        [
            pytest.param(CREATE, act(O.MKDIR, free(A)), id="a folder"),
            pytest.param(CREATE, act(O.SYMLINK, free(A), target=b"x"), id="a link"),
            pytest.param(
                act(O.SYMLINK, free(A), target=b"x"),
                act(O.SYMLINK, free(A), target=b"y"),
                id="another target",
            ),
            pytest.param(
                act(O.CHMOD, file(A), detail="mode 0644 to 0600"),
                act(O.CHMOD, file(A), detail="mode 0644 to 0777"),
                id="another mode",
            ),
        ],
    )
    async def test_another_question_about_the_same_name(
        self, bench: Bench, first: Request, second: Request
    ) -> None:
        await bench.asked(Looked(first))
        call = await bench.call(Looked(second))
        assert len(bench.broker.questions()) == 2
        await bench.allow(Scope.ONCE)
        assert call.result is None

    async def test_the_same_question_of_another_thread_is_joined(self, bench: Bench) -> None:
        first = await bench.asked(Looked(WRITE))
        second = await bench.call(Looked(replace(WRITE, caller=replace(WRITE.caller, tid=77))))
        assert len(bench.broker.questions()) == 1
        await bench.allow(Scope.ONCE)
        assert first.permit.request.caller.tid == 41
        assert second.permit.request.caller.tid == 77


class TestDecidedAnew:
    @pytest.mark.requirement("L5")
    async def test_a_grant_takes_back_what_it_covers(self, bench: Bench) -> None:
        calls = [
            await bench.call(Looked(act(O.CREATE, free(FOLDER + name))))
            for name in (b"/x", b"/y", b"/z")
        ]
        outside = await bench.call(Looked(CREATE))
        assert len(bench.broker.questions()) == 4
        await bench.allow(Scope.FOLDER)
        assert [call.permit.request.paths for call in calls] == [
            (FOLDER + name,) for name in (b"/x", b"/y", b"/z")
        ]
        assert outside.result is None
        assert [intent.decision for intent in bench.journal.intents()] == [
            Basis.ANSWER, Basis.GRANT, Basis.GRANT,
        ]  # fmt: skip

    async def test_a_grant_takes_back_nothing_of_another_session(self, bench: Bench) -> None:
        await bench.asked(Looked(act(O.CREATE, free(FOLDER + b"/x"))))
        other = await bench.call(Looked(act(O.CREATE, free(FOLDER + b"/y"), session="codex-1")))
        await bench.allow(Scope.FOLDER)
        assert other.result is None

    async def test_a_question_that_is_taken_back_is_decided_by_the_new_rules(
        self, bench: Bench
    ) -> None:
        examination = Looked(CREATE)
        call = await bench.asked(examination)
        bench.gate.policy = make_policy(person=["a"])
        bench.broker.reconsider(lambda _: True)
        await settled()
        assert call.refusal.reason is Reason.DENIED_NAME

    async def test_a_question_that_is_taken_back_looks_again(self, bench: Bench) -> None:
        examination = Looked(WRITE)
        call = await bench.asked(examination)
        examination.change(size=7)
        bench.broker.reconsider(lambda _: True)
        await settled()
        assert call.result is None
        assert bench.person.question is not None
        assert bench.person.question.request.subjects[0].size == 7


class TestByHandle:
    async def test_an_open_handle_covers_what_is_asked(self, bench: Bench) -> None:
        for request in (act(O.TRUNCATE, file(A)), act(O.CHMOD, file(A))):
            call = await bench.call(Looked(request), by_handle=True)
            assert call.permit.request == request
            assert bench.journal.intents()[-1].decision is Basis.HANDLE
        assert bench.person.asked == []

    async def test_it_covers_nothing_that_is_refused(self, bench: Bench) -> None:
        call = await bench.call(Looked(act(O.TRUNCATE, file(HOME + b"/x"))), by_handle=True)
        assert call.refusal.reason is Reason.READ_ONLY
        bench.gate.policy = make_policy(standing=[rule("~/Downloads/**", allow=False)])
        call = await bench.call(Looked(act(O.TRUNCATE, file(A))), by_handle=True)
        assert call.refusal.reason is Reason.DECLINED
