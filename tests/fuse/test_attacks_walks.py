"""Attacks by what is looked through: it is bounded, enters no other mount, and misses no link."""

import errno
import os
from collections.abc import Iterator

import pytest

from lamfuse.core.approval import Scope
from lamfuse.tree import syscalls
from tests.fuse.bench import Bench
from tests.fuse.changes import errno_of
from tests.mounting import Mounted, make_home, mounted, place
from tests.person import Allow, decline, plain_yes

pytestmark = [pytest.mark.mount]


@pytest.fixture(scope="module")
def limited() -> Iterator[Mounted]:
    """A view whose daemon may open few files."""
    with place() as base, mounted(make_home(base), limits=["--nofile=128:128"]) as here:
        yield here


@pytest.mark.requirement("H4")
def test_a_folder_of_many_folders_is_looked_through_with_few_descriptors(limited: Mounted) -> None:
    name = limited.fresh()
    for number in range(1000):
        (limited.home / name / f"wide/{number}").mkdir(parents=True)
    limited.person.forget(plain_yes)
    (limited.view / name / "wide").rename(limited.view / name / "moved")
    assert limited.person.operations == ["rename"]
    assert len(os.listdir(limited.home / name / "moved")) == 1000


@pytest.mark.requirement("H9")
def test_a_folder_of_many_folders_is_counted_with_few_descriptors(limited: Mounted) -> None:
    name = limited.fresh()
    for number in range(1000):
        (limited.home / name / f"{number}").mkdir()
        (limited.home / name / f"{number}/file").write_bytes(b"")
    limited.person.forget(decline)
    with pytest.raises(PermissionError):
        (limited.view / name / "new").write_bytes(b"")
    (question,) = limited.person.asked
    assert [s.existing for s in question.scopes if s.scope is Scope.FOLDER] == [1000]


def test_looking_through_a_folder_enters_no_other_mount() -> None:
    root = syscalls.open_root(b"/")
    try:
        assert errno_of(syscalls.open_here, root, b"proc") == errno.EXDEV
        syscalls.close(syscalls.open_here(root, b""))
    finally:
        syscalls.close(root)


@pytest.mark.requirement("H3", "H20")
@pytest.mark.parametrize("target", ["{home}/Pictures", "x/../../../../../Pictures"])
def test_a_folder_with_a_link_that_is_shown_from_the_top_does_not_get_shallower(
    bench: Bench, target: str
) -> None:
    deep = bench.real / "one/two"
    deep.mkdir(parents=True)
    (deep / "link").symlink_to(target.format(home=bench.home))
    bench.person.answers = lambda _: Allow()
    assert errno_of(os.rename, bench.here / "one/two", bench.view / "Downloads/two") == errno.EACCES
    assert bench.person.asked == []
