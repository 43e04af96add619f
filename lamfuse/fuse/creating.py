"""The handlers that make something new: files, directories, links, nodes.

A new object belongs to its caller, and is entered in the ledger as born in this turn.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass

import pyfuse3

from lamfuse.core import paths
from lamfuse.core.operations import Operation
from lamfuse.core.refusals import Reason
from lamfuse.core.target import FileKind, Request, Subject
from lamfuse.engine.gate import Permit
from lamfuse.fuse.context import Mounted
from lamfuse.fuse.examination import (
    Examined,
    check_free,
    check_parent,
    entry_subject,
    is_writable,
    same_subject,
)
from lamfuse.fuse.virtual import NAME
from lamfuse.fuse.writing import open_target, sets_id
from lamfuse.tree import syscalls
from lamfuse.tree.handles import FileHandle
from lamfuse.tree.inodes import Inode
from lamfuse.tree.resolve import Target, kind_of

__all__ = ["create", "link", "mkdir", "mknod", "parent_of", "symlink"]

#: CLOCK_REALTIME_COARSE, which file systems take their times from; Python has no name for it.
_COARSE = 5
_ALLOWED_NODES = frozenset({stat.S_IFREG, stat.S_IFIFO, stat.S_IFSOCK})


def parent_of(mounted: Mounted, nodeid: int, name: bytes) -> Inode:
    """Return the directory in which *name* is to be changed; EROFS for a virtual one."""
    parent = mounted.tree.inode(nodeid)
    if parent in mounted.virtual or (nodeid == pyfuse3.ROOT_INODE and name == NAME):
        raise OSError(errno.EROFS, "virtual")
    return parent


@dataclass(frozen=True, slots=True)
class _New:
    """Something to be made: under which name, what it is, and how.

    ``make`` returns a descriptor of what it made, -1 where it has none.
    """

    operation: Operation
    makes: FileKind
    make: Callable[[Target], int]
    link_target: bytes = b""
    mode: int = 0


def _without_descriptor(make: Callable[[Target], None]) -> Callable[[Target], int]:
    def made(target: Target) -> int:
        make(target)
        return -1

    return made


async def create(
    mounted: Mounted,
    nodeid: int,
    name: bytes,
    mode: int,
    flags: int,
    ctx: pyfuse3.RequestContext,
) -> tuple[pyfuse3.FileInfo, pyfuse3.EntryAttributes]:
    """Create a file and open it; if the name exists by the time of the act, it is a write."""
    parent = parent_of(mounted, nodeid, name)
    mounted.handles.check_room()
    opened: list[int] = []

    def make(target: Target) -> int:
        wanted = flags & (os.O_ACCMODE | os.O_SYNC | os.O_DSYNC) | os.O_NONBLOCK
        permissions = stat.S_IMODE(mode) & ~ctx.umask
        opened.append(syscalls.create(target.dirfd, target.name, wanted, permissions))
        return opened[-1]

    new = _New(Operation.CREATE, FileKind.FILE, make, mode=mode)
    with mounted.denied_as_refusal(Operation.CREATE, ctx), mounted.view.entry(parent, name) as at:
        if at.fd < 0:
            try:
                permit, inode, entry = await _make(mounted, parent, at, new, ctx)
            except FileExistsError:
                at.refresh()
            except BaseException:
                for fd in opened:
                    syscalls.close(fd)
                raise
            else:
                handle = FileHandle(
                    inode,
                    opened[-1],
                    flags & ~os.O_TRUNC,
                    permit.session.name,
                    permit.session.ledger.epoch,
                    ctx.pid,
                    mounted.view.rules,
                    permit.request.paths[-1],
                )
                return _opened(mounted.handles.add(handle)), entry
        if flags & os.O_EXCL:
            raise FileExistsError(errno.EEXIST, "it exists")
        seen = mounted.view.child(parent, name)[2]
        inode, entry = mounted.entry(parent, name, seen, at.dirfd, syscalls.real_path(at.dirfd))
        number = await open_target(mounted, inode, at, flags, ctx)
        inode.lookups += 1
        return _opened(number), entry


def _opened(number: int) -> pyfuse3.FileInfo:
    return pyfuse3.FileInfo(fh=pyfuse3.FileHandleT(number))


async def mkdir(
    mounted: Mounted, nodeid: int, name: bytes, mode: int, ctx: pyfuse3.RequestContext
) -> pyfuse3.EntryAttributes:
    """Create a directory."""
    permissions = stat.S_IMODE(mode) & ~ctx.umask
    new = _New(
        Operation.MKDIR,
        FileKind.DIRECTORY,
        _without_descriptor(lambda at: syscalls.make_directory(at.dirfd, at.name, permissions)),
    )
    return await _make_named(mounted, nodeid, name, new, ctx)


async def mknod(
    mounted: Mounted, nodeid: int, name: bytes, mode: int, ctx: pyfuse3.RequestContext
) -> pyfuse3.EntryAttributes:
    """Create an empty file, a FIFO or a socket; devices are refused by the policy."""
    permissions = stat.S_IFMT(mode) | (stat.S_IMODE(mode) & ~ctx.umask)
    kind = kind_of(mode) if stat.S_IFMT(mode) in _ALLOWED_NODES else FileKind.DEVICE
    make = _without_descriptor(lambda at: syscalls.make_node(at.dirfd, at.name, permissions))
    new = _New(Operation.MKNOD, kind, make, mode=mode)
    return await _make_named(mounted, nodeid, name, new, ctx)


async def symlink(
    mounted: Mounted, nodeid: int, name: bytes, target: bytes, ctx: pyfuse3.RequestContext
) -> pyfuse3.EntryAttributes:
    """Create a symbolic link; one that would have no answer in the view is refused unasked."""
    parent = parent_of(mounted, nodeid, name)
    _, directory = mounted.view.directory(parent)
    path = paths.join(directory, name)
    if (
        is_writable(mounted.view.policy, path)
        and mounted.view.links.judge(directory, target) is None
    ):
        request = Request(
            Operation.SYMLINK,
            mounted.session(ctx),
            mounted.caller(ctx),
            (Subject(path),),
            makes=FileKind.SYMLINK,
            target=target,
        )
        raise mounted.refuse(request, Reason.LINK_LEAVES, "the link would lead out of the view")
    new = _New(
        Operation.SYMLINK,
        FileKind.SYMLINK,
        _without_descriptor(lambda at: syscalls.make_symlink(at.dirfd, at.name, target)),
        target,
    )
    return await _make_named(mounted, nodeid, name, new, ctx)


async def _make_named(
    mounted: Mounted, nodeid: int, name: bytes, new: _New, ctx: pyfuse3.RequestContext
) -> pyfuse3.EntryAttributes:
    parent = parent_of(mounted, nodeid, name)
    with mounted.denied_as_refusal(new.operation, ctx), mounted.view.entry(parent, name) as target:
        _, inode, entry = await _make(mounted, parent, target, new, ctx)
        inode.lookups += 1
        return entry


async def _make(
    mounted: Mounted, parent: Inode, target: Target, new: _New, ctx: pyfuse3.RequestContext
) -> tuple[Permit, Inode, pyfuse3.EntryAttributes]:
    """Ask for *create*, make the object, and enter it as born; counts a lookup for a file only."""
    session, caller = mounted.session(ctx), mounted.caller(ctx)

    def describe() -> Request:
        subject = entry_subject(mounted.view, target)
        if is_writable(mounted.view.policy, subject.path):
            check_free(target)
            check_parent(target)
        elif target.fd >= 0:
            check_free(target)
        return Request(
            new.operation,
            session,
            caller,
            (subject,),
            makes=new.makes,
            target=new.link_target,
            detail=f"mode {stat.S_IMODE(new.mode):04o}" if sets_id(new.mode) else "",
            alone=sets_id(new.mode),
        )

    permit = await mounted.authorize(Examined(mounted.view, describe, (target,)))
    begun = time.clock_gettime_ns(_COARSE)
    with mounted.acting(permit):
        made = new.make(target)
    target.refresh()
    born = _look_at_new(target, new, made, begun)
    _give_to_caller(target, ctx)
    if born:
        mounted.gate.note_birth(permit, target.subject())
    inode, entry = _enter(mounted, parent, target)
    if new.operation is Operation.CREATE:
        inode.lookups += 1
    return permit, inode, entry


def _look_at_new(target: Target, new: _New, made: int, begun: int) -> bool:
    """Tell whether what stands under the name was made just now; ESTALE when it cannot be that.

    Somebody may have put something else in its place already.
    """
    if target.fd >= 0:
        seen = target.stat()
        held = seen if made < 0 else syscalls.fstat(made)
        if kind_of(seen.mode) is new.makes and (held.dev, held.ino) == (seen.dev, seen.ino):
            return not seen.birth_ns or seen.birth_ns >= begun
    raise OSError(errno.ESTALE, "it was removed or replaced at once")


def _give_to_caller(target: Target, ctx: pyfuse3.RequestContext) -> None:
    """Let the new object belong to the caller, whose group may differ from the daemon's.

    A set-group-ID directory keeps handing down its own group. chown clears the set-id bits, so
    they are set again where the caller asked for them.
    """
    seen = target.stat()
    inherits = syscalls.fstat(target.dirfd).mode & stat.S_ISGID
    uid = ctx.uid if ctx.uid != seen.uid else -1
    gid = ctx.gid if ctx.gid != seen.gid and not inherits else -1
    if uid == gid == -1:
        return
    try:
        syscalls.chown(target.fd, uid, gid)
    except PermissionError:
        return  # a group that the daemon is not in: the object stays in the daemon's group
    if seen.mode & (stat.S_ISUID | stat.S_ISGID) and not stat.S_ISLNK(seen.mode):
        syscalls.chmod(target.fd, stat.S_IMODE(seen.mode))


def _enter(
    mounted: Mounted, parent: Inode, target: Target
) -> tuple[Inode, pyfuse3.EntryAttributes]:
    if target.fd < 0:
        raise OSError(errno.ESTALE, "it was removed at once")
    seen = target.stat()
    directory = syscalls.real_path(target.dirfd)
    inode, entry = mounted.entry(parent, target.name, seen, target.dirfd, directory)
    return inode, entry


async def link(
    mounted: Mounted, nodeid: int, new_parent: int, new_name: bytes, ctx: pyfuse3.RequestContext
) -> pyfuse3.EntryAttributes:
    """Give a file one more name; the question has both."""
    inode = mounted.tree.inode(nodeid)
    if inode in mounted.virtual:
        raise OSError(errno.EXDEV, "virtual")
    parent = parent_of(mounted, new_parent, new_name)
    session, caller = mounted.session(ctx), mounted.caller(ctx)
    with (
        mounted.denied_as_refusal(Operation.LINK, ctx),
        mounted.view.open_visible(inode) as source,
        mounted.view.entry(parent, new_name) as target,
    ):

        def describe() -> Request:
            old = same_subject(mounted.view, source)
            new = entry_subject(mounted.view, target)
            check_free(target)
            if is_writable(mounted.view.policy, new.path):
                check_parent(target)
                if source.stat().mount != syscalls.fstat(target.dirfd).mount:
                    raise OSError(errno.EXDEV, "another file system")
            return Request(Operation.LINK, session, caller, (old, new), makes=old.kind)

        permit = await mounted.authorize(Examined(mounted.view, describe, (source, target)))
        with mounted.acting(permit):
            syscalls.link(source.fd, target.dirfd, target.name)
        target.refresh()
        mounted.after_change(source.fd, session)
        known, entry = _enter(mounted, parent, target)
        known.lookups += 1
        return entry
