"""The table from refusals to errno, and the wall around every handler.

pyfuse3 ends the mount when a handler raises anything but FUSEError: so every handler is wrapped,
and a fault of our own becomes EIO with a traceback in the log.
"""

from __future__ import annotations

import errno
import functools
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar

import pyfuse3
import trio

from lamfuse.core.refusals import Reason, Refusal

__all__ = ["ERRNO", "guarded", "refused"]

log = logging.getLogger(__name__)

#: The errno of each refusal (contract, section 2).
ERRNO: dict[Reason, int] = {
    Reason.HIDDEN: errno.ENOENT,
    Reason.DENIED_NAME: errno.EACCES,
    Reason.READ_ONLY: errno.EROFS,
    Reason.OTHER_ROOT: errno.EXDEV,
    Reason.ROOT_ITSELF: errno.EROFS,
    Reason.DEVICE_NODE: errno.EPERM,
    Reason.PROTECTED_XATTR: errno.EPERM,
    Reason.LINK_LEAVES: errno.EACCES,
    Reason.WOULD_REVEAL: errno.EACCES,
    Reason.CLIMBS: errno.EACCES,
    Reason.TOO_BIG: errno.EACCES,
    Reason.EXISTS: errno.EEXIST,
    Reason.NOT_EMPTY: errno.ENOTEMPTY,
    Reason.DECLINED: errno.EACCES,
    Reason.DECLINED_BEFORE: errno.EACCES,
    Reason.TIMED_OUT: errno.EACCES,
    Reason.LOST: errno.EACCES,
    Reason.QUEUE_FULL: errno.EACCES,
    Reason.BREAKER: errno.EACCES,
    Reason.REVOKED: errno.EACCES,
    Reason.HIDDEN_SINCE: errno.EACCES,
    Reason.JOURNAL: errno.EACCES,
    Reason.STOPPING: errno.EACCES,
    Reason.GONE: errno.EINTR,
    Reason.STALE: errno.ESTALE,
}

_P = ParamSpec("_P")
_R = TypeVar("_R")
_S = TypeVar("_S")


def refused(refusal: Refusal) -> pyfuse3.FUSEError:
    """Return the error that tells the caller of *refusal*."""
    return pyfuse3.FUSEError(ERRNO[refusal.reason])


def guarded(
    handler: Callable[Concatenate[_S, _P], Coroutine[Any, Any, _R]],
) -> Callable[Concatenate[_S, _P], Coroutine[Any, Any, _R]]:
    """Let only FUSEError (and a cancellation) out of *handler*.

    OSError of the backing tree keeps its errno.
    """

    async def wall(self: _S, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return await handler(self, *args, **kwargs)
        except (pyfuse3.FUSEError, trio.Cancelled):
            raise
        except OSError as error:
            raise pyfuse3.FUSEError(error.errno or errno.EIO) from None
        except Exception:
            log.exception("fault in %s", handler.__name__)
            raise pyfuse3.FUSEError(errno.EIO) from None

    functools.update_wrapper(wall, handler)
    return wall
