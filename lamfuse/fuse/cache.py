"""What the kernel remembers of the view, and how it is made to forget.

Every call here may block until a request of ours is answered, so each is made in a thread; and the
session must not be closed while one is under way, since libfuse would then use what is freed. After
:meth:`KernelCache.close` nothing is asked of the kernel any more.
"""

from __future__ import annotations

import errno
import logging
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pyfuse3

__all__ = ["KernelCache"]

log = logging.getLogger(__name__)

#: The kernel knows it no longer, or the mount is gone.
_FORGOTTEN = frozenset({errno.ENOENT, errno.ENOTCONN, errno.ECONNABORTED, errno.ENODEV})


class KernelCache:
    """Makes the kernel forget, from any thread, until it is closed."""

    def __init__(self) -> None:
        self._under_way = 0
        self._closed = False
        self._changed = threading.Condition()

    def drop_pages(self, nodeid: int) -> None:
        """Let the kernel forget content and attributes of an inode. Blocks."""
        with self._asking("inode", nodeid) as may_ask:
            if may_ask:
                pyfuse3.invalidate_inode(pyfuse3.InodeT(nodeid))

    def drop_entry(self, parent: int, name: bytes) -> None:
        """Let the kernel forget the entry *name* of *parent*, if it still knows it. Blocks."""
        with self._asking("an entry of inode", parent) as may_ask:
            if may_ask:
                pyfuse3.invalidate_entry(pyfuse3.InodeT(parent), pyfuse3.FileNameT(name))

    def drop_all(self, entries: Iterable[tuple[int, bytes]], nodeids: Iterable[int]) -> None:
        """Let the kernel forget *entries* (parent, name) and the content of *nodeids*. Blocks."""
        for parent, name in entries:
            self.drop_entry(parent, name)
        for nodeid in nodeids:
            if self._closed:
                return
            self.drop_pages(nodeid)

    def close(self, patience_s: float) -> bool:
        """Ask nothing any more; tells whether all that was under way has come back in time."""
        with self._changed:
            self._closed = True
            return self._changed.wait_for(lambda: not self._under_way, patience_s)

    @contextmanager
    def _asking(self, what: str, nodeid: int) -> Iterator[bool]:
        with self._changed:
            may_ask = not self._closed
            self._under_way += may_ask
        try:
            yield may_ask
        except OSError as error:
            if error.errno not in _FORGOTTEN:
                log.warning("the kernel did not forget %s %d: %s", what, nodeid, error)
        finally:
            with self._changed:
                self._under_way -= may_ask
                self._changed.notify_all()
