"""Which scopes a question offers, and which one a plain yes means.

Pure: the number of files that a folder holds comes in from outside.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from lamfuse.core import paths
from lamfuse.core.approval import Offer, Scope
from lamfuse.core.operations import TABLE, Operation, Verb
from lamfuse.core.roots import Roots
from lamfuse.core.target import FileId, Request

__all__ = ["default_scope", "folder_of", "offers"]

_CONTENT = frozenset({Verb.CREATE, Verb.WRITE, Verb.ATTRIBUTES})
_FILE_BY_DEFAULT = frozenset({Verb.CREATE, Verb.WRITE})


def folder_of(request: Request, classed: tuple[bytes, ...]) -> bytes | None:
    """Return the folder that a question can be widened to, or None.

    For a new directory it is that directory. A file that runs later outside has none, and neither
    has a delete or a move: a folder grant would not cover the next one.
    """
    if classed or TABLE[request.operation].verb not in _CONTENT:
        return None
    path = request.paths[-1]
    return path if request.operation is Operation.MKDIR else paths.parent(path)


def default_scope(request: Request) -> Scope:
    """Return what a yes without a scope means: the file for create and write, once otherwise."""
    by_file = TABLE[request.operation].verb in _FILE_BY_DEFAULT
    return Scope.FILE if by_file else Scope.ONCE


def offers(
    request: Request, classed: tuple[bytes, ...], roots: Roots, existing: AbstractSet[FileId] | None
) -> tuple[Offer, ...]:
    """Return the scopes on offer, narrowest first.

    *existing* are the files that the folder holds already, None when they were too many to
    count: then a write root itself is not offered, and elsewhere existing files are not covered.
    """
    result = [Offer(Scope.ONCE)]
    if TABLE[request.operation].verb in _CONTENT:
        result.append(Offer(Scope.FILE, request.paths[-1]))
    folder = folder_of(request, classed)
    if folder is not None and roots.write_root_of(folder) is not None:
        new = request.operation is Operation.MKDIR
        counted = frozenset() if new else existing
        if counted is not None:
            result.append(Offer(Scope.FOLDER, folder, len(counted), frozenset(counted)))
        elif not roots.is_root(folder):
            result.append(Offer(Scope.FOLDER, folder))
    return tuple(result)
