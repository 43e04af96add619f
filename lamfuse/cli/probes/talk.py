"""Asking the daemon how it is, and a file system whether it answers: each for so long only."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import msgspec

from lamfuse.cli.probes import apart
from lamfuse.control import client, wire
from lamfuse.core.errors import LamfuseError, NotRunningError

__all__ = ["Said", "answer_of", "status_of"]

STATUS_S: Final = 5.0
ANSWER_S: Final = 5.0
#: Stands before what is no status.
_FAULT: Final = b"!"


@dataclass(frozen=True, slots=True)
class Said:
    """What the daemon said; without a status and a ``fault`` none runs."""

    status: wire.Status | None = None
    fault: str = ""


def status_of(socket: bytes, seconds: float = STATUS_S) -> Said:
    """Ask the daemon that listens at *socket* how it is."""

    def ask() -> Iterator[bytes]:
        try:
            with client.connect(socket) as connected:
                yield msgspec.json.encode(connected.status())
        except NotRunningError:
            return
        except LamfuseError as error:
            yield _FAULT + str(error).encode(errors="replace").replace(b"\n", b" ")

    told = apart.gather(ask, seconds)
    if told.lines and told.lines[0].startswith(_FAULT):
        return Said(fault=told.lines[0].removeprefix(_FAULT).decode())
    if told.lines:
        return Said(msgspec.json.decode(told.lines[0], type=wire.Status))
    if told.has_ended:
        return Said()
    return Said(fault=told.fault or f"it said nothing within {seconds:g} s")


def answer_of(place: bytes, seconds: float = ANSWER_S) -> int | None:
    """Ask the file system at *place* for its numbers.

    Returns 0, or the errno; None when it does not answer in time.
    """

    def ask() -> Iterator[bytes]:
        try:
            os.statvfs(place)
        except OSError as error:
            yield b"%d" % (error.errno or errno.EIO)
        else:
            yield b"0"

    told = apart.gather(ask, seconds)
    return int(told.lines[0]) if told.lines else None
