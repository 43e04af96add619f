"""The configuration in words: the file that ``lamfuse init`` writes, and what is in force.

The text shows every key with its default, commented out, so that a later default is not held back
by an old file. It decides nothing.
"""

from __future__ import annotations

import textwrap

from lamfuse.core.roots import DEFAULT_WRITE_ROOTS
from lamfuse.core.rules import DEFAULT_DENY
from lamfuse.core.runs_later import DEFAULT_RUNS_LATER
from lamfuse.store.config import DEFAULT, DEFAULT_LINK_OK, Config, default_write_roots

__all__ = ["Value", "effective", "first_text"]

Value = bool | float | str | list[str]

_TEXT = """\
# lamfuse: what an AI agent may see of this home directory, and what it may ask to change.
# A line that starts with # is not in force. Changes take effect on: lamfuse reload
# What is in force, and where each value comes from: lamfuse config

# The seven file tools, and the text about them, exist for the agent only while this is true.
# What an agent reads goes to its model provider.
file_access = {file_access}

# Directories outside the home directory that may be read too. Each is absolute or starts with ~/.
# read_roots = []

# Directories in which a change can be asked for, added to:
#   {write_roots}
# write_roots = ["~/work/scratch"]

# Names and places that are hidden, in the syntax of gitignore, from the home directory.
# They are added to the defaults, which always apply:
{deny}
# deny = ["secrets/", "*.kdbx"]

# Directories of the system that symbolic links may lead into. This list replaces the default.
# link_ok = [{link_ok}]

# Files that run on this machine later, outside the boundary: each is asked about by itself.
# These are added to the default list: shell start-up files, hooks, settings of editors and agents.
# runs_later = ["*.nix"]

[approval]

# Where you are asked: desktop, terminal, program. "pending" and "allow" always work.
# channels = ["desktop", "terminal"]

# The command of the channel "program": a question as JSON on its input, the answer on its output.
# program = []

# Seconds until a question that you can see is declined, and until any question is.
# shown_timeout_s = 60
# total_timeout_s = 110

# Seconds without a change, and seconds in all, after which what you allowed for a turn ends.
# turn_idle_s = 900
# turn_max_s = 3600

# Let a question wait for "lamfuse pending" when nothing can show it.
# wait_for_cli = false

# A rename onto an existing file: "ask", or "refuse".
# rename_over = "ask"

# A standing answer, given in advance. It is the only permission that lasts; write it with care.
# Operations: create, write, attributes, delete, move. Answer: "allow" or "decline".
# [[approval.rule]]
# paths = ["~/work/scratch/build/**"]
# operations = ["create", "write", "delete", "move"]
# answer = "allow"
"""


def first_text(*, file_access: bool) -> str:
    """Return the text of a new configuration file."""
    return _TEXT.format(
        file_access="true" if file_access else "false",
        write_roots=", ".join(f"~/{root.decode()}" for root in DEFAULT_WRITE_ROOTS),
        deny=textwrap.fill(
            ", ".join(DEFAULT_DENY), 96, initial_indent="#   ", subsequent_indent="#   "
        ),
        link_ok=", ".join(f'"{path.decode()}"' for path in DEFAULT_LINK_OK),
    )


def effective(config: Config) -> list[tuple[str, Value, str]]:
    """Return (key, value, origin) of everything in force, for ``lamfuse config``.

    A list that is added to the defaults has two rows. Stray bytes of a path are escaped. *origin*
    is ``default`` or the configuration file.
    """
    asking = config.approval
    origin = config.origin
    fixed = default_write_roots(config.home)
    added = [root for root in config.write_roots if root not in fixed]
    rows: list[tuple[str, Value]] = [
        ("file_access", config.file_access),
        ("read_roots", [_shown(root) for root in config.read_roots]),
        ("write_roots", [_shown(root) for root in added]),
        ("deny", list(config.deny)),
        ("link_ok", [_shown(path) for path in config.link_ok]),
        ("runs_later", list(config.runs_later)),
        ("approval.channels", list(asking.channels)),
        ("approval.program", list(asking.program)),
        ("approval.shown_timeout_s", asking.shown_timeout_s),
        ("approval.total_timeout_s", asking.total_timeout_s),
        ("approval.turn_idle_s", asking.turn_idle_s),
        ("approval.turn_max_s", asking.turn_max_s),
        ("approval.wait_for_cli", asking.wait_for_cli),
        ("approval.rename_over", asking.rename_over),
        ("approval.rule", [rule.text for rule in asking.rules]),
    ]
    defaults: dict[str, list[str]] = {
        "write_roots": [_shown(root) for root in fixed],
        "deny": list(DEFAULT_DENY),
        "runs_later": list(DEFAULT_RUNS_LATER),
    }
    result: list[tuple[str, Value, str]] = []
    for key, value in rows:
        came_from = origin.get(key, DEFAULT)
        if key in defaults:
            result.append((key, defaults[key], DEFAULT))
            if came_from == DEFAULT:
                continue
        result.append((key, value, came_from))
    return result


def _shown(path: bytes) -> str:
    return path.decode(errors="backslashreplace")
