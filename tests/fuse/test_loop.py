"""The session loop that looks before it parks, and its fallback."""

import inspect
import os
from collections.abc import Iterator

import pyfuse3
import pytest
import trio

from lamfuse.fuse import loop


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """Give a pipe whose reading end stands for the FUSE descriptor."""
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)
    os.close(writing)


async def _never() -> bool:
    raise AssertionError("it parked although something was there")


async def test_what_is_there_is_served_without_parking(pipe: tuple[int, int]) -> None:
    os.write(pipe[1], b"x")

    assert await loop.waiter(pipe[0], _never)() is True


async def test_after_parking_it_is_looked_at_again(pipe: tuple[int, int]) -> None:
    parked = 0

    async def stock() -> bool:
        nonlocal parked
        await trio.lowlevel.checkpoint()
        parked += 1
        if parked == 3:
            os.write(pipe[1], b"x")
        return True

    assert await loop.waiter(pipe[0], stock)() is True
    assert parked == 3


async def test_the_end_of_the_session_ends_the_waiting(pipe: tuple[int, int]) -> None:
    async def stock() -> bool:
        await trio.lowlevel.checkpoint()
        return False

    assert await loop.waiter(pipe[0], stock)() is False


async def test_others_get_their_turn_under_a_stream_of_requests(pipe: tuple[int, int]) -> None:
    os.write(pipe[1], b"x")
    wait = loop.waiter(pipe[0], _never)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        for _ in range(1000):
            assert await wait()
        nursery.cancel_scope.cancel()

    assert turns >= 1000 // 33


async def test_a_request_that_another_task_took_meanwhile_is_not_received_twice(
    pipe: tuple[int, int],
) -> None:
    os.write(pipe[1], b"x")
    parked = False

    async def stock() -> bool:
        nonlocal parked
        parked = True
        await trio.lowlevel.checkpoint()
        return False

    wait = loop.waiter(pipe[0], stock)
    for _ in range(32):
        assert await wait()
    async with trio.open_nursery() as nursery:
        # It runs in the turn that the next wait gives away.
        nursery.start_soon(trio.lowlevel.checkpoint)
        os.read(pipe[0], 1)
        assert await wait() is False

    assert parked


def test_the_pyfuse3_that_is_locked_is_known() -> None:
    assert loop.is_known()


def test_another_version_keeps_the_stock_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    stock = pyfuse3._wait_fuse_readable  # type: ignore[attr-defined]
    monkeypatch.setattr(pyfuse3, "__version__", "99.0")
    monkeypatch.setattr(loop, "session_fd", lambda: 0)

    with loop.eager() as is_eager:
        assert not is_eager
        assert pyfuse3._wait_fuse_readable is stock  # type: ignore[attr-defined]


def test_another_shape_of_the_wait_keeps_the_stock_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    async def wait(descriptor: int) -> bool:
        del descriptor
        await trio.lowlevel.checkpoint()
        return True

    monkeypatch.setattr(pyfuse3, "_wait_fuse_readable", wait)

    assert not loop.is_known()


def test_the_stock_loop_is_put_back(monkeypatch: pytest.MonkeyPatch, pipe: tuple[int, int]) -> None:
    stock = pyfuse3._wait_fuse_readable  # type: ignore[attr-defined]
    monkeypatch.setattr(loop, "session_fd", lambda: pipe[0])

    with loop.eager() as is_eager:
        assert is_eager
        replaced = pyfuse3._wait_fuse_readable  # type: ignore[attr-defined]
        assert replaced is not stock
        assert not inspect.signature(replaced).parameters

    assert pyfuse3._wait_fuse_readable is stock  # type: ignore[attr-defined]
