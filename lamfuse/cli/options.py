"""The options that several commands share, and the places that they lead to."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from lamfuse.cli import render
from lamfuse.control import client
from lamfuse.core.errors import RefusedError
from lamfuse.store import config as configuration
from lamfuse.store.config import Config
from lamfuse.store.dirs import Dirs, find_dirs

__all__ = ["as_json", "connect", "load", "places", "places_of"]

_Command = TypeVar("_Command", bound=Callable[..., Any])


def places(command: _Command) -> _Command:
    """Add ``--home`` and ``--config``, passed as *home* and *config* (bytes or None)."""
    path = click.Path(path_type=bytes)
    for option in (
        click.option("--config", type=path, metavar="FILE", help="Another configuration file."),
        click.option("--home", type=path, metavar="DIR", help="Another home (default: yours)."),
    ):
        command = option(command)
    return command


def as_json(command: _Command) -> _Command:
    """Add ``--json``, passed as *json*."""
    return click.option("--json", is_flag=True, help="Print data for programs.")(command)


def places_of(home: bytes | None, config: bytes | None) -> Dirs:
    """Return the places of *home*; raises :class:`RefusedError` if it is no directory."""
    dirs = find_dirs(os.environ, home, config)
    if not os.path.isdir(dirs.home):
        what = "is not a directory" if os.path.exists(dirs.home) else "does not exist"
        raise RefusedError(
            f"The home {render.person_path(dirs.home)} {what}. Give the directory that is to be"
            " shown with --home DIR."
        )
    if not os.access(dirs.home, os.R_OK | os.X_OK):
        raise RefusedError(
            f"The home {render.person_path(dirs.home)} may not be read by you. Give one that may."
        )
    return dirs


def load(dirs: Dirs, named: bytes | None) -> Config:
    """Read the configuration of *dirs*; the file must exist if the person *named* it."""
    return configuration.load(dirs.config_file, dirs.home, must_exist=named is not None)


def connect(home: bytes | None, config: bytes | None) -> client.Client:
    """Connect to the daemon of *home*; raises NotRunningError when there is none."""
    return client.connect(places_of(home, config).socket)
