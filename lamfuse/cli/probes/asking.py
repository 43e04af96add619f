"""Whether a person can be asked now: the channels, the desktop, and how long questions may wait."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from typing import Final

from lamfuse.cli import render
from lamfuse.cli.probes import notifications
from lamfuse.cli.probes.finding import Finding, note, ok, problem
from lamfuse.cli.probes.machine import Machine, number
from lamfuse.cli.probes.notifications import Pressed, Seen, Trial
from lamfuse.cli.probes.subject import Subject
from lamfuse.control import wire
from lamfuse.core import names
from lamfuse.core.errors import ChannelLost
from lamfuse.notify import bus
from lamfuse.store.config import Approval

__all__ = ["ask_person", "desktop", "judge_trial", "look", "program", "readiness", "waiting"]

_WHY_DESKTOP: Final = "Questions come as notifications; else they need lamfuse watch or a terminal."
_WHY_CHANNELS: Final = "A change that nobody can be asked about is refused at once."
_WHY_WAITING: Final = (
    "The kernel ends the whole mount when one request waits longer than its limit, so a question"
    " must be over before that."
)
_ELSEWHERE: Final = "Nothing has to be done where you answer in lamfuse watch or on a terminal."
#: The kernel's smallest limit (seconds), whatever is written.
_LEAST_S: Final = 15
#: The part of the kernel's limit that the daemon lets a question wait.
_PART: Final = 0.8

Ask = Callable[[str], Seen]


def look(subject: Subject) -> Iterator[Finding]:
    """Yield whether and how a person can be asked."""
    approval = subject.config.approval
    seen = None
    if "desktop" in approval.channels:
        findings, seen = desktop(subject.machine, bus.session_address(), notifications.look)
        yield from findings
    else:
        what = "The channel desktop is not configured, so no notification is shown."
        yield ok("asking.desktop", what, _WHY_DESKTOP)
    if approval.program:
        yield program(os.fsencode(approval.program[0]))
    said = subject.ask_daemon()
    if not said.fault:
        yield readiness(approval, said.status, seen)
    yield waiting(subject.machine, approval)


def desktop(machine: Machine, address: str | None, ask: Ask) -> tuple[list[Finding], Seen | None]:
    """Return what is found on the session bus, and what was seen if it could show a question."""
    if address is None:
        what = "There is no session bus (DBUS_SESSION_BUS_ADDRESS is not set)."
        return [note("asking.bus", what, _WHY_DESKTOP, _ELSEWHERE)], None
    try:
        seen = ask(address)
    except ChannelLost as error:
        what = f"The desktop cannot be asked: {render.printable(str(error))}."
        remedy = f"Log in to the desktop again. {_ELSEWHERE}"
        return [note("asking.bus", what, _WHY_DESKTOP, remedy)], None
    found = [ok("asking.bus", "The session bus answers.", _WHY_DESKTOP), _server(seen)]
    if seen.name:
        found.append(_quiet(machine, seen))
    if seen.is_locked:
        what = "The screen is locked: no question is shown on it."
        found.append(note("asking.locked", what, _WHY_DESKTOP, "Unlock it to be asked."))
    return found, seen if seen.shows else None


def _server(seen: Seen) -> Finding:
    check = "asking.server"
    if not seen.name:
        if seen.can_start:
            what = "No notification server runs; the bus starts one when it is needed."
            return ok(check, what, _WHY_DESKTOP)
        remedy = f"Start one (dunst, mako, or that of your desktop). {_ELSEWHERE}"
        return note(check, "No notification server runs.", _WHY_DESKTOP, remedy)
    shown = f"{seen.name} {seen.version}".strip()
    can = ", ".join(map(names.show_text, seen.capabilities)) or "nothing"
    if not seen.has_actions:
        what = f"The notification server {shown} has no buttons (it can do: {can})."
        remedy = "Answer with lamfuse allow ID, or lamfuse watch; or use another server."
        return note(check, what, _WHY_DESKTOP, remedy)
    if not seen.has_buttons:
        what = f"The notification server {shown} shows its buttons in a menu only."
        remedy = "Open the menu (dunstctl context, makoctl menu), or answer with lamfuse allow ID."
        return note(check, what, _WHY_DESKTOP, remedy)
    return ok(check, f"The notification server is {shown} (it can do: {can}).", _WHY_DESKTOP)


def _quiet(machine: Machine, seen: Seen) -> Finding:
    check = "asking.quiet"
    if seen.is_quiet:
        what = f"Do-not-disturb is on, and {seen.name} shows nothing then."
        remedy = "Switch it off while an agent works, or answer in lamfuse watch."
        return note(check, what, _WHY_DESKTOP, remedy)
    if notifications.does_not_disturb(machine, seen.name):
        what = (
            "Do-not-disturb is on; questions are urgent, and most servers show them all the same."
        )
        remedy = "See with lamfuse doctor --notify whether yours does."
        return note(check, what, _WHY_DESKTOP, remedy)
    what = "Do-not-disturb is not on, as far as the server tells."
    return ok(check, what, _WHY_DESKTOP)


def program(path: bytes) -> Finding:
    """Return whether the program that asks can be started."""
    check = "asking.program"
    shown = render.person_path(path)
    why = "A program that does not start refuses every question that is put to it."
    if os.path.isfile(path) and os.access(path, os.X_OK):
        return ok(check, f"The program {shown} can be started.", why)
    what = f"The program {shown} is not there, or cannot be started by you."
    return problem(check, what, why, "Correct approval.program, or make it executable (chmod u+x).")


def readiness(approval: Approval, status: wire.Status | None, seen: Seen | None) -> Finding:
    """Return whether anybody can be asked now: as the daemon says, or as one would find it."""
    check = "asking.channels"
    remedy = "Start lamfuse watch in a terminal."
    if approval.wait_for_cli:
        what = "Questions wait for lamfuse pending and lamfuse allow (wait_for_cli)."
        return ok(check, what, _WHY_CHANNELS)
    if status is not None:
        ready = [names.show_text(channel.name) for channel in status.channels if channel.ready]
        ready += ["lamfuse watch"] if status.watchers else []
        if ready:
            return ok(check, f"Questions can be put now, by: {', '.join(ready)}.", _WHY_CHANNELS)
        what = "Nobody can be asked now: no channel of the daemon is ready."
        return problem(check, what, _WHY_CHANNELS, remedy)
    ready = ["desktop"] if seen is not None else []
    ready += ["program"] if approval.program else []
    ready += ["terminal (with mount --foreground)"] if "terminal" in approval.channels else []
    if ready:
        return ok(check, f"A view would ask by: {', '.join(ready)}.", _WHY_CHANNELS)
    return note(check, "A view that is mounted now could ask nobody.", _WHY_CHANNELS, remedy)


def waiting(machine: Machine, approval: Approval) -> Finding:
    """Return whether a question is over before the kernel loses patience."""
    check = "asking.kernel_limit"
    most = number(machine, "/proc/sys/fs/fuse/max_request_timeout") or 0
    usual = number(machine, "/proc/sys/fs/fuse/default_request_timeout") or 0
    total = approval.total_timeout_s
    if not most and not usual:
        what = "The kernel sets no limit to how long a question may wait."
        return ok(check, what, _WHY_WAITING)
    kernel = max(_LEAST_S, min(limit for limit in (most, usual) if limit))
    waits = min(total, max(1.0, most * _PART) if most else math.inf)
    said = f"The kernel ends a mount after {kernel} s of waiting"
    if waits >= kernel:
        what = f"{said}, and a question may wait {waits:g} s."
        remedy = (
            f"Set approval.total_timeout_s to less than {kernel}, or run: sudo sysctl"
            " fs.fuse.default_request_timeout=0"
        )
        return problem(check, what, _WHY_WAITING, remedy)
    if waits < total:
        what = f"{said}, so a question waits {waits:g} s, not {total:g} s as configured."
        remedy = "For more: sudo sysctl fs.fuse.max_request_timeout=0, then mount again."
        return note(check, what, _WHY_WAITING, remedy)
    return ok(check, f"{said}, and a question waits at most {waits:g} s.", _WHY_WAITING)


# --- a test question


def ask_person(subject: Subject) -> Iterator[Finding]:
    """Show a test question on the desktop, and yield what was pressed."""
    yield judge_trial(notifications.ask_person(subject.dirs.home, bus.session_address))


def judge_trial(trial: Trial) -> Finding:
    """Return what it means how the test question ended."""
    check = "asking.trial"
    took = f"after {trial.seconds:.1f} s"
    match trial.pressed:
        case Pressed.ALLOW:
            return ok(check, f"You pressed Allow, {took}: it would have been a yes.", _WHY_DESKTOP)
        case Pressed.DECLINE:
            what = f"You pressed Decline or closed it, {took}: it would have been a no."
            return ok(check, what, _WHY_DESKTOP)
        case Pressed.NOTHING:
            what = f"Nothing was pressed within {trial.seconds:.0f} s: it would have been a no."
            remedy = "Run it again and press a button; if you saw none, answer in lamfuse watch."
            return problem(check, what, _WHY_DESKTOP, remedy)
        case Pressed.LOST:
            what = f"The test question could not be shown: {render.printable(trial.why)}."
            return problem(check, what, _WHY_DESKTOP, "Mend that, or answer in lamfuse watch.")
