"""Every change of contract section 2 as a function on a folder: what it needs, and what it does.

*prepare* makes the folder on the disk; *act* is the call, on the view; *asks* is the operation that
a person is asked about in a write root.
"""

import ctypes
import os
import socket
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

__all__ = [
    "CHANGES",
    "EXCHANGE",
    "NOREPLACE",
    "Change",
    "errno_of",
    "prepare",
    "rename2",
    "snapshot",
]

NOREPLACE, EXCHANGE = 1, 2

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Change:
    """One kind of change; *destructive*: old content is lost by it."""

    act: Callable[[Path], object]
    asks: str
    destructive: bool = False


def errno_of(act: Callable[..., object], *arguments: object) -> int:
    """Return the errno that the call fails with."""
    with pytest.raises(OSError) as caught:
        act(*arguments)
    assert caught.value.errno is not None
    return caught.value.errno


def rename2(old: Path, new: Path, flags: int) -> None:
    """Call renameat2 with flags."""
    if _libc.renameat2(-100, os.fsencode(old), -100, os.fsencode(new), flags):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def prepare(folder: Path) -> None:
    """Put in *folder* what the changes act on."""
    (folder / "file").write_bytes(b"one\ntwo\n")
    (folder / "other").write_bytes(b"other\n")
    (folder / "marked").write_bytes(b"")
    os.setxattr(folder / "marked", "user.note", b"x")
    (folder / "empty").mkdir()
    (folder / "full").mkdir()
    (folder / "full/inner").write_bytes(b"inner\n")
    (folder / "link").symlink_to("file")


def snapshot(folder: Path) -> dict[str, tuple[object, ...]]:
    """Return everything about *folder* that a change could show in (not access times)."""
    found: dict[str, tuple[object, ...]] = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        seen = path.lstat()
        content: object = None
        if stat.S_ISREG(seen.st_mode):
            content = path.read_bytes()
        elif stat.S_ISLNK(seen.st_mode):
            content = os.readlink(path)
        names = () if path.is_symlink() else tuple(sorted(os.listxattr(path)))
        found[str(path)] = (
            seen.st_ino, seen.st_mode, seen.st_uid, seen.st_gid, seen.st_nlink, seen.st_size,
            seen.st_mtime_ns, seen.st_ctime_ns, content, names,
        )  # fmt: skip
    return found


def _open(flags: int) -> Callable[[Path], None]:
    return lambda folder: os.close(os.open(folder / "file", flags, 0o644))


def _bind(folder: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        directory = os.open(folder, os.O_PATH)
        try:
            listening.bind(f"/proc/self/fd/{directory}/socket")
        finally:
            os.close(directory)


def _table() -> dict[str, Change]:
    writes = {
        "open WRONLY": os.O_WRONLY, "open RDWR": os.O_RDWR, "open access mode 3": 3,
        "open APPEND": os.O_WRONLY | os.O_APPEND,
    }  # fmt: skip
    truncates = {
        "open WRONLY TRUNC": os.O_WRONLY | os.O_TRUNC, "open RDONLY TRUNC": os.O_TRUNC,
        "open access mode 3 TRUNC": 3 | os.O_TRUNC,
        "open CREAT TRUNC of what exists": os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
    }  # fmt: skip
    table = {name: Change(_open(flags), "write") for name, flags in writes.items()}
    table |= {
        name: Change(_open(flags), "write", destructive=True) for name, flags in truncates.items()
    }
    table |= {
        "create": Change(
            lambda d: os.close(os.open(d / "new", os.O_CREAT | os.O_WRONLY, 0o640)), "create"
        ),
        "create EXCL": Change(
            lambda d: os.close(os.open(d / "new", os.O_CREAT | os.O_EXCL | os.O_RDWR)), "create"
        ),
        "truncate": Change(lambda d: os.truncate(d / "file", 3), "truncate", destructive=True),
        "chmod": Change(lambda d: os.chmod(d / "file", 0o600), "chmod"),
        "chmod of a folder": Change(lambda d: os.chmod(d / "empty", 0o700), "chmod"),
        "chown": Change(lambda d: os.chown(d / "file", os.getuid(), os.getgid()), "chown"),
        "utimens": Change(lambda d: os.utime(d / "file", ns=(10**18, 10**18)), "utimens"),
        "utimens of a link": Change(
            lambda d: os.utime(d / "link", ns=(10**18, 10**18), follow_symlinks=False), "utimens"
        ),
        "setxattr": Change(lambda d: os.setxattr(d / "file", "user.a", b"b"), "set-xattr"),
        "removexattr": Change(lambda d: os.removexattr(d / "marked", "user.note"), "remove-xattr"),
        "mkdir": Change(lambda d: os.mkdir(d / "made"), "mkdir"),
        "symlink": Change(lambda d: os.symlink("file", d / "made"), "symlink"),
        "mknod": Change(lambda d: os.mknod(d / "made", stat.S_IFREG | 0o600), "mknod"),
        "mkfifo": Change(lambda d: os.mkfifo(d / "made"), "mknod"),
        "mknod of a socket": Change(
            lambda d: os.mknod(d / "made", stat.S_IFSOCK | 0o600), "mknod"
        ),
        "bind": Change(_bind, "mknod"),
        "unlink": Change(lambda d: os.unlink(d / "file"), "unlink", destructive=True),
        "unlink of a link": Change(lambda d: os.unlink(d / "link"), "unlink", destructive=True),
        "rmdir": Change(lambda d: os.rmdir(d / "empty"), "rmdir", destructive=True),
        "rename": Change(lambda d: os.rename(d / "file", d / "moved"), "rename"),
        "rename of a folder": Change(lambda d: os.rename(d / "full", d / "moved"), "rename"),
        "rename over": Change(
            lambda d: os.rename(d / "file", d / "other"), "replace", destructive=True
        ),
        "rename NOREPLACE": Change(
            lambda d: rename2(d / "file", d / "moved", NOREPLACE), "rename"
        ),
        "exchange": Change(
            lambda d: rename2(d / "file", d / "other", EXCHANGE), "exchange", destructive=True
        ),
    }  # fmt: skip
    return table


CHANGES = [pytest.param(change, id=name) for name, change in _table().items()]
