"""The exit codes, and the one place where an error becomes one of them.

Nothing here prints.
"""

from __future__ import annotations

import enum
from typing import Final

from lamfuse.core.errors import LamfuseError, MachineError, NotRunningError, UsageError

__all__ = ["ExitCode", "code_of", "innermost"]


class ExitCode(enum.IntEnum):
    """What a script can rely on."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NOT_RUNNING = 3
    MACHINE = 4
    INTERRUPTED = 130


#: The first type that fits counts; every other error of ours is FAILED.
_TABLE: Final[tuple[tuple[type[LamfuseError], ExitCode], ...]] = (
    (UsageError, ExitCode.USAGE),
    (NotRunningError, ExitCode.NOT_RUNNING),
    (MachineError, ExitCode.MACHINE),
)


def code_of(error: BaseException) -> ExitCode:
    """Return the exit code that *error* stands for."""
    error = innermost(error)
    if isinstance(error, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    return next((code for kind, code in _TABLE if isinstance(error, kind)), ExitCode.FAILED)


def innermost(error: BaseException) -> BaseException:
    """Return the one error in a group of one, as an event loop wraps it; else *error* itself.

    A group in which somebody pressed Ctrl-C is that, whatever else ended by it.
    """
    if isinstance(error, BaseExceptionGroup) and error.subgroup(KeyboardInterrupt) is not None:
        return KeyboardInterrupt()
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
