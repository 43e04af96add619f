"""Work in a process of its own, which is waited for only so long.

Whoever touches a file system that does not answer waits for it uninterruptibly, and not even
SIGKILL ends that. So the doctor touches nothing itself: a child does, says what it finds as it
finds it, and is left behind when its time is over. It leads a process group of its own, so that
Ctrl-C does not end it in the middle: it ends on its own, and what it set up goes with it.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from typing import Final, NoReturn

from lamfuse.cli.exit_codes import innermost

__all__ = ["Gathered", "gather", "wait_for"]

_ITEM, _END, _FAULT = b"+", b".", b"!"
_READ_BYTES: Final = 65536
#: Seconds that a killed child is waited for; one that hangs in the kernel does not go at all.
_BURIAL_S: Final = 1.0


@dataclass(slots=True)
class Gathered:
    """What a child said: ``lines``, whether it came to its end, and else what went wrong.

    ``fault`` is empty where it merely took too long.
    """

    lines: list[bytes] = field(default_factory=list)
    has_ended: bool = False
    fault: str = ""


def gather(work: Callable[[], Iterable[bytes]], seconds: float) -> Gathered:
    """Run *work* in a child and return the lines (without line breaks) that it yields in time."""
    sys.stdout.flush()
    sys.stderr.flush()
    reading, writing = os.pipe()
    # Ctrl-C comes only when there is somebody who tells the child.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(reading)
        _work(work, writing)
    result = Gathered()
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(writing)
        _receive(reading, result, seconds)
    except BaseException:
        # Somebody pressed Ctrl-C: the child clears up, and nobody waits for that.
        _signal(child, signal.SIGTERM)
        raise
    finally:
        os.close(reading)
    if not result.has_ended and not result.fault:
        _kill(child)
    wait_for(child, _BURIAL_S)
    return result


def _work(work: Callable[[], Iterable[bytes]], writing: int) -> NoReturn:
    """Be the child; never returns into the code of the parent."""
    try:
        signal.signal(signal.SIGTERM, _leave)
        os.setsid()
        with contextlib.closing(_each(work)) as lines:
            for line in lines:
                os.write(writing, _ITEM + line + b"\n")
        os.write(writing, _END + b"\n")
    except BrokenPipeError:
        os._exit(1)  # nobody listens any more
    except BaseException as exc:  # noqa: BLE001 - an edge: the end of this process
        error = innermost(exc)
        text = f"{type(error).__name__}: {error}".encode(errors="replace").replace(b"\n", b" ")
        with contextlib.suppress(OSError):
            os.write(writing, _FAULT + text + b"\n")
    finally:
        os._exit(0)


def _each(work: Callable[[], Iterable[bytes]]) -> Generator[bytes, None, None]:
    yield from work()


def _leave(_number: int, _frame: object) -> NoReturn:
    raise SystemExit


def _receive(reading: int, result: Gathered, seconds: float) -> None:
    """Read until the child says that it is done, or is gone, or its time is over."""
    deadline = time.monotonic() + seconds
    poll = select.poll()
    poll.register(reading, select.POLLIN)
    rest = b""
    while (left := deadline - time.monotonic()) > 0:
        if not poll.poll(left * 1000):
            return
        data = os.read(reading, _READ_BYTES)
        if not data:
            result.fault = "its process ended early"
            return
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            kind, said = line[:1], line[1:]
            if kind == _ITEM:
                result.lines.append(said)
            elif kind == _END:
                result.has_ended = True
                return
            else:
                result.fault = said.decode(errors="replace") or "it failed"
                return


def _kill(child: int) -> None:
    """End the child and what it started, as far as the kernel lets them go."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    _signal(child, signal.SIGKILL)


def _signal(child: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, number)


def wait_for(child: int, seconds: float) -> bool:
    """Wait for the end of a child of this process; tells whether it has ended."""
    try:
        pidfd = os.pidfd_open(child)
    except ProcessLookupError:
        return True
    try:
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        if not poll.poll(seconds * 1000):
            return False
    finally:
        os.close(pidfd)
    os.waitpid(child, 0)
    return True
