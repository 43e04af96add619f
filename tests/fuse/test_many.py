"""Many at once: open questions delay no reading, and a big tree needs little memory."""

import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.fuse.changes import errno_of
from tests.mounting import Mounted, make_home, mounted, place, wait_until
from tests.person import PATIENCE_S, Allow, silence

pytestmark = pytest.mark.mount

_DESCRIPTORS = 1024
_MEMORY = 200 << 20


def _open_for_writing(path: Path) -> None:
    os.close(os.open(path, os.O_WRONLY))


def _callers(folder: Path, real: Path) -> list[Callable[[], object]]:
    """Return 64 calls that wait: 32 writes, and 32 changes of names in 32 folders."""
    calls: list[Callable[[], object]] = []
    for number in range(32):
        (real / f"file{number}").write_bytes(b"x")
        calls.append(partial(_open_for_writing, folder / f"file{number}"))
        inside = folder / f"folder{number}"
        (real / f"folder{number}").mkdir()
        (real / f"folder{number}/old").write_bytes(b"x")
        kinds: list[Callable[[], object]] = [
            (inside / "new").touch,
            (inside / "old").unlink,
            partial(os.rename, inside / "old", inside / "moved"),
        ]
        calls.append(kinds[number % 3])
    return calls


@contextmanager
def _waiting(here: Mounted, calls: list[Callable[[], object]]) -> Iterator[list[BaseException]]:
    """Run every call in a thread of its own until all wait for an answer."""
    failures: list[BaseException] = []

    def run(call: Callable[[], object]) -> None:
        try:
            call()
        except OSError as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=[call]) for call in calls]
    for thread in threads:
        thread.start()
    try:
        yield failures
    finally:
        here.person.forget(lambda _: "decline")
        while here.person.status().open_questions:
            for question in here.person.open_questions():
                here.person.answer(question, "decline")
        for thread in threads:
            thread.join(PATIENCE_S)
        assert not any(thread.is_alive() for thread in threads)


@pytest.fixture(scope="module")
def grown() -> Iterator[Mounted]:
    with place() as base:
        made = make_home(base)
        _grow(made.home / "tree", folders=60, files=40)
        with mounted(made) as here:
            yield here


def _grow(root: Path, *, folders: int, files: int) -> None:
    for folder in range(folders):
        place_of_it = root / f"d{folder:04}"
        place_of_it.mkdir(parents=True)
        for number in range(files):
            os.close(os.open(place_of_it / f"f{number:05}", os.O_CREAT | os.O_WRONLY, 0o600))


def _find(view: Path) -> float:
    started = time.monotonic()
    done = subprocess.run(["find", view / "tree", "-size", "+0"], check=True, capture_output=True)
    assert done.stdout == b"" or b"/d" in done.stdout
    return time.monotonic() - started


@pytest.mark.timing
@pytest.mark.requirement("L5")
def test_64_open_questions_delay_no_reading_elsewhere(grown: Mounted) -> None:
    _find(grown.view)
    before = min(_find(grown.view) for _ in range(3))
    grown.person.forget(silence)
    folder = grown.fresh()
    calls = _callers(grown.view / folder, grown.home / folder)
    with grown.watchdog(), _waiting(grown, calls) as failures:
        wait_until(lambda: grown.person.status().open_questions == 64)
        during = min(_find(grown.view) for _ in range(3))
        assert failures == []
        assert grown.person.status().descriptors <= _DESCRIPTORS + 256
    assert len(failures) == 64
    assert during <= 2 * before + 0.05, (before, during)
    assert sorted(os.listdir(grown.home / folder / "folder1")) == ["old"]


@pytest.mark.requirement("H17")
def test_a_65th_question_is_refused_at_once(grown: Mounted) -> None:
    grown.person.new_turn()
    grown.person.forget(silence)
    folder = grown.fresh()
    calls = _callers(grown.view / folder, grown.home / folder)
    with grown.watchdog(), _waiting(grown, calls):
        wait_until(lambda: grown.person.status().open_questions == 64)
        (grown.home / folder / "one more").touch()
        errno_of(os.truncate, grown.view / folder / "one more", 5)
        assert "one more" in grown.refusals().strip().split("\n\n")[-1]
        assert grown.person.status().open_questions == 64


@pytest.mark.requirement("L5")
def test_answering_one_by_one_carries_each_out(grown: Mounted) -> None:
    grown.person.new_turn()
    grown.person.forget(silence)
    folder = grown.fresh()
    calls = _callers(grown.view / folder, grown.home / folder)
    with grown.watchdog(), _waiting(grown, calls) as failures:
        wait_until(lambda: grown.person.status().open_questions == 64)
        for question in grown.person.open_questions():
            grown.person.answer(question, Allow())
        wait_until(lambda: grown.person.status().open_questions == 0)
    assert failures == []
    left = [os.listdir(grown.home / folder / f"folder{number}") for number in range(3)]
    assert [sorted(names) for names in left] == [["new", "old"], [], ["moved"]]


@pytest.mark.timing
@pytest.mark.timeout(150)
@pytest.mark.requirement("L1")
def test_a_walk_over_100_000_files_needs_little_memory_and_few_descriptors() -> None:
    with place() as base:
        made = make_home(base)
        _grow(made.home / "many", folders=2000, files=50)
        with mounted(made) as here, here.watchdog():
            done = subprocess.run(
                ["find", made.view / "many", "-type", "f"], check=True, stdout=subprocess.PIPE
            )
            assert done.stdout.count(b"\n") == 100_000
            assert here.daemon.memory() < _MEMORY, here.daemon.memory() >> 20
            assert here.person.status().descriptors <= _DESCRIPTORS


@pytest.mark.requirement("L1")
def test_descriptors_are_at_most_the_bound_and_the_open_files(grown: Mounted) -> None:
    files = sorted((grown.view / "tree").glob("*/f0000*"))[:400]
    opened = [os.open(path, os.O_RDONLY) for path in files]
    try:
        held = grown.person.status().descriptors
        assert len(opened) <= held <= _DESCRIPTORS + len(opened)
        assert all(os.read(fd, 1) == b"" for fd in opened)
    finally:
        for fd in opened:
            os.close(fd)
