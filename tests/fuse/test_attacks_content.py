"""Attacks on content: whoever else writes to a file loses nothing by a write through the view."""

import mmap
import os
import threading

import pytest

from tests.fuse.bench import Bench
from tests.person import plain_yes

pytestmark = [pytest.mark.mount, pytest.mark.requirement("L3")]


def _append_outside(bench: Bench, data: bytes) -> None:
    with (bench.real / "log").open("ab", buffering=0) as log:
        log.write(data)


def test_an_append_overwrites_nothing_that_somebody_else_appended(bench: Bench) -> None:
    bench.person.forget(plain_yes)
    (bench.real / "log").write_bytes(b"begin;")
    os.stat(bench.here / "log")
    _append_outside(bench, b"theirs 1;")
    log = os.open(bench.here / "log", os.O_WRONLY | os.O_APPEND)
    try:
        os.write(log, b"ours 1;")
        _append_outside(bench, b"theirs 2;")
        os.write(log, b"ours 2;")
        os.write(log, b"ours 3;")
    finally:
        os.close(log)
    expected = b"begin;theirs 1;ours 1;theirs 2;ours 2;ours 3;"
    assert (bench.real / "log").read_bytes() == expected
    assert (bench.here / "log").read_bytes() == expected


def test_several_appenders_on_both_sides_lose_no_line(bench: Bench) -> None:
    bench.person.forget(plain_yes)
    (bench.real / "log").write_bytes(b"")
    logs = [os.open(bench.here / "log", os.O_WRONLY | os.O_APPEND) for _ in range(2)]
    logs.append(os.open(bench.real / "log", os.O_WRONLY | os.O_APPEND))

    def work(number: int, log: int) -> None:
        for line in range(500):
            os.write(log, b"%d %06d\n" % (number, line))

    threads = [threading.Thread(target=work, args=(number, log)) for number, log in enumerate(logs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for log in logs:
        os.close(log)
    lines = (bench.real / "log").read_bytes().splitlines()
    assert len(lines) == len(set(lines)) == 1500


def test_a_page_of_a_mapping_lands_in_its_place_while_others_append(bench: Bench) -> None:
    bench.person.forget(plain_yes)
    (bench.real / "log").write_bytes(b"." * 10_000)
    mapped = os.open(bench.here / "log", os.O_RDWR)
    log = os.open(bench.here / "log", os.O_WRONLY | os.O_APPEND)
    try:
        with mmap.mmap(mapped, 10_000) as pages:
            os.write(log, b"first;")
            pages[5_000:5_004] = b"page"
            pages.flush()
            os.write(log, b"second;")
    finally:
        os.close(mapped)
        os.close(log)
    content = (bench.real / "log").read_bytes()
    assert content == b"." * 5_000 + b"page" + b"." * 4_996 + b"first;second;"
