"""Where lamfuse keeps its own files, and the checks that nobody else can put something there.

The places follow the XDG base directory specification; a value that is not absolute is ignored, as
it says. Nothing of a mounted view is touched here: the daemon must never wait for itself.

Names depend on the home, so that several homes can be served side by side. Socket and lock always
bear a key made from the home's real path, because two commands under different ``$HOME`` may mean
the same home, or the other way round. Journal, log and mountpoint have their plain names for the
user's own home.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import pwd
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from lamfuse.core.errors import RefusedError

__all__ = ["Dirs", "HomeLock", "find_dirs", "make_private", "real_path", "user_home"]


@dataclass(frozen=True, slots=True)
class Dirs:
    """The places of one home. All are absolute bytes; none need exist.

    ``home`` is a real path, ``key`` is made from it; ``own``: it is the user's own home.
    """

    home: bytes
    key: str
    own: bool
    config_dir: bytes
    config_file: bytes
    state_dir: bytes
    runtime_dir: bytes

    @property
    def _suffix(self) -> bytes:
        return b"" if self.own else b"-" + self.key.encode()

    @property
    def journal(self) -> bytes:
        """The journal; rotated files stand beside it."""
        return b"%s/journal%s.jsonl" % (self.state_dir, self._suffix)

    @property
    def log_file(self) -> bytes:
        """The log of the daemon."""
        return b"%s/lamfuse%s.log" % (self.state_dir, self._suffix)

    @property
    def mountpoint(self) -> bytes:
        """Where the view is mounted unless another place is given."""
        return b"%s/home%s" % (self.runtime_dir, self._suffix)

    @property
    def socket(self) -> bytes:
        """The control socket of the daemon that serves this home."""
        return b"%s/control-%s.sock" % (self.runtime_dir, self.key.encode())

    @property
    def lock_file(self) -> bytes:
        """The file that the daemon of this home holds locked."""
        return b"%s/lock-%s" % (self.runtime_dir, self.key.encode())

    @property
    def agent_dir(self) -> bytes:
        """The agent's support directory, which stays visible."""
        return self.home.rstrip(b"/") + b"/.local/share/lamfuse/agent"

    def own_places(self, mountpoint: bytes | None = None) -> tuple[bytes, ...]:
        """Return the absolute paths that no view may show, as written and as they really are.

        A config file that is a link is hidden at both ends. The mountpoint is never looked at.
        """
        places = {self.config_dir, self.config_file, self.state_dir, self.runtime_dir}
        places |= {os.path.realpath(place) for place in places}
        for mount in {self.mountpoint, mountpoint or self.mountpoint}:
            parent, name = os.path.split(os.path.normpath(mount))
            places |= {os.path.normpath(mount), os.path.realpath(parent).rstrip(b"/") + b"/" + name}
        return tuple(sorted(places))

    def make_runtime_dir(self) -> None:
        """Make the runtime directory, or check the one that is there; raises RefusedError."""
        make_private(self.runtime_dir)

    def make_state_dir(self) -> None:
        """Make the state directory, or check the one that is there; raises RefusedError."""
        make_private(self.state_dir)


def user_home(environ: Mapping[str, str]) -> bytes:
    """Return the real path of the user's own home: ``$HOME``, else what the user database says."""
    written = environ.get("HOME", "")
    if not written.startswith("/"):
        try:
            written = pwd.getpwuid(os.getuid()).pw_dir
        except KeyError:
            written = ""
    if not written.startswith("/"):
        raise RefusedError("The home directory is not known. Set HOME, or give --home DIR.")
    return os.path.realpath(os.fsencode(written))


def real_path(path: bytes) -> bytes:
    """Return where *path* leads right now: to compare places, never to open what is there."""
    return os.path.realpath(path)


def find_dirs(
    environ: Mapping[str, str], home: bytes | None = None, config_file: bytes | None = None
) -> Dirs:
    """Return the places for *home* (default: the user's own) under *environ*.

    Configuration and state are the user's, whichever home is served. Raises RefusedError where
    ``$XDG_RUNTIME_DIR`` belongs to somebody else.
    """
    user = user_home(environ)
    served = user if home is None else os.path.realpath(home)
    config_dir = _base(environ, "XDG_CONFIG_HOME", user + b"/.config") + b"/lamfuse"
    if config_file is None:
        config_file = config_dir + b"/config.toml"
    return Dirs(
        home=served,
        key=hashlib.sha256(served).hexdigest()[:12],
        own=served == user,
        config_dir=config_dir,
        config_file=os.path.abspath(config_file),
        state_dir=_base(environ, "XDG_STATE_HOME", user + b"/.local/state") + b"/lamfuse",
        runtime_dir=_runtime_dir(environ),
    )


def make_private(path: bytes) -> None:
    """Make the directory *path* for this user alone, or check the one that is there.

    Missing parents are made as well (0700). Raises RefusedError, with the remedy, for a link,
    another type, another owner, or a mode that lets others in.
    """
    shown = os.fsdecode(path)
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)
        found = os.lstat(path)
    except OSError as error:
        raise RefusedError(f"{shown} cannot be made: {error.strerror}.") from error
    if stat.S_ISLNK(found.st_mode):
        raise RefusedError(f"{shown} is a symbolic link, and is not trusted. Remove it.")
    if not stat.S_ISDIR(found.st_mode):
        raise RefusedError(f"{shown} is not a directory. Remove it.")
    if found.st_uid != os.getuid():
        raise RefusedError(
            f"{shown} belongs to another user (uid {found.st_uid}), and is not trusted. "
            "Remove it, or set XDG_RUNTIME_DIR and XDG_STATE_HOME to directories of your own."
        )
    if found.st_mode & 0o077:
        mode = stat.S_IMODE(found.st_mode)
        raise RefusedError(f"{shown} is open to others (mode {mode:04o}). Run: chmod 700 {shown}")


class HomeLock:
    """Held by the one daemon of a home; a context manager. The lock ends with the process."""

    def __init__(self, path: bytes) -> None:
        self._path = path
        self._fd = -1

    def __enter__(self) -> Self:
        """Take the lock; raises RefusedError when another process holds it."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            fd = os.open(self._path, flags, 0o600)
        except OSError as error:
            shown = os.fsdecode(self._path)
            raise RefusedError(f"{shown} cannot be opened: {error.strerror}.") from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(fd, 0)
            os.pwrite(fd, b"%d\n" % os.getpid(), 0)
        except BlockingIOError as error:
            holder = os.pread(fd, 20, 0).decode(errors="replace").strip() or "unknown"
            os.close(fd)
            raise RefusedError(
                f"This home is served already (pid {holder}). See: lamfuse status"
            ) from error
        except BaseException:
            os.close(fd)
            raise
        self._fd = fd
        return self

    def __exit__(self, *_: object) -> None:
        """Let go. The file stays: removing it would let two daemons lock two files of one name."""
        os.close(self._fd)
        self._fd = -1


def _base(environ: Mapping[str, str], name: str, default: bytes) -> bytes:
    """Return an XDG base directory, normalised; a value that is not absolute counts as absent."""
    value = os.fsencode(environ.get(name, ""))
    return os.path.normpath(value) if value.startswith(b"/") else default


def _runtime_dir(environ: Mapping[str, str]) -> bytes:
    """Return the directory for sockets: without XDG_RUNTIME_DIR one under the temp directory."""
    base = _base(environ, "XDG_RUNTIME_DIR", b"")
    try:
        found = os.stat(base) if base else None
    except OSError:
        found = None  # set, but not there: as if it were not set
    if found is None:
        temp = _base(environ, "TMPDIR", b"/tmp")
        return b"%s/lamfuse-%d" % (temp.rstrip(b"/"), os.getuid())
    writable = found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX
    if found.st_uid not in {os.getuid(), 0} or writable:
        raise RefusedError(
            f"XDG_RUNTIME_DIR is {os.fsdecode(base)}, which others own or may write. "
            "Set it to a directory of your own with mode 700, or unset it."
        )
    return base.rstrip(b"/") + b"/lamfuse"
