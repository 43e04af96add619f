"""The program channel: a question as JSON to a program of the person, its answer as JSON back.

No shell is involved. Only a program that ends with status 0 and wrote exactly one right answer says
anything; all else (other output, silence, a crash) says nothing, and saying nothing never allows.
One question is one process group: what is left of it when the question ends is ended with it.
"""

from __future__ import annotations

import base64
import errno
import json
import logging
import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Literal

import msgspec
import trio

from lamfuse.core.approval import Answer, Question, Scope
from lamfuse.core.errors import ChannelLost
from lamfuse.engine.open_questions import Standing
from lamfuse.notify.render import printable

__all__ = ["MAX_OUTPUT", "Program", "question_as_data", "read_answer"]

#: Bytes a program may print; an answer has about sixty.
MAX_OUTPUT = 64 * 1024
#: Seconds between SIGTERM, which lets a dialog close, and SIGKILL.
_GRACE_S = 0.5
#: Seconds that output may stay open after the program itself has ended.
_LINGER_S = 1.0

_log = logging.getLogger(__name__)


class _Reply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    answer: Literal["allow", "decline"]
    scope: Scope | msgspec.UnsetType = msgspec.UNSET


class Program:
    """A channel that runs *argv* for each question; *standing* tells how long one has left."""

    name = "program"

    def __init__(self, argv: Sequence[str], standing: Callable[[Question], Standing]) -> None:
        self._argv = tuple(argv)
        self._standing = standing

    def is_ready(self) -> bool:
        """Whether there is a program; whether it starts is seen when it is started."""
        return bool(self._argv)

    async def ask(self, question: Question, shown: Callable[[], None]) -> Answer:
        """Run the program; the question counts as shown once it has been written to it.

        Raises ChannelLost for anything but an answer. Cancellation ends the process group.
        """
        data = question_as_data(question, self._standing(question).seconds_left)
        status, output = await self._run(json.dumps(data).encode() + b"\n", shown)
        if status != 0:
            raise ChannelLost(f"{self._argv[0]} ended with status {status}")
        return read_answer(output, question)

    async def _run(self, text: bytes, shown: Callable[[], None]) -> tuple[int, bytes]:
        """Return exit status (negative: signal) and output."""
        try:
            process = await trio.lowlevel.open_process(
                self._argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise ChannelLost(f"{self._argv[0]} could not be started: {error}") from error
        child = _Child(process, os.pidfd_open(process.pid))
        try:
            return await child.converse(text, shown)
        finally:
            with trio.CancelScope(shield=True):
                await child.end()


class _Child:
    """A started program, with its streams and a descriptor that tells its end.

    Its leader is reaped only after the group was signalled for the last time: until then the number
    of the group cannot have become another's.
    """

    def __init__(self, process: trio.Process, pidfd: int) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self._pidfd = pidfd
        self._stdin, self._stdout, self._stderr = process.stdin, process.stdout, process.stderr
        self._output = bytearray()
        self._output_ended = trio.Event()
        self._is_reaped = False

    async def converse(self, text: bytes, shown: Callable[[], None]) -> tuple[int, bytes]:
        """Write the question, wait for the end, and return status and output.

        Raises ChannelLost when there was too much output.
        """
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._write, text, shown)
            nursery.start_soon(self._read_output)
            nursery.start_soon(self._log_errors)
            await trio.lowlevel.wait_readable(self._pidfd)
            with trio.move_on_after(_LINGER_S):
                await self._output_ended.wait()
            nursery.cancel_scope.cancel()
        status = await self._reap()
        if len(self._output) > MAX_OUTPUT:
            raise ChannelLost(f"the program printed more than {MAX_OUTPUT:,} bytes")
        return status, bytes(self._output)

    async def end(self) -> None:
        """End what is left of the group, gently first, and close all that was opened for it."""
        try:
            # Not by `returncode`: to look at that reaps the leader.
            if not self._is_reaped:
                self._signal(signal.SIGTERM)
                with trio.move_on_after(_GRACE_S):
                    await trio.lowlevel.wait_readable(self._pidfd)
                await self._reap()
        finally:
            os.close(self._pidfd)
            for stream in (self._stdin, self._stdout, self._stderr):
                await stream.aclose()

    async def _reap(self) -> int:
        """Kill the group, leader and all, and return the leader's status."""
        self._signal(signal.SIGKILL)
        with trio.CancelScope(shield=True):
            status = await self._process.wait()
        self._is_reaped = True
        return status

    async def _write(self, text: bytes, shown: Callable[[], None]) -> None:
        """Write the question; a program that does not take it has not shown it."""
        with suppress(trio.BrokenResourceError):
            await self._stdin.send_all(text)
            shown()
        await self._stdin.aclose()

    async def _read_output(self) -> None:
        async for chunk in self._stdout:
            self._output += chunk
            if len(self._output) > MAX_OUTPUT:
                self._signal(signal.SIGKILL)
                break
        self._output_ended.set()

    async def _log_errors(self) -> None:
        """Log what the program complains about, up to a bound; the rest is read and dropped."""
        logged = 0
        async for chunk in self._stderr:
            for line in chunk.decode(errors="backslashreplace").splitlines():
                if logged < MAX_OUTPUT:
                    _log.info("program: %s", printable(line))
                logged += len(line) + 1

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.killpg(self._process.pid, number)
        except OSError as error:
            # EPERM: all that is left changed its user.
            if error.errno not in {errno.ESRCH, errno.EPERM}:
                raise


def question_as_data(question: Question, deadline_s: float) -> dict[str, Any]:
    """Return *question* as the JSON object of the program channel.

    A path that is no UTF-8 is ``{"b64": ...}``, as in the journal. ``deadline_s`` is in seconds.
    """
    request = question.request
    return {
        "id": question.id,
        "operation": str(request.operation),
        "paths": [_path(path) for path in request.paths],
        "title": question.text.title,
        "body": list(question.text.body),
        "destructive": question.text.destructive,
        "deadline_s": round(deadline_s, 1),
        "caller": {
            "pid": request.caller.pid,
            "exe": _path(request.caller.exe),
            "session": request.session,
        },
        "scopes": [str(offer.scope) for offer in question.offers],
    }


def _path(path: bytes) -> str | dict[str, str]:
    try:
        return path.decode()
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(path).decode()}


def read_answer(output: bytes, question: Question) -> Answer:
    """Read what a program printed; raises ChannelLost unless it is an answer to *question*."""
    try:
        reply = msgspec.convert(json.loads(output, object_pairs_hook=_once_each), _Reply)
    except (ValueError, RecursionError) as error:
        raise ChannelLost(f"the program printed no answer: {error}") from error
    if reply.id != question.id:
        raise ChannelLost("the program answered another question")
    scope = reply.scope if isinstance(reply.scope, Scope) else None
    if scope is not None and question.offer(scope) is None:
        raise ChannelLost(f"the program chose the scope {scope}, which is not offered")
    return Answer(reply.answer == "allow", scope, Program.name)


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse an object that says a thing twice: it is not clear which one was meant."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found
