"""Who makes a call, and whether the caller still waits for the answer.

The kernel tells the thread id; the rest is read from /proc. A request that was read by the daemon
cannot be interrupted by the kernel: a signal that is pending on the waiting thread is the only
sign that its caller was killed.
"""

from __future__ import annotations

import os
import signal

from lamfuse.core.target import Caller

__all__ = ["ProcCallers", "caller_of"]

_FATAL = 1 << (signal.SIGKILL - 1)
_ENDING = sum(
    1 << (number - 1) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
)


def caller_of(tid: int) -> Caller:
    """Return the caller with thread id *tid* (0: outside the daemon's pid namespace)."""
    if tid <= 0:
        return Caller()
    fields = _status(tid)
    pid = int(fields.get(b"Tgid", b"0")) if fields else 0
    try:
        exe = os.readlink(b"/proc/%d/exe" % tid)
    except OSError:
        exe = b""
    return Caller(tid, pid, exe)


class ProcCallers:
    """Watches waiting callers through /proc."""

    def is_waiting(self, caller: Caller) -> bool:
        """Return False once *caller* is gone.

        Killed, or has an ending signal that it does not block.
        """
        if caller.tid <= 0:
            return True
        fields = _status(caller.tid)
        if fields is None or fields.get(b"State", b"").startswith((b"Z", b"X")):
            return False
        pending = int(fields[b"SigPnd"], 16) | int(fields[b"ShdPnd"], 16)
        blocked = int(fields[b"SigBlk"], 16)
        return not pending & (_FATAL | (_ENDING & ~blocked))


def _status(tid: int) -> dict[bytes, bytes] | None:
    """Return the fields of /proc/TID/status, or None when there is no such thread."""
    try:
        fd = os.open(b"/proc/%d/status" % tid, os.O_RDONLY | os.O_CLOEXEC)  # noqa: TID251 - not a file of the backing tree
    except OSError:
        return None
    try:
        text = os.read(fd, 8192)
    except OSError:
        return None
    finally:
        os.close(fd)
    pairs = (line.partition(b":") for line in text.splitlines())
    return {name: value.strip() for name, _, value in pairs}
