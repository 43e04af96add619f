"""The handlers that change a file's content or attributes.

Opening asks; writing never waits: a write on a handle whose turn is over is decided at once, and
refused unless something still covers the file.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass

import pyfuse3
import trio

from lamfuse.core.operations import Operation
from lamfuse.core.refusals import Refusal
from lamfuse.core.target import Caller, Request, Subject
from lamfuse.fuse import errno as fuse_errno
from lamfuse.fuse.context import Mounted
from lamfuse.fuse.examination import Examined, is_writable, same_subject
from lamfuse.tree import syscalls
from lamfuse.tree.handles import FileHandle
from lamfuse.tree.inodes import Inode
from lamfuse.tree.resolve import Target, kind_of

__all__ = [
    "change_attributes",
    "change_xattr",
    "open_for_writing",
    "open_target",
    "sets_id",
    "sync",
    "write",
]

#: Access lists let others in, as set-id bits do: no grant covers them.
_ACCESS_LISTS = b"system.posix_acl_"
#: A list of owner, group and others alone says what the mode says; cp, sed and vim copy those.
_PLAIN_LIST_BYTES = 4 + 3 * 8
_OWNER = frozenset({Operation.CHMOD, Operation.CHOWN})


async def open_for_writing(
    mounted: Mounted, nodeid: int, flags: int, ctx: pyfuse3.RequestContext
) -> pyfuse3.FileInfo:
    """Ask for *write*, then open the very file that was asked about."""
    inode = mounted.tree.inode(nodeid)
    if inode in mounted.virtual:
        raise OSError(errno.EROFS, "virtual")
    if inode.is_directory:
        raise IsADirectoryError(errno.EISDIR, "a directory")
    with mounted.view.open_visible(inode) as target:
        number = await open_target(mounted, inode, target, flags, ctx)
    return pyfuse3.FileInfo(fh=pyfuse3.FileHandleT(number))


async def open_target(
    mounted: Mounted, inode: Inode, target: Target, flags: int, ctx: pyfuse3.RequestContext
) -> int:
    """Ask for *write* on *target*, open it, and return the number of the handle."""
    session, caller = mounted.session(ctx), mounted.caller(ctx)
    mounted.handles.check_room()

    def describe() -> Request:
        subject = same_subject(mounted.view, target)
        if is_writable(mounted.view.policy, subject.path) and not syscalls.has_access(
            target.fd, _access_mode(flags)
        ):
            raise PermissionError(errno.EACCES, "its permissions do not allow it")
        truncates = bool(flags & os.O_TRUNC) and subject.size > 0
        return Request(Operation.WRITE, session, caller, (subject,), truncates=truncates)

    permit = await mounted.authorize(Examined(mounted.view, describe, (target,)))
    with mounted.acting(permit):
        fd = _open_granted(target.fd, flags)
    mounted.after_change(fd, session)
    if flags & os.O_TRUNC:
        inode.size = 0  # so it is to the kernel from now on
    handle = FileHandle(
        inode,
        fd,
        flags,
        session,
        permit.session.ledger.epoch,
        ctx.pid,
        mounted.view.rules,
        permit.request.paths[-1],
    )
    return mounted.handles.add(handle)


def _access_mode(flags: int) -> int:
    reads = flags & os.O_ACCMODE in {os.O_RDONLY, os.O_RDWR, os.O_ACCMODE}
    return os.W_OK | (os.R_OK if reads else 0)


def _open_granted(path_fd: int, flags: int) -> int:
    """Open the object behind *path_fd* as *flags* say, and truncate it if they do."""
    mode = flags & os.O_ACCMODE
    if mode == os.O_ACCMODE:  # "3" means reading and writing to the kernel
        mode = os.O_RDWR
    keep = flags & (os.O_SYNC | os.O_DSYNC | os.O_NOATIME)
    fd = syscalls.reopen(path_fd, mode | keep | os.O_NONBLOCK)
    if not flags & os.O_TRUNC:
        return fd
    try:
        if mode == os.O_RDONLY:
            writable = syscalls.reopen(path_fd, os.O_WRONLY | os.O_NONBLOCK)
            try:
                syscalls.truncate(writable, 0)
            finally:
                syscalls.close(writable)
        else:
            syscalls.truncate(fd, 0)
    except BaseException:
        syscalls.close(fd)
        raise
    return fd


async def write(mounted: Mounted, fh: int, offset: int, data: bytes) -> int:
    """Write through an open handle; never waits for anybody."""
    handle = mounted.handles.file(fh)
    if not mounted.is_current(handle) or syscalls.real_path(handle.fd) != handle.path:
        _decide_late_write(mounted, handle)
    mounted.before_write(handle)
    append = _is_append(handle, offset)
    try:
        written = syscalls.write(handle.fd, data, offset, append=append)
    except OSError:
        mounted.drop_pages(handle.inode)
        raise
    seen = mounted.after_change(handle.fd, handle.session)
    handle.inode.size = max(handle.inode.size, offset + written)
    if written < len(data) or (append and seen.size != offset + written):
        mounted.drop_pages(handle.inode)
    return written


def _is_append(handle: FileHandle, offset: int) -> bool:
    """Tell an append from late write-back of a mapping, which may come by the same handle.

    The kernel computes the place of an append from the size that it knows; whoever else appended
    meanwhile must not be overwritten. Write-back lies before that size, and there is none unless
    the file is open for reading and writing.
    """
    if not handle.appends:
        return False
    return offset >= handle.inode.size or not any(
        isinstance(other, FileHandle) and other.maps for other in handle.inode.handles or ()
    )


def _decide_late_write(mounted: Mounted, handle: FileHandle) -> None:
    """Decide on a write through a handle whose turn is over, or whose file moved."""
    seen = syscalls.fstat(handle.fd)
    if seen.links == 0:
        return  # unlinked: nobody can see it but those who hold it open
    path = syscalls.real_path(handle.fd)
    names = mounted.tree.known_paths(handle.inode) if seen.links > 1 else ()
    subject = Subject(
        path,
        kind_of(seen.mode),
        syscalls.identity(handle.fd, seen),
        None,
        seen.size,
        seen.mtime_ns,
        seen.ctime_ns,
        seen.links,
        other_names=tuple(name for name in names if name != path),
    )
    request = Request(Operation.WRITE, handle.session, Caller(handle.tid), (subject,))
    result = mounted.gate.authorize_at_once(request)
    if isinstance(result, Refusal):
        mounted.drop_pages(handle.inode)
        raise fuse_errno.refused(result)
    with mounted.acting(result):
        handle.epoch = result.session.ledger.epoch
        handle.path = path


async def sync(mounted: Mounted, fh: int, *, data_only: bool) -> None:
    """Return once the file's content is on the disk."""
    handle = mounted.handles.get(fh)
    if isinstance(handle, FileHandle):
        await trio.to_thread.run_sync(_sync, handle.fd, data_only)


def _sync(fd: int, data_only: bool) -> None:  # noqa: FBT001 - run_sync passes positionally
    syscalls.sync(fd, data_only=data_only)


@dataclass(frozen=True, slots=True)
class _Change:
    """One change of attributes: what it is called, how it is told, and how it is carried out."""

    operation: Operation
    detail: str
    apply: Callable[[], None]
    size: int | None = None
    alone: bool = False


async def change_attributes(
    mounted: Mounted,
    nodeid: int,
    attr: pyfuse3.EntryAttributes,
    fields: pyfuse3.SetattrFields,
    fh: int | None,
    ctx: pyfuse3.RequestContext,
) -> pyfuse3.EntryAttributes:
    """Truncate, or change mode, owner or times; asks once for all of it."""
    inode = mounted.tree.inode(nodeid)
    if inode in mounted.virtual:
        raise OSError(errno.EROFS, "virtual")
    held = None
    if fh is not None:
        open_file = mounted.handles.get(fh)
        held = open_file if isinstance(open_file, FileHandle) else None
    with mounted.open_object(inode) as target:
        changes = _changes(target, attr, fields, held)
        if changes:
            await _carry_out(mounted, inode, target, changes, ctx)
        seen = target.stat()
        if target.dirfd < 0:
            return mounted.attributes(inode, seen)
        directory = syscalls.real_path(target.dirfd)
        return mounted.attributes(inode, seen, (target.dirfd, directory, target.name))


async def _carry_out(
    mounted: Mounted,
    inode: Inode,
    target: Target,
    changes: list[_Change],
    ctx: pyfuse3.RequestContext,
) -> None:
    if target.dirfd < 0 and target.stat().links == 0:
        for change in changes:
            change.apply()
        return
    session, caller = mounted.session(ctx), mounted.caller(ctx)
    first = changes[0]

    def describe() -> Request:
        subject = same_subject(mounted.view, target)
        if is_writable(mounted.view.policy, subject.path):
            _check_rights(first.operation, target)
        return Request(
            first.operation,
            session,
            caller,
            (subject,),
            new_size=first.size,
            detail=", ".join(change.detail for change in changes if change.detail),
            alone=any(change.alone for change in changes),
        )

    by_handle = any(
        handle.writes and handle.session == session and mounted.is_current(handle)
        for handle in mounted.handles.of(inode)
    )
    permit = await mounted.authorize(
        Examined(mounted.view, describe, (target,)), by_handle=by_handle
    )
    with mounted.acting(permit):
        for change in changes:
            change.apply()
    mounted.after_change(target.fd, session)


def sets_id(mode: int) -> bool:
    """Whether a file with *mode* lends the rights of its owner or group to whoever runs it."""
    return bool(mode & (stat.S_ISUID | stat.S_ISGID))


def _check_rights(operation: Operation, target: Target) -> None:
    """Raise what the act itself would meet, so that nobody is asked about what cannot succeed."""
    seen = target.stat()
    if operation is Operation.TRUNCATE:
        if stat.S_ISDIR(seen.mode):
            raise IsADirectoryError(errno.EISDIR, "a directory")
        if not syscalls.has_access(target.fd, os.W_OK):
            raise PermissionError(errno.EACCES, "its permissions do not allow it")
    elif operation in _OWNER and os.geteuid() not in {0, seen.uid}:
        raise PermissionError(errno.EPERM, "it belongs to somebody else")


def _changes(
    target: Target,
    attr: pyfuse3.EntryAttributes,
    fields: pyfuse3.SetattrFields,
    held: FileHandle | None,
) -> list[_Change]:
    """Return what is to be done, the gravest first.

    The owner before the mode, since it clears bits.
    """
    seen = target.stat()
    changes = []
    if fields.update_size:
        changes.append(_truncation(target, held, attr.st_size))
    if fields.update_uid or fields.update_gid:
        uid = attr.st_uid if fields.update_uid else -1
        gid = attr.st_gid if fields.update_gid else -1
        detail = f"owner {seen.uid}:{seen.gid} to {_name(uid, seen.uid)}:{_name(gid, seen.gid)}"
        changes.append(
            _Change(Operation.CHOWN, detail, lambda: syscalls.chown(target.fd, uid, gid))
        )
    if fields.update_mode:
        mode = stat.S_IMODE(attr.st_mode)
        detail = f"mode {stat.S_IMODE(seen.mode):04o} to {mode:04o}"
        added = mode & ~seen.mode
        changes.append(
            _Change(
                Operation.CHMOD,
                detail,
                lambda: syscalls.chmod(target.fd, mode),
                alone=sets_id(added) and not stat.S_ISDIR(seen.mode),
            )
        )
    if fields.update_atime or fields.update_mtime:
        atime = attr.st_atime_ns if fields.update_atime else None
        mtime = attr.st_mtime_ns if fields.update_mtime else None
        changes.append(
            _Change(Operation.UTIMENS, "times", lambda: syscalls.set_times(target.fd, atime, mtime))
        )
    return changes


def _name(wanted: int, present: int) -> int:
    return present if wanted == -1 else wanted


def _truncation(target: Target, held: FileHandle | None, size: int) -> _Change:
    def apply() -> None:
        if held is not None and held.writes:
            syscalls.truncate(held.fd, size)
            return
        fd = syscalls.reopen(target.fd, os.O_WRONLY | os.O_NONBLOCK)
        try:
            syscalls.truncate(fd, size)
        finally:
            syscalls.close(fd)

    return _Change(Operation.TRUNCATE, "", apply, size)


async def change_xattr(
    mounted: Mounted, nodeid: int, name: bytes, value: bytes | None, ctx: pyfuse3.RequestContext
) -> None:
    """Set an extended attribute, or remove it (*value* None)."""
    inode = mounted.tree.inode(nodeid)
    if inode in mounted.virtual:
        raise OSError(errno.EROFS, "virtual")
    with mounted.open_object(inode) as target:
        if value is None:
            syscalls.get_xattr(target.fd, name)  # ENODATA without a question

        def apply() -> None:
            if value is None:
                syscalls.remove_xattr(target.fd, name)
            else:
                syscalls.set_xattr(target.fd, name, value)

        operation = Operation.REMOVE_XATTR if value is None else Operation.SET_XATTR
        change = _Change(
            operation,
            name.decode(errors="backslashreplace"),
            apply,
            alone=name.startswith(_ACCESS_LISTS) and len(value or b"") > _PLAIN_LIST_BYTES,
        )
        await _carry_out(mounted, inode, target, [change], ctx)
