"""``lamfuse watch``: answers questions as they come, on this terminal or for a program."""

from __future__ import annotations

import click
import trio

from lamfuse.cli import options, prompting, render, scripted
from lamfuse.cli.exit_codes import innermost
from lamfuse.control import client
from lamfuse.control.watching import Watching
from lamfuse.core.approval import Question
from lamfuse.core.errors import ChannelLost, InternalError, NotRunningError, RefusedError
from lamfuse.engine.open_questions import Standing
from lamfuse.notify.terminal import Terminal
from lamfuse.store.dirs import Dirs

__all__ = ["command"]

_STDIN, _STDOUT = 0, 1


@click.command("watch")
@options.places
@options.as_json
def command(*, home: bytes | None, config: bytes | None, json: bool) -> None:
    """Attach to the daemon and answer its questions here, until it ends or you press Ctrl-C.

    With --json each event is a line of JSON on standard output, and an answer one on standard
    input: {"id": "k7f2", "answer": "allow", "scope": "folder"}.
    """
    dirs = options.places_of(home, config)
    if json:
        with client.connect(dirs.socket) as connected:
            try:
                scripted.attend(connected)
            except NotRunningError:
                _check_ended(dirs)
        return
    terminal = Terminal(_STDIN, _STDOUT, dirs.home, _no_standing)
    if not terminal.is_ready():
        raise RefusedError("watch needs a terminal, in the foreground. Programs use --json.")
    connection = client.dial(dirs.socket)
    click.echo(f"Watching {render.person_path(dirs.home)}. Ctrl-C ends it.")
    try:
        trio.run(prompting.attend, lambda tell: Watching(connection, tell), terminal)
    except Exception as error:
        match innermost(error):
            case NotRunningError():
                _check_ended(dirs)
            case ChannelLost() as lost:
                render.aside(f"watch ends: {lost}. Questions are not asked here any more.")
            case _:
                raise


def _check_ended(dirs: Dirs) -> None:
    """Say that the daemon ended; raises :class:`RefusedError` when it dropped us instead."""
    if client.is_running(dirs.socket):
        raise RefusedError("the daemon dropped this watch, which did not keep up; start it again.")
    render.aside("The view was unmounted.")


def _no_standing(_question: Question) -> Standing:
    raise InternalError("a watch has its questions from the wire")
