"""What is told of a request with many names does not depend on the order of a set.

A set of paths comes in another order in each process: with this many names, it is never by chance
the sorted one.
"""

from __future__ import annotations

import pytest

from lamfuse.core.operations import Operation, Verb
from lamfuse.core.policy import Decision, Verdict, strictest
from lamfuse.core.target import Request
from tests.core.acts import DOWNLOADS, act, file, make_policy, rule

NAMES = tuple(DOWNLOADS + b"/%02d.txt" % number for number in range(40))


def writing(*names: bytes) -> Request:
    """Write to a file that has all these names, through one from the middle."""
    middle = names[len(names) // 2]
    return act(Operation.WRITE, file(middle, names=[name for name in names if name != middle]))


class TestStandingRules:
    @pytest.mark.parametrize("count", range(20, 40))
    def test_of_many_that_decline_the_first_path_has_the_say(self, count: int) -> None:
        names = NAMES[:count]
        rules = [rule(name.decode(), allow=False) for name in reversed(names)]
        decision = make_policy(standing=rules).decide(writing(*names))
        assert (decision.verdict, decision.standing) == (Verdict.REFUSE, rules[-1])

    @pytest.mark.parametrize("count", range(20, 40))
    def test_of_many_that_allow_the_last_path_has_the_say(self, count: int) -> None:
        names = NAMES[:count]
        rules = [rule(name.decode()) for name in reversed(names)]
        decision = make_policy(standing=rules).decide(writing(*names))
        assert (decision.verdict, decision.standing) == (Verdict.ALLOW, rules[0])


class TestRunsLater:
    FOUND = tuple(DOWNLOADS + b"/%02d.desktop" % number for number in range(20))

    def test_what_runs_later_is_listed_by_path(self) -> None:
        assert make_policy().decide(writing(*self.FOUND)).runs_later == self.FOUND

    def test_so_is_what_two_decisions_list(self) -> None:
        halves = [
            Decision(Verdict.ASK, "r", runs_later=found)
            for found in (self.FOUND[1::2], self.FOUND[::2])
        ]
        assert strictest(*halves).runs_later == self.FOUND


def test_of_two_rules_that_differ_in_their_verbs_alone_always_the_same_one_is_told() -> None:
    earlier, later = (
        Decision(Verdict.ALLOW, "r", standing=rule("/a", verbs=[verb]))
        for verb in (Verb.WRITE, Verb.DELETE)
    )
    assert strictest(earlier, later) == strictest(later, earlier) == later
