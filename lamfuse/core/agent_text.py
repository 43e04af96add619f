"""The rules in plain words, for the agent: `.lamfuse/README.md`, and the text of prompts.

One source for all of them. It says what holds, and what an error means; it names no hidden place.
"""

from __future__ import annotations

from collections.abc import Sequence

from lamfuse.core.names import show_path

__all__ = ["readme"]


def readme(home: bytes, write_roots: Sequence[bytes], read_roots: Sequence[bytes]) -> str:
    """Return the rules as Markdown; the roots are absolute paths."""
    writable = "\n".join(f"- {_place(root, home)}" for root in write_roots) or "- none"
    more = "".join(f"- {_place(root, home)}\n" for root in read_roots)
    readable = f"\nThese may be read as well:\n\n{more}" if more else ""
    return _README.format(writable=writable, readable=readable)


def _place(root: bytes, home: bytes) -> str:
    shown = show_path(root, home)
    if shown.startswith("~"):
        return f"`{shown}`"
    return f"`{shown}` (here: `.lamfuse/roots{shown}`)"


_README = """\
# This is a view of a home directory

It shows the home directory without credential stores, which do not exist here.
Everything is read-only, except these write roots:

{writable}
{readable}
## What holds

- Each change in a write root waits until a person has allowed it. Expect it to take a minute.
- A refusal is final. Do not look for another way to the same end. Ask the person instead.
- Paths outside are refused outright, without asking anybody.
- What you read goes to the provider of your model. Read what the question needs, and nothing more.
- Read a large file in parts.

## What an error means

- `EACCES` (Permission denied): a person declined, or nobody answered in time or could be asked.
  `.lamfuse/refusals` has the reason and what to do next. Ask before trying again.
- `EROFS` (Read-only file system): not in a write root. Do not try again there.
- `ENOENT` (No such file or directory): it is not here, or not for you. Both look the same.
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
