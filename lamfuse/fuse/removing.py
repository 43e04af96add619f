"""The handlers that take a name away or move it: unlink, rmdir, rename."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import ExitStack
from dataclasses import replace

import pyfuse3

from lamfuse.core import paths
from lamfuse.core.operations import Operation
from lamfuse.core.target import Request, Subject
from lamfuse.engine.gate import Permit
from lamfuse.fuse.context import Mounted
from lamfuse.fuse.creating import parent_of
from lamfuse.fuse.examination import (
    Examined,
    check_empty,
    check_parent,
    entry_subject,
    is_writable,
)
from lamfuse.fuse.view import DeniedNameError
from lamfuse.tree import survey, syscalls
from lamfuse.tree.inodes import Inode
from lamfuse.tree.resolve import Target

__all__ = ["remove", "rename"]

_KNOWN_FLAGS = syscalls.NOREPLACE | syscalls.EXCHANGE


async def remove(
    mounted: Mounted, nodeid: int, name: bytes, operation: Operation, ctx: pyfuse3.RequestContext
) -> None:
    """Remove a name (UNLINK) or an empty directory (RMDIR); asks every time, but for H10."""
    parent = parent_of(mounted, nodeid, name)
    session, caller = mounted.session(ctx), mounted.caller(ctx)
    with ExitStack() as stack:
        target = _standing(mounted, parent, name, stack)

        def describe() -> Request:
            subject = entry_subject(mounted.view, target)
            if not subject.exists:
                raise FileNotFoundError(errno.ENOENT, "it is gone")
            if is_writable(mounted.view.policy, subject.path):
                check_parent(target)
                _check_sticky(target)
                if operation is Operation.RMDIR:
                    _check_directory(target)
                elif subject.is_directory:
                    raise IsADirectoryError(errno.EISDIR, "a directory")
            return Request(operation, session, caller, (subject,))

        permit = await mounted.authorize(Examined(mounted.view, describe, (target,)))
        with mounted.acting(permit):
            if operation is Operation.RMDIR:
                syscalls.remove_directory(target.dirfd, target.name)
            else:
                syscalls.unlink(target.dirfd, target.name)
        _forget_name(mounted, parent, name, target, permit)


def _standing(mounted: Mounted, parent: Inode, name: bytes, stack: ExitStack) -> Target:
    """Return the visible object *name* that is to be removed or moved; ENOENT when it is hidden."""
    try:
        target = stack.enter_context(mounted.view.entry(parent, name))
    except DeniedNameError:
        raise FileNotFoundError(errno.ENOENT, "hidden") from None
    if target.fd < 0:
        raise FileNotFoundError(errno.ENOENT, "not there")
    return target


def _check_directory(target: Target) -> None:
    if not stat.S_ISDIR(target.stat().mode):
        raise NotADirectoryError(errno.ENOTDIR, "not a directory")
    check_empty(target.fd)


def _check_sticky(target: Target) -> None:
    """Raise EPERM where the sticky bit of the directory keeps others from removing the name."""
    directory = syscalls.fstat(target.dirfd)
    if not directory.mode & stat.S_ISVTX:
        return
    if os.geteuid() not in {0, directory.uid, target.stat().uid}:
        raise PermissionError(errno.EPERM, "the folder is sticky, and it belongs to somebody else")


def _forget_name(
    mounted: Mounted, parent: Inode, name: bytes, target: Target, permit: Permit
) -> None:
    """Take the name out of the table, and the object out of what was born."""
    seen = target.stat()
    inode = mounted.tree.inodes.find(seen.dev, seen.ino)
    if inode is not None:
        inode.drop_name(parent, name)
        if not seen.links or inode.is_directory:
            mounted.keep_nameless(inode, target.fd)
    permit.session.ledger.note_gone(permit.request.subjects[-1].identity)
    if seen.links and inode is not None:
        mounted.after_change(target.fd, permit.session.name)


async def rename(
    mounted: Mounted,
    old: tuple[int, bytes],
    new: tuple[int, bytes],
    flags: int,
    ctx: pyfuse3.RequestContext,
) -> None:
    """Move a name, replace what stands under the new one, or exchange the two."""
    if flags & ~_KNOWN_FLAGS or flags == _KNOWN_FLAGS:
        raise OSError(errno.EINVAL, "unknown flags")
    old_parent, new_parent = parent_of(mounted, *old), parent_of(mounted, *new)
    session, caller = mounted.session(ctx), mounted.caller(ctx)
    with ExitStack() as stack:
        source = _standing(mounted, old_parent, old[1], stack)
        stack.enter_context(mounted.denied_as_refusal(Operation.RENAME, ctx))
        target = stack.enter_context(mounted.view.entry(new_parent, new[1]))
        exchange = bool(flags & syscalls.EXCHANGE)

        def describe() -> Request:
            moved = entry_subject(mounted.view, source)
            replaced = entry_subject(mounted.view, target)
            if not moved.exists:
                raise FileNotFoundError(errno.ENOENT, "it is gone")
            operation = _rename_operation(replaced, flags)
            policy = mounted.view.policy
            if is_writable(policy, moved.path) and is_writable(policy, replaced.path):
                _check_rename(source, target, moved, replaced, flags)
            moved = _with_below(moved, source, moves=True)
            replaced = _with_below(replaced, target, moves=exchange)
            return Request(operation, session, caller, (moved, replaced))

        permit = await mounted.authorize(Examined(mounted.view, describe, (source, target)))
        with mounted.acting(permit):
            syscalls.rename(source.dirfd, source.name, target.dirfd, target.name, flags)
        _after_rename(mounted, (old_parent, old[1]), (new_parent, new[1]), (source, target), permit)


def _with_below(subject: Subject, target: Target, *, moves: bool) -> Subject:
    """Add what is below *subject* if it is a directory that moves."""
    if not moves or not subject.is_directory:
        return subject
    return replace(subject, below=survey.look_below(target.fd))


def _rename_operation(replaced: Subject, flags: int) -> Operation:
    if flags & syscalls.EXCHANGE:
        return Operation.EXCHANGE
    return Operation.REPLACE if replaced.exists else Operation.RENAME


def _check_rename(
    source: Target, target: Target, moved: Subject, replaced: Subject, flags: int
) -> None:
    """Raise what the rename would meet, so that nobody is asked about what cannot succeed."""
    for side in (source, target):
        check_parent(side)
        if side.fd >= 0:
            _check_sticky(side)
    if flags & syscalls.NOREPLACE and replaced.exists:
        raise FileExistsError(errno.EEXIST, "it exists")
    if flags & syscalls.EXCHANGE and not replaced.exists:
        raise FileNotFoundError(errno.ENOENT, "nothing to exchange with")
    if syscalls.fstat(source.dirfd).mount != syscalls.fstat(target.dirfd).mount:
        raise OSError(errno.EXDEV, "another file system")
    if (
        moved.is_directory
        and paths.contains(moved.path, replaced.path)
        and (moved.path != replaced.path)
    ):
        raise OSError(errno.EINVAL, "into itself")
    if not replaced.exists or flags & syscalls.EXCHANGE:
        return
    if moved.is_directory and not replaced.is_directory:
        raise NotADirectoryError(errno.ENOTDIR, "the destination is no directory")
    if replaced.is_directory and not moved.is_directory:
        raise IsADirectoryError(errno.EISDIR, "the destination is a directory")
    if replaced.is_directory and moved.path != replaced.path:
        check_empty(target.fd)


def _after_rename(
    mounted: Mounted,
    old: tuple[Inode, bytes],
    new: tuple[Inode, bytes],
    targets: tuple[Target, Target],
    permit: Permit,
) -> None:
    """Let table, handles and ledger follow."""
    source, target = targets
    exchange = permit.request.operation is Operation.EXCHANGE
    ledger = permit.session.ledger
    moved = mounted.tree.inodes.find(*_key(source))
    replaced = mounted.tree.inodes.find(*_key(target)) if target.fd >= 0 else None
    for inode, was, becomes in (
        (moved, old, new),
        (replaced, new, old if exchange else None),
    ):
        if inode is None:
            continue
        inode.drop_name(*was)
        if becomes is not None:
            inode.add_name(*becomes)
        for handle in mounted.handles.of(inode):
            handle.epoch = -1
    if replaced is not None and not target.stat().links:
        mounted.keep_nameless(replaced, target.fd)
    if permit.request.operation is Operation.REPLACE:
        ledger.note_gone(permit.request.subjects[1].identity)
    if moved is not None:
        mounted.after_change(source.fd, permit.session.name)
    subject = source.subject() if source.fd >= 0 else permit.request.subjects[0]
    ledger.note_moved(subject, permit.request.paths[1])
    if permit.request.subjects[0].is_directory:
        mounted.view.forget_verified()
        _revoke_below(mounted, permit.request.paths[1])


def _key(target: Target) -> tuple[int, int]:
    seen = target.stat()
    return seen.dev, seen.ino


def _revoke_below(mounted: Mounted, directory: bytes) -> None:
    """Revoke the write handles on files that moved along with their directory."""
    for handle in mounted.handles.writers():
        try:
            moved = syscalls.fstat(handle.fd).links and paths.contains(
                directory, syscalls.real_path(handle.fd)
            )
        except OSError:  # a path that is too long to be told: it may be below
            moved = True
        if moved:
            handle.epoch = -1
