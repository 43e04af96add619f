"""Paths as bytes: joining, splitting and containment, by components and never by string prefix.

Pure: nothing here looks at the disk, so a path that contains links is only as good as its
resolution. Unless said otherwise a path is absolute and normalised: one slash between components,
none at the end, no ``.`` and no ``..``. Where a path breaks that rule, containment answers no.
"""

from __future__ import annotations

from collections.abc import Iterator

__all__ = [
    "PathError",
    "ancestors",
    "base",
    "components",
    "contains",
    "depth",
    "encode",
    "expand",
    "join",
    "normalise",
    "parent",
    "relative",
]


class PathError(ValueError):
    """A written path that names nothing; *reason* says why, in words for the one who wrote it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def components(path: bytes) -> tuple[bytes, ...]:
    """Return the names in *path*, outermost first; the root has none."""
    return tuple(name for name in path.split(b"/") if name)


def contains(root: bytes, path: bytes) -> bool:
    """Tell whether *path* is *root* or lies below it, by components."""
    if path == root:
        return path.startswith(b"/")
    if not path.startswith(root if root == b"/" else root + b"/"):
        return False
    # A path that still climbs cannot be placed by its text: outside.
    return root.startswith(b"/") and b"/../" not in path and not path.endswith(b"/..")


def join(parent: bytes, name: bytes) -> bytes:
    """Return *name* (one name or a relative path) below *parent*; an empty name is *parent* itself.

    Raises ValueError for an absolute *name*: it would leave *parent* behind.
    """
    if name.startswith(b"/"):
        raise ValueError(f"not a name below a directory: {name!r}")
    if not name:
        return parent
    return parent + name if parent == b"/" else parent + b"/" + name


def parent(path: bytes) -> bytes:
    """Return the directory that holds *path*; the root is its own parent."""
    return path[: path.rindex(b"/")] or b"/"


def base(path: bytes) -> bytes:
    """Return the last name of *path*; empty for the root."""
    return path[path.rindex(b"/") + 1 :]


def relative(root: bytes, path: bytes) -> bytes:
    """Return *path* as seen from *root*, without a leading slash; empty for *root* itself.

    Raises ValueError when *path* lies outside *root*.
    """
    if not contains(root, path):
        raise ValueError(f"{path!r} is not below {root!r}")
    return path[len(root) :].lstrip(b"/")


def depth(root: bytes, path: bytes) -> int:
    """Return how many names lie between *root* and *path*; 0 for *root* itself.

    Raises ValueError when *path* lies outside *root*.
    """
    return len(components(relative(root, path)))


def ancestors(root: bytes, path: bytes) -> Iterator[bytes]:
    """Yield every prefix of *path* from just below *root* down to *path* itself.

    Yields nothing for *root* itself. Raises ValueError when *path* lies outside *root*.
    """
    current = root
    for name in components(relative(root, path)):
        current = join(current, name)
        yield current


def normalise(path: bytes) -> bytes:
    """Return *path* without empty names, ``.`` and ``..``, by its text alone.

    The result is absolute: ``..`` stops at ``/``, and a relative path is read as below ``/``.
    """
    kept: list[bytes] = []
    for name in path.split(b"/"):
        if name == b"..":
            del kept[-1:]
        elif name not in {b"", b"."}:
            kept.append(name)
    return b"/" + b"/".join(kept)


def encode(text: str) -> bytes:
    """Return the bytes of the path that *text* writes (UTF-8; stray bytes as lone surrogates).

    Raises PathError where *text* stands for no bytes, as JSON's lone surrogates do.
    """
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise PathError("it holds a character that no file name can hold") from error


def expand(written: object, home: bytes) -> bytes:
    """Return the absolute, normalised path that *written* means, before any link is followed.

    ``~`` and ``~/`` are *home*, and what is relative is relative to it. Raises PathError for what
    is not text, is empty, holds a NUL byte, or means another user's home.
    """
    if not isinstance(written, str):
        raise PathError("it is not text")
    if not written:
        raise PathError("it is empty")
    if "\0" in written:
        raise PathError("it holds a NUL byte")
    path = encode(written)
    if path == b"~" or path.startswith(b"~/"):
        return normalise(home + b"/" + path.removeprefix(b"~"))
    if path.startswith(b"~"):
        raise PathError("it means another user's home (write ./~ for a name that starts with ~)")
    return normalise(path if path.startswith(b"/") else home + b"/" + path)
