"""What every handler needs: the parts of one mount, and who is calling.

One value is passed along instead of globals; it is built by the composition root.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyfuse3
import trio

from lamfuse.core.errors import JournalError
from lamfuse.core.operations import Operation
from lamfuse.core.refusals import Reason, Refusal
from lamfuse.core.target import Caller, Request, Subject
from lamfuse.engine.gate import Examination, Gate, Permit
from lamfuse.engine.turns import OTHER
from lamfuse.fuse import errno as fuse_errno
from lamfuse.fuse.attributes import fill
from lamfuse.fuse.cache import KernelCache
from lamfuse.fuse.callers import caller_of
from lamfuse.fuse.view import DeniedNameError, View
from lamfuse.fuse.virtual import Virtual
from lamfuse.tree import syscalls
from lamfuse.tree.handles import FileHandle, Handles
from lamfuse.tree.inodes import Inode
from lamfuse.tree.resolve import Target, Tree
from lamfuse.tree.syscalls import Stat

__all__ = ["Mounted"]

log = logging.getLogger(__name__)

#: Invalidating may wait for replies of ours: it must never use up the threads that replies need.
_invalidations = trio.CapacityLimiter(4)


@dataclass(slots=True)
class Mounted:
    """The parts of one mount. *uid* is who mounted it: everybody else is refused."""

    tree: Tree
    view: View
    gate: Gate
    handles: Handles
    virtual: Virtual
    uid: int
    cache: KernelCache
    background: trio.Nursery

    def check(self, ctx: pyfuse3.RequestContext) -> None:
        """Refuse a caller of another uid."""
        if ctx.uid != self.uid:
            raise pyfuse3.FUSEError(errno.EACCES)

    def session(self, ctx: pyfuse3.RequestContext) -> str:
        """Return the session that the caller belongs to."""
        del ctx  # callers outside a run share one session
        return OTHER

    def caller(self, ctx: pyfuse3.RequestContext) -> Caller:
        """Return the caller, as the kernel and /proc tell."""
        return caller_of(ctx.pid)

    def attributes(
        self, inode: Inode, seen: Stat, place: tuple[int, bytes, bytes] | None = None
    ) -> pyfuse3.EntryAttributes:
        """Return the attributes of *inode*; *place* is (dirfd, directory path, name) of a link."""
        if stat.S_ISLNK(seen.mode) and place is not None:
            return fill(inode, seen, len(self.view.link_text(inode, *place) or b""))
        return fill(inode, seen)

    def open_object(self, inode: Inode) -> Target:
        """Return the object *inode*, by a visible name, or held open after its last name went."""
        try:
            return self.view.open_visible(inode)
        except OSError as error:
            if error.errno != errno.ESTALE:
                raise
            self.refuse_hidden(inode)
            fd = self.nameless(inode)
            if fd is None:
                raise
            return Target(-1, b"", syscalls.duplicate(fd), inode)

    def keep_nameless(self, inode: Inode, fd: int) -> None:
        """Hold an object that just lost its last name through the view, visible as it was."""
        self.tree.keep_nameless(inode, fd)
        inode.verified = b""

    def reader_of_replaced(self, inode: Inode) -> int:
        """Open for reading what lost its name between a lookup and the open that follows it.

        That is what a reader gets elsewhere when a file is replaced under it: the old content. Only
        for what was visible when the name went, and under the same rules still; else ESTALE.
        """
        fd = self.tree.nameless(inode)
        if fd is None or inode.verified is None:
            raise OSError(errno.ESTALE, "unlinked")
        return syscalls.reopen(fd, os.O_RDONLY | os.O_NONBLOCK)

    def nameless(self, inode: Inode) -> int | None:
        """Return a descriptor of an object without any name that somebody still has open."""
        fd = self.tree.nameless(inode)
        if fd is not None:
            return fd
        for handle in self.handles.of(inode):
            if not syscalls.fstat(handle.fd).links:
                return handle.fd
        return None

    def refuse_hidden(self, inode: Inode) -> None:
        """Raise EACCES for an object that is open still but hidden since it was opened."""
        for handle in self.handles.of(inode):
            if syscalls.fstat(handle.fd).links and not self.view.policy.is_readable(
                syscalls.real_path(handle.fd), is_dir=False
            ):
                raise PermissionError(errno.EACCES, "hidden since it was opened")

    def entry(
        self, parent: Inode, name: bytes, seen: Stat, dirfd: int, directory: bytes
    ) -> tuple[Inode, pyfuse3.EntryAttributes]:
        """Return the inode of what was seen as *name*, and its attributes; counts no lookup."""
        inode = self.tree.inodes.seen(seen, parent, name)
        try:
            return inode, self.attributes(inode, seen, (dirfd, directory, name))
        except BaseException:
            self.tree.inodes.drop_unknown(inode)
            raise

    async def authorize(self, examination: Examination, *, by_handle: bool = False) -> Permit:
        """Return a permit; a refusal is raised as the errno that tells of it."""
        result = await self.gate.authorize(examination, by_handle=by_handle)
        if isinstance(result, Refusal):
            raise fuse_errno.refused(result)
        return result

    def refuse(self, request: Request, reason: Reason, rule: str) -> pyfuse3.FUSEError:
        """Refuse *request* without asking; returns the error to raise."""
        return fuse_errno.refused(self.gate.refuse(request, reason, rule))

    @contextmanager
    def acting(self, permit: Permit) -> Iterator[None]:
        """Carry out what *permit* is for: its effect, done or not, goes to the journal."""
        ledger = permit.session.ledger
        for subject in permit.request.subjects:
            if not ledger.is_born(subject):  # not any more: what the act leaves is not all ours
                ledger.note_gone(subject.identity)
        try:
            yield
        except BaseException as error:
            number = error.errno if isinstance(error, OSError) else None
            self._finish(permit, number or errno.EIO)
            raise
        self._finish(permit, 0)

    def _finish(self, permit: Permit, number: int) -> None:
        try:
            self.gate.finish(permit, number)
        except JournalError:
            # The act is done and cannot be taken back; the journal refuses every further change.
            log.exception("the effect of a change could not be written to the journal")

    @contextmanager
    def denied_as_refusal(
        self, operation: Operation, ctx: pyfuse3.RequestContext
    ) -> Iterator[None]:
        """Turn a name that the denylist covers into its refusal: EACCES, in every place."""
        try:
            yield
        except DeniedNameError as denied:
            request = Request(
                operation, self.session(ctx), self.caller(ctx), (Subject(denied.path),)
            )
            raise self.refuse(request, denied.reason, denied.rule) from None

    def drop_pages(self, inode: Inode) -> None:
        """Let the kernel forget the content of *inode*: what the view shows is what the disk holds.

        In the background, since the kernel may wait for our reply before it lets go of a page.
        """
        self.background.start_soon(self._drop_pages, inode.nodeid)

    async def _drop_pages(self, nodeid: int) -> None:
        await trio.to_thread.run_sync(
            self.cache.drop_pages, nodeid, abandon_on_cancel=True, limiter=_invalidations
        )

    def before_write(self, handle: FileHandle) -> None:
        """Let a file that somebody else changed no longer count as born in this turn."""
        ledger = self.gate.sessions.get(handle.session).ledger
        birth = ledger.births.get((handle.inode.dev, handle.inode.ino))
        if birth is None:
            return
        seen = syscalls.fstat(handle.fd)
        if (birth.ctime_ns, birth.size) != (seen.ctime_ns, seen.size):
            ledger.note_gone(birth.identity)

    def after_change(self, fd: int, session: str) -> Stat:
        """Note what an operation of *session* left of the object behind *fd*.

        For every other session the object was changed by somebody else.
        """
        seen = syscalls.fstat(fd)
        ledger = self.gate.sessions.get(session).ledger
        ledger.note_change(seen.dev, seen.ino, seen.ctime_ns, seen.size, trio.current_time())
        return seen

    def is_current(self, handle: FileHandle) -> bool:
        """Whether what the write handle was opened under still holds."""
        return handle.epoch == self.gate.sessions.get(handle.session).ledger.epoch
