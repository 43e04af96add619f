"""The table of inodes: what the kernel may still refer to, and under which number."""

from __future__ import annotations

import stat
from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    precondition,
    rule,
)

from lamfuse.core.errors import InternalError
from lamfuse.tree.inodes import ROOT, Inode, Inodes
from lamfuse.tree.syscalls import Stat

DEVICE = 7


def seen(
    ino: int, *, dev: int = DEVICE, birth: int = 1, mode: int = stat.S_IFREG, size: int = 0
) -> Stat:
    return Stat(mode | 0o644, 1, 0, 0, 0, size, 0, 4096, 0, 0, 0, birth, dev, ino, 1)


@pytest.fixture
def inodes() -> Inodes:
    return Inodes(seen(2, mode=stat.S_IFDIR))


def look_up(inodes: Inodes, stat_: Stat, name: bytes = b"x", parent: Inode | None = None) -> Inode:
    inode = inodes.seen(stat_, parent or inodes.root, name)
    inode.lookups += 1
    return inode


class TestNumbers:
    def test_the_root_has_the_number_of_fuse(self, inodes: Inodes) -> None:
        assert inodes.get(ROOT) is inodes.root
        assert inodes.find(DEVICE, 2) is inodes.root
        assert list(inodes) == [inodes.root]

    def test_a_file_has_its_own_number(self, inodes: Inodes) -> None:
        inode = look_up(inodes, seen(4711))
        assert inode.nodeid == 4711
        assert inodes.get(4711) is inode
        assert inodes.find(DEVICE, 4711) is inode
        assert len(inodes) == 2

    def test_the_same_object_is_the_same_inode(self, inodes: Inodes) -> None:
        assert look_up(inodes, seen(5), b"a") is look_up(inodes, seen(5), b"b")

    @pytest.mark.parametrize(
        "ino",
        [
            pytest.param(0, id="zero"),
            pytest.param(1, id="the root's"),
            pytest.param(1 << 62, id="in the range of made-up ones"),
            pytest.param((1 << 64) - 1, id="the greatest"),
        ],
    )
    def test_a_number_that_cannot_be_used_gets_another(self, inodes: Inodes, ino: int) -> None:
        inode = look_up(inodes, seen(ino))
        assert inode.nodeid not in {0, 1, ino}
        assert inode.ino == ino
        assert inodes.find(DEVICE, ino) is inode
        assert inodes.get(inode.nodeid) is inode

    def test_the_same_number_on_another_device_is_another_object(self, inodes: Inodes) -> None:
        first = look_up(inodes, seen(5), b"a")
        second = look_up(inodes, seen(5, dev=8), b"b")
        third = look_up(inodes, seen(5, dev=9), b"c")
        assert len({first.nodeid, second.nodeid, third.nodeid}) == 3
        assert inodes.find(8, 5) is second
        assert inodes.find(9, 5) is third
        inodes.forget(second.nodeid, 1)
        assert inodes.find(8, 5) is None
        assert inodes.find(DEVICE, 5) is first

    def test_a_number_that_is_free_again_is_given_again(self, inodes: Inodes) -> None:
        first = look_up(inodes, seen(5))
        inodes.forget(first.nodeid, 1)
        second = look_up(inodes, seen(5, dev=8))
        assert second.nodeid == 5

    @pytest.mark.parametrize(
        "other",
        [
            pytest.param(seen(5, birth=2), id="born at another time"),
            pytest.param(seen(5, mode=stat.S_IFDIR), id="of another kind"),
        ],
    )
    def test_a_number_that_is_used_again_has_another_generation(
        self, inodes: Inodes, other: Stat
    ) -> None:
        inode = look_up(inodes, seen(5, size=9), b"a")
        look_up(inodes, seen(5), b"b")
        generation = inode.generation
        assert not inode.is_object(other)
        assert look_up(inodes, other, b"c") is inode
        assert inode.generation != generation
        assert inode.is_object(other)
        assert not inode.is_object(seen(5))
        assert list(inode.names()) == [(inodes.root, b"c")]
        assert (inode.size, inode.verified, inode.lookups) == (0, None, 3)

    def test_each_new_object_under_a_number_has_its_own_generation(self, inodes: Inodes) -> None:
        generations = [look_up(inodes, seen(5, birth=birth)).generation for birth in range(1, 5)]
        assert len(set(generations)) == 4


class TestLookups:
    def test_what_was_forgotten_wholly_is_gone(self, inodes: Inodes) -> None:
        inode = look_up(inodes, seen(5))
        look_up(inodes, seen(5))
        assert inodes.forget(5, 1) is None
        assert inodes.get(5) is inode
        assert inodes.forget(5, 1) is inode
        assert inodes.get(5) is None
        assert inodes.find(DEVICE, 5) is None

    def test_more_than_was_looked_up_is_our_own_bug(self, inodes: Inodes) -> None:
        look_up(inodes, seen(5))
        with pytest.raises(InternalError, match="2 forgotten of 1"):
            inodes.forget(5, 2)

    def test_the_root_and_what_is_unknown_are_never_forgotten(self, inodes: Inodes) -> None:
        assert inodes.forget(ROOT, 99) is None
        assert inodes.forget(4711, 1) is None
        assert inodes.get(ROOT) is inodes.root

    def test_what_is_open_stays(self, inodes: Inodes) -> None:
        inode = look_up(inodes, seen(5))
        inode.handles = [object()]
        assert inodes.forget(5, 1) is None
        assert inodes.get(5) is inode
        inodes.drop_unknown(inode)
        assert inodes.get(5) is inode
        inode.handles = None
        inodes.drop_unknown(inode)
        assert inodes.get(5) is None

    def test_what_the_kernel_was_not_told_of_can_be_dropped(self, inodes: Inodes) -> None:
        inode = inodes.seen(seen(5), inodes.root, b"x")
        inodes.drop_unknown(inode)
        assert inodes.get(5) is None
        told = look_up(inodes, seen(6))
        inodes.drop_unknown(told)
        assert inodes.get(6) is told

    def test_removing_twice_leaves_the_one_that_came_after(self, inodes: Inodes) -> None:
        old = look_up(inodes, seen(5))
        inodes.remove(old)
        new = look_up(inodes, seen(5))
        inodes.remove(old)
        assert inodes.get(5) is new
        assert inodes.find(DEVICE, 5) is new

    def test_what_is_made_up_is_never_found_by_an_object(self, inodes: Inodes) -> None:
        inode = inodes.made_up(seen(5))
        assert inodes.get(inode.nodeid) is inode
        assert inodes.find(DEVICE, 5) is None
        real = look_up(inodes, seen(5))
        inode.lookups += 1
        assert inodes.forget(inode.nodeid, 1) is None
        assert inodes.get(inode.nodeid) is inode
        assert inodes.find(DEVICE, 5) is real


class TestNames:
    def test_a_file_keeps_every_name_the_latest_first(self, inodes: Inodes) -> None:
        inode = look_up(inodes, seen(5), b"a")
        for name in (b"b", b"c", b"a"):
            look_up(inodes, seen(5), name)
        names = list(inode.names())
        assert names[0] == (inodes.root, b"a")
        assert sorted(name for _, name in names) == [b"a", b"b", b"c"]

    def test_a_directory_has_the_last_place_only(self, inodes: Inodes) -> None:
        folder = look_up(inodes, seen(5, mode=stat.S_IFDIR), b"a")
        look_up(inodes, seen(5, mode=stat.S_IFDIR), b"b")
        assert list(folder.names()) == [(inodes.root, b"b")]

    def test_the_same_name_in_another_place_is_another_name(self, inodes: Inodes) -> None:
        folder = look_up(inodes, seen(4, mode=stat.S_IFDIR), b"d")
        inode = look_up(inodes, seen(5), b"a")
        look_up(inodes, seen(5), b"a", folder)
        assert list(inode.names()) == [(folder, b"a"), (inodes.root, b"a")]

    @pytest.mark.parametrize("dropped", [b"a", b"b", b"c"])
    def test_a_dropped_name_leaves_the_others(self, inodes: Inodes, dropped: bytes) -> None:
        inode = look_up(inodes, seen(5), b"a")
        for name in (b"b", b"c"):
            look_up(inodes, seen(5), name)
        inode.drop_name(inodes.root, dropped)
        inode.drop_name(inodes.root, b"unknown")
        assert sorted(name for _, name in inode.names()) == sorted({b"a", b"b", b"c"} - {dropped})
        for name in (b"a", b"b", b"c"):
            inode.drop_name(inodes.root, name)
        assert list(inode.names()) == []
        assert (inode.parent, inode.name, inode.others) == (None, b"", None)

    def test_dropping_names_while_going_through_them_skips_none(self, inodes: Inodes) -> None:
        inode = look_up(inodes, seen(5), b"a")
        for name in (b"b", b"c", b"d"):
            look_up(inodes, seen(5), name)
        gone_through = []
        for parent, name in inode.names():
            gone_through.append(name)
            inode.drop_name(parent, name)
        assert sorted(gone_through) == [b"a", b"b", b"c", b"d"]


@dataclass(eq=False)
class Known:
    """What the kernel knows of one object in the model."""

    ino: int
    dev: int
    nodeid: int
    lookups: int = 0
    names: set[bytes] = field(default_factory=set)


class Table(RuleBasedStateMachine):
    """Lookups, forgets and reused numbers in any order, against a model of the kernel's counts."""

    known = Bundle("known")

    def __init__(self) -> None:
        super().__init__()
        self.inodes = Inodes(seen(2, mode=stat.S_IFDIR))
        self.model: dict[int, Known] = {}
        self.birth = 1

    @rule(
        target=known,
        ino=st.integers(0, 6).filter(lambda ino: ino != 2),
        dev=st.sampled_from([DEVICE, DEVICE, 8]),
        name=st.sampled_from([b"a", b"b", b"c"]),
    )
    def look_up(self, ino: int, dev: int, name: bytes) -> int:
        inode = look_up(self.inodes, seen(ino, dev=dev, birth=self.birth), name)
        known = self.model.setdefault(inode.nodeid, Known(ino, dev, inode.nodeid))
        assert (known.ino, known.dev) == (ino, dev), "two objects under one number"
        known.lookups += 1
        return inode.nodeid

    @rule()
    def use_every_number_again(self) -> None:
        self.birth += 1

    @rule(nodeid=consumes(known))
    def forget_one(self, nodeid: int) -> None:
        self.forget(nodeid, 1)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def forget_several(self, data: st.DataObject) -> None:
        nodeid = data.draw(st.sampled_from(sorted(self.model)))
        self.forget(nodeid, data.draw(st.integers(1, self.model[nodeid].lookups)))

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def forget_too_many(self, data: st.DataObject) -> None:
        nodeid = data.draw(st.sampled_from(sorted(self.model)))
        with pytest.raises(InternalError):
            self.inodes.forget(nodeid, self.model[nodeid].lookups + 1)

    @rule(nodeid=st.integers(100, 200))
    def forget_what_is_unknown(self, nodeid: int) -> None:
        assert self.inodes.forget(nodeid, 1) is None

    def forget(self, nodeid: int, count: int) -> None:
        known = self.model.get(nodeid)
        if known is None or known.lookups < count:
            return
        known.lookups -= count
        gone = self.inodes.forget(nodeid, count)
        assert (gone is not None) is (known.lookups == 0)
        if not known.lookups:
            del self.model[nodeid]

    @invariant()
    def the_counts_agree_and_are_never_negative(self) -> None:
        counts = {inode.nodeid: inode.lookups for inode in self.inodes if inode.nodeid != ROOT}
        assert counts == {nodeid: known.lookups for nodeid, known in self.model.items()}
        assert all(count > 0 for count in counts.values())

    @invariant()
    def every_object_is_found_by_number_and_by_key(self) -> None:
        for nodeid, known in self.model.items():
            inode = self.inodes.get(nodeid)
            assert inode is not None
            assert self.inodes.find(known.dev, known.ino) is inode
            assert nodeid not in {0, ROOT}


TestTable = Table.TestCase
TestTable.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
