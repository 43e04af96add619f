"""Mounting, serving and unmounting.

The order at the end is: no new questions, the kernel's requests answered, the mount detached,
descriptors closed. Whether the machine and the mountpoint are fit is looked at before, by the
command.
"""

from __future__ import annotations

import logging
import math
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pyfuse3

from lamfuse.core.errors import RefusedError
from lamfuse.fuse import loop
from lamfuse.fuse.cache import KernelCache
from lamfuse.fuse.operations import ViewOperations
from lamfuse.tree import mounts, syscalls

__all__ = ["FSNAME", "MAX_TASKS", "detach", "end", "longest_wait_s", "mounted", "serve"]

log = logging.getLogger(__name__)

FSNAME = "lamfuse"
#: Every request that waits holds a task: far more than questions can be open.
MAX_TASKS = 512
_OPTIONS = frozenset({f"fsname={FSNAME}", "nosuid", "nodev"})
_FUSERMOUNT = "fusermount3"
_UNMOUNT_S = 10
#: After so many seconds of waiting for one request the kernel aborts the whole mount (0: never).
#: The first holds for mounts that say nothing else, as pyfuse3's do.
_REQUEST_TIMEOUTS = (
    b"/proc/sys/fs/fuse/default_request_timeout",
    b"/proc/sys/fs/fuse/max_request_timeout",
)
_CACHE_S = 2.0


def detach(mountpoint: bytes) -> None:
    """Unmount, lazily where somebody is still inside; raises RefusedError when that fails."""
    for flags in ("-u", "-uz"):
        done = subprocess.run(
            [_FUSERMOUNT, flags, "--", os.fsdecode(mountpoint)],
            capture_output=True,
            text=True,
            timeout=_UNMOUNT_S,
            check=False,
        )
        if done.returncode == 0:
            return
    raise RefusedError(f"{os.fsdecode(mountpoint)} cannot be unmounted: {done.stderr.strip()}")


@contextmanager
def mounted(operations: ViewOperations, mountpoint: bytes, cache: KernelCache) -> Iterator[None]:
    """Mount for the time of the block, which has to run :func:`serve`.

    *cache* is closed first at the end. Where a call of it does not come back, the mount is only
    detached: the session is then left to the end of the process.
    """
    try:
        pyfuse3.init(operations, os.fsdecode(mountpoint), set(_OPTIONS))
    except RuntimeError as error:
        raise RefusedError(
            f"the view could not be mounted at {os.fsdecode(mountpoint)} ({error}); what"
            " fusermount3 said stands above"
        ) from error
    try:
        yield
    finally:
        if cache.close(_CACHE_S):
            pyfuse3.close(unmount=True)
        if any(mount.path == mountpoint for mount in mounts.mounts()):
            log.warning("%s was still mounted after the end; detaching it", os.fsdecode(mountpoint))
            detach(mountpoint)


async def serve() -> None:
    """Answer the kernel until :func:`end` is called or somebody unmounts."""
    with loop.eager():
        await pyfuse3.main(min_tasks=1, max_tasks=MAX_TASKS)


def end() -> None:
    """Let :func:`serve` return once the requests that are being answered are done."""
    pyfuse3.terminate()


def longest_wait_s() -> float:
    """Return how long a request may wait before the kernel aborts the mount, less a margin."""
    limits = [limit for limit in map(_setting, _REQUEST_TIMEOUTS) if limit]
    return max(1.0, min(limits) * 0.8) if limits else math.inf


def _setting(path: bytes) -> int:
    try:
        return int(syscalls.read_setting(path))
    except OSError:
        return 0  # a kernel that has no such setting
