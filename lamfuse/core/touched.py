"""Which names a request touches: those it acts through, and every other one of its objects.

Pure reading of a request: what a name means is the policy's business.
"""

from __future__ import annotations

from collections.abc import Iterator

from lamfuse.core import paths
from lamfuse.core.operations import TABLE, Operation, Verb
from lamfuse.core.target import Request, Subject

__all__ = [
    "KEEPS_NAMES",
    "acted_names",
    "all_names",
    "below",
    "direct_names",
    "has_unknown_names",
    "moves",
]

#: What changes an object under all its names.
KEEPS_NAMES = frozenset({Verb.WRITE, Verb.ATTRIBUTES})

Names = Iterator[tuple[bytes, bool | None]]
"""(path, is it a directory); None for a name under which nothing stands."""


def has_unknown_names(subject: Subject) -> bool:
    """Tell whether the object has a name that nobody has seen."""
    return not subject.is_directory and subject.links > 1 + len(subject.other_names)


def direct_names(request: Request) -> Names:
    """Yield every name that *request* takes, gives or acts through, at its old and new place."""
    for subject in request.subjects:
        yield subject.path, subject.is_directory if subject.exists else None
    for source, destination in moves(request):
        yield destination, source.is_directory


def below(source: Subject, destination: bytes) -> Iterator[tuple[bytes, bytes, bool]]:
    """Yield (old path, new path, is it a directory) for everything below a moved directory."""
    if source.below is not None:
        for relative in source.below.relative:
            old, new = paths.join(source.path, relative), paths.join(destination, relative)
            yield old, new, relative in source.below.directories


def acted_names(request: Request) -> Names:
    """Yield every name that *request* touches, with what is below a moved directory."""
    yield from direct_names(request)
    if TABLE[request.operation].verb in KEEPS_NAMES or request.operation is Operation.LINK:
        yield from _other_names(request)
    for source, destination in moves(request):
        for old, new, is_dir in below(source, destination):
            yield old, is_dir
            yield new, is_dir


def all_names(request: Request) -> Names:
    """Yield every name of every object of *request*."""
    yield from acted_names(request)
    yield from _other_names(request)


def _other_names(request: Request) -> Names:
    for subject in request.subjects:
        for name in subject.other_names:
            yield name, subject.is_directory


def moves(request: Request) -> Iterator[tuple[Subject, bytes]]:
    """Yield (moved object, its new path) for a rename; an exchange has two."""
    if TABLE[request.operation].verb is not Verb.MOVE:
        return
    source, destination = request.subjects
    yield source, destination.path
    if request.operation is Operation.EXCHANGE:
        yield destination, source.path
