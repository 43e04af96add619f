"""A process of its own for the daemon, which tells its starter whether it came up.

The starter waits: a command that returns has either a working daemon behind it or the reason why
not. The fork happens before anything starts threads or an event loop.
"""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Callable
from typing import Final, NoReturn

import msgspec

from lamfuse.cli.exit_codes import ExitCode, code_of, innermost
from lamfuse.core.errors import LamfuseError, MachineError, RefusedError, UsageError

__all__ = ["LOG_FORMAT", "detach"]

LOG_FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"

#: A log of a daemon that was started again and again is set aside at this size (bytes).
_LOG_LIMIT: Final = 4 << 20

_log = logging.getLogger(__name__)

_ERRORS: Final[dict[int, type[LamfuseError]]] = {
    ExitCode.USAGE: UsageError,
    ExitCode.MACHINE: MachineError,
}


class _Report(msgspec.Struct, frozen=True):
    """What the daemon tells its starter: a code, and a line or the reason."""

    code: int
    text: str


def detach(act: Callable[[Callable[[str], None]], None], log_file: bytes) -> str:
    """Run *act* in a process without terminal; return the line that it passes to its argument.

    Raises what *act* raised before that, as an error of the same exit code. Standard output and
    error of the process go to *log_file*, which must be in a directory of ours.
    """
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.setsid()
        # The grandchild leads no session: opening a terminal can never make it ours.
        if os.fork() != 0:
            os._exit(0)
        _run(act, log_file, writing)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as pipe:
        received = pipe.read()
    if not received:
        raise RefusedError(
            f"The daemon ended before it was ready. Its log: {os.fsdecode(log_file)}"
        )
    report = msgspec.json.decode(received, type=_Report)
    if report.code != ExitCode.DONE:
        raise _ERRORS.get(report.code, RefusedError)(report.text)
    return report.text


def _run(act: Callable[[Callable[[str], None]], None], log_file: bytes, writing: int) -> NoReturn:
    """Be the daemon; never returns into the code of the starter."""
    waiting = True

    def tell(report: _Report) -> None:
        nonlocal waiting
        waiting = False
        try:
            os.write(writing, msgspec.json.encode(report))
        finally:
            os.close(writing)

    def ready(line: str) -> None:
        tell(_Report(ExitCode.DONE, line))

    code = ExitCode.FAILED
    try:
        os.chdir("/")
        _redirect(log_file)
        act(ready)
        code = ExitCode.DONE
    except BaseException as exc:  # noqa: BLE001 - an edge: the end of this process
        error = innermost(exc)
        code = code_of(error)
        if not isinstance(error, LamfuseError):
            traceback.print_exception(exc)
        if waiting:
            tell(_Report(code, _reason(error, log_file)))
        elif isinstance(error, LamfuseError):
            _log.error("the daemon ended: %s", error)
    finally:
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _reason(error: BaseException, log_file: bytes) -> str:
    if isinstance(error, LamfuseError):
        return str(error)
    what = f"{type(error).__name__}: {error}"
    return f"a fault of lamfuse itself: {what}. Its log: {os.fsdecode(log_file)}"


def _redirect(log_file: bytes) -> None:
    """Point standard input at nothing, and output and error at the log."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    log = os.open(log_file, flags, 0o600)  # noqa: TID251 - our own state directory
    if os.fstat(log).st_size > _LOG_LIMIT:
        os.close(log)
        os.replace(log_file, log_file + b".1")
        log = os.open(log_file, flags, 0o600)  # noqa: TID251 - our own state directory
    nothing = os.open(os.devnull, os.O_RDONLY)  # noqa: TID251 - no tree
    for source, target in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    os.close(nothing)
    os.close(log)
    # Whoever started us may have put other objects there (a test does).
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - for good
    sys.stdout, sys.stderr = (
        open(fd, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115 - for good
        for fd in (1, 2)
    )
