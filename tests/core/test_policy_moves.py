"""Moving a directory: what is below it is judged at its old and at its new place."""

from __future__ import annotations

import pytest

from lamfuse.core.operations import Operation
from lamfuse.core.policy import Verdict
from lamfuse.core.refusals import Reason
from lamfuse.core.target import Below
from tests.core.acts import DOWNLOADS, HOME, act, directory, file, free, make_policy

POLICY = make_policy()
#: Home itself is a write root here, so that anchored rules can be met by a move.
ALL = make_policy(write=[HOME])

OLD = DOWNLOADS + b"/a/b/d"
NEW = DOWNLOADS + b"/a/b/e"


def _below(*relative: bytes, directories: frozenset[bytes] = frozenset()) -> Below:
    return Below(tuple(relative), directories)


@pytest.mark.requirement("H3", "H5")
@pytest.mark.parametrize(
    ("old", "new", "below", "expected"),
    [
        pytest.param(OLD, NEW, Below(), None, id="empty"),
        pytest.param(OLD, NEW, _below(b"x", b"y/z"), None, id="nothing special"),
        pytest.param(OLD, NEW, _below(b".env"), None, id="hidden before and after"),
        pytest.param(OLD, NEW, Below(complete=False), Reason.TOO_BIG, id="not seen to its end"),
        pytest.param(
            HOME + b"/.docker",
            HOME + b"/d",
            _below(b"config.json"),
            Reason.WOULD_REVEAL,
            id="a credential becomes visible",
        ),
        pytest.param(
            HOME + b"/.docker",
            HOME + b"/d",
            _below(b"x", b"y", b"config.json/z"),
            Reason.WOULD_REVEAL,
            id="below a hidden folder",
        ),
        pytest.param(
            HOME + b"/.config",
            HOME + b"/c",
            _below(b"gh", directories=frozenset([b"gh"])),
            Reason.WOULD_REVEAL,
            id="a hidden folder becomes visible",
        ),
        pytest.param(HOME + b"/.docker", HOME + b"/d", _below(b"x"), None, id="nothing hidden"),
        pytest.param(
            HOME + b"/.local",
            HOME + b"/l",
            _below(b"state/lamfuse/journal.jsonl"),
            Reason.WOULD_REVEAL,
            id="lamfuse's own files",
        ),
        pytest.param(
            HOME + b"/d",
            HOME + b"/.docker",
            _below(b"config.json"),
            Reason.DENIED_NAME,
            id="something becomes hidden",
        ),
        pytest.param(
            HOME + b"/d",
            HOME + b"/.docker",
            _below(b"config.json2"),
            None,
            id="nothing becomes hidden",
        ),
        pytest.param(
            HOME + b"/d", HOME + b"/.env", Below(), Reason.DENIED_NAME, id="to a hidden name"
        ),
        pytest.param(
            HOME + b"/d",
            HOME + b"/secrets/d",
            Below(),
            Reason.DENIED_NAME,
            id="into a place that the person hid",
        ),
    ],
)
def test_what_is_below(old: bytes, new: bytes, below: Below, expected: Reason | None) -> None:
    moved = ALL.decide(act(Operation.RENAME, directory(old, below=below), free(new)))
    assert moved.reason is expected
    assert (moved.verdict is Verdict.ASK) is (expected is None)
    replaced = act(Operation.REPLACE, directory(old, below=below), directory(new, 21))
    assert ALL.decide(replaced).reason is expected
    for exchanged in (
        act(Operation.EXCHANGE, directory(old, below=below), directory(new, 21)),
        act(Operation.EXCHANGE, directory(new, 21), directory(old, below=below)),
    ):
        # Both ways: a hidden name may be the source then, and has another reason.
        assert (ALL.decide(exchanged).verdict is Verdict.REFUSE) is (expected is not None)


@pytest.mark.parametrize("is_folder", [True, False], ids=["folder", "file"])
def test_a_rule_for_folders_hides_a_folder_below_and_no_file(*, is_folder: bool) -> None:
    policy = make_policy(write=[HOME], person=["/d/x/"])
    below = _below(b"x", directories=frozenset([b"x"] if is_folder else []))
    moved = act(Operation.RENAME, directory(HOME + b"/c", below=below), free(HOME + b"/d"))
    assert policy.decide(moved).reason is (Reason.DENIED_NAME if is_folder else None)


def test_where_nothing_may_change_a_move_tells_nothing_of_what_is_below() -> None:
    revealing = directory(HOME + b"/.config", below=_below(b"gh"))
    endless = directory(HOME + b"/src", below=Below(complete=False, climb=99))
    for moved in (revealing, endless):
        decision = POLICY.decide(act(Operation.RENAME, moved, free(HOME + b"/c")))
        assert decision.reason is Reason.READ_ONLY


@pytest.mark.requirement("H3")
@pytest.mark.parametrize(
    ("old", "new", "below", "expected"),
    [
        pytest.param(OLD, NEW, Below(climb=4), None, id="as deep as before"),
        pytest.param(OLD, NEW + b"/f", Below(climb=5), None, id="deeper"),
        pytest.param(OLD, DOWNLOADS + b"/d", Below(climb=2), None, id="shallower, room enough"),
        pytest.param(OLD, DOWNLOADS + b"/d", Below(climb=3), Reason.CLIMBS, id="shallower"),
        pytest.param(
            OLD,
            DOWNLOADS + b"/d",
            Below(absolute=frozenset([b"/usr/bin/python3"])),
            None,
            id="shallower, a link to the system",
        ),
        pytest.param(
            OLD,
            DOWNLOADS + b"/d",
            Below(absolute=frozenset([b"/usr/bin/python3", b"/home/u/x"])),
            Reason.CLIMBS,
            id="shallower, a link into home is shown climbing",
        ),
        pytest.param(
            OLD,
            DOWNLOADS + b"/d",
            Below(absolute=frozenset([b"/usr/../home/u/x"])),
            Reason.CLIMBS,
            id="shallower, a link that only begins in the system",
        ),
        pytest.param(
            OLD,
            DOWNLOADS + b"/d",
            Below(absolute=frozenset([b"/usr/../usr/bin/x"])),
            Reason.CLIMBS,
            id="shallower, a link that leaves the system and comes back",
        ),
        pytest.param(
            OLD,
            DOWNLOADS + b"/d",
            Below(absolute=frozenset([b"/home/u/a/../../../usr/bin"])),
            Reason.CLIMBS,
            id="shallower, a link that ends in the system by its text only",
        ),
        pytest.param(
            OLD,
            DOWNLOADS + b"/d",
            Below(absolute=frozenset([b"/usrlocal"])),
            Reason.CLIMBS,
            id="shallower, a link beside the system",
        ),
        pytest.param(
            OLD, DOWNLOADS + b"/d", Below(winds=True), Reason.CLIMBS, id="shallower, winding"
        ),
        pytest.param(
            OLD,
            NEW,
            Below(absolute=frozenset([b"/home/u/x"]), winds=True),
            None,
            id="as deep as before, shown climbing",
        ),
        pytest.param(b"/srv/out/a/d", b"/srv/out/d", Below(climb=1), None, id="extra root, room"),
        pytest.param(
            b"/srv/out/a/d", b"/srv/out/d", Below(climb=2), Reason.CLIMBS, id="extra root"
        ),
        pytest.param(
            DOWNLOADS + b"/d", b"/srv/out/d", Below(climb=1), None, id="to another root, room"
        ),
        pytest.param(
            DOWNLOADS + b"/d",
            b"/srv/out/a/d",
            Below(climb=4),
            Reason.CLIMBS,
            id="to another root, where depth means something else",
        ),
    ],
)
def test_links_that_climb(old: bytes, new: bytes, below: Below, expected: Reason | None) -> None:
    decision = POLICY.decide(act(Operation.RENAME, directory(old, below=below), free(new)))
    assert decision.reason is expected


def test_a_link_into_a_root_that_lies_in_the_system_is_shown_climbing() -> None:
    policy = make_policy(read=[b"/usr/share/doc"])
    below = Below(absolute=frozenset([b"/usr/share/doc/x"]))
    moved = act(Operation.RENAME, directory(OLD, below=below), free(DOWNLOADS + b"/d"))
    assert policy.decide(moved).reason is Reason.CLIMBS
    assert POLICY.decide(moved).reason is None


@pytest.mark.parametrize(
    ("old", "new"),
    [(b"/elsewhere/a", DOWNLOADS + b"/a"), (DOWNLOADS + b"/a", b"/elsewhere/a")],
    ids=["from", "to"],
)
def test_what_is_in_no_root_lets_every_link_climb(old: bytes, new: bytes) -> None:
    assert POLICY._lets_climb(old, new, Below())


@pytest.mark.requirement("H6")
@pytest.mark.parametrize(
    ("below", "new", "told"),
    [
        (Below(complete=False), b"/d", "too much below it to look through"),
        (Below(climb=3), b"/d", "a link below it would lead out"),
        (_below(b".env"), b"/.config/x", None),
    ],
    ids=["too much", "climbs", "nothing"],
)
def test_the_rule_is_told(below: Below, new: bytes, told: str | None) -> None:
    moved = act(Operation.RENAME, directory(OLD, below=below), free(HOME + new))
    decision = ALL.decide(moved)
    assert (decision.rule if decision.reason else None) == told


@pytest.mark.requirement("H6")
def test_the_rule_that_hides_is_told() -> None:
    below = _below(b"config.json")
    docker, other = HOME + b"/.docker", HOME + b"/d"
    hidden = act(Operation.RENAME, directory(other, below=below), free(docker))
    assert ALL.decide(hidden).rule == "denylist: /.docker/config.json"
    shown = act(Operation.RENAME, directory(docker, below=below), free(other))
    assert ALL.decide(shown).rule == "a hidden entry would become visible"


class TestRunsLater:
    """The class of files that run later outside: listed at every old and new place."""

    @pytest.mark.parametrize(
        ("operation", "subjects", "expected"),
        [
            pytest.param(
                Operation.CREATE, (free(DOWNLOADS + b"/.envrc"),), (b"/.envrc",), id="create"
            ),
            pytest.param(Operation.CREATE, (free(DOWNLOADS + b"/envrc"),), (), id="another name"),
            pytest.param(Operation.WRITE, (file(DOWNLOADS + b"/AGENTS.md"),), (b"/AGENTS.md",),
                         id="write"),
            pytest.param(Operation.CHMOD, (file(DOWNLOADS + b"/AGENTS.md"),), (b"/AGENTS.md",),
                         id="attributes"),
            pytest.param(Operation.UNLINK, (file(DOWNLOADS + b"/AGENTS.md"),), (b"/AGENTS.md",),
                         id="delete"),
            pytest.param(
                Operation.RENAME,
                (file(DOWNLOADS + b"/x"), free(DOWNLOADS + b"/.envrc")),
                (b"/.envrc",),
                id="rename to",
            ),
            pytest.param(
                Operation.RENAME,
                (file(DOWNLOADS + b"/.envrc"), free(DOWNLOADS + b"/x")),
                (b"/.envrc",),
                id="rename from",
            ),
            pytest.param(
                Operation.LINK,
                (file(DOWNLOADS + b"/x"), free(DOWNLOADS + b"/.envrc")),
                (b"/.envrc",),
                id="link",
            ),
            pytest.param(
                Operation.WRITE,
                (file(DOWNLOADS + b"/x", names=[DOWNLOADS + b"/.envrc"]),),
                (b"/.envrc",),
                id="write under another name",
            ),
            pytest.param(
                Operation.RENAME,
                (file(DOWNLOADS + b"/x", names=[DOWNLOADS + b"/.envrc"]),
                 free(DOWNLOADS + b"/y")),
                (b"/.envrc",),
                id="move under another name",
            ),
            pytest.param(
                Operation.UNLINK,
                (file(DOWNLOADS + b"/x", names=[DOWNLOADS + b"/.envrc"]),),
                (b"/.envrc",),
                id="delete under another name",
            ),
            pytest.param(Operation.MKDIR, (free(DOWNLOADS + b"/.git"),), (), id="a .git folder"),
            pytest.param(Operation.SYMLINK, (free(DOWNLOADS + b"/.git"),), (b"/.git",),
                         id="a .git link"),
            pytest.param(
                Operation.RENAME,
                (directory(DOWNLOADS + b"/x"), free(DOWNLOADS + b"/.git")),
                (),
                id="a folder becomes .git",
            ),
            pytest.param(
                Operation.RENAME,
                (file(DOWNLOADS + b"/x"), free(DOWNLOADS + b"/.git")),
                (b"/.git",),
                id="a file becomes .git",
            ),
            pytest.param(
                Operation.EXCHANGE,
                (file(DOWNLOADS + b"/x"), directory(DOWNLOADS + b"/.git")),
                (b"/.git",),
                id="a file takes the place of .git",
            ),
            pytest.param(
                Operation.EXCHANGE,
                (directory(DOWNLOADS + b"/.git"), file(DOWNLOADS + b"/x", 11)),
                (b"/.git",),
                id="a file takes the place of .git, the other way",
            ),
            pytest.param(
                Operation.RENAME,
                (directory(DOWNLOADS + b"/x", below=_below(b"hooks/pre-commit", b"b")),
                 free(DOWNLOADS + b"/y")),
                (b"/x/hooks/pre-commit", b"/y/hooks/pre-commit"),
                id="a hook below a folder",
            ),
        ],
    )  # fmt: skip
    def test_what_is_listed(
        self, operation: Operation, subjects: tuple[object, ...], expected: tuple[bytes, ...]
    ) -> None:
        request = act(operation, *subjects)  # type: ignore[arg-type]
        decision = POLICY.decide(request)
        assert decision.verdict is Verdict.ASK
        assert decision.runs_later == tuple(DOWNLOADS + path for path in expected)
        assert (decision.rule == "runs on your machine later") is bool(expected)

    def test_a_lock_file_lists_what_it_locks(self) -> None:
        config = DOWNLOADS + b"/p/.git/config"
        decision = POLICY.decide(act(Operation.CREATE, free(config + b".lock")))
        assert decision.runs_later == (config, config + b".lock")
        written = POLICY.decide(act(Operation.WRITE, file(config + b".lock")))
        assert written.runs_later == (config + b".lock",)

    def test_a_lock_file_of_something_else_lists_itself_only(self) -> None:
        lock = DOWNLOADS + b"/p/hooks/x.lock"
        assert POLICY.runs_later(act(Operation.CREATE, free(lock))) == (lock[:-5], lock)
        for path in (b"/p/.git/index.lock", b"/p/config.lock", b"/p/.lock"):
            assert POLICY.runs_later(act(Operation.CREATE, free(DOWNLOADS + path))) == ()
        policy = make_policy(runs_later=["*.lock"])
        both = DOWNLOADS + b"/x.lock"
        assert policy.runs_later(act(Operation.CREATE, free(both))) == (both,)
        only = DOWNLOADS + b"/p/.vscode/.lock"
        assert POLICY.runs_later(act(Operation.CREATE, free(only))) == (only,)

    def test_they_are_listed_in_order(self) -> None:
        below = _below(*(b"%c/.envrc" % letter for letter in b"hgfedcba"))
        listed = POLICY.runs_later(act(Operation.RENAME, directory(OLD, below=below), free(NEW)))
        assert len(listed) == 16
        assert list(listed) == sorted(listed)
