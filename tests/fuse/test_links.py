"""Symbolic links: what readlink says, and that following one never leads out of the view."""

import errno
import os
from pathlib import Path

import pytest

from tests.fuse.bench import Bench
from tests.fuse.changes import errno_of, prepare, snapshot
from tests.mounting import HIDDEN
from tests.person import plain_yes

pytestmark = [pytest.mark.mount, pytest.mark.requirement("H3", "H20")]


_UNCHANGED = {
    "a neighbour": "file",
    "below": "full/inner",
    "up as far as the root": "../../Pictures/photo.bin",
    "dangling": "nowhere/at/all",
    "itself": "itself",
    "a dot": "./file",
    "a toolchain": "/usr/bin/env",
    "hidden by its own name": "../../.ssh/id_ed25519",
}


@pytest.mark.parametrize("target", [pytest.param(t, id=name) for name, t in _UNCHANGED.items()])
def test_a_target_that_stays_inside_is_returned_unchanged(bench: Bench, target: str) -> None:
    prepare(bench.closed_real)
    (bench.closed_real / "made").symlink_to(target)
    assert os.readlink(bench.closed / "made") == target
    assert os.lstat(bench.closed / "made").st_size == len(target)


_MADE_RELATIVE: dict[str, tuple[str, str]] = {
    "absolute": ("{home}/Pictures/photo.bin", "../../Pictures/photo.bin"),
    "absolute with dots": ("{home}/spare/../Pictures/photo.bin", "../../Pictures/photo.bin"),
    "home itself": ("{home}", "../.."),
    "down and up again": ("full/../../../Pictures", "../../Pictures"),
    "absolute and dangling": ("{home}/nothing/there", "../../nothing/there"),
    "through a link": ("{home}/Documents/folder/monday.md", "../../Documents/notes/monday.md"),
}


@pytest.mark.parametrize(
    ("target", "said"), [pytest.param(*row, id=name) for name, row in _MADE_RELATIVE.items()]
)
def test_a_target_that_lands_inside_is_returned_as_a_relative_path(
    bench: Bench, target: str, said: str
) -> None:
    prepare(bench.closed_real)
    (bench.closed_real / "made").symlink_to(target.format(home=bench.home))
    assert os.readlink(bench.closed / "made") == said
    assert os.lstat(bench.closed / "made").st_size == len(said)
    if (bench.closed_real / "made").exists():
        assert (bench.closed / "made").exists()
        assert os.path.realpath(bench.closed / "made").startswith(str(bench.view))


_NO_ANSWER = {
    "outside": "/etc/hostname",
    "outside, not there": "/etc/not-there",
    "too many steps up": "../../../etc/hostname",
    "up and back in": "../../../home/Pictures/photo.bin",
    "a hidden name, absolute": "{home}/.ssh/id_ed25519",
    "a hidden name that is not there": "{home}/id_rsa",
    "the real folder of the view": "{home}/../view",
    "own configuration": "{home}/.config/lamfuse/config.toml",
    "the tools, then up": "/usr/bin/../../etc/hostname",
    "a name that begins like home": "{home}2/x",
    "the root": "/",
    "proc": "/proc/self/cwd",
    "through a hidden folder": "{home}/.ssh/../Pictures/photo.bin",
    "down and far up": "full/../../../../etc/hostname",
}


@pytest.mark.parametrize("target", [pytest.param(t, id=name) for name, t in _NO_ANSWER.items()])
def test_a_target_that_leads_out_or_to_a_hidden_name_has_no_answer(
    bench: Bench, target: str
) -> None:
    prepare(bench.closed_real)
    text = target.format(home=bench.home)
    (bench.closed_real / "made").symlink_to(text)
    made = bench.closed / "made"
    assert errno_of(lambda: os.readlink(made)) == errno.EACCES
    for act in (
        lambda: os.stat(made), lambda: os.open(made, os.O_RDONLY), lambda: os.listdir(made),
    ):  # fmt: skip
        assert errno_of(act) == errno.EACCES
    assert os.lstat(made).st_size == 0
    assert "made" in os.listdir(bench.closed)


@pytest.mark.parametrize("target", [pytest.param(t, id=name) for name, t in _NO_ANSWER.items()])
def test_a_link_without_an_answer_cannot_be_made_and_nobody_is_asked(
    bench: Bench, target: str
) -> None:
    prepare(bench.real)
    before = snapshot(bench.real)
    bench.person.forget(plain_yes)
    text = target.format(home=bench.home)
    assert errno_of(lambda: os.symlink(text, bench.here / "made")) == errno.EACCES
    assert bench.person.asked == []
    assert snapshot(bench.real) == before
    assert "made" in bench.refusals()


def test_a_link_is_made_as_it_is_written_and_the_question_has_its_target(bench: Bench) -> None:
    prepare(bench.real)
    bench.person.forget(plain_yes)
    os.symlink("full/inner", bench.here / "made")
    assert os.readlink(bench.real / "made") == "full/inner"
    (question,) = bench.person.asked
    assert any("full/inner" in line for line in question.body)


def test_a_chain_of_links_is_judged_at_every_step(bench: Bench) -> None:
    (bench.closed_real / "a").symlink_to("b")
    (bench.closed_real / "b").symlink_to(bench.home / ".netrc")
    (bench.closed_real / "c").symlink_to("d/hostname")
    (bench.closed_real / "d").symlink_to("/etc")
    for name in "abcd":
        assert errno_of(os.stat, bench.closed / name) == errno.EACCES
    (bench.closed_real / "ssh").symlink_to("../../.ssh")
    assert errno_of(lambda: os.open(bench.closed / "ssh/id_ed25519", os.O_RDONLY)) == errno.ENOENT


def test_the_answers_for_what_is_there_and_what_is_not_are_the_same(bench: Bench) -> None:
    for name, target in (("a", "/etc/hostname"), ("b", "/etc/nothing-of-that-name")):
        (bench.closed_real / name).symlink_to(target)
    found = [errno_of(os.readlink, bench.closed / name) for name in "ab"]
    assert found == [errno.EACCES] * 2


def test_a_folder_with_a_climbing_link_does_not_get_shallower(bench: Bench) -> None:
    deep = bench.real / "one/two/three"
    deep.mkdir(parents=True)
    (deep / "climber").symlink_to("../../../../../Pictures/photo.bin")
    bench.person.forget(plain_yes)
    shallow = bench.view / "Downloads/shallow"
    assert errno_of(lambda: os.rename(bench.here / "one/two", shallow)) == errno.EACCES
    assert bench.person.asked == []
    os.rename(bench.here / "one/two", bench.here / "one/zwei")
    assert (bench.here / "one/zwei/three/climber").read_bytes()[:4] == b"\0\1\2\3"


def test_a_link_itself_that_climbs_is_not_moved_up(bench: Bench) -> None:
    (bench.real / "one").mkdir()
    (bench.real / "one/link").symlink_to("../../../Pictures/photo.bin")
    bench.person.forget(plain_yes)
    os.rename(bench.here / "one/link", bench.view / "Downloads/link")
    made = bench.view / "Downloads/link"
    try:
        assert errno_of(lambda: os.readlink(made)) == errno.EACCES
    finally:
        (bench.home / "Downloads/link").unlink()


def test_links_are_opened_by_nobody_but_the_caller(bench: Bench) -> None:
    prepare(bench.real)
    assert (
        errno_of(lambda: os.open(bench.here / "link", os.O_RDONLY | os.O_NOFOLLOW)) == errno.ELOOP
    )
    assert (bench.here / "link").read_bytes() == b"one\ntwo\n"


@pytest.mark.requirement("H18")
def test_a_write_through_a_link_is_asked_about_by_its_real_path(bench: Bench) -> None:
    prepare(bench.real)
    bench.person.forget(plain_yes)
    (bench.here / "link").write_bytes(b"new")
    (question,) = bench.person.asked
    assert [path.raw for path in question.paths] == [os.fsencode(bench.real / "file")]
    (bench.here / "file").write_bytes(b"newer")
    assert len(bench.person.asked) == 1


def test_reading_the_linked_tree_shows_no_hidden_byte(bench: Bench) -> None:
    for folder, _, files in os.walk(bench.view / "Documents", followlinks=True):
        for name in files:
            path = Path(folder, name)
            if path.name != "fifo" and os.access(path, os.R_OK):
                assert HIDDEN not in path.read_bytes()
