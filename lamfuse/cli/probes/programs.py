"""What holds an untrusted agent inside a view, and what searches it: none of it is needed to mount.

Numbers of the kernel say why something does not work; that it works is only shown by doing it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lamfuse.cli.probes.finding import Finding, note, ok
from lamfuse.cli.probes.machine import Machine, number
from lamfuse.core import names

__all__ = ["look"]

_RUN_S: Final = 5.0
_WHY_NAMESPACES: Final = (
    "In a user namespace an agent can be given the view as its only home directory."
)
_WHY_BWRAP: Final = (
    "It shuts an agent in with the view. Without it a view holds only what goes through it."
)
_TRY_NAMESPACE: Final = ("unshare", "--user", "--map-root-user", "true")
_TRY_BWRAP: Final = (
    "bwrap", "--unshare-user", "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc",
    "--dev", "/dev", "true",
)  # fmt: skip
#: File -> the value that forbids, what it is in words, and how to mend it.
_SWITCHES: Final = (
    (
        "/proc/sys/kernel/unprivileged_userns_clone",
        0,
        "the kernel forbids them to ordinary users (kernel.unprivileged_userns_clone is 0)",
        "sudo sysctl kernel.unprivileged_userns_clone=1",
    ),
    (
        "/proc/sys/user/max_user_namespaces",
        0,
        "none may be made (user.max_user_namespaces is 0)",
        "sudo sysctl user.max_user_namespaces=10000",
    ),
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        1,
        "only programs with a profile get them (kernel.apparmor_restrict_unprivileged_userns is 1)",
        "give bwrap its profile (on Ubuntu: bwrap-userns-restrict, package apparmor-profiles)",
    ),
)


def look(machine: Machine) -> Iterator[Finding]:
    """Yield what an agent can be shut in with."""
    yield _namespaces(machine)
    yield _bubblewrap(machine)
    yield _ripgrep(machine)


def _namespaces(machine: Machine) -> Finding:
    check = "sandbox.namespaces"
    forbidden = [
        (what, remedy)
        for path, value, what, remedy in _SWITCHES
        if machine.uid != 0 and number(machine, path) == value
    ]
    if forbidden:
        whats = "; ".join(what for what, _ in forbidden)
        remedies = "; ".join(remedy for _, remedy in forbidden)
        what = f"User namespaces cannot be used: {whats}."
        return note(check, what, _WHY_NAMESPACES, f"To change that: {remedies}.")
    if machine.find(_TRY_NAMESPACE[0]) is None:
        what = "Nothing forbids user namespaces; it was not tried (unshare is not installed)."
        return ok(check, what, _WHY_NAMESPACES)
    done = machine.run(_TRY_NAMESPACE, _RUN_S)
    if done.code == 0:
        return ok(check, "User namespaces can be made.", _WHY_NAMESPACES)
    return note(
        check,
        f"User namespaces cannot be made: {names.show_text(done.complaint)}.",
        _WHY_NAMESPACES,
        "In a container, start it with the right to make them; else see: man user_namespaces.",
    )


def _bubblewrap(machine: Machine) -> Finding:
    check = "sandbox.bubblewrap"
    path = machine.find("bwrap")
    if path is None:
        remedy = "Install the package bubblewrap."
        return note(check, "bubblewrap is not installed.", _WHY_BWRAP, remedy)
    done = machine.run(_TRY_BWRAP, _RUN_S)
    if done.code == 0:
        version = machine.run([path, "--version"], _RUN_S).out.strip() or "bubblewrap"
        return ok(check, f"{names.show_text(version)} works.", _WHY_BWRAP)
    return note(
        check,
        f"bubblewrap does not work: {names.show_text(done.complaint)}.",
        _WHY_BWRAP,
        "It needs user namespaces (see there). A dead mount can keep it from starting too.",
    )


def _ripgrep(machine: Machine) -> Finding:
    check = "programs.ripgrep"
    why = "Searching in a directory that is served as tools is done by it."
    path = machine.find("rg")
    if path is None:
        remedy = "Install the package ripgrep."
        return note(check, "ripgrep is not installed.", why, remedy)
    done = machine.run([path, "--version"], _RUN_S)
    lines = done.out.splitlines()
    if done.code != 0 or not lines:
        what = f"ripgrep does not work: {names.show_text(done.complaint)}."
        return note(check, what, why, "Install the package ripgrep again.")
    return ok(check, f"{names.show_text(lines[0])} is there.", why)
