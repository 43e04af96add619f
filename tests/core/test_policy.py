"""What each operation meets in each place: the table of the contract, row by row."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lamfuse.core.operations import CHANGES, TABLE, Operation, Verb
from lamfuse.core.policy import Decision, Policy, Verdict
from lamfuse.core.refusals import Reason
from lamfuse.core.roots import Roots
from lamfuse.core.rules import Denylist
from lamfuse.core.runs_later import RunsLater
from lamfuse.core.standing import StandingRules
from lamfuse.core.target import FileKind, Request, Subject
from tests.core.acts import DOWNLOADS, HOME, act, directory, file, free, make_policy, rule

POLICY = make_policy()
OK = Verdict.ALLOW
ASK = Verdict.ASK

O = Operation  # noqa: E741 - the table is read by its columns
_TREE_CHANGES = (O.UNLINK, O.RMDIR)
_ATTRIBUTES = (O.CHMOD, O.CHOWN, O.UTIMENS, O.SET_XATTR, O.REMOVE_XATTR)
_CONTENT = (O.WRITE, O.TRUNCATE)
_MAKE = (O.CREATE, O.SYMLINK, O.MKNOD)
_READ = tuple(operation for operation in Operation if operation not in CHANGES)

#: place -> path, and what reading, content, attributes, making, mkdir and removing meet there.
PLACES: dict[str, tuple[bytes, tuple[Verdict | Reason, ...]]] = {
    "read-only": (
        HOME + b"/notes.md",
        (OK, *(Reason.READ_ONLY,) * 5),
    ),
    "deep read-only": (HOME + b"/src/a/b.py", (OK, *(Reason.READ_ONLY,) * 5)),
    "home itself": (HOME, (OK, *(Reason.READ_ONLY,) * 5)),
    "prefix sibling of a write root": (DOWNLOADS + b"2/x", (OK, *(Reason.READ_ONLY,) * 5)),
    "write root": (DOWNLOADS + b"/report.md", (OK, ASK, ASK, ASK, ASK, ASK)),
    "deep in a write root": (DOWNLOADS + b"/a/b/c.md", (OK, ASK, ASK, ASK, ASK, ASK)),
    "the root itself": (
        DOWNLOADS,
        (OK, ASK, ASK, Reason.ROOT_ITSELF, ASK, Reason.ROOT_ITSELF),
    ),
    "the chain of a root": (
        HOME + b"/Documents",
        (OK, Reason.READ_ONLY, Reason.READ_ONLY, Reason.READ_ONLY, ASK, Reason.READ_ONLY),
    ),
    "hidden place": (
        HOME + b"/.ssh/config",
        (Reason.HIDDEN, Reason.HIDDEN_SINCE, Reason.HIDDEN_SINCE, Reason.DENIED_NAME,
         Reason.DENIED_NAME, Reason.HIDDEN_SINCE),
    ),
    "hidden name in a write root": (
        DOWNLOADS + b"/.env",
        (Reason.HIDDEN, Reason.HIDDEN_SINCE, Reason.HIDDEN_SINCE, Reason.DENIED_NAME,
         Reason.DENIED_NAME, Reason.HIDDEN_SINCE),
    ),
    "below a hidden name in a write root": (
        DOWNLOADS + b"/id_rsa/x",
        (Reason.HIDDEN, Reason.HIDDEN_SINCE, Reason.HIDDEN_SINCE, Reason.DENIED_NAME,
         Reason.DENIED_NAME, Reason.HIDDEN_SINCE),
    ),
    "hidden by the person": (
        DOWNLOADS + b"/safe.kdbx",
        (Reason.HIDDEN, Reason.HIDDEN_SINCE, Reason.HIDDEN_SINCE, Reason.DENIED_NAME,
         Reason.DENIED_NAME, Reason.HIDDEN_SINCE),
    ),
    "lamfuse's own": (
        HOME + b"/.config/lamfuse/config.toml",
        (Reason.HIDDEN, Reason.HIDDEN_SINCE, Reason.HIDDEN_SINCE, Reason.DENIED_NAME,
         Reason.DENIED_NAME, Reason.HIDDEN_SINCE),
    ),
    "the mountpoint": (
        HOME + b"/view",
        (Reason.HIDDEN, Reason.HIDDEN_SINCE, Reason.HIDDEN_SINCE, Reason.DENIED_NAME,
         Reason.DENIED_NAME, Reason.HIDDEN_SINCE),
    ),
    "outside": (b"/etc/passwd", (Reason.HIDDEN, *(Reason.READ_ONLY,) * 5)),
    "another home with the same beginning": (
        b"/home/user/x",
        (Reason.HIDDEN, *(Reason.READ_ONLY,) * 5),
    ),
    "extra read root": (b"/srv/docs/manual.md", (OK, *(Reason.READ_ONLY,) * 5)),
    "extra write root": (b"/srv/out/a.md", (OK, ASK, ASK, ASK, ASK, ASK)),
    "extra write root itself": (
        b"/srv/out",
        (OK, ASK, ASK, Reason.ROOT_ITSELF, ASK, Reason.ROOT_ITSELF),
    ),
    "the chain of an extra root": (b"/srv", (Reason.HIDDEN, *(Reason.READ_ONLY,) * 5)),
}  # fmt: skip
_COLUMNS = (_READ, _CONTENT, _ATTRIBUTES, _MAKE, (O.MKDIR,), _TREE_CHANGES)


def _subject(operation: Operation, path: bytes) -> Subject:
    if TABLE[operation].verb is Verb.CREATE:
        return free(path)
    return directory(path) if operation in {O.RMDIR, O.LIST} else file(path)


def _cases() -> Iterator[object]:
    for place, (path, expected) in PLACES.items():
        for operations, outcome in zip(_COLUMNS, expected, strict=True):
            for operation in operations:
                yield pytest.param(operation, path, outcome, id=f"{operation} in: {place}")


def outcome_of(decision: Decision) -> Verdict | Reason:
    """Return the reason of a refusal, and the verdict of everything else."""
    assert (decision.verdict is Verdict.REFUSE) is (decision.reason is not None)
    assert decision.rule
    return decision.reason or decision.verdict


@pytest.mark.requirement("H3", "H4", "H5", "H11", "L1")
@pytest.mark.parametrize(("operation", "path", "expected"), [*_cases()])
def test_one_path_in_each_place(
    operation: Operation, path: bytes, expected: Verdict | Reason
) -> None:
    decision = POLICY.decide(act(operation, _subject(operation, path)))
    assert outcome_of(decision) == expected
    assert decision.runs_later == ()
    removes = expected is ASK and operation in _TREE_CHANGES
    assert decision.always is removes


def test_the_table_has_every_operation_with_one_path() -> None:
    assert {operation for column in _COLUMNS for operation in column} == {
        operation for operation in Operation if not TABLE[operation].two_paths
    }


A = DOWNLOADS + b"/a"
B = DOWNLOADS + b"/b"
READ_ONLY = HOME + b"/notes.md"
HIDDEN = DOWNLOADS + b"/.env"


@pytest.mark.requirement("H3", "H4", "H10")
@pytest.mark.parametrize(
    ("operation", "old", "new", "expected"),
    [
        pytest.param(O.LINK, A, B, ASK, id="link in a write root"),
        pytest.param(O.LINK, A, b"/srv/out/b", ASK, id="link between write roots"),
        pytest.param(O.LINK, READ_ONLY, B, Reason.OTHER_ROOT, id="link of a read-only file"),
        pytest.param(O.LINK, A, READ_ONLY, Reason.OTHER_ROOT, id="link into a read-only place"),
        pytest.param(O.LINK, b"/etc/shadow", B, Reason.OTHER_ROOT, id="link of a file outside"),
        pytest.param(O.LINK, A, HIDDEN, Reason.DENIED_NAME, id="link to a hidden name"),
        pytest.param(
            O.LINK, A, HOME + b"/.ssh/x", Reason.DENIED_NAME, id="link to a hidden name elsewhere"
        ),
        pytest.param(O.LINK, HIDDEN, B, Reason.HIDDEN_SINCE, id="link of a hidden file"),
        pytest.param(
            O.LINK, A, HOME + b"/Documents/Lam Agent", Reason.ROOT_ITSELF, id="link as a root"
        ),
        pytest.param(O.LINK, DOWNLOADS, B, Reason.ROOT_ITSELF, id="link of a root"),
        pytest.param(O.RENAME, A, B, ASK, id="rename in a write root"),
        pytest.param(O.RENAME, READ_ONLY, B, Reason.READ_ONLY, id="rename from read-only"),
        pytest.param(O.RENAME, A, READ_ONLY, Reason.READ_ONLY, id="rename to read-only"),
        pytest.param(O.RENAME, A, b"/etc/x", Reason.READ_ONLY, id="rename to outside"),
        pytest.param(O.RENAME, A, HIDDEN, Reason.DENIED_NAME, id="rename to a hidden name"),
        pytest.param(
            O.RENAME, READ_ONLY, HIDDEN, Reason.DENIED_NAME, id="rename read-only to a hidden name"
        ),
        pytest.param(
            O.RENAME, A, HOME + b"/.env", Reason.DENIED_NAME, id="rename to hidden in read-only"
        ),
        pytest.param(O.RENAME, HIDDEN, B, Reason.HIDDEN_SINCE, id="rename of a hidden file"),
        pytest.param(O.RENAME, DOWNLOADS, B, Reason.ROOT_ITSELF, id="rename of a root"),
        pytest.param(
            O.RENAME, A, HOME + b"/Documents/Lam Agent", Reason.ROOT_ITSELF, id="rename to a root"
        ),
        pytest.param(O.REPLACE, A, B, ASK, id="replace in a write root"),
        pytest.param(O.REPLACE, A, READ_ONLY, Reason.READ_ONLY, id="replace a read-only file"),
        pytest.param(O.REPLACE, A, HIDDEN, Reason.DENIED_NAME, id="replace a hidden file"),
        pytest.param(O.REPLACE, A, DOWNLOADS, Reason.ROOT_ITSELF, id="replace a root"),
        pytest.param(O.EXCHANGE, A, B, ASK, id="exchange in a write root"),
        pytest.param(O.EXCHANGE, A, READ_ONLY, Reason.READ_ONLY, id="exchange with read-only"),
        pytest.param(O.EXCHANGE, READ_ONLY, A, Reason.READ_ONLY, id="exchange from read-only"),
        pytest.param(O.EXCHANGE, A, HIDDEN, Reason.DENIED_NAME, id="exchange with a hidden file"),
        pytest.param(O.EXCHANGE, DOWNLOADS, B, Reason.ROOT_ITSELF, id="exchange of a root"),
        pytest.param(O.EXCHANGE, A, b"/srv/out", Reason.ROOT_ITSELF, id="exchange with a root"),
    ],
)
def test_two_paths(
    operation: Operation, old: bytes, new: bytes, expected: Verdict | Reason
) -> None:
    replaces = operation in {O.REPLACE, O.EXCHANGE}
    decision = POLICY.decide(
        act(operation, file(old, 10), file(new, 11) if replaces else free(new))
    )
    assert outcome_of(decision) == expected
    assert decision.always is (expected is ASK and operation is not O.LINK)


@pytest.mark.requirement("H5")
@pytest.mark.parametrize("operation", [O.CREATE, O.MKDIR, O.SYMLINK, O.LINK, O.RENAME, O.REPLACE])
@pytest.mark.parametrize(
    "there",
    [
        pytest.param(free(HIDDEN), id="nothing there"),
        pytest.param(file(HIDDEN), id="a file there"),
        pytest.param(directory(HIDDEN), id="a folder there"),
    ],
)
def test_a_hidden_name_is_refused_the_same_whatever_stands_there(
    operation: Operation, there: Subject
) -> None:
    subjects = (file(A), there) if TABLE[operation].two_paths else (there,)
    decision = POLICY.decide(act(operation, *subjects))
    nothing = POLICY.decide(act(operation, *subjects[:-1], free(HIDDEN)))
    assert decision == nothing
    assert decision.reason is Reason.DENIED_NAME


def test_a_folder_pattern_refuses_a_file_of_that_name_too() -> None:
    path = DOWNLOADS + b"/secrets"
    for made in (O.CREATE, O.MKDIR, O.SYMLINK):
        assert POLICY.decide(act(made, free(path))).reason is Reason.DENIED_NAME
    assert POLICY.decide(act(O.WRITE, file(path))).verdict is ASK
    assert POLICY.decide(act(O.RENAME, file(A), free(path))).reason is Reason.DENIED_NAME


@pytest.mark.requirement("H22")
class TestRoots:
    CHAIN = HOME + b"/Documents"
    ROOT = HOME + b"/Documents/Lam Agent"

    def test_a_missing_chain_may_be_made_as_folders_only(self) -> None:
        assert POLICY.decide(act(O.MKDIR, free(self.CHAIN))).verdict is ASK
        assert POLICY.decide(act(O.MKDIR, free(self.ROOT))).verdict is ASK
        for made in (O.CREATE, O.SYMLINK, O.MKNOD):
            assert POLICY.decide(act(made, free(self.CHAIN))).reason is Reason.READ_ONLY
            assert POLICY.decide(act(made, free(self.ROOT))).reason is Reason.ROOT_ITSELF

    def test_a_chain_that_stands_is_read_only(self) -> None:
        assert POLICY.decide(act(O.MKDIR, directory(self.CHAIN))).reason is Reason.READ_ONLY
        assert POLICY.decide(act(O.RMDIR, directory(self.CHAIN))).reason is Reason.READ_ONLY

    def test_the_chain_outside_home_is_not_made(self) -> None:
        policy = make_policy(write=[b"/srv/a/b"])
        assert policy.decide(act(O.MKDIR, free(b"/srv/a"))).reason is Reason.READ_ONLY

    def test_a_directory_that_holds_another_root_stays_where_it_is(self) -> None:
        outer = HOME + b"/w"
        policy = make_policy(write=[outer, outer + b"/a/b"])
        for path in (outer, outer + b"/a", outer + b"/a/b"):
            moved = policy.decide(act(O.RENAME, directory(path), free(outer + b"/z")))
            assert moved.reason is Reason.ROOT_ITSELF
            assert policy.decide(act(O.RMDIR, directory(path))).reason is Reason.ROOT_ITSELF
        assert policy.decide(act(O.RMDIR, directory(outer + b"/a/c"))).verdict is ASK
        assert policy.decide(act(O.CREATE, free(outer + b"/a"))).reason is Reason.ROOT_ITSELF

    def test_own_files_stay_closed_when_home_is_a_write_root(self) -> None:
        policy = make_policy(write=[HOME])
        own = HOME + b"/.config/lamfuse/config.toml"
        assert policy.decide(act(O.WRITE, file(own))).reason is Reason.HIDDEN_SINCE
        assert policy.decide(act(O.CREATE, free(own))).reason is Reason.DENIED_NAME
        assert policy.decide(act(O.RENAME, file(own), free(HOME + b"/x"))).reason is not None
        assert policy.decide(act(O.WRITE, file(HOME + b"/notes.md"))).verdict is ASK
        assert policy.decide(act(O.RMDIR, directory(HOME))).reason is Reason.ROOT_ITSELF


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        pytest.param(act(O.MKNOD, free(A), makes=FileKind.DEVICE), Reason.DEVICE_NODE, id="device"),
        pytest.param(
            act(O.MKNOD, free(READ_ONLY), makes=FileKind.DEVICE),
            Reason.READ_ONLY,
            id="device in a read-only place",
        ),
        pytest.param(
            act(O.SET_XATTR, file(A), detail="security.selinux"), Reason.PROTECTED_XATTR, id="set"
        ),
        pytest.param(
            act(O.REMOVE_XATTR, file(A), detail="trusted.overlay"),
            Reason.PROTECTED_XATTR,
            id="remove",
        ),
        pytest.param(
            act(O.SET_XATTR, file(READ_ONLY), detail="security.selinux"),
            Reason.READ_ONLY,
            id="protected in a read-only place",
        ),
        pytest.param(act(O.SET_XATTR, file(A), detail="user.security.x"), ASK, id="user"),
        pytest.param(act(O.CHMOD, file(A), detail="security.x"), ASK, id="no xattr"),
    ],
)
def test_what_is_never_made(request_: Request, expected: Verdict | Reason) -> None:
    assert outcome_of(POLICY.decide(request_)) == expected


@pytest.mark.requirement("H10")
@pytest.mark.parametrize(
    ("destination", "expected"),
    [
        pytest.param(B, Reason.EXISTS, id="in a write root"),
        pytest.param(READ_ONLY, Reason.READ_ONLY, id="read-only"),
        pytest.param(HIDDEN, Reason.DENIED_NAME, id="hidden: no oracle"),
    ],
)
def test_rename_over_can_be_refused(destination: bytes, expected: Reason) -> None:
    policy = make_policy(rename_over="refuse")
    assert policy.decide(act(O.REPLACE, file(A), file(destination, 11))).reason is expected
    assert policy.decide(act(O.RENAME, file(A), free(B))).verdict is ASK
    assert policy.decide(act(O.EXCHANGE, file(A), file(B, 11))).verdict is ASK


class TestHardLinks:
    """A file with several names is decided as the strictest of them."""

    ELSEWHERE = HOME + b"/notes.md"

    @pytest.mark.parametrize("operation", [*_CONTENT, *_ATTRIBUTES])
    def test_a_change_is_refused_where_another_name_is_read_only(
        self, operation: Operation
    ) -> None:
        linked = file(A, names=[self.ELSEWHERE])
        assert POLICY.decide(act(operation, linked)).reason is Reason.READ_ONLY
        assert POLICY.decide(act(operation, file(A, names=[B]))).verdict is ASK

    def test_a_new_name_is_refused_where_another_name_is_read_only(self) -> None:
        linked = file(A, names=[self.ELSEWHERE])
        assert POLICY.decide(act(O.LINK, linked, free(B))).reason is Reason.OTHER_ROOT

    @pytest.mark.requirement("H5")
    @pytest.mark.parametrize("operation", sorted(CHANGES - {*_MAKE, O.MKDIR}))
    def test_a_hidden_name_hides_all_names(self, operation: Operation) -> None:
        linked = file(A, names=[HOME + b"/.ssh/id"])
        second = file(B, 11) if operation in {O.REPLACE, O.EXCHANGE} else free(B)
        subjects = (linked, second)[: 1 + TABLE[operation].two_paths]
        assert POLICY.decide(act(operation, *subjects)).reason is Reason.HIDDEN_SINCE

    @pytest.mark.requirement("H5")
    @pytest.mark.parametrize("operation", _READ)
    def test_a_hidden_name_hides_a_file_from_reading(self, operation: Operation) -> None:
        linked = file(HOME + b"/copy", names=[HOME + b"/.ssh/id"])
        assert POLICY.decide(act(operation, linked)).reason is Reason.HIDDEN
        visible = file(HOME + b"/copy", names=[HOME + b"/other"])
        assert POLICY.decide(act(operation, visible)).verdict is OK

    def test_a_name_outside_the_roots_hides_nothing_but_cannot_be_read(self) -> None:
        linked = file(HOME + b"/copy", names=[b"/etc/passwd"])
        assert POLICY.decide(act(O.OPEN, linked)).reason is Reason.HIDDEN

    @pytest.mark.requirement("H10")
    def test_removing_a_name_leaves_the_others_alone_and_is_asked(self) -> None:
        linked = file(A, names=[self.ELSEWHERE])
        assert POLICY.decide(act(O.UNLINK, linked)).verdict is ASK
        assert POLICY.decide(act(O.RENAME, linked, free(B))).verdict is ASK


@pytest.mark.parametrize("operation", sorted(Operation))
def test_what_has_no_name_any_more_is_decided_before_its_path(operation: Operation) -> None:
    """Its path is that of another object, or has " (deleted)" at its end."""
    gone = Subject(A + b" (deleted)", FileKind.FILE, links=0, unlinked=True)
    hidden = Subject(HIDDEN, FileKind.FILE, links=0, unlinked=True)
    for subject in (gone, hidden):
        subjects = (subject, free(B)) if TABLE[operation].two_paths else (subject,)
        decision = POLICY.decide(act(operation, *subjects))
        if operation in CHANGES or operation is O.OPEN:
            assert decision.reason is Reason.STALE
        else:
            assert decision.verdict is OK


class TestStandingRules:
    def test_it_answers_for_its_operations_and_paths_only(self) -> None:
        policy = make_policy(standing=[rule("~/Downloads/build/**", verbs=[Verb.WRITE])])
        inside, outside = DOWNLOADS + b"/build/x", DOWNLOADS + b"/x"
        decision = policy.decide(act(O.WRITE, file(inside)))
        assert decision.verdict is OK
        assert decision.standing is not None
        assert decision.rule == "your rule ~/Downloads/build/**"
        assert policy.decide(act(O.TRUNCATE, file(inside))).verdict is OK
        assert policy.decide(act(O.CHMOD, file(inside))).verdict is ASK
        assert policy.decide(act(O.WRITE, file(outside))).verdict is ASK
        assert policy.decide(act(O.UNLINK, file(inside))).verdict is ASK

    @pytest.mark.requirement("H10")
    def test_removing_needs_a_rule_that_names_it(self) -> None:
        names = [Verb.CREATE, Verb.WRITE, Verb.ATTRIBUTES]
        policy = make_policy(standing=[rule("~/Downloads/**", verbs=names)])
        assert policy.decide(act(O.UNLINK, file(A))).verdict is ASK
        assert policy.decide(act(O.RENAME, file(A), free(B))).verdict is ASK
        policy = make_policy(standing=[rule("~/Downloads/**", verbs=[Verb.DELETE, Verb.MOVE])])
        assert policy.decide(act(O.UNLINK, file(A))).verdict is OK
        assert policy.decide(act(O.RENAME, file(A), free(B))).verdict is OK

    def test_every_path_must_be_answered_for(self) -> None:
        policy = make_policy(standing=[rule("~/Downloads/in/**")])
        inside = DOWNLOADS + b"/in/x"
        assert policy.decide(act(O.RENAME, file(inside), free(B))).verdict is ASK
        assert policy.decide(act(O.RENAME, file(A), free(inside))).verdict is ASK
        assert policy.decide(act(O.LINK, file(A), free(inside))).verdict is ASK
        assert policy.decide(act(O.WRITE, file(inside, names=[B]))).verdict is ASK
        other = free(DOWNLOADS + b"/in/y")
        assert policy.decide(act(O.LINK, file(inside), other)).verdict is OK
        assert policy.decide(act(O.LINK, file(inside, names=[B]), other)).verdict is ASK

    def test_a_rule_opens_nothing_that_is_refused(self) -> None:
        policy = make_policy(standing=[rule("~/**"), rule("/etc/**")])
        assert policy.decide(act(O.WRITE, file(READ_ONLY))).reason is Reason.READ_ONLY
        assert policy.decide(act(O.CREATE, free(HIDDEN))).reason is Reason.DENIED_NAME
        assert policy.decide(act(O.WRITE, file(b"/etc/passwd"))).reason is Reason.READ_ONLY
        assert policy.decide(act(O.OPEN, file(HOME + b"/.ssh/id"))).reason is Reason.HIDDEN

    def test_a_decline_wins_over_an_allow_on_any_path(self) -> None:
        policy = make_policy(
            standing=[rule("~/Downloads/**"), rule("~/Downloads/keep/**", allow=False)]
        )
        kept = DOWNLOADS + b"/keep/x"
        for request in (
            act(O.WRITE, file(kept)),
            act(O.RENAME, file(A), free(kept)),
            act(O.RENAME, file(kept), free(B)),
            act(O.WRITE, file(A, names=[kept])),
        ):
            decision = policy.decide(request)
            assert decision.reason is Reason.DECLINED
            assert decision.rule == "your rule ~/Downloads/keep/**"
            assert decision.standing is not None
        assert policy.decide(act(O.WRITE, file(A))).verdict is OK

    def test_a_file_with_unknown_names_is_never_changed_unasked(self) -> None:
        policy = make_policy(standing=[rule("~/Downloads/**")])
        for operation in (*_CONTENT, *_ATTRIBUTES):
            assert policy.decide(act(operation, file(A, links=2))).verdict is ASK
            assert policy.decide(act(operation, file(A, links=3, names=[B]))).verdict is ASK
            assert policy.decide(act(operation, file(A, names=[B]))).verdict is OK
        assert policy.decide(act(O.CHMOD, directory(A))).verdict is OK
        assert policy.decide(act(O.UNLINK, file(A, links=2))).verdict is OK

    @pytest.mark.requirement("H10")
    def test_a_file_that_runs_later_needs_a_rule_that_names_it(self) -> None:
        envrc = DOWNLOADS + b"/.envrc"
        policy = make_policy(standing=[rule("~/Downloads/**")])
        assert policy.decide(act(O.WRITE, file(envrc))).verdict is ASK
        policy = make_policy(standing=[rule("~/Downloads/**"), rule("~/Downloads/.envrc")])
        assert policy.decide(act(O.WRITE, file(envrc))).verdict is OK
        assert policy.decide(act(O.RENAME, file(A), free(envrc))).verdict is OK
        assert policy.decide(act(O.WRITE, file(A, names=[envrc]))).verdict is OK

    def test_of_several_rules_the_one_for_the_last_path_is_told(self) -> None:
        names = [DOWNLOADS + b"/%c" % letter for letter in b"bcdefgh"]
        standing = [rule(f"~/Downloads/{name.decode()[-1]}") for name in [A, *names]]
        policy = make_policy(standing=standing)
        decision = policy.decide(act(O.WRITE, file(A, names=names)))
        assert decision.rule == "your rule ~/Downloads/h"

    def test_the_rule_that_names_the_file_is_told(self) -> None:
        policy = make_policy(standing=[rule("~/Downloads/**"), rule("~/Downloads/a")])
        decision = policy.decide(act(O.WRITE, file(A)))
        assert decision.rule == "your rule ~/Downloads/a"


@pytest.mark.requirement("L8")
class TestExplain:
    def told(self, policy: Policy, path: bytes, kind: FileKind | None) -> dict[Operation, Verdict]:
        return {line.operation: line.verdict for line in policy.explain(path, kind)}

    def test_a_file_in_a_write_root(self) -> None:
        told = self.told(POLICY, A, FileKind.FILE)
        assert told[O.OPEN] is OK
        assert told[O.WRITE] is ASK
        assert told[O.UNLINK] is ASK
        assert not {O.CREATE, O.RMDIR, O.LIST, O.READLINK, O.RENAME, O.STATFS} & told.keys()

    def test_a_folder_and_a_link(self) -> None:
        folder = self.told(POLICY, A, FileKind.DIRECTORY)
        assert folder[O.LIST] is OK
        assert folder[O.RMDIR] is ASK
        assert not {O.UNLINK, O.WRITE, O.TRUNCATE} & folder.keys()
        assert self.told(POLICY, A, FileKind.SYMLINK)[O.READLINK] is OK

    def test_a_free_name_is_about_making_only(self) -> None:
        assert set(self.told(POLICY, A, None)) == {O.CREATE, O.MKDIR, O.SYMLINK, O.MKNOD}

    def test_the_rule_is_named(self) -> None:
        (line,) = [
            line
            for line in POLICY.explain(HOME + b"/.ssh/id", FileKind.FILE)
            if line.operation is O.OPEN
        ]
        assert line.reason is Reason.HIDDEN
        assert "/.ssh" in line.rule


def test_what_is_hidden_and_readable() -> None:
    hiding = POLICY.hides(HOME + b"/.ssh/x", is_dir=False)
    assert hiding is not None
    assert hiding.text == "/.ssh"
    assert POLICY.hides(HOME + b"/x", is_dir=None) is None
    assert POLICY.is_readable(HOME + b"/x", is_dir=False)
    assert POLICY.is_readable(b"/srv/docs/x", is_dir=False)
    assert not POLICY.is_readable(HOME + b"/.ssh", is_dir=True)
    assert not POLICY.is_readable(b"/etc/passwd", is_dir=False)
    assert not POLICY.is_readable(b"/srv", is_dir=True)
    assert not POLICY.is_readable(b"/srv/docs/.env", is_dir=False)


@pytest.mark.requirement("H6", "H31")
@pytest.mark.parametrize(
    ("request_", "told"),
    [
        pytest.param(act(O.OPEN, file(A)), "readable", id="reading"),
        pytest.param(act(O.OPEN, file(HIDDEN)), "denylist: .env", id="reading what is hidden"),
        pytest.param(act(O.OPEN, file(b"/etc/x")), "outside the roots", id="reading outside"),
        pytest.param(act(O.WRITE, file(A)), "write in a write root", id="asked"),
        pytest.param(act(O.UNLINK, file(A)), "delete in a write root", id="asked, delete"),
        pytest.param(
            act(O.WRITE, file(DOWNLOADS + b"/.envrc")), "runs on your machine later", id="class"
        ),
        pytest.param(act(O.WRITE, file(READ_ONLY)), "not in a write root", id="read-only"),
        pytest.param(act(O.LINK, file(A), free(READ_ONLY)), "not in a write root", id="link"),
        pytest.param(act(O.CREATE, free(HIDDEN)), "denylist: .env", id="hidden name"),
        pytest.param(
            act(O.WRITE, file(A, names=[HIDDEN])), "denylist: .env", id="another name is hidden"
        ),
        pytest.param(act(O.RMDIR, directory(DOWNLOADS)), "a root itself", id="root"),
        pytest.param(act(O.MKNOD, free(A), makes=FileKind.DEVICE), "device nodes", id="device"),
        pytest.param(
            act(O.SET_XATTR, file(A), detail="security.x"), "protected attributes", id="xattr"
        ),
        pytest.param(
            act(O.WRITE, Subject(A, FileKind.FILE, unlinked=True)),
            "it has no name any more",
            id="unlinked",
        ),
        pytest.param(
            act(O.STAT, Subject(A, FileKind.FILE, unlinked=True)), "held open", id="held open"
        ),
    ],
)
def test_the_rule_is_told(request_: Request, told: str) -> None:
    assert POLICY.decide(request_).rule == told


def test_the_rule_that_refuses_to_replace_is_told() -> None:
    decision = make_policy(rename_over="refuse").decide(act(O.REPLACE, file(A), file(B, 11)))
    assert decision.rule == "rename_over = refuse"


def test_what_a_policy_does_by_itself() -> None:
    policy = Policy(HOME, Denylist(HOME), Roots(HOME), RunsLater(HOME), StandingRules())
    assert (policy.link_ok, policy.rename_over, policy.home) == ((), "ask", HOME)


def test_a_verdict_is_stricter_the_higher_it_is() -> None:
    assert [int(verdict) for verdict in (OK, ASK, Verdict.REFUSE)] == [0, 1, 2]
