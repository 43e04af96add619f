"""What a run may leave behind: mounts, descriptors, folders. Read from /proc alone.

Used by the fixtures and by scripts/test; knows nothing of the package.
"""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Mount", "describe", "descriptors", "remove", "unmount", "view_mounts"]


@dataclass(frozen=True)
class Mount:
    """One line of mountinfo: the mount's id, its point, and the user who mounted it."""

    number: int
    point: bytes
    uid: int

    def is_below(self, place: bytes) -> bool:
        """Tell whether the mount point is *place* or below it."""
        return self.point == place or self.point.startswith(place.rstrip(b"/") + b"/")


def _unescape(field: bytes) -> bytes:
    return re.sub(rb"\\([0-7]{3})", lambda match: bytes([int(match[1], 8)]), field)


def view_mounts() -> set[Mount]:
    """Return every mount of this namespace whose source is named lamfuse."""
    found = set()
    for line in Path("/proc/self/mountinfo").read_bytes().splitlines():
        front, _, back = line.partition(b" - ")
        kind, source, options = [*back.split(b" "), b"", b""][:3]
        if source == b"lamfuse" and kind.startswith(b"fuse"):
            fields = front.split(b" ")
            user = re.search(rb"user_id=(\d+)", options)
            uid = int(user[1]) if user else 0
            found.add(Mount(int(fields[0]), _unescape(fields[4]), uid))
    return found


def descriptors() -> set[int]:
    """Return the descriptors that this process holds open."""
    held = {int(name) for name in os.listdir("/proc/self/fd")}
    return {fd for fd in held if os.path.lexists(f"/proc/self/fd/{fd}")}  # not the listing's own


def describe(fd: int) -> str:
    """Say what a descriptor of this process refers to."""
    try:
        return f"{fd} -> {os.readlink(f'/proc/self/fd/{fd}')}"
    except OSError:
        return f"{fd} -> closed"


def unmount(mount: Mount) -> None:
    """Detach a mount, even one that is busy or whose daemon is dead."""
    command = ["umount", "-l"] if os.geteuid() == 0 else ["fusermount3", "-uzq"]
    subprocess.run([*command, os.fsdecode(mount.point)], check=False, capture_output=True)


def remove(place: Path) -> None:
    """Remove a folder of the tests; detach what is mounted in it first, never walk into a view."""
    inside = os.fsencode(place)
    for mount in view_mounts():
        if mount.is_below(inside):
            unmount(mount)
    for folder, _, _ in os.walk(
        place
    ):  # from the top, so that a closed folder opens before its own
        os.chmod(folder, 0o700)
    shutil.rmtree(place)
