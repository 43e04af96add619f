"""The table of operations, against the rows of the contract."""

from __future__ import annotations

import pytest

from lamfuse.core.operations import CHANGES, TABLE, Mode, Operation, Verb

O = Operation  # noqa: E741 - the rows are read by it

#: verb -> the operations that are asked about under it.
ROWS: dict[Verb, set[Operation]] = {
    Verb.READ: {
        O.LOOKUP, O.STAT, O.LIST, O.READLINK, O.OPEN, O.READ_XATTR, O.STATFS, O.ACCESS,
    },
    Verb.WRITE: {O.WRITE, O.TRUNCATE},
    Verb.ATTRIBUTES: {O.CHMOD, O.CHOWN, O.UTIMENS, O.SET_XATTR, O.REMOVE_XATTR},
    Verb.CREATE: {O.CREATE, O.MKDIR, O.SYMLINK, O.MKNOD, O.LINK},
    Verb.DELETE: {O.UNLINK, O.RMDIR},
    Verb.MOVE: {O.RENAME, O.REPLACE, O.EXCHANGE},
}  # fmt: skip
MODES = {
    Verb.READ: Mode.ALLOWED,
    Verb.WRITE: Mode.COVERED,
    Verb.ATTRIBUTES: Mode.COVERED,
    Verb.CREATE: Mode.COVERED,
    Verb.DELETE: Mode.ALWAYS,
    Verb.MOVE: Mode.ALWAYS,
}


@pytest.mark.parametrize("operation", sorted(Operation))
@pytest.mark.requirement("H4", "H10")
def test_each_operation_is_in_its_row(operation: Operation) -> None:
    row = TABLE[operation]
    assert operation in ROWS[row.verb]
    assert row.mode is MODES[row.verb]


def test_no_operation_is_missing_and_none_is_in_two_rows() -> None:
    listed = [operation for row in ROWS.values() for operation in row]
    assert sorted(listed) == sorted(Operation)
    assert set(TABLE) == set(Operation)


def test_changes_are_all_that_does_not_read() -> None:
    assert set(Operation) - ROWS[Verb.READ] == CHANGES


def test_what_has_two_paths() -> None:
    expected = {O.LINK, O.RENAME, O.REPLACE, O.EXCHANGE}
    assert {operation for operation in Operation if TABLE[operation].two_paths} == expected


def test_what_destroys() -> None:
    expected = {O.TRUNCATE, O.UNLINK, O.RMDIR, O.REPLACE, O.EXCHANGE}
    assert {operation for operation in Operation if TABLE[operation].destructive} == expected


def test_the_names_are_those_of_the_journal_the_config_and_the_program_channel() -> None:
    """They are kept in files and given to programs, so none may change."""
    assert [str(verb) for verb in Verb] == [
        "read", "write", "attributes", "create", "delete", "move",
    ]  # fmt: skip
    assert [str(operation) for operation in Operation] == [
        "lookup", "stat", "list", "readlink", "open", "read-xattr", "statfs", "access",
        "write", "truncate", "chmod", "chown", "utimens", "set-xattr", "remove-xattr",
        "create", "mkdir", "symlink", "mknod", "link", "unlink", "rmdir",
        "rename", "replace", "exchange",
    ]  # fmt: skip
    assert [str(mode) for mode in Mode] == ["allowed", "covered", "always"]
