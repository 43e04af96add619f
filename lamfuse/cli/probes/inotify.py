"""Whether the kernel can report what changes outside the view: inotify, and the kind of home."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lamfuse.cli.probes.finding import Finding, note, ok
from lamfuse.cli.probes.machine import Machine, number
from lamfuse.cli.probes.subject import Subject
from lamfuse.core import names, paths
from lamfuse.tree.mounts import Mount, mounts

__all__ = ["look"]

_PLACE: Final = "/proc/sys/fs/inotify/"
_WHY: Final = (
    "inotify tells what changes outside the view. Where a folder cannot be watched, such a change"
    " shows in the view up to a second later, and reading costs more."
)
#: At most this part of the user's watches is taken; other programs need theirs.
_SHARE: Final = 4
#: Folders that a home has easily.
_FEW_WATCHES: Final = 8192
#: Editors and desktops take a few each; the next program must still find some.
_FEW_INSTANCES: Final = 8
#: File systems that others change too, without this kernel hearing of it.
_UNHEARD: Final = ("nfs", "cifs", "smb", "9p", "ceph", "afs", "lustre", "glusterfs", "fuse")


def look(subject: Subject) -> Iterator[Finding]:
    """Yield how much can be watched."""
    instances, watches = subject.machine.inotify_use()
    yield _watches(subject.machine, watches)
    yield _instances(subject.machine, instances)
    yield _kind(subject.dirs.home, mounts())


def _watches(machine: Machine, used: int) -> Finding:
    check = "inotify.watches"
    most = number(machine, _PLACE + "max_user_watches")
    if most is None:
        remedy = "Nothing has to be done; in a container, give it /proc/sys."
        return note(check, "How much can be watched is not known.", _WHY, remedy)
    ours = min(most // _SHARE, max(0, most - used))
    said = f"{most:,} folders may be watched, {used:,} are; a view takes at most {ours:,}"
    if ours >= _FEW_WATCHES:
        return ok(check, f"{said}.", _WHY)
    more = f"sudo sysctl fs.inotify.max_user_watches={max(most * 4, _FEW_WATCHES * 16)}"
    return note(check, f"{said}: few.", _WHY, f"For more: {more}")


def _instances(machine: Machine, used: int) -> Finding:
    check = "inotify.instances"
    most = number(machine, _PLACE + "max_user_instances")
    if most is None:
        remedy = "Nothing has to be done; in a container, give it /proc/sys."
        return note(check, "How many programs may watch is not known.", _WHY, remedy)
    said = f"{names.count(used, 'inotify instance')} of {most:,} in use"
    if most - used >= min(_FEW_INSTANCES, most // 2):
        return ok(check, f"{said}.", _WHY)
    more = f"sudo sysctl fs.inotify.max_user_instances={most * 4}"
    return note(check, f"{said}: hardly any is left.", _WHY, f"For more: {more}")


def _kind(home: bytes, table: list[Mount]) -> Finding:
    check = "inotify.home"
    holding = [mount for mount in table if paths.contains(mount.path, home)]
    # Of several mounts on one place the last is the one that is seen.
    mount = max(reversed(holding), key=lambda mount: len(mount.path), default=None)
    kind = "unknown" if mount is None else mount.kind.decode(errors="backslashreplace")
    shown = names.show_text(kind)
    if not kind.startswith(_UNHEARD):
        return ok(check, f"The home lies on a file system of this machine ({shown}).", _WHY)
    return note(
        check,
        f"The home lies on a file system that others may change unheard ({shown}).",
        _WHY,
        "Nothing has to be done; what others change there shows a moment later.",
    )
