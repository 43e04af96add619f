"""Whether the configuration is right: every error in it, and every place that does not fit."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

from lamfuse.cli import render
from lamfuse.cli.probes.finding import Finding, note, ok, problem
from lamfuse.cli.probes.subject import Subject
from lamfuse.core import names, paths
from lamfuse.core.errors import ConfigError, LamfuseError
from lamfuse.store import config_problems

__all__ = ["HOME_CHECK", "look"]

#: The check that nothing else can do without.
HOME_CHECK: Final = "config.home"
_CHECK: Final = "config.file"
_WHY: Final = (
    "With an error in it no view is mounted, and a running daemon keeps the configuration it has."
)
_WHY_SKIPPED: Final = "The other entries are used, this one is not."
_WHY_HOME: Final = "It is what a view shows, and lamfuse's own files have their places by it."


def look(subject: Subject) -> Iterator[Finding]:
    """Yield what is wrong with the home and its configuration."""
    try:
        dirs = subject.dirs
    except LamfuseError as error:
        what = render.printable(str(error))
        yield problem(
            HOME_CHECK, what, _WHY_HOME, "Give the right one with --home DIR, or see HOME."
        )
        return
    yield ok(HOME_CHECK, f"The home is {names.show_path(dirs.home, b'')}.", _WHY_HOME)
    yield _runtime(subject)
    found = subject.found
    errors = [*found.errors]
    errors += config_problems.find_in_places(found.config, dirs.mountpoint, dirs)
    yield from map(_error, errors)
    for skipped in found.config.notes:
        what = f"{render.person_path(found.config.file)}: {render.printable(skipped)}."
        yield problem(_CHECK, what, _WHY_SKIPPED, "Write it absolute, or leave it out.")
    if errors or found.config.notes:
        return
    shown = render.person_path(dirs.config_file)
    if not os.path.exists(dirs.config_file):
        what = f"There is no {shown}: everything has its default (lamfuse init writes one)."
        yield ok(_CHECK, what, _WHY)
    else:
        yield ok(_CHECK, f"{shown} is right.", _WHY)


def _runtime(subject: Subject) -> Finding:
    check = "config.runtime_dir"
    place = subject.dirs.runtime_dir
    shown = names.show_path(place, b"")
    why = "The control socket lies there, and the view unless another place is given."
    named = subject.machine.environ.get("XDG_RUNTIME_DIR", "")
    if named and paths.contains(paths.normalise(os.fsencode(named)), place):
        return ok(check, f"The runtime directory is {shown}.", why)
    what = f"There is no XDG_RUNTIME_DIR, so {shown} is used."
    remedy = "Log in through your system's login (pam_systemd), or set it to a directory of yours."
    return note(check, what, why, remedy)


def _error(error: ConfigError) -> Finding:
    what = render.printable(f"{error.where}: {error.what}.")
    return problem(_CHECK, what, _WHY, render.printable(error.remedy))
