"""Finds the command, runs it, and turns what goes wrong into one line and an exit code.

Nobody sees a traceback, unless ``LAMFUSE_DEBUG=1`` asks for it.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any, Final

import click

from lamfuse.cli.exit_codes import ExitCode, code_of, innermost
from lamfuse.core.errors import LamfuseError

__all__ = ["main", "run"]

#: Name -> what it does, in the order of use; the command is in the module of its name. The words
#: are kept here so that the overview imports no command.
_COMMANDS: Final = {
    "init": "Write a configuration file that explains itself.",
    "mount": "Mount the view.",
    "unmount": "Unmount the view.",
    "status": "Say whether a view is mounted, and how it is.",
    "pending": "List the questions that wait for an answer.",
    "show": "Show one question, with its whole paths.",
    "allow": "Allow questions.",
    "deny": "Decline questions.",
    "resume": "Ask again after too many refusals.",
    "watch": "Answer questions here, as they come.",
    "turn": "Begin a new turn.",
    "explain": "Say what would happen to a path, and why.",
    "config": "Print the configuration in force, and where it comes from.",
    "reload": "Put a changed configuration into force.",
    "log": "Print the journal, or verify it.",
    "doctor": "Say what keeps a view from working as it should, and how to mend it.",
}


class _Commands(click.Group):
    """Imports a command when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names in the order of use."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return the command, or None when there is none of that name."""
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"lamfuse.cli.{cmd_name}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the overview."""
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


def _print_version(ctx: click.Context, _param: click.Parameter, value: Any) -> None:
    if not value or ctx.resilient_parsing:
        return
    from importlib import metadata  # noqa: PLC0415 - slow, and for this alone

    click.echo(f"lamfuse {metadata.version('lamfuse')}")
    ctx.exit()


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version and exit.",
)
def _lamfuse() -> None:
    """Give an agent the files of your home directory, without your home directory.

    A mounted view shows the home minus its credentials; every change waits for your answer.
    """


def main() -> None:
    """Run the command of this process."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A terminal that lacks a character gets an escape instead of a fault.
            stream.reconfigure(errors="backslashreplace")
    try:
        result = _lamfuse.main(args=list(arguments), prog_name="lamfuse", standalone_mode=False)
    except click.ClickException as exc:
        exc.show()
        return exc.exit_code
    except click.Abort:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader went; flushing at the end would fail once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # noqa: TID251 - no tree
        return ExitCode.FAILED
    except (Exception, BaseExceptionGroup, KeyboardInterrupt) as exc:  # noqa: BLE001 - an edge
        return _report(exc)
    return result if isinstance(result, int) else ExitCode.DONE


def _report(error: BaseException) -> ExitCode:
    """Say what went wrong, on one line where it is not our fault."""
    from lamfuse.cli import render  # noqa: PLC0415 - only when something went wrong

    if os.environ.get("LAMFUSE_DEBUG") == "1":
        import traceback  # noqa: PLC0415 - for this alone

        traceback.print_exception(error)
    error = innermost(error)
    if isinstance(error, LamfuseError):
        render.aside(f"lamfuse: {error}")
    elif isinstance(error, OSError):
        what = error.strerror or str(error)
        named = isinstance(error.filename, str | bytes)
        path = f"{render.person_path(os.fsencode(error.filename))}: " if named else ""
        render.aside(f"lamfuse: {path}{what}.")
    elif not isinstance(error, KeyboardInterrupt):
        text = f"a fault of lamfuse itself: {type(error).__name__}: {error}"
        render.aside(f"lamfuse: {text}. LAMFUSE_DEBUG=1 shows where.")
    return code_of(error)
