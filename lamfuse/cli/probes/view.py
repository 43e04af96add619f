"""The running view, the dead ones that were left behind, and what no view can promise."""

from __future__ import annotations

import errno
import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from typing import Final

from lamfuse.cli import render, views
from lamfuse.cli.probes import talk
from lamfuse.cli.probes.finding import Finding, note, ok, problem
from lamfuse.cli.probes.subject import Subject
from lamfuse.cli.probes.talk import Said
from lamfuse.control import wire
from lamfuse.core import names
from lamfuse.tree.mounts import Mount, mounts

__all__ = ["DAEMON_CHECK", "boundary", "judge", "look"]

#: A problem under this name means that the daemon does not answer.
DAEMON_CHECK: Final = "view.daemon"
_WHY_RUNNING: Final = "An agent in the view waits for the daemon with every call."
_WHY_DEAD: Final = (
    "A killed daemon leaves it behind. Every access to it fails, and backups and searches trip over"
    " it."
)
_DEAD: Final = frozenset({errno.ENOTCONN, errno.ECONNABORTED})
#: Each one that does not answer costs its time.
_MOST_ASKED: Final = 8

Ask = Callable[[bytes], int | None]


def look(subject: Subject) -> Iterator[Finding]:
    """Yield how the view of the home is, and which dead ones there are."""
    said = subject.ask_daemon()
    yield from judge(said, mounts(), talk.answer_of)


def judge(said: Said, table: Sequence[Mount], ask: Ask) -> Iterator[Finding]:
    """Yield what *said* and the mounts of *table* mean; *ask* asks one whether it answers."""
    here = b"" if said.status is None else said.status.mountpoint.raw
    if said.fault:
        yield problem(
            DAEMON_CHECK,
            f"The daemon does not answer: {names.show_text(said.fault)}.",
            _WHY_RUNNING,
            "End it (its process id stands in the lock file beside the socket) and mount again.",
        )
    elif said.status is None:
        what = "No view of this home is mounted."
        yield ok(DAEMON_CHECK, what, "lamfuse mount mounts one.")
    else:
        yield from _running(said.status, table, ask)
    yield from _others([mount for mount in table if mount.path != here], ask)


def _running(status: wire.Status, table: Sequence[Mount], ask: Ask) -> Iterator[Finding]:
    place = status.mountpoint.raw
    shown = render.person_path(place)
    check = "view.mount"
    again = "Run: lamfuse unmount, then lamfuse mount."
    mount = next((mount for mount in reversed(table) if mount.path == place), None)
    if mount is None or not views.is_view(mount):
        what = f"The daemon runs (pid {status.pid}), but its view is not mounted at {shown}."
        yield problem(check, what, "What is at that place is not the view.", again)
    else:
        answer = ask(place)
        if answer == 0:
            what = f"The view at {shown} is alive (pid {status.pid}, {_span(status)})."
            yield ok(check, what, _WHY_RUNNING)
        elif answer is None:
            what = f"The view at {shown} does not answer within {talk.ANSWER_S:g} s."
            yield problem(check, what, _WHY_RUNNING, again)
        else:
            what = f"The view at {shown} fails: {os.strerror(answer)}."
            yield problem(check, what, _WHY_RUNNING, again)
    installed = metadata.version("lamfuse")
    if status.version != installed:
        version = names.show_text(status.version)
        what = f"The daemon is lamfuse {version}, and {installed} is installed."
        yield note("view.version", what, "What was mended since does not hold yet.", again)
    for reported in status.problems:
        what = f"The daemon reports: {names.show_text(reported)}."
        why = "It serves the view without that."
        yield note("view.reported", what, why, "Correct the configuration, then: lamfuse reload")


def _span(status: wire.Status) -> str:
    return f"for {render.span(status.uptime_s)}"


def _others(table: Sequence[Mount], ask: Ask) -> Iterator[Finding]:
    """Yield the dead views among *table*; each place once, whatever lies over it."""
    places = list(dict.fromkeys(mount.path for mount in table if views.is_view(mount)))
    check = "view.dead"
    dead = 0
    for place in places[:_MOST_ASKED]:
        answer = ask(place)
        shown = render.person_path(place)
        take = f"Run: fusermount3 -u {shlex.quote(names.show_path(place, b''))}"
        if answer in _DEAD:
            dead += 1
            yield problem(check, f"A dead view is mounted at {shown}.", _WHY_DEAD, take)
        elif answer is None:
            dead += 1
            what = f"The view at {shown} does not answer within {talk.ANSWER_S:g} s."
            yield problem(check, what, _WHY_DEAD, f"End its daemon, or take it away. {take}")
    left = len(places) - _MOST_ASKED
    if left > 0:
        what = f"{names.count(left, 'more view')} mounted, which nobody asked."
        yield note(check, what, _WHY_DEAD, "See them all: findmnt -t fuse.lamfuse,fuse")
    elif not dead:
        yield ok(check, "No dead view is left behind.", _WHY_DEAD)


def boundary(_subject: Subject) -> Iterator[Finding]:
    """Yield what no view can promise."""
    yield note(
        "boundary.cooperation",
        "A tool that is merely pointed at a mount runs with all your rights outside it: it can read"
        " your real home and answer questions itself.",
        "The view holds for what goes through it, and for nothing else.",
        "Give an agent that you do not trust the view as its only home directory, in a namespace or"
        " a container of its own.",
    )
