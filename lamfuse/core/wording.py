"""Questions in words: what is to happen to what, and what is lost by it.

The title names the file, shortened if need be, and the id; the whole path is always in the body.
Everything that comes from names is made visible first (:mod:`lamfuse.core.names`). Nothing is in
the body that the person cannot act on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lamfuse.core import paths
from lamfuse.core.approval import Offer, Scope, Text
from lamfuse.core.names import (
    count,
    shorten,
    show_age,
    show_name,
    show_path,
    show_size,
    show_text,
)
from lamfuse.core.operations import TABLE, Operation, Verb
from lamfuse.core.target import Caller, FileKind, Request, Subject

__all__ = ["caller_line", "describe", "label"]

_TITLE_WIDTH = 48
_TARGET_WIDTH = 200
_LISTED = 5
_RUNS_LATER = "Runs on your machine later, outside the boundary."
#: Line counts are bounded work (lamfuse.tree.survey).
_NOT_COUNTED = "lines not counted (binary, or over 4 MB)"


def describe(
    request: Request,
    home: bytes,
    now_ns: int,
    *,
    question_id: str,
    runs_later: Sequence[bytes] = (),
    offers: Sequence[Offer] = (),
) -> Text:
    """Return the text of the question about *request*.

    *now_ns* is the time of day in nanoseconds. *runs_later* are the paths that run on the person's
    machine later; *offers* are the scopes on offer.
    """
    verb, body = _SHAPES[request.operation](request, home, now_ns)
    names = " and ".join(_title_name(path) for path in _titled(request))
    lines = [*body]
    if runs_later:
        lines.append(_RUNS_LATER)
        lines += [f"  {show_path(path, home)}" for path in runs_later if path not in request.paths]
    lines += [_reach(offer, home) for offer in offers if offer.scope is Scope.FOLDER]
    return Text(f"{verb} {names}? [{question_id}]", tuple(lines), _is_destructive(request))


def caller_line(caller: Caller, session: str, seconds_left: float, waiting: int) -> str:
    """Return who asks, how long the question stands, and how many more wait.

    The executable is what the kernel says; it is shown, and proves nothing.
    """
    who = show_name(paths.base(caller.exe)) if caller.exe else "an unknown program"
    pid = f" (pid {caller.pid})" if caller.pid else ""
    parts = [f"by {who}{pid}, session {show_text(session)}"]
    parts.append(f"declines in {max(0, round(seconds_left))} s")
    if waiting:
        parts.append(f"{waiting} more waiting")
    return " · ".join(parts)


def label(offer: Offer, home: bytes) -> str:
    """Return the words of the button for *offer*."""
    if offer.scope is Scope.ONCE:
        return "Allow once"
    if offer.scope is Scope.FILE:
        return "Allow"
    if offer.scope is Scope.FOLDER:
        return f"Allow folder {shorten(show_path(offer.path, home), _TITLE_WIDTH).text} this turn"
    return f"Allow these {offer.existing}" if offer.existing is not None else "Allow these"


def _reach(offer: Offer, home: bytes) -> str:
    """Say what a folder grant would reach beyond what is created in this turn."""
    shown = show_path(offer.path, home)
    if offer.existing is None:
        return f"The folder {shown} has too many files to count: those stay as they are."
    if not offer.existing:
        return f"The folder {shown} has no files yet."
    return (
        f"Allowing the folder {shown} also lets the {count(offer.existing, 'file')} in it be"
        " changed, and not deleted or moved."
    )


def _titled(request: Request) -> tuple[bytes, ...]:
    if request.operation is Operation.EXCHANGE:
        return request.paths
    return request.paths[-1:] if request.operation is Operation.LINK else request.paths[:1]


def _title_name(path: bytes) -> str:
    return shorten(show_name(paths.base(path) or path), _TITLE_WIDTH).text


def _is_destructive(request: Request) -> bool:
    if TABLE[request.operation].verb is Verb.WRITE:
        return request.truncates or request.operation is Operation.TRUNCATE
    return TABLE[request.operation].destructive


def _facts(subject: Subject, now_ns: int) -> str:
    """Return size, lines and age of what stands there."""
    if subject.kind is FileKind.DIRECTORY:
        return f"a folder, last changed {show_age(now_ns, subject.mtime_ns)}"
    if subject.kind is not FileKind.FILE:
        return f"a {subject.kind}, last changed {show_age(now_ns, subject.mtime_ns)}"
    lines = _NOT_COUNTED if subject.lines is None else count(subject.lines, "line")
    age = show_age(now_ns, subject.mtime_ns)
    return f"{show_size(subject.size)}, {lines}, last changed {age}"


def _new_content(request: Request) -> list[str]:
    if request.new_size is None or request.operation is Operation.TRUNCATE:
        return []
    lines = "" if request.new_lines is None else f", {count(request.new_lines, 'line')}"
    return [f"New content is {show_size(request.new_size)}{lines}."]


def _other_names(subject: Subject, home: bytes) -> list[str]:
    """Name what else changes with a file that has more than one name."""
    others = subject.links - 1
    if others < 1 or subject.kind is FileKind.DIRECTORY:
        return []
    verb = "changes" if others == 1 else "change"
    known = [f"  {show_path(path, home)}" for path in subject.other_names[:_LISTED]]
    return [f"It also has {count(others, 'other name')} that {verb} with it.", *known]


def _write(request: Request, home: bytes, now_ns: int) -> tuple[str, list[str]]:
    subject = request.subjects[0]
    others = _other_names(subject, home)
    path = show_path(subject.path, home)
    if request.truncates:
        replaced = f"Replaces {_facts(subject, now_ns)}."
        return "Overwrite", [path, replaced, *_new_content(request), *others]
    has = f"Has {_facts(subject, now_ns)}. Any part of it may change."
    return "Change", [path, has, *_new_content(request), *others]


def _truncate(request: Request, home: bytes, now_ns: int) -> tuple[str, list[str]]:
    subject, size = request.subjects[0], request.new_size or 0
    verb = "Shorten" if size < subject.size else "Extend"
    change = f"From {show_size(subject.size)} to {show_size(size)}"
    age = f"last changed {show_age(now_ns, subject.mtime_ns)}"
    return verb, [
        show_path(subject.path, home),
        f"{change}, {age}.",
        *_other_names(subject, home),
    ]


def _attributes(request: Request, home: bytes, now_ns: int) -> tuple[str, list[str]]:
    del now_ns  # the age of a file does not matter for its attributes
    subject = request.subjects[0]
    detail = [f"{show_text(request.detail)}"] if request.detail else []
    return _ATTRIBUTES[request.operation], [
        show_path(subject.path, home),
        *detail,
        *_other_names(subject, home),
    ]


_ATTRIBUTES = {
    Operation.CHMOD: "Change permissions of",
    Operation.CHOWN: "Change the owner of",
    Operation.UTIMENS: "Change the times of",
    Operation.SET_XATTR: "Set an attribute of",
    Operation.REMOVE_XATTR: "Remove an attribute of",
}


def _create(request: Request, home: bytes, now_ns: int) -> tuple[str, list[str]]:
    del now_ns  # nothing is there yet
    path = request.paths[0]
    verb, body = "Create", [show_path(path, home), *_new_content(request)]
    if request.operation is Operation.MKDIR:
        verb = "Create the folder"
    elif request.operation is Operation.SYMLINK:
        verb = "Create the link"
        body.append(f"It points to {shorten(show_name(request.target), _TARGET_WIDTH).text}")
    elif request.operation is Operation.MKNOD and request.makes is not FileKind.FILE:
        verb = f"Create the {request.makes}"
    return verb, body


def _link(request: Request, home: bytes, now_ns: int) -> tuple[str, list[str]]:
    old, new = request.subjects
    return "Link", [
        show_path(new.path, home),
        f"becomes one more name of {show_path(old.path, home)}",
        f"That has {_facts(old, now_ns)}. Both change together from then on.",
    ]


def _delete(request: Request, home: bytes, now_ns: int) -> tuple[str, list[str]]:
    subject = request.subjects[0]
    facts = _facts(subject, now_ns)
    if subject.kind is FileKind.DIRECTORY:
        return "Delete the empty folder", [show_path(subject.path, home), f"{_capital(facts)}."]
    body = [show_path(subject.path, home), f"{_capital(facts)}. This cannot be undone."]
    if subject.links > 1:
        body.append(f"Its content stays under {count(subject.links - 1, 'other name')}.")
    return "Delete", body


def _move(request: Request, home: bytes, now_ns: int) -> tuple[str, list[str]]:
    source, destination = request.subjects
    body = [f"{show_path(source.path, home)}  ->  {show_path(destination.path, home)}"]
    if source.below is not None and source.below.relative:
        body.append(f"With {count(len(source.below.relative), 'entry')} below it.")
    if destination.exists:
        body.append(f"Replaces {_facts(destination, now_ns)}, of the destination.")
        body.append("This cannot be undone.")
    else:
        body.append("The destination does not exist.")
    return "Move", body


def _exchange(request: Request, home: bytes, now_ns: int) -> tuple[str, list[str]]:
    first, second = request.subjects
    return "Exchange", [
        f"{show_path(first.path, home)}  <->  {show_path(second.path, home)}",
        f"The first: {_facts(first, now_ns)}.",
        f"The second: {_facts(second, now_ns)}.",
    ]


def _read(request: Request, home: bytes, now_ns: int) -> tuple[str, list[str]]:
    del now_ns  # reading is never asked about by the view
    return "Read", [show_path(path, home) for path in request.paths]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


_SHAPES: dict[Operation, Callable[[Request, bytes, int], tuple[str, list[str]]]] = {
    **dict.fromkeys(Operation, _read),
    Operation.WRITE: _write,
    Operation.TRUNCATE: _truncate,
    **dict.fromkeys(_ATTRIBUTES, _attributes),
    Operation.CREATE: _create,
    Operation.MKDIR: _create,
    Operation.SYMLINK: _create,
    Operation.MKNOD: _create,
    Operation.LINK: _link,
    Operation.UNLINK: _delete,
    Operation.RMDIR: _delete,
    Operation.RENAME: _move,
    Operation.REPLACE: _move,
    Operation.EXCHANGE: _exchange,
}
