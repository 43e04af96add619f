"""The ledger: what a yes covers, for whom, until when, and for which object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from lamfuse.core.approval import Offer, Scope
from lamfuse.core.ledger import Ledger, Limits, is_atomic_save
from lamfuse.core.operations import TABLE, Operation, Verb
from lamfuse.core.target import Below, FileKind, Request, Stamp, Subject
from tests.core.acts import DOWNLOADS, act, directory, file, free, identity, make_policy

pytestmark = pytest.mark.requirement("H9")

O = Operation  # noqa: E741 - the rows are read by it
A, B = DOWNLOADS + b"/a", DOWNLOADS + b"/b"
FOLDER = DOWNLOADS + b"/w"
POLICY = make_policy()

FILE_GRANT = "this file for this turn"
FOLDER_GRANT = "this folder for this turn"
CONTENT = [O.WRITE, O.TRUNCATE, O.CHMOD, O.CHOWN, O.UTIMENS, O.SET_XATTR, O.REMOVE_XATTR]


X = (identity(10).file_id, 6, 100)


def _holding(*stamps: Stamp) -> Below:
    return Below(tuple(b"%d" % at for at, _ in enumerate(stamps)), stamps=frozenset(stamps))


def classed(request: Request) -> tuple[bytes, ...]:
    return POLICY.runs_later(request)


def covers(ledger: Ledger, request: Request) -> str | None:
    return ledger.covers(request, classed(request))


def grant(
    ledger: Ledger,
    request: Request,
    scope: Scope = Scope.FILE,
    path: bytes = b"",
    existing: int | None = None,
) -> None:
    """Grant *request*; the files that a folder held are those with the inode numbers from 10 on."""
    files = frozenset(identity(ino).file_id for ino in range(10, 10 + (existing or 0)))
    offer = Offer(scope, path or request.paths[-1], existing, files)
    ledger.grant(request, offer, classed(request), 1.0)


def born(ledger: Ledger, subject: Subject) -> Subject:
    """Let *subject* be born in this turn."""
    ledger.note_birth(subject, 1.0)
    return subject


def with_folder(existing: int | None = None) -> Ledger:
    ledger = Ledger()
    grant(ledger, act(O.CREATE, free(FOLDER + b"/first")), Scope.FOLDER, FOLDER, existing)
    return ledger


@pytest.mark.requirement("H9", "H18")
class TestFileScope:
    @pytest.mark.parametrize("operation", CONTENT)
    def test_it_covers_changes_of_the_file(self, operation: Operation) -> None:
        ledger = Ledger()
        assert covers(ledger, act(operation, file(A))) is None
        grant(ledger, act(O.WRITE, file(A)))
        assert covers(ledger, act(operation, file(A))) == FILE_GRANT
        assert covers(ledger, act(operation, file(A, size=5000))) == FILE_GRANT

    @pytest.mark.parametrize(
        "path",
        [
            pytest.param(B, id="its neighbour"),
            pytest.param(DOWNLOADS, id="the folder above"),
            pytest.param(A + b"/x", id="below"),
            pytest.param(A + b"x", id="the same beginning"),
            pytest.param(DOWNLOADS + b"/A", id="another case"),
            pytest.param(DOWNLOADS + b"/./a", id="a spelling that is no real path"),
        ],
    )
    def test_it_is_for_this_real_path_only(self, path: bytes) -> None:
        ledger = Ledger()
        grant(ledger, act(O.WRITE, file(A)))
        assert covers(ledger, act(O.WRITE, file(path))) is None
        assert covers(ledger, act(O.CREATE, free(path))) is None

    @pytest.mark.parametrize("operation", [o for o in O if TABLE[o].verb is Verb.MOVE])
    @pytest.mark.requirement("H10")
    def test_it_never_reaches_a_move(self, operation: Operation) -> None:
        ledger = Ledger()
        for path in (A, B):
            grant(ledger, act(O.WRITE, file(path)))
            grant(ledger, act(O.CREATE, free(path)))
        second = free(B) if operation is O.RENAME else file(B, 11)
        assert covers(ledger, act(operation, file(A), second)) is None

    @pytest.mark.requirement("H10")
    def test_it_never_reaches_a_delete_not_even_of_what_was_born(self) -> None:
        ledger = Ledger()
        grant(ledger, act(O.CREATE, free(A)))
        made = born(ledger, file(A))
        assert covers(ledger, act(O.WRITE, made)) == FILE_GRANT
        assert covers(ledger, act(O.UNLINK, made)) is None
        assert covers(ledger, act(O.RENAME, made, free(B))) is None
        folder = born(ledger, directory(B))
        grant(ledger, act(O.MKDIR, free(B)))
        assert covers(ledger, act(O.RMDIR, folder)) is None

    @pytest.mark.requirement("L3")
    def test_another_object_under_the_name_voids_it(self) -> None:
        ledger = Ledger()
        grant(ledger, act(O.WRITE, file(A, 10)))
        other = file(A, 11)
        again = replace(file(A, 10), identity=replace(identity(10), generation=b"new"))
        assert covers(ledger, act(O.WRITE, other)) is None
        assert covers(ledger, act(O.WRITE, again)) is None
        assert covers(ledger, act(O.WRITE, file(A, 10))) == FILE_GRANT

    @pytest.mark.requirement("L3")
    def test_a_yes_to_a_new_file_does_not_cover_what_somebody_else_put_there(self) -> None:
        ledger = Ledger()
        grant(ledger, act(O.CREATE, free(A)))
        assert covers(ledger, act(O.CREATE, free(A))) == FILE_GRANT
        assert covers(ledger, act(O.WRITE, file(A))) is None
        made = born(ledger, file(A))
        assert covers(ledger, act(O.WRITE, made)) == FILE_GRANT
        assert covers(ledger, act(O.CHMOD, made)) == FILE_GRANT
        # From now on it is bound to this object.
        assert covers(ledger, act(O.WRITE, replace(made, ctime_ns=99))) == FILE_GRANT
        assert covers(ledger, act(O.WRITE, file(A, 11))) is None

    @pytest.mark.parametrize(
        "request_",
        [
            pytest.param(act(O.SYMLINK, free(A)), id="link"),
            pytest.param(act(O.MKDIR, free(A)), id="folder"),
            pytest.param(act(O.MKNOD, free(A)), id="FIFO"),
        ],
    )
    def test_something_else_in_the_place_of_a_file_is_asked(self, request_: Request) -> None:
        ledger = Ledger()
        grant(ledger, act(O.CREATE, free(A)))
        assert covers(ledger, request_) is None
        assert covers(ledger, act(O.MKNOD, free(A), makes=FileKind.FILE)) == FILE_GRANT

    def test_a_file_with_other_names_is_always_asked_unless_it_was_born(self) -> None:
        ledger = Ledger()
        linked = file(A, names=[B])
        grant(ledger, act(O.WRITE, linked))
        for operation in CONTENT:
            assert covers(ledger, act(operation, linked)) is None
            assert covers(ledger, act(operation, file(A, links=2))) is None
        born(ledger, linked)
        assert covers(ledger, act(O.WRITE, linked)) == FILE_GRANT

    def test_a_link_is_covered_for_what_was_born_only(self) -> None:
        ledger = Ledger()
        grant(ledger, act(O.LINK, file(A), free(B)))
        assert covers(ledger, act(O.LINK, file(A), free(B))) is None
        made = born(ledger, file(A))
        assert covers(ledger, act(O.LINK, made, free(B))) == FILE_GRANT
        assert covers(ledger, act(O.WRITE, file(B, 12))) is None
        assert covers(ledger, act(O.WRITE, replace(made, path=B, links=2))) == FILE_GRANT

    def test_a_file_grant_does_not_let_another_kind_of_thing_take_the_name(self) -> None:
        ledger = Ledger()
        grant(ledger, act(O.CREATE, free(B)))
        made = born(ledger, file(A, kind=FileKind.SYMLINK))
        link = act(O.LINK, made, free(B), makes=FileKind.SYMLINK)
        assert covers(ledger, link) is None
        assert covers(ledger, act(O.LINK, born(ledger, file(A)), free(B))) == FILE_GRANT

    def test_a_folder_grant_covers_new_names_in_it_and_never_what_they_lead_to(self) -> None:
        ledger = Ledger()
        ledger.grant(
            act(O.CREATE, free(b"/home/u/w/d/new")), Offer(Scope.FOLDER, b"/home/u/w/d"), (), 1.0
        )
        theirs = file(b"/home/u/w/theirs")
        there = free(b"/home/u/w/d/name")
        assert covers(ledger, act(O.LINK, theirs, there)) == FOLDER_GRANT
        named = replace(theirs, path=there.path, links=2)
        assert covers(ledger, act(O.WRITE, named)) is None
        assert covers(ledger, act(O.UNLINK, named)) is None

    def test_it_covers_the_attributes_of_a_folder(self) -> None:
        ledger = Ledger()
        grant(ledger, act(O.CHMOD, directory(A)))
        assert covers(ledger, act(O.UTIMENS, directory(A))) == FILE_GRANT
        assert covers(ledger, act(O.UTIMENS, directory(A, 21))) is None

    def test_nothing_covers_a_change_of_what_is_not_there(self) -> None:
        ledger = with_folder(existing=3)
        grant(ledger, act(O.CREATE, free(FOLDER + b"/x")))
        assert covers(ledger, act(O.WRITE, free(FOLDER + b"/x"))) is None
        assert covers(ledger, act(O.WRITE, free(FOLDER + b"/y"))) is None

    @pytest.mark.requirement("H10")
    def test_a_move_onto_a_granted_name_takes_the_grant_along_for_what_was_born_only(self) -> None:
        ledger = Ledger()
        grant(ledger, act(O.WRITE, file(A, 10)))
        thesis = file(A, 55)
        ledger.note_moved(thesis, A)
        assert covers(ledger, act(O.WRITE, thesis)) is None
        saved = born(ledger, file(B, 56))
        ledger.note_moved(saved, A)
        there = replace(saved, path=A, ctime_ns=77)
        assert not ledger.is_born(there)
        assert covers(ledger, act(O.WRITE, there)) == FILE_GRANT
        ledger.note_moved(saved, B)
        assert covers(ledger, act(O.WRITE, saved)) is None


def test_once_leaves_nothing_behind() -> None:
    ledger = Ledger()
    for request in (act(O.WRITE, file(A)), act(O.CREATE, free(A))):
        grant(ledger, request, Scope.ONCE)
        assert covers(ledger, request) is None


class TestFolderScope:
    def test_it_covers_what_is_made_in_it(self) -> None:
        ledger = with_folder()
        for operation in (O.CREATE, O.MKDIR, O.SYMLINK, O.MKNOD):
            assert covers(ledger, act(operation, free(FOLDER + b"/x"))) == FOLDER_GRANT
            assert covers(ledger, act(operation, free(FOLDER + b"/a/b/x"))) == FOLDER_GRANT

    @pytest.mark.parametrize("path", [FOLDER, A, FOLDER + b"2/x", DOWNLOADS])
    def test_it_covers_nothing_beside_it(self, path: bytes) -> None:
        ledger = with_folder(existing=3)
        assert covers(ledger, act(O.CREATE, free(path))) is None
        assert covers(ledger, act(O.MKDIR, free(path))) is None

    @pytest.mark.parametrize("operation", CONTENT)
    def test_existing_files_only_when_they_were_counted(self, operation: Operation) -> None:
        existing = act(operation, file(FOLDER + b"/old"))
        assert covers(with_folder(None), existing) is None
        assert covers(with_folder(0), existing) is None
        assert covers(with_folder(3), existing) == FOLDER_GRANT
        assert covers(with_folder(3), act(operation, file(FOLDER + b"/later", 13))) is None
        assert covers(with_folder(3), act(operation, file(A))) is None

    def test_a_folder_that_stands_there_was_not_counted(self) -> None:
        ledger = with_folder(existing=3)
        for path in (FOLDER, FOLDER + b"/sub"):
            assert covers(ledger, act(O.CHMOD, directory(path))) is None
        made = born(ledger, directory(FOLDER + b"/made"))
        assert covers(ledger, act(O.CHMOD, made)) == FOLDER_GRANT

    def test_a_file_with_other_names_is_asked(self) -> None:
        ledger = with_folder(existing=3)
        linked = file(FOLDER + b"/x", links=2)
        assert covers(ledger, act(O.WRITE, linked)) is None
        assert covers(ledger, act(O.WRITE, born(ledger, linked))) == FOLDER_GRANT

    def test_what_was_born_elsewhere_is_not_covered_there(self) -> None:
        ledger = with_folder()
        assert covers(ledger, act(O.WRITE, born(ledger, file(A)))) is None

    @pytest.mark.requirement("H10")
    class TestDeletingAndMoving:
        @pytest.mark.parametrize("existing", [None, 0, 3])
        def test_never_of_what_was_not_born(self, existing: int | None) -> None:
            ledger = with_folder(existing)
            x, y = FOLDER + b"/x", FOLDER + b"/y"
            born(ledger, file(y, 11))
            assert covers(ledger, act(O.UNLINK, file(x))) is None
            assert covers(ledger, act(O.RMDIR, directory(x))) is None
            assert covers(ledger, act(O.RENAME, file(x), free(y))) is None
            assert covers(ledger, act(O.REPLACE, file(x), file(y, 11))) is None

        def test_of_what_was_born(self) -> None:
            ledger = with_folder()
            made = born(ledger, file(FOLDER + b"/x"))
            folder = born(ledger, directory(FOLDER + b"/d"))
            to = free(FOLDER + b"/e")
            assert covers(ledger, act(O.UNLINK, made)) == FOLDER_GRANT
            assert covers(ledger, act(O.RMDIR, folder)) == FOLDER_GRANT
            assert covers(ledger, act(O.RENAME, made, to)) == FOLDER_GRANT
            assert covers(ledger, act(O.RENAME, folder, to)) == FOLDER_GRANT

        def test_not_out_of_the_folder_and_not_into_it(self) -> None:
            ledger = with_folder()
            inside, outside = born(ledger, file(FOLDER + b"/x")), born(ledger, file(A, 11))
            assert covers(ledger, act(O.RENAME, inside, free(B))) is None
            assert covers(ledger, act(O.RENAME, outside, free(FOLDER + b"/y"))) is None
            assert covers(ledger, act(O.UNLINK, outside)) is None

        def test_not_the_folder_itself(self) -> None:
            ledger = with_folder()
            folder = born(ledger, directory(FOLDER))
            assert covers(ledger, act(O.RMDIR, folder)) is None
            assert covers(ledger, act(O.RENAME, folder, free(FOLDER + b"/x"))) is None

        def test_between_two_granted_folders(self) -> None:
            ledger = with_folder()
            other = DOWNLOADS + b"/v"
            grant(ledger, act(O.CREATE, free(other + b"/x")), Scope.FOLDER, other, None)
            made = born(ledger, file(FOLDER + b"/x"))
            assert covers(ledger, act(O.RENAME, made, free(other + b"/x"))) == FOLDER_GRANT

        def test_never_an_exchange(self) -> None:
            ledger = with_folder()
            both = [born(ledger, file(FOLDER + name, 30 + at)) for at, name in
                    enumerate((b"/x", b"/y"))]  # fmt: skip
            assert covers(ledger, act(O.EXCHANGE, *both)) is None

        @pytest.mark.parametrize(
            ("below", "expected"),
            [
                pytest.param(Below(stamps=frozenset()), FOLDER_GRANT, id="empty"),
                pytest.param(_holding(X), FOLDER_GRANT, id="all of it born"),
                pytest.param(_holding(X, (identity(77).file_id, 6, 100)), None, id="not all"),
                pytest.param(_holding((X[0], 7, 100)), None, id="changed"),
                pytest.param(_holding((X[0], 6, 101)), None, id="longer"),
                pytest.param(_holding((X[0], 7, 0)), None, id="emptied"),
                pytest.param(_holding(((1, 10, 71), 6, 100)), None, id="another of that number"),
                pytest.param(_holding((identity(20).file_id, -1, -1)), FOLDER_GRANT, id="folder"),
                pytest.param(Below((b"x",)), None, id="too much to be compared"),
                pytest.param(
                    Below(complete=False, stamps=frozenset()), None, id="not seen to its end"
                ),
            ],
        )
        def test_a_folder_with_what_is_in_it(self, below: Below, expected: str | None) -> None:
            ledger = with_folder()
            born(ledger, file(FOLDER + b"/d/x", 10))
            folder = replace(born(ledger, directory(FOLDER + b"/d", 20)), below=below)
            assert covers(ledger, act(O.RENAME, folder, free(FOLDER + b"/e"))) == expected

        def test_replacing_an_empty_folder_needs_both_born(self) -> None:
            ledger = with_folder()
            source = born(ledger, directory(FOLDER + b"/d", 20))
            target = directory(FOLDER + b"/e", 21)
            assert covers(ledger, act(O.REPLACE, source, target)) is None
            born(ledger, target)
            assert covers(ledger, act(O.REPLACE, source, target)) == FOLDER_GRANT


class TestBorn:
    def test_nothing_is_born_before_it_was_made(self) -> None:
        assert not Ledger().is_born(file(A))
        assert not Ledger().is_born(free(A))

    @pytest.mark.parametrize(
        "changed",
        [
            pytest.param({"ctime_ns": 7}, id="ctime"),
            pytest.param({"size": 101}, id="size"),
            pytest.param({"identity": replace(identity(10), birth_ns=1)}, id="birth"),
            pytest.param({"identity": replace(identity(10), generation=b"x")}, id="generation"),
            pytest.param({"identity": replace(identity(10), dev=2)}, id="device"),
            pytest.param({"identity": replace(identity(10), ino=11)}, id="inode"),
            pytest.param({"identity": None}, id="nothing known of it"),
        ],
    )
    def test_it_is_void_once_somebody_else_changed_it(self, changed: dict[str, Any]) -> None:
        ledger = Ledger()
        made = born(ledger, file(A))
        assert ledger.is_born(made)
        assert not ledger.is_born(replace(made, **changed))

    def test_a_folder_stays_born_while_entries_come_and_go(self) -> None:
        ledger = Ledger()
        made = born(ledger, directory(A))
        assert ledger.is_born(replace(made, ctime_ns=99, size=8192))
        assert not ledger.is_born(replace(made, identity=file(A).identity))

    def test_our_own_operations_keep_it(self) -> None:
        ledger = Ledger()
        born(ledger, file(A, 10))
        ledger.note_change(1, 10, 50, 500, 2.0)
        assert ledger.is_born(replace(file(A, 10), ctime_ns=50, size=500))
        assert not ledger.is_born(file(A, 10))
        ledger.note_change(1, 11, 50, 500, 2.0)
        assert not ledger.is_born(replace(file(A, 11), ctime_ns=50, size=500))

    def test_any_removed_name_ends_it(self) -> None:
        ledger = Ledger()
        made = born(ledger, file(A, links=2))
        ledger.note_gone(None)
        ledger.note_gone(file(B, 11).identity)
        assert ledger.is_born(made)
        ledger.note_gone(made.identity)
        assert not ledger.is_born(made)

    def test_it_is_the_object_that_was_born_whatever_it_is_called(self) -> None:
        ledger = Ledger()
        made = born(ledger, file(A))
        assert ledger.is_born(replace(made, path=B))


@pytest.mark.requirement("H10")
class TestAtomicSave:
    def save(self, ledger: Ledger, destination: Subject) -> Request:
        return act(O.REPLACE, born(ledger, file(DOWNLOADS + b"/.tmp", 40)), destination)

    def test_it_is_judged_as_a_write_of_the_destination(self) -> None:
        ledger = Ledger()
        save = self.save(ledger, file(A))
        assert ledger.saves(save)
        assert covers(ledger, save) is None
        grant(ledger, act(O.WRITE, file(A)))
        assert covers(ledger, save) == FILE_GRANT

    def test_a_source_that_was_not_born_makes_it_a_move(self) -> None:
        ledger = Ledger()
        grant(ledger, act(O.WRITE, file(A)))
        move = act(O.REPLACE, file(DOWNLOADS + b"/.tmp", 40), file(A))
        assert not ledger.saves(move)
        assert covers(ledger, move) is None

    def test_the_destination_must_be_what_the_grant_was_for(self) -> None:
        ledger = Ledger()
        grant(ledger, act(O.WRITE, file(A)))
        assert covers(ledger, self.save(ledger, file(A, 12))) is None
        assert covers(ledger, self.save(ledger, file(B, 13))) is None
        assert covers(ledger, self.save(ledger, file(A, links=2))) is None

    def test_a_folder_grant_reaches_counted_destinations(self) -> None:
        destination = file(FOLDER + b"/old")
        for existing, expected in ((None, None), (3, FOLDER_GRANT)):
            ledger = with_folder(existing)
            assert covers(ledger, self.save(ledger, destination)) == expected

    @pytest.mark.parametrize(
        ("request_", "expected"),
        [
            pytest.param(act(O.REPLACE, file(A), file(B)), True, id="file onto file"),
            pytest.param(act(O.REPLACE, directory(A), directory(B)), False, id="folders"),
            pytest.param(
                act(O.REPLACE, file(A, kind=FileKind.SYMLINK), file(B)), False, id="a link"
            ),
            pytest.param(
                act(O.REPLACE, file(A), file(B, kind=FileKind.FIFO)), False, id="onto a FIFO"
            ),
            pytest.param(act(O.RENAME, file(A), free(B)), False, id="onto nothing"),
            pytest.param(act(O.EXCHANGE, file(A), file(B)), False, id="exchange"),
        ],
    )
    def test_what_is_one(self, request_: Request, *, expected: bool) -> None:
        assert is_atomic_save(request_) is expected


class TestRunsLater:
    ENVRC = FOLDER + b"/.envrc"

    @pytest.mark.requirement("H10")
    def test_no_folder_grant_and_no_birth_covers_it(self) -> None:
        ledger = with_folder(existing=3)
        made = born(ledger, file(self.ENVRC))
        assert covers(ledger, act(O.CREATE, free(self.ENVRC))) is None
        assert covers(ledger, act(O.WRITE, made)) is None
        assert covers(ledger, act(O.UNLINK, made)) is None
        assert covers(ledger, act(O.RENAME, made, free(FOLDER + b"/x"))) is None
        renamed = born(ledger, file(FOLDER + b"/x", 12))
        assert covers(ledger, act(O.RENAME, renamed, free(self.ENVRC))) is None
        assert covers(ledger, act(O.LINK, renamed, free(self.ENVRC))) is None

    def test_a_file_grant_for_another_object_does_not_open_the_folder_grant(self) -> None:
        ledger = with_folder(existing=3)
        grant(ledger, act(O.WRITE, file(self.ENVRC, 99)))
        assert covers(ledger, act(O.WRITE, file(self.ENVRC, 99))) == FILE_GRANT
        assert covers(ledger, act(O.WRITE, file(self.ENVRC, 10))) is None

    def test_a_file_grant_of_its_own_covers_it(self) -> None:
        ledger = Ledger()
        grant(ledger, act(O.CREATE, free(self.ENVRC)))
        assert covers(ledger, act(O.CREATE, free(self.ENVRC))) == FILE_GRANT
        assert covers(ledger, act(O.WRITE, born(ledger, file(self.ENVRC)))) == FILE_GRANT
        assert covers(ledger, act(O.CREATE, free(FOLDER + b"/.npmrc"))) is None

    def test_one_question_lists_a_lock_file_and_what_it_locks(self) -> None:
        config = FOLDER + b"/.git/config"
        lock = act(O.CREATE, free(config + b".lock"))
        ledger = with_folder()
        assert covers(ledger, lock) is None
        grant(ledger, lock)
        made = born(ledger, file(config + b".lock", 31))
        assert covers(ledger, lock) == FILE_GRANT
        assert covers(ledger, act(O.RENAME, made, free(config))) == FOLDER_GRANT
        assert covers(ledger, act(O.REPLACE, made, file(config, 32))) == FILE_GRANT
        assert covers(ledger, act(O.CREATE, free(config))) == FILE_GRANT
        assert covers(ledger, act(O.SYMLINK, free(config))) is None
        assert covers(ledger, act(O.CREATE, free(FOLDER + b"/.git/config.worktree"))) is None

    def test_without_a_folder_grant_the_move_of_a_lock_file_is_asked(self) -> None:
        config = FOLDER + b"/.git/config"
        ledger = Ledger()
        grant(ledger, act(O.CREATE, free(config + b".lock")))
        made = born(ledger, file(config + b".lock", 31))
        assert covers(ledger, act(O.RENAME, made, free(config))) is None

    @pytest.mark.requirement("L3")
    def test_a_name_listed_for_a_linked_file_is_bound_to_that_file(self) -> None:
        ledger = Ledger()
        linked = file(A, names=[self.ENVRC])
        grant(ledger, act(O.WRITE, linked))
        assert covers(ledger, act(O.WRITE, file(self.ENVRC, 99))) is None
        assert covers(ledger, act(O.WRITE, file(self.ENVRC, 10))) == FILE_GRANT

    def test_a_decision_that_lists_nothing_covers_nothing_that_does(self) -> None:
        ledger = Ledger()
        request = act(O.WRITE, file(self.ENVRC))
        grant(ledger, request)
        assert covers(ledger, request) == FILE_GRANT
        assert ledger.covers(request, (self.ENVRC, FOLDER + b"/.npmrc")) is None


class TestTurns:
    def granted(self) -> Ledger:
        ledger = with_folder()
        grant(ledger, act(O.WRITE, file(A)))
        grant(ledger, act(O.CREATE, free(FOLDER + b"/.git/config.lock")))
        born(ledger, file(FOLDER + b"/x", 12))
        return ledger

    def nothing_is_covered(self, ledger: Ledger) -> bool:
        requests = [
            act(O.WRITE, file(A)),
            act(O.CREATE, free(FOLDER + b"/y")),
            act(O.WRITE, file(FOLDER + b"/.git/config", 32)),
            act(O.UNLINK, file(FOLDER + b"/x", 12)),
        ]
        return not ledger.births and all(covers(ledger, request) is None for request in requests)

    def test_a_new_turn_ends_everything(self) -> None:
        ledger = self.granted()
        ledger.note_declined(act(O.WRITE, file(B)))
        for number in range(8):
            ledger.note_refusal(f"q{number}")
        epoch = ledger.epoch
        ledger.new_turn(5.0)
        assert self.nothing_is_covered(ledger)
        assert not ledger.was_declined(act(O.WRITE, file(B)))
        assert not ledger.breaker_is_open
        assert (ledger.turn, ledger.refusals) == (2, 0)
        assert ledger.epoch == epoch + 1
        assert (ledger.started, ledger.last_change) == (5.0, 5.0)

    def test_the_end_of_grants_leaves_declines_and_breaker(self) -> None:
        ledger = self.granted()
        ledger.note_declined(act(O.WRITE, file(B)))
        for number in range(8):
            ledger.note_refusal(f"q{number}")
        epoch = ledger.epoch
        ledger.end_grants(5.0)
        assert self.nothing_is_covered(ledger)
        assert ledger.was_declined(act(O.WRITE, file(B)))
        assert ledger.breaker_is_open
        assert (ledger.turn, ledger.refusals) == (1, 8)
        assert ledger.epoch > epoch

    @pytest.mark.parametrize(
        ("now", "ends"),
        [
            pytest.param(900.9, False, id="before the idle end"),
            pytest.param(901.0, True, id="at the idle end"),
            pytest.param(5000.0, True, id="long after"),
        ],
    )
    def test_grants_end_when_nothing_changed_for_long(self, now: float, *, ends: bool) -> None:
        ledger = self.granted()  # at second 1
        epoch = ledger.epoch
        assert ledger.expire(now) is ends
        assert self.nothing_is_covered(ledger) is ends
        assert (ledger.epoch > epoch) is ends
        assert ledger.expire(now) is False

    @pytest.mark.parametrize(
        "change",
        [
            pytest.param(lambda ledger, now: ledger.note_change(1, 9, 9, 9, now), id="a change"),
            pytest.param(lambda ledger, now: ledger.note_birth(file(B, 50), now), id="a birth"),
            pytest.param(
                lambda ledger, now: ledger.grant(act(O.WRITE, file(B)), Offer(Scope.ONCE), (), now),
                id="an answer",
            ),
        ],
    )
    def test_every_change_puts_the_idle_end_off_but_not_the_limit(
        self, change: Callable[[Ledger, float], None]
    ) -> None:
        ledger = self.granted()
        for now in range(500, 3500, 500):
            change(ledger, float(now))
            assert not ledger.expire(now + 499.0)
        assert not self.nothing_is_covered(ledger)
        change(ledger, 3600.5)
        assert not ledger.expire(3600.9)
        assert ledger.expire(3601.0)
        assert self.nothing_is_covered(ledger)

    def test_the_time_of_a_new_ledger_starts_with_its_first_grant(self) -> None:
        ledger = Ledger()
        assert (ledger.turn, ledger.epoch, ledger.started, ledger.last_change) == (1, 1, 0.0, 0.0)
        ledger.grant(act(O.WRITE, file(A)), Offer(Scope.FILE, A), (), 5000.0)
        assert not ledger.expire(5000.0 + 899.0)
        assert ledger.started == 5000.0

    @pytest.mark.parametrize("scope", [Scope.FILE, Scope.FOLDER, None])
    def test_whatever_is_granted_or_born_ends(self, scope: Scope | None) -> None:
        ledger = Ledger()
        if scope is None:
            born(ledger, file(A))
        else:
            grant(ledger, act(O.CREATE, free(FOLDER + b"/x")), scope, FOLDER)
        assert ledger.expire(901.0)
        assert ledger.epoch == 2
        assert [ledger.files, ledger.folders, ledger.births] == [{}, [], {}]

    def test_an_empty_ledger_only_starts_its_time_anew(self) -> None:
        ledger = Ledger(started=10.0, last_change=10.0)
        assert not ledger.expire(4000.0)
        assert ledger.epoch == 1
        grant_at = 4100.0
        ledger.grant(act(O.WRITE, file(A)), Offer(Scope.FILE, A), (), grant_at)
        assert not ledger.expire(4000.0 + 899.0)
        assert ledger.expire(grant_at + 900.0)

    def test_limits_can_be_other_ones(self) -> None:
        ledger = Ledger(Limits(idle_s=10.0, turn_max_s=20.0, refusals=1))
        grant(ledger, act(O.WRITE, file(A)))
        assert not ledger.expire(10.9)
        assert ledger.expire(11.0)
        ledger.note_refusal("q")
        assert ledger.breaker_is_open


class TestDeclines:
    def test_the_same_question_stays_declined(self) -> None:
        ledger = Ledger()
        ledger.note_declined(act(O.WRITE, file(A)))
        assert ledger.was_declined(act(O.WRITE, file(A)))
        assert ledger.was_declined(act(O.TRUNCATE, file(A, 11)))
        assert not ledger.was_declined(act(O.WRITE, file(B)))
        assert not ledger.was_declined(act(O.CHMOD, file(A)))
        assert not ledger.was_declined(act(O.UNLINK, file(A)))
        assert not ledger.was_declined(act(O.CREATE, free(A)))

    def test_both_paths_make_the_question(self) -> None:
        ledger = Ledger()
        ledger.note_declined(act(O.RENAME, file(A), free(B)))
        assert ledger.was_declined(act(O.RENAME, file(A), free(B)))
        assert ledger.was_declined(act(O.REPLACE, file(A), file(B, 11)))
        assert not ledger.was_declined(act(O.RENAME, file(B), free(A)))
        assert not ledger.was_declined(act(O.RENAME, file(A), free(B + b"2")))

    def test_a_save_is_the_question_about_its_destination(self) -> None:
        ledger = Ledger()
        save = act(O.REPLACE, born(ledger, file(DOWNLOADS + b"/.tmp1", 40)), file(A))
        ledger.note_declined(save)
        assert ledger.was_declined(act(O.WRITE, file(A)))
        again = act(O.REPLACE, born(ledger, file(DOWNLOADS + b"/.tmp2", 41)), file(A))
        assert ledger.was_declined(again)

    def test_a_move_onto_a_file_is_not_the_question_about_writing_to_it(self) -> None:
        ledger = Ledger()
        ledger.note_declined(act(O.WRITE, file(A)))
        assert not ledger.was_declined(act(O.REPLACE, file(B, 11), file(A)))
        ledger.note_declined(act(O.REPLACE, file(A), file(B, 11)))
        assert not ledger.was_declined(act(O.WRITE, file(B, 11)))


class TestBreaker:
    def test_it_opens_at_eight_refused_questions(self) -> None:
        ledger = Ledger()
        for number in range(7):
            ledger.note_refusal(f"q{number}")
            assert not ledger.breaker_is_open
        ledger.note_refusal("q7")
        assert ledger.breaker_is_open
        assert ledger.refusals == 8

    def test_a_question_counts_once_however_many_calls_waited_for_it(self) -> None:
        ledger = Ledger()
        for _ in range(20):
            ledger.note_refusal("k7f2")
        assert ledger.refusals == 1

    def test_resuming_closes_it_and_leaves_the_declines(self) -> None:
        ledger = Ledger()
        ledger.note_declined(act(O.WRITE, file(A)))
        for number in range(8):
            ledger.note_refusal(f"q{number}")
        ledger.resume()
        assert not ledger.breaker_is_open
        assert ledger.was_declined(act(O.WRITE, file(A)))
