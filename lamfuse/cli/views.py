"""The views of lamfuse among the mounts of this machine, dead ones above all.

A dead view is what a daemon that was killed leaves behind: every access to it fails until it is
unmounted. Nothing here touches a mountpoint before the table of mounts says what it is.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess

from lamfuse.cli import render
from lamfuse.core import paths
from lamfuse.core.errors import MachineError, RefusedError
from lamfuse.tree.mounts import Mount, mounts

__all__ = ["find_fusermount", "is_dead", "is_view", "mount_at", "settle", "take_away"]

_DEAD = frozenset({errno.ENOTCONN, errno.ECONNABORTED})
_SOURCE = b"lamfuse"
_TIMEOUT_S = 10.0


def settle(path: bytes) -> bytes:
    """Return where *path* really is, without touching the object if something is mounted on it."""
    parent, name = os.path.split(os.path.abspath(path))
    if not name:
        return b"/"
    here = paths.join(os.path.realpath(parent), name)  # noqa: TID251 - a place that is named, not used
    if mount_at(here) is not None:
        return here
    return os.path.realpath(here)  # noqa: TID251 - the same


def mount_at(path: bytes) -> Mount | None:
    """Return what is mounted on *path* (the topmost), or None."""
    return next((mount for mount in reversed(mounts()) if mount.path == path), None)


def is_view(mount: Mount) -> bool:
    """Tell whether *mount* is a view of lamfuse."""
    return mount.kind.startswith(b"fuse") and mount.source == _SOURCE


def is_dead(mount: Mount) -> bool:
    """Tell whether nobody answers for *mount* any more."""
    try:
        os.stat(mount.path)
    except OSError as error:
        return error.errno in _DEAD
    return False


def take_away(mount: Mount) -> None:
    """Unmount a dead view, also while somebody's working directory is in it."""
    program = find_fusermount()
    complaint = ""
    for flags in ("-u", "-uz"):
        done = subprocess.run(
            [program, flags, "--", mount.path],
            capture_output=True,
            check=False,
            timeout=_TIMEOUT_S,
        )
        if done.returncode == 0:
            return
        complaint = done.stderr.decode(errors="backslashreplace").strip()
    shown = render.person_path(mount.path)
    raise RefusedError(f"The dead mount at {shown} cannot be taken away: {complaint}")


def find_fusermount() -> str:
    """Return the path of fusermount3; raises :class:`MachineError` without it."""
    program = shutil.which("fusermount3")
    if program is None:
        raise MachineError(
            "fusermount3 is not installed. It is in the package fuse3 (apt install fuse3,"
            " dnf install fuse3, pacman -S fuse3)."
        )
    return program
