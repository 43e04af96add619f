"""A folder that somebody moves without the view: decisions and grants follow its real path."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamfuse.core.approval import Offer, Scope
from lamfuse.core.ledger import Ledger
from lamfuse.core.operations import Operation
from lamfuse.core.rules import Denylist
from lamfuse.core.target import Caller, Request
from lamfuse.tree import syscalls
from lamfuse.tree.inodes import Inode
from lamfuse.tree.resolve import Tree

pytestmark = pytest.mark.requirement("H33", "L3")


@pytest.fixture
def tree(home: Path) -> Iterator[Tree]:
    """Give a tree over a home that holds the file ``work/notes``."""
    (home / "work").mkdir()
    (home / "work/notes").write_bytes(b"text")
    tree = Tree(syscalls.open_root(os.fsencode(home)), open_directories=3, nameless=2)
    yield tree
    tree.close()


def seen(tree: Tree, name: bytes) -> Inode:
    """Look *name* up at the top and keep it open, as the view does for the kernel."""
    found = tree.inodes.seen(
        syscalls.stat_at(tree.directories.fd(tree.inodes.root), name), tree.inodes.root, name
    )
    found.lookups += 1
    tree.directories.fd(found)
    return found


def writing(tree: Tree, parent: Inode, name: bytes) -> Request:
    """Describe a write to *name* in the folder that the kernel knows as *parent*."""
    with tree.entry(parent, name) as target:
        return Request(Operation.WRITE, "claude-1", Caller(), (target.subject(),))


def test_the_request_has_the_path_where_the_folder_is_now(home: Path, tree: Tree) -> None:
    work = seen(tree, b"work")
    (home / "deep").mkdir()
    os.rename(home / "work", home / "deep/other")

    assert writing(tree, work, b"notes").paths == (os.fsencode(home / "deep/other/notes"),)
    assert writing(tree, work, b"new").paths == (os.fsencode(home / "deep/other/new"),)


def test_the_folder_itself_is_at_its_new_place_once_it_is_seen_there(
    home: Path, tree: Tree
) -> None:
    work = seen(tree, b"work")
    os.rename(home / "work", home / "other")

    assert seen(tree, b"other") is work
    with tree.directory(work) as target:
        assert target.subject().path == os.fsencode(home / "other")


@pytest.mark.requirement("H21")
def test_moved_to_a_hidden_place_it_is_hidden(home: Path, tree: Tree) -> None:
    denylist = Denylist(os.fsencode(home))
    work = seen(tree, b"work")
    (path,) = writing(tree, work, b"notes").paths
    assert denylist.rule_for(path, is_dir=False) is None

    os.rename(home / "work", home / ".ssh")

    (path,) = writing(tree, work, b"notes").paths
    assert denylist.rule_for(path, is_dir=False) is not None


@pytest.mark.requirement("H9", "H18")
def test_a_grant_stays_with_the_path_that_was_shown(home: Path, tree: Tree) -> None:
    ledger = Ledger()
    work = seen(tree, b"work")
    shown = writing(tree, work, b"notes")
    ledger.grant(shown, Offer(Scope.FILE, shown.paths[0]), (), 1.0)
    assert ledger.covers(writing(tree, work, b"notes"), ()) is not None

    os.rename(home / "work", home / "other")
    assert ledger.covers(writing(tree, work, b"notes"), ()) is None

    os.rename(home / "other", home / "work")
    assert ledger.covers(writing(tree, work, b"notes"), ()) is not None


@pytest.mark.requirement("H9", "H18")
def test_a_decline_is_for_the_path_that_was_shown(home: Path, tree: Tree) -> None:
    ledger = Ledger()
    work = seen(tree, b"work")
    ledger.note_declined(writing(tree, work, b"notes"))

    os.rename(home / "work", home / "other")
    assert not ledger.was_declined(writing(tree, work, b"notes"))

    os.rename(home / "other", home / "work")
    assert ledger.was_declined(writing(tree, work, b"notes"))
