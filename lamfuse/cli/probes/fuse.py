"""Whether this machine can mount a view: the device, fusermount3, the limits, the versions."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import sys
from collections.abc import Iterator
from typing import Final

from lamfuse.cli.probes.finding import Finding, note, ok, problem
from lamfuse.cli.probes.machine import Done, Machine
from lamfuse.core import names

__all__ = ["look"]

_DEVICE: Final = "/dev/fuse"
_RUN_S: Final = 10.0
#: What fusermount3 takes when /etc/fuse.conf says nothing.
_MOST_MOUNTS: Final = 1000
#: pidfd_open, without which no caller and no peer can be held on to.
_OLDEST_KERNEL: Final = (5, 3)
#: SO_PEERPIDFD, without which the peer of the control socket is found by its number.
_GOOD_KERNEL: Final = (6, 5)
_OLDEST_PYFUSE3: Final = (3, 4)

_NOTHING_MOUNTS: Final = "Without it no view can be mounted."
#: In a process of its own: a library that does not fit ends that one only.
_ASK_PYFUSE3: Final = """
import json, re
import pyfuse3
maps = open("/proc/self/maps").read()
library = re.search(r"libfuse3\\.so\\.([0-9.]+)", maps)
print(json.dumps([pyfuse3.__version__, library[1] if library else ""]))
"""


def look(machine: Machine) -> Iterator[Finding]:
    """Yield what mounting depends on."""
    yield _device(machine)
    yield _fusermount(machine)
    yield _mounts(machine)
    yield _kernel(machine)
    yield _library(machine)


def _device(machine: Machine) -> Finding:
    check = "fuse.device"
    refusal = machine.refusal(_DEVICE)
    found = machine.stat(_DEVICE)
    mode = "" if found is None else f" (mode {stat.S_IMODE(found.st_mode):04o})"
    if refusal == 0:
        return ok(check, f"{_DEVICE} can be opened{mode}.", _NOTHING_MOUNTS)
    if refusal in {errno.ENOENT, errno.ENXIO, errno.ENODEV}:
        return problem(
            check,
            f"{_DEVICE} is not there.",
            _NOTHING_MOUNTS,
            "Load the kernel module (sudo modprobe fuse); in a container, start it with --device"
            " /dev/fuse.",
            lacking=True,
        )
    return problem(
        check,
        f"{_DEVICE} may not be opened by you{mode}: {os.strerror(refusal)}.",
        _NOTHING_MOUNTS,
        f"Give it mode 0666 (sudo chmod 0666 {_DEVICE}), or join the group that owns it.",
        lacking=True,
    )


def _fusermount(machine: Machine) -> Finding:
    check = "fuse.fusermount3"
    path = machine.find("fusermount3")
    if path is None:
        return problem(
            check,
            "fusermount3 is not installed.",
            "It mounts and unmounts for an ordinary user. " + _NOTHING_MOUNTS,
            "Install the package fuse3 (apt install fuse3, dnf install fuse3, pacman -S fuse3).",
            lacking=True,
        )
    shown = names.show_text(path)
    found = machine.stat(path)
    by_root = found is not None and found.st_uid == 0 and bool(found.st_mode & stat.S_ISUID)
    if machine.uid != 0 and not by_root:
        return problem(
            check,
            f"{shown} does not run as root (it is not set-uid root).",
            "Only root may mount, so it does that for you. " + _NOTHING_MOUNTS,
            f"Install the package fuse3 again, or run: sudo chmod u+s {shown}",
            lacking=True,
        )
    version = _version_in(machine.run([path, "--version"], _RUN_S))
    return ok(check, f"{shown} is there{version}.", _NOTHING_MOUNTS)


def _version_in(done: Done) -> str:
    found = re.search(r"\d+\.\d+[.\d]*", done.out + done.err) if done.code == 0 else None
    return f", version {found[0]}" if found else ""


def _mounts(machine: Machine) -> Finding:
    check = "fuse.mount_max"
    why = "fusermount3 mounts no more FUSE file systems than that, for all users together."
    text = machine.text("/etc/fuse.conf") or ""
    found = re.search(r"^\s*mount_max\s*=\s*(-?\d+)\s*$", text, re.MULTILINE)
    most = int(found[1]) if found else _MOST_MOUNTS
    table = (machine.text("/proc/self/mounts") or "").splitlines()
    kinds = [fields[2] for fields in map(str.split, table) if len(fields) > 2]  # noqa: PLR2004
    there = sum(kind.partition(".")[0] in {"fuse", "fuseblk"} for kind in kinds)
    said = f"{names.count(there, 'FUSE file system')} mounted, {most} may be (mount_max)"
    if machine.uid == 0 or most == -1:
        return ok(check, f"{names.count(there, 'FUSE file system')} mounted, without a limit.", why)
    if there < most:
        return ok(check, f"{said}.", why)
    remedy = "Unmount some, or write a larger mount_max into /etc/fuse.conf."
    return problem(check, f"{said}: no more.", why, remedy, lacking=True)


def _kernel(machine: Machine) -> Finding:
    check = "fuse.kernel"
    text = (machine.text("/proc/sys/kernel/osrelease") or "unknown").strip()
    shown, version = names.show_text(text), _numbers(text)
    if version and version < _OLDEST_KERNEL:
        return problem(
            check,
            f"The kernel is Linux {shown}; 5.3 or later is needed.",
            "Callers are held by pidfd, so that a process number that was taken over fools nobody.",
            "Start a later kernel.",
            lacking=True,
        )
    why = "From Linux 6.5 on, whoever uses the control socket is held by the connection itself."
    if version and version < _GOOD_KERNEL:
        remedy = "Nothing has to be done; a later kernel is safer."
        return note(check, f"The kernel is Linux {shown}.", why, remedy)
    return ok(check, f"The kernel is Linux {shown}.", why)


def _library(machine: Machine) -> Finding:
    check = "fuse.library"
    why = "They speak to the kernel for lamfuse. " + _NOTHING_MOUNTS
    done = machine.run([sys.executable, "-c", _ASK_PYFUSE3], _RUN_S)
    remedy = "Install lamfuse with its dependencies, and the package libfuse3-3."
    if done.code != 0:
        what = f"pyfuse3 cannot be used: {names.show_text(done.complaint)}."
        return problem(check, what, why, remedy, lacking=True)
    binding, library = json.loads(done.out)
    said = f"pyfuse3 {names.show_text(binding)}, libfuse {names.show_text(library or 'unknown')}"
    if _numbers(binding) < _OLDEST_PYFUSE3:
        what = f"{said}: pyfuse3 3.4 or later is needed."
        return problem(check, what, why, remedy, lacking=True)
    return ok(check, f"{said}.", why)


def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else ()
