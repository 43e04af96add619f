"""Open handles after their time: refused, and the view shows what the disk holds."""

import errno
import mmap
import os
import threading
from pathlib import Path

import pytest

from tests.fuse.bench import Bench
from tests.fuse.changes import errno_of, prepare
from tests.person import DECLINE, Allow, by_operation, plain_yes

pytestmark = [pytest.mark.mount, pytest.mark.requirement("H9")]


def test_a_handle_whose_turn_is_over_is_refused_and_the_view_shows_the_disk(bench: Bench) -> None:
    prepare(bench.real)
    bench.person.forget(plain_yes)
    fd = os.open(bench.here / "file", os.O_RDWR)
    try:
        assert os.pwrite(fd, b"ONE", 0) == 3
        bench.person.new_turn()
        asked = len(bench.person.asked)
        assert errno_of(os.pwrite, fd, b"xxxx", 0) == errno.EACCES
        assert len(bench.person.asked) == asked, "a write never asks"
        assert (bench.real / "file").read_bytes() == b"ONE\ntwo\n"
        assert (bench.here / "file").read_bytes() == b"ONE\ntwo\n"
        assert os.pread(fd, 100, 0) == b"ONE\ntwo\n"
        assert "file" in bench.refusals()
    finally:
        os.close(fd)
    with (bench.here / "file").open("r+b") as again:
        again.write(b"two")
    assert bench.person.operations == ["write", "write"]
    assert (bench.real / "file").read_bytes() == b"two\ntwo\n"


def test_a_late_write_goes_through_while_the_turn_covers_the_file(bench: Bench) -> None:
    prepare(bench.real)
    bench.person.forget(plain_yes)
    fd = os.open(bench.here / "file", os.O_RDWR)
    try:
        bench.person.new_turn()
        with (bench.here / "file").open("r+b"):
            assert os.pwrite(fd, b"late", 0) == 4
    finally:
        os.close(fd)
    assert (bench.real / "file").read_bytes() == b"latetwo\n"
    assert bench.person.operations == ["write", "write"]


def test_a_refused_page_of_a_mapping_is_dropped(bench: Bench) -> None:
    prepare(bench.real)
    bench.person.forget(plain_yes)
    (bench.real / "page").write_bytes(b"a" * 8192)
    with (bench.here / "page").open("r+b") as file:
        mapped = mmap.mmap(file.fileno(), 8192)
        try:
            mapped[0:4] = b"good"
            mapped.flush()
            assert (bench.real / "page").read_bytes()[:4] == b"good"
            bench.person.new_turn()
            mapped[0:4] = b"evil"
            mapped[5000:5004] = b"evil"
            assert errno_of(mapped.flush) == errno.EACCES
        finally:
            mapped.close()
    assert (bench.real / "page").read_bytes() == b"good" + b"a" * 8188
    assert (bench.here / "page").read_bytes() == b"good" + b"a" * 8188


def test_a_file_that_is_moved_loses_its_write_handles(bench: Bench) -> None:
    prepare(bench.real)
    bench.person.forget(by_operation(write=Allow(), rename=Allow()))
    fd = os.open(bench.here / "file", os.O_RDWR)
    try:
        os.rename(bench.here / "file", bench.here / "moved")
        assert errno_of(os.pwrite, fd, b"xxxx", 0) == errno.EACCES
    finally:
        os.close(fd)
    assert (bench.real / "moved").read_bytes() == b"one\ntwo\n"


def test_a_file_in_a_moved_folder_loses_its_write_handles(bench: Bench) -> None:
    prepare(bench.real)
    bench.person.forget(plain_yes)
    fd = os.open(bench.here / "full/inner", os.O_RDWR)
    try:
        os.rename(bench.here / "full", bench.here / "moved")
        assert errno_of(os.pwrite, fd, b"xxxx", 0) == errno.EACCES
    finally:
        os.close(fd)
    assert (bench.real / "moved/inner").read_bytes() == b"inner\n"


def test_a_file_that_was_replaced_can_still_be_written_by_those_who_hold_it(bench: Bench) -> None:
    prepare(bench.real)
    bench.person.forget(plain_yes)
    fd = os.open(bench.here / "other", os.O_RDWR)
    try:
        os.rename(bench.here / "file", bench.here / "other")
        assert os.pwrite(fd, b"kept", 0) == 4
        assert os.pread(fd, 4, 0) == b"kept"
    finally:
        os.close(fd)
    assert (bench.real / "other").read_bytes() == b"one\ntwo\n"


def test_an_unlinked_file_lives_for_those_who_hold_it(bench: Bench) -> None:
    bench.person.forget(plain_yes)
    with (bench.here / "new").open("w+b", buffering=0) as file:
        file.write(b"abc")
        (bench.here / "new").unlink()
        file.write(b"def")
        file.seek(0)
        assert file.read() == b"abcdef"
        assert os.fstat(file.fileno()).st_nlink == 0
        file.truncate(2)
        assert os.fstat(file.fileno()).st_size == 2
        assert errno_of(os.open, f"/proc/self/fd/{file.fileno()}", os.O_WRONLY) in {
            errno.ESTALE, errno.ENOENT,
        }  # fmt: skip
    assert os.listdir(bench.here) == []


def test_appends_of_several_callers_are_all_kept(bench: Bench) -> None:
    bench.person.forget(plain_yes)
    path = bench.here / "log"
    path.touch()

    def append(word: bytes) -> None:
        for number in range(50):
            with path.open("ab", buffering=0) as file:
                file.write(b"%s %d\n" % (word, number))

    threads = [threading.Thread(target=append, args=[b"%d" % n]) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set((bench.real / "log").read_bytes().splitlines())) == 200
    assert len(bench.person.asked) == 1


def test_an_append_by_somebody_outside_is_not_overwritten(bench: Bench) -> None:
    prepare(bench.real)
    bench.person.forget(plain_yes)
    with (bench.here / "file").open("ab", buffering=0) as file:
        with (bench.real / "file").open("ab") as outside:
            outside.write(b"outside\n")
        file.write(b"inside\n")
    assert (bench.real / "file").read_bytes() == b"one\ntwo\noutside\ninside\n"


def test_a_short_write_leaves_the_view_as_the_disk(bench: Bench) -> None:
    bench.person.forget(plain_yes)
    (bench.real / "file").write_bytes(b"x" * 10)
    with (bench.here / "file").open("r+b", buffering=0) as file:
        assert file.write(b"y" * 200_000) == 200_000
    assert (bench.here / "file").read_bytes() == (bench.real / "file").read_bytes()


@pytest.mark.requirement("H10")
def test_no_answer_for_a_file_reaches_its_removal(bench: Bench) -> None:
    prepare(bench.real)
    bench.person.forget(by_operation(write=Allow(), unlink=DECLINE, rename=DECLINE))
    (bench.here / "file").write_bytes(b"x")
    assert errno_of(os.unlink, bench.here / "file") == errno.EACCES
    assert errno_of(os.rename, bench.here / "file", bench.here / "away") == errno.EACCES
    assert bench.person.operations == ["write", "unlink", "rename"]


@pytest.mark.requirement("L3")
def test_a_file_that_changes_while_its_question_stands_is_asked_about_anew(bench: Bench) -> None:
    prepare(bench.real)
    changed: list[Path] = []

    def answer(question: object) -> Allow:
        if not changed:
            changed.append(bench.real / "file")
            (bench.real / "file").write_bytes(b"changed by somebody else\n")
        return Allow()

    bench.person.forget(answer)
    (bench.here / "file").unlink()
    assert bench.person.operations == ["unlink", "unlink"]
    assert any("25 bytes" in line for line in bench.person.asked[1].body)


@pytest.mark.requirement("L3")
def test_an_object_that_is_swapped_while_its_question_stands_is_not_touched(bench: Bench) -> None:
    prepare(bench.real)
    swapped: list[bool] = []

    def answer(question: object) -> Allow | str:
        if swapped:
            return DECLINE
        swapped.append(True)
        os.rename(bench.real / "other", bench.real / "file")
        return Allow()

    bench.person.forget(answer)
    assert errno_of(os.unlink, bench.here / "file") in {errno.EACCES, errno.ESTALE}
    assert (bench.real / "file").read_bytes() == b"other\n"


@pytest.mark.requirement("L3")
def test_a_name_that_appears_while_its_creation_is_asked_about_is_a_write(bench: Bench) -> None:
    appeared: list[bool] = []

    def answer(question: object) -> Allow | str:
        if appeared:
            return DECLINE
        appeared.append(True)
        (bench.real / "new").write_bytes(b"somebody's\n")
        return Allow()

    bench.person.forget(answer)
    assert errno_of(os.open, bench.here / "new", os.O_CREAT | os.O_TRUNC | os.O_WRONLY) == (
        errno.EACCES
    )
    assert bench.person.operations == ["create", "write"]
    assert (bench.real / "new").read_bytes() == b"somebody's\n"
