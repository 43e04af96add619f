"""What holds for every request: there is one decision, and rules that are added never widen it."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamfuse.core import touched
from lamfuse.core.operations import CHANGES, TABLE, Operation, Verb
from lamfuse.core.policy import Decision, Policy, Verdict, strictest
from lamfuse.core.refusals import Reason
from lamfuse.core.roots import Area
from lamfuse.core.rules import RuleError
from lamfuse.core.standing import StandingRule
from lamfuse.core.target import Below, Caller, FileKind, Identity, Request, Subject
from tests import strategies
from tests.core.acts import HOME, act, directory, make_policy, rule

assert HOME == strategies.HOME

_WRITE = (HOME + b"/a", HOME + b"/Downloads", b"/srv/out")
_places = st.one_of(
    strategies.paths,
    strategies.paths_below(_WRITE[0]),
    strategies.paths_below(_WRITE[2]),
    st.sampled_from([*_WRITE, HOME + b"/.ssh/id", HOME + b"/a/.git/config.lock", b"/srv/docs/x"]),
)
_relative = strategies.paths_below(b"/").map(lambda path: path[1:])


@st.composite
def _belows(draw: st.DrawFn) -> Below:
    relative = draw(st.lists(_relative, max_size=4, unique=True))
    return Below(
        tuple(relative),
        frozenset(draw(st.sets(st.sampled_from(relative)) if relative else st.just(set()))),
        frozenset(draw(st.sets(st.integers(1, 9), max_size=3))),
        complete=draw(st.booleans()),
        climb=draw(st.integers(0, 4)),
        absolute=frozenset(draw(st.sets(strategies.paths, max_size=2))),
        winds=draw(st.booleans()),
    )


@st.composite
def _subjects(draw: st.DrawFn, *, exists: bool) -> Subject:
    path = draw(_places)
    if not exists:
        return Subject(path)
    kind = draw(st.sampled_from(FileKind))
    names = tuple(draw(st.lists(_places, max_size=2, unique=True)))
    return Subject(
        path,
        kind,
        Identity(1, draw(st.integers(1, 9))),
        links=draw(st.integers(0, 4)),
        other_names=names,
        unlinked=draw(st.sampled_from([False, False, False, True])),
        below=draw(_belows()) if kind is FileKind.DIRECTORY else None,
    )


@st.composite
def _requests(draw: st.DrawFn) -> Request:
    operation = draw(st.sampled_from(Operation))
    subjects = [draw(_subjects(exists=TABLE[operation].verb is not Verb.CREATE))]
    if TABLE[operation].two_paths:
        subjects = [
            draw(_subjects(exists=True)),
            draw(_subjects(exists=operation in {Operation.REPLACE, Operation.EXCHANGE})),
        ]
    makes = draw(st.none() | st.sampled_from(FileKind))
    detail = draw(st.sampled_from(["", "user.x", "security.x"]))
    return Request(operation, "s", Caller(), tuple(subjects), makes=makes, detail=detail)


@st.composite
def _standing(draw: st.DrawFn) -> StandingRule:
    patterns = draw(
        st.sampled_from([("~/**",), ("~/a/**",), ("~/Downloads/x", "/srv/out/**"), ("~/a/.envrc",)])
    )
    verbs = draw(st.sets(st.sampled_from(Verb), min_size=1))
    return rule(*patterns, verbs=sorted(verbs), allow=draw(st.booleans()))


_standings = st.lists(_standing(), max_size=2)


def _policy(person: list[str], standing: list[StandingRule]) -> Policy:
    return make_policy(person=person, write=_WRITE, standing=standing)


@pytest.mark.requirement("H3", "H4")
@given(request=_requests(), standing=_standings)
def test_there_is_one_decision_for_every_request(
    request: Request, standing: list[StandingRule]
) -> None:
    policy = _policy([], standing)
    decision = policy.decide(request)
    assert decision == policy.decide(request)
    assert (decision.reason is not None) is (decision.verdict is Verdict.REFUSE)
    assert decision.rule
    if request.operation in CHANGES and decision.verdict is not Verdict.REFUSE:
        for path in request.paths:
            assert policy.hides(path, is_dir=None) is None or request.subjects[0].exists
            writable = policy.roots.area(path) is Area.WRITE
            assert writable or request.operation is Operation.MKDIR
    if request.operation in CHANGES and not standing:
        assert decision.verdict is not Verdict.ALLOW


@pytest.mark.requirement("H5", "H21")
@given(
    request=_requests(),
    standing=_standings,
    before=st.lists(strategies.pattern_lines, max_size=2),
    added=strategies.pattern_lines.filter(lambda line: not line.startswith("!")),
)
def test_a_further_deny_rule_never_widens(
    request: Request, standing: list[StandingRule], before: list[str], added: str
) -> None:
    try:
        first, second = _policy(before, standing), _policy([*before, added], standing)
    except RuleError:
        return
    if second.decide(request).verdict < first.decide(request).verdict:
        # What would have come into sight, or gone out of it, with a folder is hidden all the way.
        assert first.decide(request).reason in {Reason.WOULD_REVEAL, Reason.DENIED_NAME}
        for moved, destination in touched.moves(request):
            for old, new, is_dir in touched.below(moved, destination):
                hidden = [second.hides(path, is_dir=is_dir) is not None for path in (old, new)]
                assert hidden[0] is hidden[1]


def test_a_further_deny_rule_can_keep_hidden_what_a_move_would_reveal() -> None:
    moved = act(
        Operation.RENAME,
        directory(HOME + b"/a/c", below=Below((b"b",))),
        Subject(HOME + b"/a/d"),
    )
    assert _policy(["a/c/b"], []).decide(moved).reason is Reason.WOULD_REVEAL
    assert _policy(["a/c/b", "b"], []).decide(moved).verdict is Verdict.ASK


@pytest.mark.requirement("H5")
@given(request=_requests(), standing=_standings)
def test_nothing_reaches_a_hidden_name(request: Request, standing: list[StandingRule]) -> None:
    policy = _policy([], standing)
    is_hidden = any(
        policy.hides(name, is_dir=subject.is_directory if subject.exists else None)
        for subject in request.subjects
        if not subject.unlinked
        for name in (subject.path, *subject.other_names)
    )
    if is_hidden:
        assert policy.decide(request).verdict is Verdict.REFUSE


@given(request=_requests(), standing=_standings)
def test_fewer_write_roots_never_widen(request: Request, standing: list[StandingRule]) -> None:
    more = make_policy(write=_WRITE, standing=standing)
    fewer = make_policy(write=_WRITE[:1], read=[b"/srv/docs", *_WRITE[1:]], standing=standing)
    if request.operation in CHANGES:
        assert fewer.decide(request).verdict >= more.decide(request).verdict


@pytest.mark.requirement("H10")
@given(request=_requests())
def test_a_standing_rule_never_covers_a_file_that_runs_later_but_by_its_name(
    request: Request,
) -> None:
    policy = _policy([], [rule("~/**"), rule("/srv/**")])
    if policy.runs_later(request):
        assert policy.decide(request).verdict is not Verdict.ALLOW or (
            request.operation not in CHANGES
        )


_decisions = st.builds(
    Decision,
    st.sampled_from(Verdict),
    st.sampled_from(["r", "s"]),
    st.none() | st.sampled_from([Reason.DENIED_NAME, Reason.READ_ONLY]),
    always=st.booleans(),
    runs_later=st.sets(st.sampled_from([b"/%c" % letter for letter in b"abcdefgh"])).map(
        lambda found: tuple(sorted(found))
    ),
    standing=st.none() | _standing(),
)


class TestStrictest:
    @given(first=_decisions, second=_decisions)
    def test_the_order_does_not_matter(self, first: Decision, second: Decision) -> None:
        assert strictest(first, second) == strictest(second, first)

    @given(first=_decisions, second=_decisions, third=_decisions)
    def test_the_grouping_does_not_matter(
        self, first: Decision, second: Decision, third: Decision
    ) -> None:
        left = strictest(strictest(first, second), third)
        assert left == strictest(first, strictest(second, third))

    @given(decision=_decisions)
    def test_itself_twice_is_itself(self, decision: Decision) -> None:
        assert strictest(decision, decision) == decision

    @given(first=_decisions, second=_decisions)
    def test_nothing_is_lost(self, first: Decision, second: Decision) -> None:
        result = strictest(first, second)
        assert result.verdict == max(first.verdict, second.verdict)
        assert result.always is (first.always or second.always)
        assert list(result.runs_later) == sorted({*first.runs_later, *second.runs_later})

    def test_the_reason_that_stands_first_is_told(self) -> None:
        reasons = list(Reason)
        for earlier, later in itertools.pairwise(reasons):
            both = [Decision(Verdict.REFUSE, "r", reason) for reason in (later, earlier)]
            assert strictest(*both).reason is earlier


@pytest.mark.requirement("H10")
def test_a_rule_for_all_of_home_does_not_move_a_file_that_runs_later_under_another_name() -> None:
    known = Subject(
        b"/home/u/a/plain",
        FileKind.FILE,
        Identity(1, 1),
        links=2,
        other_names=(b"/home/u/.envrc",),
    )
    request = Request(Operation.RENAME, "s", Caller(), (known, Subject(b"/home/u/a/moved")))

    decision = _policy([], [rule("~/**")]).decide(request)

    assert decision.verdict is Verdict.ASK
    assert decision.runs_later == (b"/home/u/.envrc",)


@pytest.mark.parametrize(
    ("allow", "verdict"),
    [pytest.param(True, Verdict.ALLOW, id="allows"), pytest.param(False, Verdict.REFUSE, id="no")],
)
def test_a_rule_of_the_person_is_named_as_it_was_written(allow: bool, verdict: Verdict) -> None:
    free_name = Subject(b"/home/u/Downloads/new")
    request = Request(Operation.CREATE, "s", Caller(), (free_name,), makes=FileKind.FILE)

    decision = _policy([], [rule("~/Downloads/new", allow=allow)]).decide(request)

    assert decision.verdict is verdict
    assert decision.rule == "your rule ~/Downloads/new"
