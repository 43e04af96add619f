"""What the gate gets to see of a request: the objects, described through held descriptors.

``look`` may be called again and again: the descriptors stay, the description is fresh each time.
What cannot succeed is said here as an OSError, so that nobody is asked about it; but only inside
a write root, since elsewhere the answer is the policy's.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from dataclasses import replace

from lamfuse.core import paths
from lamfuse.core.policy import Policy
from lamfuse.core.roots import Area
from lamfuse.core.target import FileId, FileKind, Request, Subject
from lamfuse.fuse.view import View
from lamfuse.tree import survey, syscalls
from lamfuse.tree.resolve import Target

__all__ = [
    "Examined",
    "check_empty",
    "check_free",
    "check_parent",
    "entry_subject",
    "is_writable",
    "same_subject",
]


class Examined:
    """An examination: *describe* makes the request from the *targets* as they are now."""

    def __init__(
        self, view: View, describe: Callable[[], Request], targets: tuple[Target, ...]
    ) -> None:
        self._view = view
        self._targets = targets
        self.look = describe

    def measure(self, request: Request) -> Request:
        """Fill in line counts of the regular files among the objects.

        Of the source of a save.
        """
        subjects = []
        for subject, target in zip(request.subjects, self._targets, strict=True):
            lines = None
            if subject.kind is FileKind.FILE and target.fd >= 0:
                lines = survey.count_lines(target.fd)
            subjects.append(replace(subject, lines=lines))
        return replace(request, subjects=tuple(subjects))

    def list_files(self, folder: bytes) -> frozenset[FileId] | None:
        """Return the files in *folder*, found again below its root without following a link."""
        for anchor in sorted(self._view.anchors, key=lambda anchor: -len(anchor.path)):
            if paths.contains(anchor.path, folder):
                try:
                    fd = syscalls.open_beneath(anchor.fd, paths.relative(anchor.path, folder))
                except OSError:
                    return None
                try:
                    return survey.list_files(fd)
                except OSError:
                    return None
                finally:
                    syscalls.close(fd)
        return None


def is_writable(policy: Policy, path: bytes) -> bool:
    """Whether changes at *path* are at least asked about."""
    return policy.roots.area(path) is Area.WRITE


def entry_subject(view: View, target: Target) -> Subject:
    """Describe what stands under a name now, with the other names known for it."""
    if target.dirfd >= 0 and target.fd >= 0 and not target.stands():
        target.refresh()
    names: tuple[bytes, ...] = ()
    if target.fd >= 0:
        seen = target.stat()
        if seen.links > 1 and not stat.S_ISDIR(seen.mode):
            inode = view.tree.inodes.find(seen.dev, seen.ino)
            names = view.tree.known_paths(inode) if inode is not None else ()
    return target.subject(names)


def same_subject(view: View, target: Target) -> Subject:
    """Describe the held object as it is now; ESTALE when its name leads elsewhere."""
    held = target.stat()
    if target.dirfd < 0 or target.stands():
        subject = entry_subject(view, target)
        found = subject.identity
        if found is not None and (found.dev, found.ino) == (held.dev, held.ino):
            return subject
    raise OSError(errno.ESTALE, "it is no longer under that name")


def check_parent(target: Target) -> None:
    """Raise what a change of the directory would meet: EACCES, ENOENT, ENAMETOOLONG."""
    if not syscalls.fstat(target.dirfd).links:
        raise FileNotFoundError(errno.ENOENT, "the folder was removed")
    if len(target.name) > syscalls.statvfs(target.dirfd).f_namemax:
        raise OSError(errno.ENAMETOOLONG, "name too long")
    if not syscalls.has_access(target.dirfd, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, "the folder may not be written")


def check_free(target: Target) -> None:
    """Raise EEXIST where something stands under the name already."""
    if target.fd >= 0:
        raise FileExistsError(errno.EEXIST, "it exists")


def check_empty(fd: int) -> None:
    """Raise ENOTEMPTY for a directory that holds anything, hidden or not."""
    for _ in syscalls.scan(fd):
        raise OSError(errno.ENOTEMPTY, "not empty")
