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
    number,
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

_NAME_WIDTH = 48
_OTHER_NAMES = 5
#: A moved tree can hold very many; a list as long as this is still looked through.
_RUNS_LATER_LISTED = 50
_RUNS_LATER = "Runs on your machine later, outside the boundary."
#: Line counts are bounded work (lamfuse.tree.survey).
_NOT_COUNTED = "lines not counted (binary, unreadable, or over 4 MB)"
#: What parts the caller line, and what ends a title: a program or a file can be called anything.
_PARTING = str.maketrans({"·": r"\u00b7", ",": r"\x2c", "(": r"\x28"})
_END_OF_TITLE, _END_SHOWN = "? [", r"? \x5b"


def describe(
    request: Request,
    home: bytes,
    now_ns: int,
    *,
    question_id: str,
    runs_later: Sequence[bytes] = (),
    offers: Sequence[Offer] = (),
    new_folders: Sequence[bytes] = (),
) -> Text:
    """Return the text of the question about *request*.

    *now_ns* is the time of day in nanoseconds. *runs_later* are the paths that run on the person's
    machine later; *offers* are the scopes on offer; *new_folders* are the missing folders,
    outermost first, that are created on the way.
    """
    verb, body = _SHAPES[request.operation](request, home, now_ns)
    names = " and ".join(map(_title_name, _titled(request)))
    lines = [
        *_creates_folders(new_folders, home),
        *body,
        *_runs_later(request, runs_later, home),
        *(_reach(offer, home) for offer in offers if offer.scope is Scope.FOLDER),
    ]
    return Text(f"{verb} {names}? [{question_id}]", tuple(lines), _is_destructive(request))


def caller_line(caller: Caller, session: str, seconds_left: float, waiting: int) -> str:
    """Return who asks, how long the question stands, and how many more wait.

    The executable is what the kernel says; it is shown, and proves nothing.
    """
    program = show_name(caller.exe.rpartition(b"/")[2])
    who = _brief(program) if program else "an unknown program"
    pid = f" (pid {caller.pid})" if caller.pid else ""
    parts = [f"by {who}{pid}, session {_brief(show_text(session))}"]
    parts.append(f"declines in {max(0, round(seconds_left))} s")
    if waiting:
        parts.append(f"{waiting} more waiting")
    return " · ".join(parts)


def label(offer: Offer, _home: bytes) -> str:
    """Return the words of the button for *offer*: it is short, and the body names the folder."""
    match offer.scope:
        case Scope.ONCE:
            return "Allow once"
        case Scope.FILE:
            return "Allow"
        case Scope.FOLDER:
            return f"Allow folder this turn{_inside(offer)}"
        case Scope.LISTED:
            return "Allow these" + ("" if offer.existing is None else f" {number(offer.existing)}")


def _inside(offer: Offer) -> str:
    if offer.existing is None:
        return " (new files only)"
    return f" ({count(offer.existing, 'file')} in it)" if offer.existing else ""


def _creates_folders(folders: Sequence[bytes], home: bytes) -> list[str]:
    if len(folders) == 1:
        return [f"Creates the folder {show_path(folders[0], home)} as well."]
    if not folders:
        return []
    return ["Creates these folders as well:", *(f"  {show_path(path, home)}" for path in folders)]


def _runs_later(request: Request, classed: Sequence[bytes], home: bytes) -> list[str]:
    """Say that something runs later, and which, unless it is the one path of the request."""
    if not classed:
        return []
    if tuple(classed) == request.paths:
        return [_RUNS_LATER]
    return [_RUNS_LATER, *_listed(classed, len(classed), _RUNS_LATER_LISTED, home)]


def _listed(some: Sequence[bytes], total: int, most: int, home: bytes) -> list[str]:
    """Return the first of *some* paths; what is missing from *total* is told."""
    lines = [f"  {show_path(path, home)}" for path in some[:most]]
    if lines and len(lines) < total:
        lines.append(f"  and {number(total - len(lines))} more")
    return lines


def _reach(offer: Offer, home: bytes) -> str:
    """Say what a folder grant would reach beyond what is created in this turn."""
    folder = show_path(offer.path, home)  # last: what stands behind a name could seem part of it
    if offer.existing is None:
        return f"Allowing the folder leaves its files as they are, too many to count: {folder}"
    if not offer.existing:
        return f"The folder has no files yet: {folder}"
    return (
        f"Allowing the folder also lets the {count(offer.existing, 'file')} in it be changed,"
        f" and not deleted or moved: {folder}"
    )


def _titled(request: Request) -> tuple[bytes, ...]:
    if request.operation is Operation.EXCHANGE:
        return request.paths
    return request.paths[-1:] if request.operation is Operation.LINK else request.paths[:1]


def _title_name(path: bytes) -> str:
    shown = show_name(paths.base(path) or path).replace(_END_OF_TITLE, _END_SHOWN)
    return shorten(shown, _NAME_WIDTH).text


def _brief(shown: str) -> str:
    return shorten(shown.translate(_PARTING), _NAME_WIDTH).text


def _is_destructive(request: Request) -> bool:
    if request.operation is Operation.TRUNCATE:
        return (request.new_size or 0) < request.subjects[0].size
    if TABLE[request.operation].verb is Verb.WRITE:
        return request.truncates
    return TABLE[request.operation].destructive


def _facts(subject: Subject, now_ns: int) -> str:
    """Return size, lines and age of what stands there."""
    if subject.kind is not FileKind.FILE:
        return f"a {subject.kind}, {_age(subject, now_ns)}"
    return f"{show_size(subject.size)}, {_lines(subject)}, {_age(subject, now_ns)}"


def _lines(subject: Subject) -> str:
    return _NOT_COUNTED if subject.lines is None else count(subject.lines, "line")


def _age(subject: Subject, now_ns: int) -> str:
    return f"last changed {show_age(now_ns, subject.mtime_ns)}"


def _new_content(request: Request) -> list[str]:
    if request.new_size is None:
        return []
    lines = "" if request.new_lines is None else f", {count(request.new_lines, 'line')}"
    return [f"New content is {show_size(request.new_size)}{lines}."]


def _others(subject: Subject) -> int:
    """Return how many more names the content of *subject* has, known or not."""
    return 0 if subject.is_directory else max(subject.links - 1, len(subject.other_names))


def _other_names(subject: Subject, home: bytes) -> list[str]:
    """Name what else changes with a file that has more than one name."""
    others = _others(subject)
    if not others:
        return []
    verb = "changes" if others == 1 else "change"
    return [
        f"It also has {count(others, 'other name')} that {verb} with it.",
        *_listed(subject.other_names, others, _OTHER_NAMES, home),
    ]


def _content_stays(subject: Subject) -> list[str]:
    others = _others(subject)
    return [f"Its content stays under {count(others, 'other name')}."] if others else []


def _write(request: Request, home: bytes, now_ns: int) -> tuple[str, list[str]]:
    subject = request.subjects[0]
    facts = _facts(subject, now_ns)
    if request.truncates:
        verb, said = "Overwrite", f"Replaces {facts}."
    else:
        has = "Has" if subject.kind is FileKind.FILE else "Is"
        verb, said = "Change", f"{has} {facts}. Any part of it may change."
    path = show_path(subject.path, home)
    return verb, [path, said, *_new_content(request), *_other_names(subject, home)]


def _truncate(request: Request, home: bytes, now_ns: int) -> tuple[str, list[str]]:
    subject, size = request.subjects[0], request.new_size or 0
    change = f"From {show_size(subject.size)} to {number(size)}"
    if size < subject.size:
        verb = "Shorten"
    elif size > subject.size:
        verb = "Extend"
    else:
        verb, change = "Set the size of", f"It stays at {show_size(size)}"
    return verb, [
        show_path(subject.path, home),
        f"{change}; {_lines(subject)}, {_age(subject, now_ns)}.",
        *_detail(request),
        *_other_names(subject, home),
    ]


def _attributes(request: Request, home: bytes, _now_ns: int) -> tuple[str, list[str]]:
    subject = request.subjects[0]
    return _ATTRIBUTES[request.operation], [
        show_path(subject.path, home),
        *_detail(request),
        *_other_names(subject, home),
    ]


def _detail(request: Request) -> list[str]:
    return [show_text(request.detail)] if request.detail else []


_ATTRIBUTES = {
    Operation.CHMOD: "Change permissions of",
    Operation.CHOWN: "Change the owner of",
    Operation.UTIMENS: "Change the times of",
    Operation.SET_XATTR: "Set an attribute of",
    Operation.REMOVE_XATTR: "Remove an attribute of",
}


def _create(request: Request, home: bytes, _now_ns: int) -> tuple[str, list[str]]:
    verb, body = "Create", [show_path(request.paths[0], home), *_new_content(request)]
    if request.alone:
        body.append(f"With {show_text(request.detail)}: whoever runs it gets your rights.")
    if request.operation is Operation.MKDIR:
        verb = "Create the folder"
    elif request.operation is Operation.SYMLINK:
        verb = "Create the link"
        body.append(f"It points to {show_path(request.target, b'')}")  # as it is written
    elif request.makes not in {None, FileKind.FILE}:
        verb = f"Create the {request.makes}"
    return verb, body


def _link(request: Request, home: bytes, now_ns: int) -> tuple[str, list[str]]:
    old, new = request.subjects
    has = "has" if old.kind is FileKind.FILE else "is"
    return "Link", [
        show_path(new.path, home),
        f"becomes one more name of {show_path(old.path, home)}",
        f"That {has} {_facts(old, now_ns)}. Both change together from then on.",
    ]


def _delete(request: Request, home: bytes, now_ns: int) -> tuple[str, list[str]]:
    subject = request.subjects[0]
    path, facts = show_path(subject.path, home), _facts(subject, now_ns)
    said = f"{facts[:1].upper()}{facts[1:]}. This cannot be undone."
    verb = "Delete the empty folder" if subject.is_directory else "Delete"
    return verb, [path, said, *_content_stays(subject)]


def _move(request: Request, home: bytes, now_ns: int) -> tuple[str, list[str]]:
    source, destination = request.subjects
    body = [f"{show_path(source.path, home)}  ->  {show_path(destination.path, home)}"]
    if source.below is not None and source.below.relative:
        body.append(f"With {count(len(source.below.relative), 'entry')} below it.")
    if not destination.exists:
        return "Move", [*body, "The destination does not exist."]
    replaced = f"Replaces {_facts(destination, now_ns)}, of the destination. This cannot be undone."
    return "Move", [*body, replaced, *_content_stays(destination)]


def _exchange(request: Request, home: bytes, now_ns: int) -> tuple[str, list[str]]:
    first, second = request.subjects
    return "Exchange", [
        f"{show_path(first.path, home)}  <->  {show_path(second.path, home)}",
        f"The first: {_facts(first, now_ns)}.",
        f"The second: {_facts(second, now_ns)}.",
    ]


def _read(request: Request, home: bytes, _now_ns: int) -> tuple[str, list[str]]:
    # Reading is never asked about by the view.
    return "Read", [show_path(path, home) for path in request.paths]


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
