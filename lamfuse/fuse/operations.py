"""The request handlers, one for each kind of kernel request.

Each checks the caller and passes on; what is done stands in the modules beside this one. A
request that is not listed here is refused by pyfuse3 with ENOSYS: a test keeps
:data:`UNSUPPORTED` complete.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pyfuse3
import trio

from lamfuse.core.operations import Operation
from lamfuse.fuse import creating, directory, reading, removing, writing
from lamfuse.fuse.context import Mounted
from lamfuse.fuse.errno import guarded
from lamfuse.tree import syscalls
from lamfuse.tree.handles import FileHandle

__all__ = ["UNSUPPORTED", "ViewOperations", "reads_only"]

#: Handlers that are deliberately left to pyfuse3, with the reason.
UNSUPPORTED = {
    "poll": "regular files are always ready; the kernel then answers by itself",
    "init": "nothing is to be done before the first request",
    "stacktrace": "a way to make the daemon write its stack to the log; not for callers of a view",
}

log = logging.getLogger(__name__)

_ACCESS_MODE = 3
_TRUNCATE = 0o1000


def reads_only(flags: int) -> bool:
    """Whether open flags ask for reading and nothing else: access mode 0 without O_TRUNC."""
    return not flags & _ACCESS_MODE and not flags & _TRUNCATE


class ViewOperations(pyfuse3.Operations):
    """The handlers of one mount. Everybody but the mounting user is refused."""

    supports_dot_lookup = False
    enable_writeback_cache = False
    enable_acl = False

    def __init__(self, mounted: Mounted) -> None:
        super().__init__()
        self._mounted = mounted

    @guarded
    async def lookup(
        self, parent_inode: pyfuse3.InodeT, name: pyfuse3.FileNameT, ctx: pyfuse3.RequestContext
    ) -> pyfuse3.EntryAttributes:
        """Find a visible entry; a hidden one does not exist."""
        self._mounted.check(ctx)
        return reading.lookup(self._mounted, parent_inode, name, self._mounted.session(ctx))

    async def forget(self, inode_list: Sequence[tuple[pyfuse3.InodeT, int]]) -> None:
        """Take lookups off. Nothing may be raised here: it would end the mount."""
        try:
            reading.forget(self._mounted, [(int(nodeid), count) for nodeid, count in inode_list])
        except Exception:
            log.exception("fault in forget")

    @guarded
    async def getattr(
        self, inode: pyfuse3.InodeT, ctx: pyfuse3.RequestContext
    ) -> pyfuse3.EntryAttributes:
        """Return attributes."""
        self._mounted.check(ctx)
        return reading.getattr_of(self._mounted, inode, self._mounted.session(ctx))

    @guarded
    async def setattr(
        self,
        inode: pyfuse3.InodeT,
        attr: pyfuse3.EntryAttributes,
        fields: pyfuse3.SetattrFields,
        fh: pyfuse3.FileHandleT | None,
        ctx: pyfuse3.RequestContext,
    ) -> pyfuse3.EntryAttributes:
        """Truncate, or change mode, owner or times."""
        self._mounted.check(ctx)
        return await writing.change_attributes(self._mounted, inode, attr, fields, fh, ctx)

    @guarded
    async def readlink(
        self, inode: pyfuse3.InodeT, ctx: pyfuse3.RequestContext
    ) -> pyfuse3.FileNameT:
        """Return a target that does not lead out of the view."""
        self._mounted.check(ctx)
        return pyfuse3.FileNameT(reading.readlink(self._mounted, inode))

    @guarded
    async def mknod(
        self,
        parent_inode: pyfuse3.InodeT,
        name: pyfuse3.FileNameT,
        mode: pyfuse3.ModeT,
        rdev: int,
        ctx: pyfuse3.RequestContext,
    ) -> pyfuse3.EntryAttributes:
        """Create an empty file, a FIFO or a socket."""
        del rdev  # devices are refused
        self._mounted.check(ctx)
        return await creating.mknod(self._mounted, parent_inode, name, mode, ctx)

    @guarded
    async def mkdir(
        self,
        parent_inode: pyfuse3.InodeT,
        name: pyfuse3.FileNameT,
        mode: pyfuse3.ModeT,
        ctx: pyfuse3.RequestContext,
    ) -> pyfuse3.EntryAttributes:
        """Create a directory."""
        self._mounted.check(ctx)
        return await creating.mkdir(self._mounted, parent_inode, name, mode, ctx)

    @guarded
    async def unlink(
        self, parent_inode: pyfuse3.InodeT, name: pyfuse3.FileNameT, ctx: pyfuse3.RequestContext
    ) -> None:
        """Remove a name."""
        self._mounted.check(ctx)
        await removing.remove(self._mounted, parent_inode, name, Operation.UNLINK, ctx)

    @guarded
    async def rmdir(
        self, parent_inode: pyfuse3.InodeT, name: pyfuse3.FileNameT, ctx: pyfuse3.RequestContext
    ) -> None:
        """Remove an empty directory."""
        self._mounted.check(ctx)
        await removing.remove(self._mounted, parent_inode, name, Operation.RMDIR, ctx)

    @guarded
    async def symlink(
        self,
        parent_inode: pyfuse3.InodeT,
        name: pyfuse3.FileNameT,
        target: pyfuse3.FileNameT,
        ctx: pyfuse3.RequestContext,
    ) -> pyfuse3.EntryAttributes:
        """Create a symbolic link."""
        self._mounted.check(ctx)
        return await creating.symlink(self._mounted, parent_inode, name, target, ctx)

    @guarded
    async def rename(
        self,
        parent_inode_old: pyfuse3.InodeT,
        name_old: pyfuse3.FileNameT,
        parent_inode_new: pyfuse3.InodeT,
        name_new: pyfuse3.FileNameT,
        flags: pyfuse3.FlagT,
        ctx: pyfuse3.RequestContext,
    ) -> None:
        """Move, replace or exchange."""
        self._mounted.check(ctx)
        old, new = (int(parent_inode_old), name_old), (int(parent_inode_new), name_new)
        await removing.rename(self._mounted, old, new, flags, ctx)

    @guarded
    async def link(
        self,
        inode: pyfuse3.InodeT,
        new_parent_inode: pyfuse3.InodeT,
        new_name: pyfuse3.FileNameT,
        ctx: pyfuse3.RequestContext,
    ) -> pyfuse3.EntryAttributes:
        """Give a file one more name."""
        self._mounted.check(ctx)
        return await creating.link(self._mounted, inode, new_parent_inode, new_name, ctx)

    @guarded
    async def open(
        self, inode: pyfuse3.InodeT, flags: pyfuse3.FlagT, ctx: pyfuse3.RequestContext
    ) -> pyfuse3.FileInfo:
        """Open for reading at once, for anything else after asking."""
        mounted = self._mounted
        mounted.check(ctx)
        if reads_only(flags):
            return reading.open_for_reading(mounted, inode, flags, mounted.session(ctx), ctx.pid)
        return await writing.open_for_writing(mounted, inode, flags, ctx)

    @guarded
    async def create(
        self,
        parent_inode: pyfuse3.InodeT,
        name: pyfuse3.FileNameT,
        mode: pyfuse3.ModeT,
        flags: pyfuse3.FlagT,
        ctx: pyfuse3.RequestContext,
    ) -> tuple[pyfuse3.FileInfo, pyfuse3.EntryAttributes]:
        """Create a file and open it."""
        self._mounted.check(ctx)
        return await creating.create(self._mounted, parent_inode, name, mode, flags, ctx)

    @guarded
    async def read(self, fh: pyfuse3.FileHandleT, off: int, size: int) -> bytes:
        """Read from an open file."""
        return await reading.read(self._mounted, fh, off, size)

    @guarded
    async def write(self, fh: pyfuse3.FileHandleT, off: int, buf: bytes) -> int:
        """Write to an open file; never waits for a person."""
        return await writing.write(self._mounted, fh, off, buf)

    @guarded
    async def flush(self, fh: pyfuse3.FileHandleT) -> None:
        """Nothing is held back, so there is nothing to do."""

    @guarded
    async def release(self, fh: pyfuse3.FileHandleT) -> None:
        """Close an open file."""
        handle = self._mounted.handles.release(fh)
        if isinstance(handle, FileHandle):
            self._mounted.tree.inodes.drop_unknown(handle.inode)

    @guarded
    async def fsync(self, fh: pyfuse3.FileHandleT, datasync: bool) -> None:  # noqa: FBT001 - the signature is pyfuse3's
        """Bring a file to the disk."""
        await writing.sync(self._mounted, fh, data_only=datasync)

    @guarded
    async def opendir(
        self, inode: pyfuse3.InodeT, ctx: pyfuse3.RequestContext
    ) -> pyfuse3.FileHandleT:
        """Open a directory."""
        self._mounted.check(ctx)
        return directory.opendir(self._mounted, inode, self._mounted.session(ctx))

    @guarded
    async def readdir(
        self, fh: pyfuse3.FileHandleT, start_id: int, token: pyfuse3.ReaddirToken
    ) -> None:
        """List a directory."""
        directory.readdir(self._mounted, fh, start_id, token)

    @guarded
    async def releasedir(self, fh: pyfuse3.FileHandleT) -> None:
        """Close a directory."""
        self._mounted.handles.release(fh)

    @guarded
    async def fsyncdir(self, fh: pyfuse3.FileHandleT, datasync: bool) -> None:  # noqa: FBT001 - the signature is pyfuse3's
        """Bring a directory to the disk."""
        fd = directory.sync_directory(self._mounted, fh)
        if fd < 0:
            return
        try:
            await trio.to_thread.run_sync(lambda: syscalls.sync(fd, data_only=datasync))
        finally:
            syscalls.close(fd)

    @guarded
    async def statfs(self, ctx: pyfuse3.RequestContext) -> pyfuse3.StatvfsData:
        """Return the figures of home's file system."""
        self._mounted.check(ctx)
        return reading.statfs(self._mounted)

    @guarded
    async def setxattr(
        self,
        inode: pyfuse3.InodeT,
        name: pyfuse3.XAttrNameT,
        value: bytes,
        ctx: pyfuse3.RequestContext,
    ) -> None:
        """Set an extended attribute."""
        self._mounted.check(ctx)
        await writing.change_xattr(self._mounted, inode, name, value, ctx)

    @guarded
    async def getxattr(
        self, inode: pyfuse3.InodeT, name: pyfuse3.XAttrNameT, ctx: pyfuse3.RequestContext
    ) -> bytes:
        """Return an extended attribute."""
        self._mounted.check(ctx)
        return reading.getxattr(self._mounted, inode, name)

    @guarded
    async def listxattr(
        self, inode: pyfuse3.InodeT, ctx: pyfuse3.RequestContext
    ) -> Sequence[pyfuse3.XAttrNameT]:
        """Return the names of the extended attributes."""
        self._mounted.check(ctx)
        return [pyfuse3.XAttrNameT(name) for name in reading.listxattr(self._mounted, inode)]

    @guarded
    async def removexattr(
        self, inode: pyfuse3.InodeT, name: pyfuse3.XAttrNameT, ctx: pyfuse3.RequestContext
    ) -> None:
        """Remove an extended attribute."""
        self._mounted.check(ctx)
        await writing.change_xattr(self._mounted, inode, name, None, ctx)

    @guarded
    async def access(
        self, inode: pyfuse3.InodeT, mode: pyfuse3.ModeT, ctx: pyfuse3.RequestContext
    ) -> bool:
        """Tell the truth about what may be done."""
        self._mounted.check(ctx)
        return reading.access(self._mounted, inode, mode)
