"""A session loop that looks before it parks.

pyfuse3 goes through trio's epoll for every request. Here the FUSE descriptor is polled first, and
only an idle mount parks; a stream of requests is then served without a turn of the event loop for
each.

It replaces a private name of pyfuse3, so it is guarded: another version, or another shape of that
name, leaves the stock loop in place, which is slower and right.
"""

from __future__ import annotations

import inspect
import logging
import os
import select
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import cast

import pyfuse3
import trio

from lamfuse.tree import syscalls

__all__ = ["EAGER_VERSIONS", "eager", "is_known", "session_fd", "waiter"]

log = logging.getLogger(__name__)

#: Versions whose loop was read: it receives right after its wait returns, and counts parked tasks.
EAGER_VERSIONS = frozenset({"3.5.0"})
#: After so many requests in a row, whatever else is runnable gets its turn.
_STREAK = 32
_NAME = "_wait_fuse_readable"
_DEVICE = b"/dev/fuse"

Wait = Callable[[], Awaitable[bool]]


def is_known() -> bool:
    """Whether this pyfuse3 has the wait that is replaced, in the shape that was read."""
    stock = getattr(pyfuse3, _NAME, None)
    if pyfuse3.__version__ not in EAGER_VERSIONS or stock is None:
        return False
    try:
        return not inspect.signature(stock).parameters
    except (TypeError, ValueError):
        return False


def session_fd() -> int | None:
    """Return the descriptor of the FUSE session, None unless there is exactly one."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            target = syscalls.real_path(int(name))
        except OSError:
            continue  # the descriptor of the listing itself
        if target == _DEVICE:
            found.append(int(name))
    return found[0] if len(found) == 1 else None


@contextmanager
def eager() -> Iterator[bool]:
    """Serve eagerly for the time of the block; gives whether it does."""
    fd = session_fd()
    if fd is None or not is_known():
        log.info("pyfuse3 %s is served with its own loop, which is slower", pyfuse3.__version__)
        yield False
        return
    stock = cast("Wait", getattr(pyfuse3, _NAME))
    setattr(pyfuse3, _NAME, waiter(fd, stock))
    try:
        yield True
    finally:
        setattr(pyfuse3, _NAME, stock)


def waiter(fd: int, stock: Wait) -> Wait:
    """Return the wait that polls *fd* and parks in *stock*; it returns what *stock* returns.

    Whoever gets True receives at once, without a turn of the event loop in between, so what was
    seen is still there. After any such turn it is looked at again: another task may have taken it,
    and receiving would then block the process.
    """
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    streak = 0

    async def wait() -> bool:
        nonlocal streak
        if streak >= _STREAK:
            streak = 0
            await trio.lowlevel.checkpoint()
        while not poll.poll(0):
            streak = 0
            if not await stock():
                return False
        streak += 1
        return True

    return wait
