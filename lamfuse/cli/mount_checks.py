"""What must hold before a view is mounted; each failure names the thing and the remedy.

Everything is looked at before anything is started or changed. The daemon checks again what it
depends on: these checks are for the person.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import Final

from lamfuse.cli import render, views
from lamfuse.core import names
from lamfuse.core.errors import MachineError, RefusedError

__all__ = ["check_directory", "check_free", "check_machine"]

_FUSE: Final = "/dev/fuse"
_NAMED: Final = 3


def check_machine() -> None:
    """Raise :class:`MachineError` unless this machine can mount FUSE file systems."""
    views.find_fusermount()
    try:
        fd = os.open(_FUSE, os.O_RDWR | os.O_CLOEXEC)  # noqa: TID251 - a device, not the tree
    except OSError as error:
        raise MachineError(_no_fuse(error)) from error
    os.close(fd)


def _no_fuse(error: OSError) -> str:
    if error.errno in {errno.ENOENT, errno.ENXIO, errno.ENODEV}:
        return (
            f"{_FUSE} is not there, so no file system can be mounted. Load the kernel module"
            " (sudo modprobe fuse); in a container, start it with --device /dev/fuse."
        )
    if error.errno in {errno.EACCES, errno.EPERM}:
        return (
            f"{_FUSE} may not be opened by you: {error.strerror}. Give it mode 0666 (sudo chmod"
            f" 0666 {_FUSE}), or join the group that owns it; in a container, start it with"
            " --device /dev/fuse."
        )
    return f"{_FUSE} cannot be opened: {error.strerror}."


def check_free(place: bytes) -> None:
    """Take a dead view away from *place*; raise :class:`RefusedError` for anything alive there."""
    mount = views.mount_at(place)
    while mount is not None and views.is_view(mount) and views.is_dead(mount):
        views.take_away(mount)
        render.aside(f"took away a dead view at {render.person_path(place)}")
        mount = views.mount_at(place)
    if mount is None:
        return
    shown = render.person_path(place)
    if views.is_view(mount):
        raise RefusedError(
            f"A view is mounted at {shown} already. Unmount it (lamfuse unmount), or give"
            " another mountpoint."
        )
    kind = names.show_name(mount.kind)
    raise RefusedError(
        f"{shown} is the mountpoint of another file system ({kind}). Give an empty directory."
    )


def check_directory(place: bytes) -> None:
    """Raise :class:`RefusedError` unless *place* is an empty directory that we may mount on."""
    shown = render.person_path(place)
    try:
        found = os.stat(place)
        entries = os.listdir(place) if stat.S_ISDIR(found.st_mode) else []
    except FileNotFoundError as error:
        raise RefusedError(
            f"The mountpoint {shown} does not exist. Make it first: mkdir -p {shown}"
        ) from error
    except OSError as error:
        raise RefusedError(
            f"The mountpoint {shown} cannot be used: {error.strerror}. Give a directory of yours."
        ) from error
    if not stat.S_ISDIR(found.st_mode):
        raise RefusedError(f"The mountpoint {shown} is not a directory. Give an empty directory.")
    if entries:
        some = ", ".join(names.show_name(name) for name in sorted(entries)[:_NAMED])
        left = len(entries) - _NAMED
        more = f" and {left} more" if left > 0 else ""
        raise RefusedError(
            f"The mountpoint {shown} is not empty ({some}{more}). Give an empty directory."
        )
    if not os.access(place, os.W_OK | os.X_OK):
        raise RefusedError(
            f"The mountpoint {shown} may not be written by you. Give a directory of yours."
        )
