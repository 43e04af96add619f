"""What a request comes to: what a person is shown of it, what it destroys, whether it is another.

Pure: two descriptions are compared here, and whoever made them looked at the objects.
"""

from __future__ import annotations

from dataclasses import replace

from lamfuse.core.operations import TABLE, Operation, Verb
from lamfuse.core.target import Caller, Request

__all__ = ["as_write", "destroyed", "is_same", "needs_sync", "of", "opens_the_same"]


def as_write(request: Request) -> Request:
    """Tell an atomic save as what it is for the person: an overwrite of the destination.

    Other names of what stood there keep the old content: nothing becomes of them.
    """
    source, destination = request.subjects
    return replace(
        request,
        operation=Operation.WRITE,
        subjects=(replace(destination, links=1, other_names=()),),
        truncates=True,
        new_size=source.size,
        new_lines=source.lines,
    )


def needs_sync(request: Request) -> bool:
    """Whether the intent must be on the disk before the act.

    Where something is destroyed or moved.
    """
    verb = TABLE[request.operation].verb
    if verb in {Verb.DELETE, Verb.MOVE}:
        return True
    return verb is Verb.WRITE and request.subjects[0].size > 0


def destroyed(request: Request) -> int | None:
    """How many bytes the act destroys, where that is known before it."""
    lost = request.subjects[-1]
    if request.operation is Operation.TRUNCATE:
        return max(0, lost.size - (request.new_size or 0))
    if request.operation in {Operation.UNLINK, Operation.REPLACE}:
        return 0 if lost.links > 1 or lost.is_directory else lost.size
    return lost.size if request.truncates else None


def of(request: Request) -> Request:
    """Return all of *request* that a person is shown but who calls, and how many lines there are.

    Two calls with the same essence can share a question; a request whose essence changed while its
    question stood is another one.
    """
    subjects = tuple(replace(subject, lines=None) for subject in request.subjects)
    return replace(request, caller=Caller(), subjects=subjects, new_lines=None)


def is_same(shown: Request, fresh: Request) -> bool:
    """Whether everything is still as it was: identity, size, times, place, and both parents."""
    return of(shown) == of(fresh)


def opens_the_same(request: Request, fresh: Request) -> bool:
    """Whether both open the same object for writing, and destroy nothing by it."""
    if not request.operation is fresh.operation is Operation.WRITE or fresh.truncates:
        return False
    (before,), (now,) = request.subjects, fresh.subjects
    return replace(
        now, size=before.size, mtime_ns=before.mtime_ns, ctime_ns=before.ctime_ns
    ) == replace(before, lines=now.lines)
