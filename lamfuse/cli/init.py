"""``lamfuse init``: a first configuration file, with every key explained.

It writes one new file and never touches one that is there. The file tools stay off unless the
person says yes here: nobody to ask means no.
"""

from __future__ import annotations

import os
import sys
from typing import Final

import click

from lamfuse.cli import options, render
from lamfuse.core.errors import RefusedError
from lamfuse.store.config_text import first_text
from lamfuse.store.dirs import make_private

__all__ = ["command"]

_QUESTION: Final = (
    "May agents use the seven file tools on this home directory? What an agent reads goes to its"
    " model provider."
)


@click.command("init")
@click.option(
    "--file-access",
    type=click.Choice(["yes", "no"]),
    help="Switch the file tools on or off, without being asked.",
)
@options.places
def command(*, file_access: str | None, home: bytes | None, config: bytes | None) -> None:
    """Write a configuration file that explains itself; one that is there is left alone."""
    dirs = options.places_of(home, config)
    shown = render.person_path(dirs.config_file)
    if os.path.lexists(dirs.config_file):
        raise RefusedError(f"{shown} is there already, and is left as it is.")
    is_on = file_access == "yes" if file_access else _ask()
    directory = os.path.dirname(dirs.config_file)
    if directory == dirs.config_dir:
        make_private(directory)
    _write(dirs.config_file, first_text(file_access=is_on).encode(), shown)
    click.echo(f"wrote {shown}; the file tools are {'on' if is_on else 'off'}")


def _ask() -> bool:
    """Ask the person; without a terminal, and without a clear yes, the answer is no."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    return click.confirm(_QUESTION, default=False)


def _write(path: bytes, content: bytes, shown: str) -> None:
    """Write a new file, whole or not at all; one that came meanwhile is left alone."""
    draft = b"%s.%d.new" % (path, os.getpid())
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(draft, flags, 0o600)  # noqa: TID251 - our own configuration directory
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.link(draft, path, follow_symlinks=False)
    except FileExistsError as error:
        raise RefusedError(f"{shown} is there already, and is left as it is.") from error
    finally:
        os.unlink(draft)
