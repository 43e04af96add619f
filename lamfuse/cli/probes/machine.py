"""What the probes read of the machine: small files, devices and the words of programs.

Nothing here judges. A file that is not there and one that may not be read are the same: unknown.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

__all__ = ["Done", "Here", "Machine", "number"]

#: Bytes of a file that are looked at; the files of /proc that are meant are smaller.
_MOST_BYTES: Final = 1 << 20
_NO_CODE: Final = -1


@dataclass(frozen=True, slots=True)
class Done:
    """What a program said. ``code`` is None when it had to be ended, ``out`` then what it had."""

    code: int | None
    out: str = ""
    err: str = ""

    @property
    def complaint(self) -> str:
        """The last line of what it said, or that it said nothing in time."""
        if self.code is None:
            return "it did not end in time"
        lines = (self.err or self.out).strip().splitlines()
        return lines[-1] if lines else f"exit status {self.code}"


class Machine(Protocol):
    """Where the probes look. ``uid`` is the user's."""

    environ: Mapping[str, str]
    uid: int

    def text(self, path: str) -> str | None:
        """Return what stands in a small file, or None where that is unknown."""

    def stat(self, path: str) -> os.stat_result | None:
        """Return what is at *path*, links followed, or None where that is unknown."""

    def refusal(self, device: str) -> int:
        """Return the errno of opening *device* for reading and writing; 0 when it works."""

    def find(self, program: str) -> str | None:
        """Return the path of a program, or None."""

    def run(self, command: Sequence[str], seconds: float) -> Done:
        """Run a program to its end, in ``/``, without input."""

    def inotify_use(self) -> tuple[int, int]:
        """Return how many inotify instances and watches the user's processes hold."""


class Here:
    """This machine."""

    def __init__(self) -> None:
        self.environ: Mapping[str, str] = os.environ
        self.uid = os.getuid()

    def text(self, path: str) -> str | None:
        """Return what stands in a small file, or None where that is unknown."""
        try:
            with open(path, "rb") as file:
                return file.read(_MOST_BYTES).decode(errors="replace")
        except OSError:
            return None

    def stat(self, path: str) -> os.stat_result | None:
        """Return what is at *path*, links followed, or None where that is unknown."""
        try:
            return os.stat(path)
        except OSError:
            return None

    def refusal(self, device: str) -> int:
        """Return the errno of opening *device* for reading and writing; 0 when it works."""
        try:
            os.close(os.open(device, os.O_RDWR | os.O_CLOEXEC))  # noqa: TID251 - no tree
        except OSError as error:
            return error.errno or _NO_CODE
        return 0

    def find(self, program: str) -> str | None:
        """Return the path of a program, or None."""
        return shutil.which(program)

    def run(self, command: Sequence[str], seconds: float) -> Done:
        """Run a program to its end, in ``/``, without input."""
        try:
            done = subprocess.run(
                list(command),
                cwd="/",
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=seconds,
            )
        except subprocess.TimeoutExpired:
            return Done(None)
        except OSError as error:
            return Done(_NO_CODE, err=error.strerror or str(error))
        return Done(done.returncode, done.stdout.decode(errors="replace"),
                    done.stderr.decode(errors="replace"))  # fmt: skip

    def inotify_use(self) -> tuple[int, int]:
        """Return how many inotify instances and watches the user's processes hold."""
        instances = watches = 0
        for pid in filter(str.isdigit, os.listdir("/proc")):
            for fd in _inotify_descriptors(pid):
                instances += 1
                watches += (self.text(f"/proc/{pid}/fdinfo/{fd}") or "").count("inotify wd:")
        return instances, watches


def _inotify_descriptors(pid: str) -> list[str]:
    """Return the inotify descriptors of a process; none where it may not be looked at."""
    place = f"/proc/{pid}/fd"
    try:
        if os.stat(place).st_uid != os.getuid():
            return []
        return [
            fd for fd in os.listdir(place)
            if _target(f"{place}/{fd}") == "anon_inode:inotify"
        ]  # fmt: skip
    except OSError:
        return []  # it ended, or does not let itself be looked at


def _target(link: str) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""  # closed meanwhile


def number(machine: Machine, path: str) -> int | None:
    """Return the number that stands in a file of the kernel, or None where there is none."""
    text = (machine.text(path) or "").strip()
    return int(text) if text.lstrip("-").isdigit() else None
