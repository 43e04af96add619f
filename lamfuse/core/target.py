"""What a request is about: values that describe objects, callers and requests.

Nothing here holds a descriptor: :mod:`lamfuse.tree` looks at the objects and fills these in.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from lamfuse.core.operations import Operation

__all__ = ["Below", "Caller", "FileId", "FileKind", "Identity", "Request", "Stamp", "Subject"]

#: Which file it is, as far as a listing tells: device, inode number, birth time.
FileId = tuple[int, int, int]
#: A file as it was found, with ctime and size; both are -1 for a directory.
Stamp = tuple[FileId, int, int]


class FileKind(enum.StrEnum):
    """The type of an object."""

    FILE = "file"
    DIRECTORY = "folder"
    SYMLINK = "link"
    FIFO = "FIFO"
    SOCKET = "socket"
    DEVICE = "device"


@dataclass(frozen=True, slots=True)
class Identity:
    """Which object it is, whatever it is called.

    ``birth_ns`` is 0 and ``generation`` empty where the file system does not tell.
    """

    dev: int
    ino: int
    birth_ns: int = 0
    generation: bytes = b""

    @property
    def file_id(self) -> FileId:
        """What a listing tells of it."""
        return self.dev, self.ino, self.birth_ns


@dataclass(frozen=True, slots=True)
class Below:
    """What a bounded walk found below a directory that is to be moved.

    ``complete`` is false when the walk met its bound: then the strictest answer counts.
    ``relative`` holds the paths of everything found, relative to the directory.
    ``climb`` is, for every link below, how many levels above the moved directory itself its target
    climbs at most (0: none does); ``absolute`` are the absolute targets, and ``winds`` says that a
    relative one has ``..`` behind a name. ``inodes`` are the inode numbers of everything found,
    and ``stamps`` what it is; None where it was too much to be looked at one by one.
    """

    relative: tuple[bytes, ...] = ()
    directories: frozenset[bytes] = frozenset()
    inodes: frozenset[int] = frozenset()
    complete: bool = True
    climb: int = 0
    absolute: frozenset[bytes] = frozenset()
    winds: bool = False
    stamps: frozenset[Stamp] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Subject:
    """One object that a request acts on, as it was when it was looked at.

    ``path`` is the real path (absolute, bytes). ``kind`` and ``identity`` are None for a name
    that does not exist yet. ``lines`` is None where it was not counted (binary, or over the
    bound). ``other_names`` are the other paths known for the same inode; ``links`` is st_nlink.
    """

    path: bytes
    kind: FileKind | None = None
    identity: Identity | None = None
    parent: Identity | None = None
    size: int = 0
    mtime_ns: int = 0
    ctime_ns: int = 0
    links: int = 1
    lines: int | None = None
    other_names: tuple[bytes, ...] = ()
    unlinked: bool = False
    below: Below | None = None

    @property
    def exists(self) -> bool:
        """Whether there was an object under this name."""
        return self.kind is not None

    @property
    def is_directory(self) -> bool:
        """Whether the object is a directory."""
        return self.kind is FileKind.DIRECTORY


@dataclass(frozen=True, slots=True)
class Caller:
    """Who made the call: thread id and process id.

    0: unknown, executable, as the kernel tells them.
    """

    tid: int = 0
    pid: int = 0
    exe: bytes = b""


@dataclass(frozen=True, slots=True)
class Request:
    """One operation that somebody wants to carry out.

    ``subjects`` is (object,) or (source, destination); a name to be created is a subject without
    kind. ``makes`` is the kind of what comes into being, ``target`` the text of a new symbolic
    link. ``truncates`` is set when the old content is destroyed at once;
    ``new_size``/``new_lines`` say what the object will hold, where that is known. ``detail`` is a
    short description of an attribute change. ``alone``: no grant covers it (set-id bits, access
    lists), each is asked about by itself.
    """

    operation: Operation
    session: str
    caller: Caller
    subjects: tuple[Subject, ...]
    makes: FileKind | None = None
    target: bytes = b""
    truncates: bool = False
    new_size: int | None = None
    new_lines: int | None = None
    alone: bool = False
    detail: str = ""

    @property
    def paths(self) -> tuple[bytes, ...]:
        """The real paths, source first."""
        return tuple(subject.path for subject in self.subjects)
