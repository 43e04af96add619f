"""The file systems that are mounted below a directory, from /proc/self/mountinfo.

Asking anything of a mountpoint could ask the daemon itself (its own view, mounted below home),
which then waits for itself for ever. So the mountpoints are known before anything is asked.
"""

from __future__ import annotations

import os
import re
import select
from dataclasses import dataclass

from lamfuse.core import paths

__all__ = ["Mount", "below", "mounts", "open_mountinfo", "wait_changed"]

_ESCAPE = re.compile(rb"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of mountinfo: where, what kind of file system, and its source."""

    path: bytes
    kind: bytes
    source: bytes


def open_mountinfo() -> int:
    """Open mountinfo; poll reports an exceptional condition whenever a mount came or went."""
    return os.open(b"/proc/self/mountinfo", os.O_RDONLY | os.O_CLOEXEC)  # noqa: TID251 - no file of a tree


def wait_changed(fd: int) -> None:
    """Return once a mount came or went since the last call with *fd*; blocks, so in a thread.

    mountinfo is readable all the time: an event loop cannot wait for it.
    """
    poll = select.poll()
    poll.register(fd, select.POLLPRI)
    poll.poll()


def mounts() -> list[Mount]:
    """Return every mount of this namespace."""
    fd = open_mountinfo()
    try:
        chunks = []
        while chunk := os.read(fd, 1 << 16):
            chunks.append(chunk)
    finally:
        os.close(fd)
    result = []
    # Not splitlines: the kernel escapes a newline, but no other byte that ends a line to Python.
    for line in b"".join(chunks).removesuffix(b"\n").split(b"\n"):
        fields = line.split(b" ")
        separator = fields.index(b"-")
        kind, source = fields[separator + 1], fields[separator + 2]
        result.append(Mount(_plain(fields[4]), kind, _plain(source)))
    return result


def below(directory: bytes) -> frozenset[bytes]:
    """Return every mountpoint strictly below *directory*."""
    return frozenset(
        mount.path
        for mount in mounts()
        if mount.path != directory and paths.contains(directory, mount.path)
    )


def _plain(field: bytes) -> bytes:
    return _ESCAPE.sub(lambda match: bytes([int(match[1], 8)]), field)
