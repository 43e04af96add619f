"""``lamfuse mount``: the view, in the background or here.

It checks everything a person can get wrong before anything starts, and returns when the view can be
used. What is mounted is decided in :mod:`lamfuse.app`, which is imported only after the fork.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable
from typing import Final

import click

from lamfuse.cli import background, mount_checks, options, render, views
from lamfuse.control import client
from lamfuse.core.errors import MachineError, NotRunningError, RefusedError
from lamfuse.store.config import Config
from lamfuse.store.config_roots import check_roots
from lamfuse.store.dirs import Dirs

__all__ = ["command"]

_WARNING: Final = (
    "Note: this is a boundary only for what cannot leave the view. A tool that is merely pointed at"
    " it still has all your rights outside: it can read the real home and answer questions itself."
)


@click.command("mount")
@click.argument("mountpoint", required=False, type=click.Path(path_type=bytes))
@click.option("--foreground", is_flag=True, help="Stay, and ask on this terminal.")
@options.places
def command(
    *, mountpoint: bytes | None, foreground: bool, home: bytes | None, config: bytes | None
) -> None:
    """Mount the view of your home at MOUNTPOINT, and return when it can be used."""
    dirs = options.places_of(home, config)
    loaded = options.load(dirs, config)
    mount_checks.check_machine()
    _check_not_served(dirs)
    place = views.settle(mountpoint or dirs.mountpoint)
    check_roots(loaded, place, dirs)
    mount_checks.check_free(place)
    dirs.make_runtime_dir()
    dirs.make_state_dir()
    if mountpoint is None:
        with contextlib.suppress(FileExistsError):
            os.mkdir(place, 0o700)
    mount_checks.check_directory(place)
    for note in loaded.notes:
        render.aside(f"Note: {note}")
    render.aside(_WARNING)
    act = _daemon(loaded, dirs, place, foreground=foreground)
    if foreground:
        act(click.echo)
    else:
        click.echo(background.detach(act, dirs.log_file))
        _say_if_nobody_asks(dirs)


def _say_if_nobody_asks(dirs: Dirs) -> None:
    """Tell the person when no channel could put a question right now."""
    with contextlib.suppress(NotRunningError), client.connect(dirs.socket) as connected:
        status = connected.status()
        if not status.watchers and not any(channel.ready for channel in status.channels):
            render.aside(
                "Note: nothing can ask you yet. Start lamfuse watch in another terminal, or every"
                " question is refused."
            )


def _check_not_served(dirs: Dirs) -> None:
    """Raise :class:`RefusedError` when a daemon serves this home already."""
    try:
        with client.connect(dirs.socket) as connected:
            where = connected.status().mountpoint.text
    except NotRunningError:
        return
    raise RefusedError(f"This home is mounted already, at {where} (lamfuse unmount ends that).")


def _daemon(
    config: Config, dirs: Dirs, place: bytes, *, foreground: bool
) -> Callable[[Callable[[str], None]], None]:
    """Return what the process of the daemon does, once there is one."""

    def act(ready: Callable[[str], None]) -> None:
        level = logging.WARNING if foreground else logging.INFO
        logging.basicConfig(level=level, format=background.LOG_FORMAT)
        try:
            from lamfuse import app  # noqa: PLC0415 - only here: trio must not be forked
        except ImportError as error:
            raise MachineError(_no_module(error)) from error
        app.run(app.Settings(dirs.home, config, dirs, place, foreground), ready)

    return act


def _no_module(error: ImportError) -> str:
    return (
        f"The module {error.name or 'for FUSE'} cannot be used ({error}). Install lamfuse with its"
        " dependencies, and the library of the package libfuse3-3."
    )
