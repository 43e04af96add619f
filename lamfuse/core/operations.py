"""The operations that the boundary knows, as data.

This table is section 2 of the contract: what each operation is in a read-only place and in a write
root. It must not decide anything by itself: :mod:`lamfuse.core.policy` reads it.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

__all__ = ["CHANGES", "TABLE", "Mode", "Operation", "Row", "Verb"]


class Verb(enum.StrEnum):
    """What a question, a grant or a standing rule is about."""

    READ = "read"
    WRITE = "write"
    ATTRIBUTES = "attributes"
    CREATE = "create"
    DELETE = "delete"
    MOVE = "move"


class Operation(enum.StrEnum):
    """One kind of system call, as far as the policy tells them apart."""

    LOOKUP = "lookup"
    STAT = "stat"
    LIST = "list"
    READLINK = "readlink"
    OPEN = "open"
    READ_XATTR = "read-xattr"
    STATFS = "statfs"
    ACCESS = "access"
    WRITE = "write"
    TRUNCATE = "truncate"
    CHMOD = "chmod"
    CHOWN = "chown"
    UTIMENS = "utimens"
    SET_XATTR = "set-xattr"
    REMOVE_XATTR = "remove-xattr"
    CREATE = "create"
    MKDIR = "mkdir"
    SYMLINK = "symlink"
    MKNOD = "mknod"
    LINK = "link"
    UNLINK = "unlink"
    RMDIR = "rmdir"
    RENAME = "rename"
    REPLACE = "replace"
    EXCHANGE = "exchange"


class Mode(enum.StrEnum):
    """How an operation is treated in a write root."""

    ALLOWED = "allowed"
    COVERED = "covered"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table: the verb, the treatment in a write root.

    Whether it has two paths.
    """

    verb: Verb
    mode: Mode
    two_paths: bool = False
    destructive: bool = False


_READ = Row(Verb.READ, Mode.ALLOWED)
_ATTRIBUTES = Row(Verb.ATTRIBUTES, Mode.COVERED)
_CREATE = Row(Verb.CREATE, Mode.COVERED)

TABLE: dict[Operation, Row] = {
    Operation.LOOKUP: _READ,
    Operation.STAT: _READ,
    Operation.LIST: _READ,
    Operation.READLINK: _READ,
    Operation.OPEN: _READ,
    Operation.READ_XATTR: _READ,
    Operation.STATFS: _READ,
    Operation.ACCESS: _READ,
    Operation.WRITE: Row(Verb.WRITE, Mode.COVERED),
    Operation.TRUNCATE: Row(Verb.WRITE, Mode.COVERED, destructive=True),
    Operation.CHMOD: _ATTRIBUTES,
    Operation.CHOWN: _ATTRIBUTES,
    Operation.UTIMENS: _ATTRIBUTES,
    Operation.SET_XATTR: _ATTRIBUTES,
    Operation.REMOVE_XATTR: _ATTRIBUTES,
    Operation.CREATE: _CREATE,
    Operation.MKDIR: _CREATE,
    Operation.SYMLINK: _CREATE,
    Operation.MKNOD: _CREATE,
    Operation.LINK: Row(Verb.CREATE, Mode.COVERED, two_paths=True),
    Operation.UNLINK: Row(Verb.DELETE, Mode.ALWAYS, destructive=True),
    Operation.RMDIR: Row(Verb.DELETE, Mode.ALWAYS, destructive=True),
    Operation.RENAME: Row(Verb.MOVE, Mode.ALWAYS, two_paths=True),
    Operation.REPLACE: Row(Verb.MOVE, Mode.ALWAYS, two_paths=True, destructive=True),
    Operation.EXCHANGE: Row(Verb.MOVE, Mode.ALWAYS, two_paths=True, destructive=True),
}

CHANGES: frozenset[Operation] = frozenset(
    operation for operation, row in TABLE.items() if row.mode is not Mode.ALLOWED
)
