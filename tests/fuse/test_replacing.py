"""A file that is replaced under its readers: each sees the old content or the new."""

import os
import threading
from pathlib import Path

import pytest

from lamfuse.fuse import mount
from tests.fuse.bench import Bench
from tests.person import widest

_SIZE = 5000


@pytest.mark.mount
@pytest.mark.requirement("L1")
def test_who_reads_while_a_file_is_replaced_always_gets_a_whole_one(bench: Bench) -> None:
    bench.person.forget(widest)
    (bench.here / "cfg").write_text("0" * _SIZE)
    failures: list[object] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            try:
                content = (bench.here / "cfg").read_text()
            except OSError as error:
                failures.append(error)
            else:
                if len(content) != _SIZE:
                    failures.append(len(content))

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        for number in range(150):
            (bench.here / "cfg.tmp").write_text(str(number % 10) * _SIZE)
            os.replace(bench.here / "cfg.tmp", bench.here / "cfg")
    finally:
        stop.set()
        for reader in readers:
            reader.join()

    assert failures == []


class TestTheKernelsOwnLimit:
    def test_without_one_nothing_bounds_the_waiting(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(mount, "_REQUEST_TIMEOUTS", (bytes(tmp_path / "absent"),))

        assert mount.longest_wait_s() == float("inf")

    def test_the_shorter_of_two_bounds_it_with_a_margin(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name, value in (("default", 30), ("max", 60), ("never", 0)):
            (tmp_path / name).write_text(f"{value}\n")
        settings = tuple(bytes(tmp_path / name) for name in ("default", "max", "never"))
        monkeypatch.setattr(mount, "_REQUEST_TIMEOUTS", settings)

        assert mount.longest_wait_s() == pytest.approx(24.0)
