"""The rules in plain words, for the agent: `.lamfuse/README.md`, and the text of prompts.

One source for all of them. It says what holds, and what an error means; it names no hidden place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lamfuse.core.names import show_path

__all__ = ["readme"]


def readme(home: bytes, write_roots: Sequence[bytes], read_roots: Sequence[bytes]) -> str:
    """Return the rules as Markdown; the roots are absolute paths.

    A root outside *home* is named as what it is, and by its place in the view.
    """
    writable = "".join(f"- {_place(root, home)}\n" for root in write_roots) or "- none\n"
    more = "".join(f"- {_place(root, home)}\n" for root in read_roots)
    readable = f"\nThese may be read as well:\n\n{more}" if more else ""
    return _README.format(writable=writable, readable=readable)


def _place(root: bytes, home: bytes) -> str:
    shown = show_path(root, home)
    if shown.startswith("~"):
        return _code(shown)
    return f"{_code(shown)} (here: {_code(f'.lamfuse/roots{shown}')})"


def _code(text: str) -> str:
    """Return *text* as Markdown that is taken literally, backticks and all."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence, pad = "`" * (longest + 1), " " if longest else ""  # one space inside is not shown
    return f"{fence}{pad}{text}{pad}{fence}"


_README = """\
# This is a view of a home directory

It shows the home directory without credential stores, which do not exist here.
Everything is read-only, except these write roots:

{writable}{readable}
## What holds

- Each change in a write root waits until a person has allowed it. Expect it to take a minute.
- A refusal is final. Do not look for another way to the same end. Ask the person instead.
- Paths outside are refused outright, without asking anybody.
- What you read goes to the provider of your model. Read what the question needs, and nothing more.
- Read a large file in parts.

## What an error means

- `EACCES` (Permission denied): a person declined, nobody answered in time or could be asked, or
  the name or link is one that is never made. `.lamfuse/refusals` has the reason and what to do
  next. Ask before trying again.
- `EROFS` (Read-only file system): not in a write root. Do not try again there.
- `ENOENT` (No such file or directory): it is not here, or not for you. Both look the same.
- `EPERM` (Operation not permitted): device nodes, and attributes named `security.*` or `trusted.*`.
  Nobody is asked about these. Do not try again.
- `EXDEV`: a hard link across the border of a write root. Copy instead.
- `EINTR`: you were interrupted while a person was being asked. Nothing was changed.
- `ESTALE`: it changed or went away meanwhile. Look again.

## What differs from an ordinary file system

- Sockets and FIFOs are shown, but nobody answers at the other end.
- Locks hold among the users of this view, not against programs outside.
- A link that leads out of the view cannot be followed or read.
- Deleting and moving is asked about every time.

`policy.json` beside this file has the same as data.
"""
