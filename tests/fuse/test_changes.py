"""Every change, in a read-only place and in a write root: the errno, the question, the effect."""

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from lamfuse.core.approval import Scope
from tests.fuse.bench import Bench
from tests.fuse.changes import (
    CHANGES,
    EXCHANGE,
    NOREPLACE,
    Change,
    errno_of,
    prepare,
    rename2,
    snapshot,
)
from tests.mounting import entries
from tests.person import DECLINE, Allow, by_operation, decline, plain_yes

pytestmark = pytest.mark.mount


@pytest.mark.requirement("H3", "H22", "L1")
@pytest.mark.parametrize("change", CHANGES)
def test_outside_the_write_roots_nothing_changes_and_nobody_is_asked(
    bench: Bench, change: Change
) -> None:
    prepare(bench.closed_real)
    before = snapshot(bench.closed_real)
    bench.person.forget(plain_yes)
    assert errno_of(lambda: change.act(bench.closed)) == errno.EROFS
    assert bench.person.asked == []
    assert snapshot(bench.closed_real) == before
    assert str(bench.closed_name) in bench.refusals()


@pytest.mark.requirement("H3", "H22")
def test_a_hard_link_needs_a_write_root_at_both_ends(bench: Bench) -> None:
    prepare(bench.closed_real)
    prepare(bench.real)
    before = snapshot(bench.closed_real), snapshot(bench.real)
    bench.person.forget(plain_yes)
    for old, new in (
        (bench.closed, bench.here), (bench.here, bench.closed), (bench.closed, bench.closed),
    ):  # fmt: skip
        assert errno_of(os.link, old / "file", new / "new") == errno.EXDEV
    assert bench.person.asked == []
    assert (snapshot(bench.closed_real), snapshot(bench.real)) == before


@pytest.mark.requirement("H4", "H10", "L3")
@pytest.mark.parametrize("change", CHANGES)
def test_in_a_write_root_a_person_is_asked_once_and_a_yes_does_it(
    bench: Bench, change: Change, tmp_path: Path
) -> None:
    prepare(bench.real)
    twin = tmp_path / "twin"
    twin.mkdir()
    prepare(twin)
    change.act(twin)
    bench.person.forget(plain_yes)
    change.act(bench.here)
    assert bench.person.operations == [change.asks]
    (question,) = bench.person.asked
    assert any(path.raw.startswith(os.fsencode(bench.real)) for path in question.paths)
    assert _shape(bench.real) == _shape(twin)
    assert _shape(bench.here) == _shape(twin)


def _shape(folder: Path) -> dict[str, tuple[object, ...]]:
    """Return what does not depend on where and when *folder* was made."""
    return {
        str(Path(path).relative_to(folder)): (seen[1], *seen[4:6], *seen[8:])
        for path, seen in snapshot(folder).items()
        if Path(path) != folder and not stat.S_ISDIR(Path(path).lstat().st_mode)
    }


@pytest.mark.requirement("H4", "H31", "L7")
@pytest.mark.parametrize("change", CHANGES)
def test_declined_changes_nothing_says_so_and_is_not_asked_again(
    bench: Bench, change: Change
) -> None:
    prepare(bench.real)
    before = snapshot(bench.real)
    assert errno_of(lambda: change.act(bench.here)) == errno.EACCES
    assert bench.person.operations == [change.asks]
    assert snapshot(bench.real) == before
    assert "declined" in bench.refusals()
    assert bench.name in bench.refusals()
    assert errno_of(lambda: change.act(bench.here)) == errno.EACCES
    assert bench.person.operations == [change.asks]
    assert snapshot(bench.real) == before


@pytest.mark.requirement("H30")
@pytest.mark.parametrize("change", CHANGES)
def test_what_destroys_is_marked_as_destructive(bench: Bench, change: Change) -> None:
    prepare(bench.real)
    with pytest.raises(OSError, match="denied"):
        change.act(bench.here)
    assert bench.person.asked[0].destructive is change.destructive


@pytest.mark.requirement("L9")
def test_an_allowed_change_is_in_the_journal_before_and_after(bench: Bench) -> None:
    prepare(bench.real)
    bench.person.forget(plain_yes)
    os.unlink(bench.here / "file")
    (question,) = bench.person.asked
    path = str(bench.real / "file")
    lines = [e for e in entries(bench.mount.place.journal) if e.get("question") == question.id]
    asked, answered, intended = lines
    assert (asked["kind"], asked["operation"], asked["paths"]) == ("question", "unlink", [path])
    assert (answered["kind"], answered["outcome"]) == ("answer", "allowed")
    assert (intended["kind"], intended["decision"]) == ("intent", "answer")
    assert intended["paths"] == [path]
    effects = [e for e in entries(bench.mount.place.journal) if e.get("intent") == intended["seq"]]
    assert [effect["errno"] for effect in effects] == [0]


@pytest.mark.requirement("H14")
def test_truncation_waits_for_the_answer_and_the_question_says_what_it_destroys(
    bench: Bench,
) -> None:
    prepare(bench.real)
    assert errno_of(lambda: os.open(bench.here / "file", os.O_WRONLY | os.O_TRUNC)) == errno.EACCES
    (question,) = bench.person.asked
    assert question.title.startswith("Overwrite file?")
    assert any("8 bytes, 2 lines" in line for line in question.body)
    assert (bench.real / "file").read_bytes() == b"one\ntwo\n"


@pytest.mark.requirement("H9")
def test_an_answer_for_a_file_covers_its_content_and_attributes_but_not_its_name(
    bench: Bench,
) -> None:
    bench.person.forget(by_operation(create=Allow(), unlink=DECLINE))
    path = bench.here / "new"
    path.write_bytes(b"1")
    path.write_bytes(b"22")
    path.chmod(0o600)
    os.utime(path)
    os.truncate(path, 1)
    os.setxattr(path, "user.a", b"b")
    assert bench.person.operations == ["create"]
    assert errno_of(path.unlink) == errno.EACCES
    assert bench.person.operations == ["create", "unlink"]
    assert (bench.real / "new").read_bytes() == b"2"


@pytest.mark.requirement("H9")
def test_an_open_write_handle_covers_truncation_and_attributes(bench: Bench) -> None:
    prepare(bench.real)
    bench.person.forget(by_operation(write=Allow()))
    with (bench.here / "file").open("r+b") as file:
        file.truncate(2)
        os.fchmod(file.fileno(), 0o600)
        os.utime(file.fileno())
    assert bench.person.operations == ["write"]
    assert (bench.real / "file").read_bytes() == b"on"


@pytest.mark.requirement("H9")
def test_a_new_turn_asks_again(bench: Bench) -> None:
    bench.person.forget(plain_yes)
    path = bench.here / "new"
    path.write_bytes(b"1")
    bench.person.new_turn()
    path.write_bytes(b"2")
    assert bench.person.operations == ["create", "write"]


@pytest.mark.requirement("H10")
def test_deleting_asks_every_time(bench: Bench) -> None:
    for name in "abc":
        (bench.real / name).write_bytes(b"x")
    bench.person.forget(plain_yes)
    for name in "abc":
        (bench.here / name).unlink()
    assert bench.person.operations == ["unlink"] * 3


@pytest.mark.requirement("H9", "H10")
def test_an_answer_for_the_folder_covers_what_is_born_in_it_and_its_end(bench: Bench) -> None:
    (bench.real / "old").write_bytes(b"old")
    bench.person.forget(by_operation(create=Allow(Scope.FOLDER)))
    for name in "abc":
        (bench.here / name).write_bytes(b"x")
    (bench.here / "a").unlink()
    os.rename(bench.here / "b", bench.here / "d")
    assert bench.person.operations == ["create"]
    assert errno_of((bench.here / "old").unlink) == errno.EACCES
    assert bench.person.operations == ["create", "unlink"]
    assert sorted(os.listdir(bench.real)) == ["c", "d", "old"]


_CANNOT: list[tuple[str, Callable[[Path], object], int]] = [
    ("rmdir of what is not empty", lambda d: os.rmdir(d / "full"), errno.ENOTEMPTY),
    ("rmdir of a file", lambda d: os.rmdir(d / "file"), errno.ENOTDIR),
    ("unlink of a folder", lambda d: os.unlink(d / "empty"), errno.EISDIR),
    ("unlink of nothing", lambda d: os.unlink(d / "nothing"), errno.ENOENT),
    ("rename of nothing", lambda d: os.rename(d / "nothing", d / "x"), errno.ENOENT),
    ("mkdir onto what exists", lambda d: os.mkdir(d / "file"), errno.EEXIST),
    ("symlink onto what exists", lambda d: os.symlink("x", d / "file"), errno.EEXIST),
    ("link onto what exists", lambda d: os.link(d / "file", d / "other"), errno.EEXIST),
    ("create EXCL of what exists",
     lambda d: os.open(d / "file", os.O_CREAT | os.O_EXCL | os.O_WRONLY), errno.EEXIST),
    ("NOREPLACE onto what exists",
     lambda d: rename2(d / "file", d / "other", NOREPLACE), errno.EEXIST),
    ("exchange with nothing", lambda d: rename2(d / "file", d / "no", EXCHANGE), errno.ENOENT),
    ("rename of a folder onto a file", lambda d: os.rename(d / "full", d / "file"), errno.ENOTDIR),
    ("rename of a file onto a folder", lambda d: os.rename(d / "file", d / "full"), errno.EISDIR),
    ("rename onto a full folder", lambda d: os.rename(d / "empty", d / "full"), errno.ENOTEMPTY),
    ("rename into itself", lambda d: os.rename(d / "full", d / "full/in"), errno.EINVAL),
    ("name too long", lambda d: os.mkdir(d / ("n" * 256)), errno.ENAMETOOLONG),
    ("folder opened for writing", lambda d: os.open(d / "full", os.O_WRONLY), errno.EISDIR),
    ("parent is a file", lambda d: os.mkdir(d / "file/x"), errno.ENOTDIR),
    ("security attribute", lambda d: os.setxattr(d / "file", "security.a", b"x"), errno.EPERM),
    ("attribute that is not there", lambda d: os.removexattr(d / "file", "user.no"), errno.ENODATA),
    ("device node", lambda d: os.mknod(d / "dev", stat.S_IFCHR | 0o600, os.makedev(1, 3)),
     errno.EPERM),
]  # fmt: skip


@pytest.mark.requirement("H4")
@pytest.mark.parametrize(
    ("act", "number"), [pytest.param(act, number, id=name) for name, act, number in _CANNOT]
)
def test_what_cannot_succeed_is_refused_without_a_question(
    bench: Bench, act: Callable[[Path], object], number: int
) -> None:
    prepare(bench.real)
    before = snapshot(bench.real)
    bench.person.forget(plain_yes)
    assert errno_of(lambda: act(bench.here)) == number
    assert bench.person.asked == []
    assert snapshot(bench.real) == before


@pytest.mark.requirement("H4")
def test_a_parent_that_may_not_be_written_is_refused_without_a_question(bench: Bench) -> None:
    prepare(bench.real)
    bench.real.chmod(0o500)
    try:
        bench.person.forget(plain_yes)
        assert errno_of(lambda: os.unlink(bench.here / "file")) == errno.EACCES
        assert errno_of(lambda: os.mkdir(bench.here / "new")) == errno.EACCES
        assert errno_of(lambda: os.rename(bench.here / "file", bench.here / "x")) == errno.EACCES
        (bench.real / "file").chmod(0o400)
        assert errno_of(lambda: os.open(bench.here / "file", os.O_WRONLY)) == errno.EACCES
        assert bench.person.asked == []
    finally:
        bench.real.chmod(0o700)


@pytest.mark.requirement("H22")
@pytest.mark.parametrize("flags", [0, EXCHANGE])
def test_a_rename_needs_a_write_root_at_both_ends(bench: Bench, flags: int) -> None:
    prepare(bench.real)
    prepare(bench.closed_real)
    before = snapshot(bench.real), snapshot(bench.closed_real)
    bench.person.forget(plain_yes)
    for old, new in ((bench.here, bench.closed), (bench.closed, bench.here)):
        assert errno_of(rename2, old / "file", new / "other", flags) == errno.EROFS
    assert bench.person.asked == []
    assert (snapshot(bench.real), snapshot(bench.closed_real)) == before


@pytest.mark.requirement("H22")
@pytest.mark.parametrize(
    "act",
    [
        pytest.param(lambda view: os.rmdir(view / ".local/share/lamfuse/agent"), id="rmdir"),
        pytest.param(lambda view: os.rename(view / "Downloads", view / "Downloads2"), id="rename"),
        pytest.param(
            lambda view: os.rename(
                view / ".local/share/lamfuse/agent", view / "Downloads/agent"
            ),
            id="rename into another root",
        ),
    ],
)  # fmt: skip
def test_a_root_itself_cannot_be_removed_or_renamed(
    bench: Bench, act: Callable[[Path], object]
) -> None:
    bench.person.forget(plain_yes)
    assert errno_of(lambda: act(bench.view)) == errno.EROFS
    assert bench.person.asked == []


@pytest.mark.requirement("H10", "H14")
def test_an_atomic_save_is_one_question_about_the_destination(bench: Bench) -> None:
    prepare(bench.real)
    bench.person.forget(plain_yes)
    (bench.here / "file.tmp").write_bytes(b"new\n")
    os.replace(bench.here / "file.tmp", bench.here / "file")
    assert bench.person.operations == ["create", "write"]
    question = bench.person.asked[1]
    assert [path.raw for path in question.paths] == [os.fsencode(bench.real / "file")]
    assert question.title.startswith("Overwrite file?")
    assert (bench.real / "file").read_bytes() == b"new\n"
    (bench.here / "file.tmp").write_bytes(b"again\n")
    os.replace(bench.here / "file.tmp", bench.here / "file")
    assert bench.person.operations == ["create", "write"], "the save is covered in this turn"


@pytest.mark.requirement("H18")
def test_a_file_with_a_second_name_asks_each_time_and_says_so(bench: Bench) -> None:
    prepare(bench.real)
    os.link(bench.real / "file", bench.real / "second")
    os.stat(bench.here / "second")
    bench.person.forget(decline)
    assert errno_of(lambda: os.open(bench.here / "file", os.O_WRONLY)) == errno.EACCES
    (question,) = bench.person.asked
    assert any("1 other name" in line for line in question.body)
