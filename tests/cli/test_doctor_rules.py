"""The rules are proved on a private mount: one that does not hide is seen, and nothing is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamfuse.cli import views
from lamfuse.cli.probes import private_view, rules
from lamfuse.cli.probes.finding import Finding, Level
from lamfuse.cli.probes.instances import _FOLDERS, Instance, Plan, make_plan
from lamfuse.cli.probes.private_view import COMMAND, Made
from lamfuse.cli.probes.subject import Subject
from lamfuse.core.errors import RefusedError
from lamfuse.core.patterns import RuleError
from lamfuse.core.rules import CREDENTIAL_PLACES, DEFAULT_DENY, Denylist
from lamfuse.tree.mounts import mounts
from tests.cli.fake_machine import FakeMachine, must_be_useful, only

pytestmark = pytest.mark.requirement("L8", "H5", "H21")

HOME = b"/home/lam"


def by(plan: Plan, rule: str) -> list[tuple[str, bool]]:
    return [(item.path.decode(), item.is_dir) for item in plan.hidden if item.rule == rule]


# --- names that a rule names


def test_every_default_rule_has_a_name_to_try() -> None:
    plan = make_plan([])

    assert {item.rule for item in plan.hidden} == set(DEFAULT_DENY)
    assert {item.kind for item in plan.hidden} == {"default"}
    assert len(plan.controls) == 6
    assert (plan.untried, plan.idle) == ((), ())


def test_name_rules_are_tried_at_the_top_deep_down_and_in_capitals() -> None:
    assert by(make_plan([]), "*.pem") == [
        ("x.pem", False),
        ("lamfuse-probe/deep/x.pem", False),
        ("lamfuse-probe/loud/X.PEM", False),
    ]


def test_credential_places_are_folders_as_they_are_in_a_home() -> None:
    plan = make_plan([])

    assert {name.lstrip("/").encode() for name in _FOLDERS} < set(CREDENTIAL_PLACES)
    assert by(plan, "/.ssh") == [(".ssh", True)]
    assert by(plan, "/.docker/config.json") == [(".docker/config.json", False)]


@pytest.mark.parametrize(
    ("line", "first"),
    [
        pytest.param("secrets/", ("secrets", True), id="folder"),
        pytest.param("secret", ("secret", False), id="name"),
        pytest.param("*.kdbx", ("x.kdbx", False), id="ending"),
        pytest.param("/Documents/private", ("Documents/private", False), id="place"),
        pytest.param("~/Documents/private/", ("Documents/private", True), id="from-home"),
        pytest.param("Documents/a b\\ ", ("Documents/a b ", False), id="blank-at-the-end"),
        pytest.param("trailing   ", ("trailing", False), id="blanks-that-go"),
        pytest.param("private/**", ("private/x", False), id="all-below"),
        pytest.param("a/**/b", ("a/b", False), id="any-depth"),
        pytest.param("**/deep/file", ("deep/file", False), id="anywhere"),
        pytest.param("a[!x]b?.t\\*t", ("aybx.t*t", False), id="globs"),
        pytest.param("[a-c]z", ("az", False), id="range"),
        pytest.param("\\#tag", ("#tag", False), id="escaped-comment"),
        pytest.param("\\!odd", ("!odd", False), id="escaped-sign"),
        pytest.param("*", ("x", False), id="everything"),
        pytest.param("b\u00e4nk.txt", ("b\u00e4nk.txt", False), id="letters"),
    ],
)
def test_a_name_is_made_of_a_rule(line: str, first: tuple[str, bool]) -> None:
    plan = make_plan([line])

    assert by(plan, line)[0] == first
    assert plan.untried == ()


@pytest.mark.parametrize("line", ["", "  ", "# a remark", "!keep.log"])
def test_lines_that_hide_nothing_are_not_tried(line: str) -> None:
    plan = make_plan([line])

    assert {item.kind for item in plan.hidden} == {"default"}
    assert (plan.untried, plan.idle) == ((), ())


def test_a_name_that_a_later_line_takes_back_is_not_used() -> None:
    plan = make_plan(["x/*", "!x/x", "gone", "!gone", "*.log", "!keep.log"])

    assert by(plan, "x/*") == [("x/probe-7", False)]
    assert by(plan, "*.log")[0] == ("x.log", False)
    assert plan.untried == ("gone",)


def test_a_name_that_no_file_can_have_is_not_tried() -> None:
    line = "a" * 300

    assert make_plan([line]).untried == (line,)


@pytest.mark.parametrize("line", ["!.env", "!/.ssh", "!*.pem", "!.netrc"])
def test_a_line_that_cannot_take_a_default_back_is_idle(line: str) -> None:
    assert make_plan([line]).idle == (line,)


@pytest.mark.parametrize(
    ("line", "left"),
    [
        pytest.param("*.txt", 4, id="some"),
        pytest.param("*", 0, id="all"),
        pytest.param("LAMFUSE-PROBE/", 4, id="other-case"),
        pytest.param(".env*", 5, id="one"),
    ],
)
def test_a_file_that_a_rule_may_name_is_no_control(line: str, left: int) -> None:
    assert len(make_plan([line]).controls) == left
    assert len(make_plan([line, "!*"]).controls) == left


LINES = st.lists(
    st.one_of(
        st.sampled_from([
            "*", "**", "a/**", "**/a", "secrets/", "!secrets/", "*.txt", "!*", "/x", "~/y/z",
            "[ab]c", "[!a]b", "a?", "\\*x", "!.env", "lamfuse-probe/", "a/*/b", "*.LOG", "!x.log",
        ]),
        st.text("ab*?/!.~[]\\x", max_size=6),
    ),
    max_size=4,
)  # fmt: skip


@given(lines=LINES)
def test_whatever_the_rules_are_the_denylist_agrees_with_the_plan(lines: list[str]) -> None:
    try:
        denylist = Denylist(HOME, lines)
    except RuleError:
        return
    plan = make_plan(lines)

    for item in plan.hidden:
        assert denylist.rule_for(HOME + b"/" + item.path, is_dir=item.is_dir), item
    for path in plan.controls:
        assert denylist.rule_for(HOME + b"/" + path, is_dir=False) is None, path


# --- what it means


PLAN = Plan(
    hidden=(
        Instance(".env", "default", b".env", is_dir=False),
        Instance(".env", "default", b"deep/.env", is_dir=False),
        Instance("odd\x1b/", "person", b"odd\x1b", is_dir=True),
    ),
    controls=(b"a.txt", b"b\x07.txt"),
    untried=("gone\u202e",),
    idle=("!.env",),
)


def judge(shown: set[int], missing: set[int], plan: Plan = PLAN) -> list[Finding]:
    found = list(rules.judge(plan, frozenset(shown), frozenset(missing)))
    for finding in found:
        must_be_useful(finding)
    return found


def test_rules_that_hold_are_well_and_the_rest_is_noted() -> None:
    found = judge(set(), set())

    assert "16 default rules and 1 of yours" in only(found, "rules.hide").what
    assert only(found, "rules.hide").level is Level.OK
    assert "gone\\u202e was not tried" in only(found, "rules.untried").what
    assert only(found, "rules.idle").level is Level.NOTE


def test_a_rule_that_does_not_hide_is_one_problem_with_its_names() -> None:
    found = [item for item in judge({0, 1, 2}, set()) if item.level is Level.PROBLEM]

    assert [item.what for item in found] == [
        "The default rule .env does not hide ~/.env, ~/deep/.env.",
        "Your rule odd\\x1b/ does not hide ~/odd\\x1b.",
    ]


def test_a_file_that_is_not_there_is_a_problem() -> None:
    found = [item for item in judge(set(), {1}) if item.level is Level.PROBLEM]

    assert [item.what for item in found] == [
        "No rule names ~/b\\x07.txt, and the view does not show it."
    ]


def test_without_a_control_nothing_is_called_well() -> None:
    found = judge(set(), set(), Plan(PLAN.hidden, (), (), ()))

    assert only(found, "rules.control").level is Level.NOTE
    assert not [item for item in found if item.level is Level.OK]


def test_files_and_their_folders_are_made(tmp_path: Path) -> None:
    files = [Made(b"x", is_dir=False), Made(b"x/y", is_dir=False), Made(b"d/e", is_dir=True)]

    private_view.populate(bytes(tmp_path), files)

    assert (tmp_path / "x/inside").read_bytes() == b"x"
    assert (tmp_path / "x/y").read_bytes() == b"x/y"
    assert (tmp_path / "d/e/inside").read_bytes() == b"d/e"


@pytest.mark.parametrize(
    ("make", "is_seen"),
    [
        pytest.param(lambda p: p.touch(), True, id="file"),
        pytest.param(lambda p: p.mkdir(), True, id="folder"),
        pytest.param(lambda p: p.symlink_to("nowhere"), True, id="dangling-link"),
        pytest.param(os.mkfifo, True, id="fifo"),
        pytest.param(lambda p: None, False, id="absent"),
    ],
)
def test_a_name_is_seen_however_it_is_there(tmp_path: Path, make: object, is_seen: bool) -> None:
    assert callable(make)
    make(tmp_path / "name")

    assert rules.seen_in(bytes(tmp_path), b"name") is is_seen
    assert rules.seen_in(bytes(tmp_path), b"absent/name") is False


# --- on a real mount


@pytest.fixture
def temporary(short_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where private views are made; nothing may be left there."""
    monkeypatch.setattr(tempfile, "tempdir", str(short_dir))
    yield short_dir
    assert list(short_dir.iterdir()) == []
    assert not [m for m in mounts() if m.path.startswith(bytes(short_dir))]


def configured(place: Path, deny: Sequence[str]) -> Subject:
    (place / "home").mkdir(exist_ok=True)
    config = place / "c.toml"
    rules_text = ", ".join(f"'{line}'" for line in deny)
    config.write_text(f"deny = [{rules_text}]\n")
    config.chmod(0o600)
    return Subject(FakeMachine(environ=os.environ), bytes(place / "home"), bytes(config))


def look_in(place: Path, deny: Sequence[str], command: Sequence[str] = COMMAND) -> list[Finding]:
    found = list(rules.look_with(configured(place, deny), command))
    for finding in found:
        must_be_useful(finding)
    return found


def patched(code: str) -> list[str]:
    """Return a daemon that does something else."""
    return [sys.executable, "-c", f"{code}\nfrom lamfuse.cli.main import main\nmain()"]


@pytest.mark.mount
class TestMounted:
    def test_the_rules_hold(self, temporary: Path, tmp_path: Path) -> None:
        deny = ["secrets/", "*.kdbx", "/Documents/private", "!.env", "b\u00e4nk\u202e*", "x/*"]

        found = look_in(tmp_path, deny)

        assert "16 default rules and 5 of yours" in only(found, "rules.hide").what
        assert {item.check: item.level for item in found} == {
            "rules.hide": Level.OK,
            "rules.idle": Level.NOTE,
        }

    @pytest.mark.parametrize(
        ("code", "words"),
        [
            pytest.param(
                "from lamfuse.core import patterns as p\n"
                "was = p.Pattern.matches\n"
                "p.Pattern.matches = lambda self, *a, **k:"
                " self.text != '*.key' and was(self, *a, **k)",
                ["The default rule *.key does not hide ~/x.key, ~/lamfuse-probe/deep/x.key, "],
                id="a-default",
            ),
            pytest.param(
                "from lamfuse.core import patterns as p\n"
                "was = p.Pattern.matches\n"
                "p.Pattern.matches = lambda self, *a, **k:"
                " self.text != 'secrets/' and was(self, *a, **k)",
                ["Your rule secrets/ does not hide ~/secrets, ~/lamfuse-probe/deep/secrets."],
                id="a-persons",
            ),
            pytest.param(
                "from lamfuse.core import patterns as p\np._fold = lambda text: text",
                ["The default rule .env does not hide ~/lamfuse-probe/loud/.ENV."],
                id="capitals",
            ),
            pytest.param(
                "from lamfuse.core.rules import Denylist, DenyRule\n"
                "was = Denylist.rule_for_name\n"
                "Denylist.rule_for_name = lambda self, parent, name, *, is_dir:"
                " DenyRule('x', 'own') if name == b'keyring.txt' else"
                " was(self, parent, name, is_dir=is_dir)",
                ["No rule names ~/keyring.txt, and the view does not show it."],
                id="too-much",
            ),
        ],
    )
    def test_a_broken_rule_is_seen(
        self, temporary: Path, tmp_path: Path, code: str, words: list[str]
    ) -> None:
        found = look_in(tmp_path, ["secrets/"], patched(code))

        problems = [item.what for item in found if item.level is Level.PROBLEM]
        assert not [item for item in found if item.level is Level.OK]
        for word in words:
            assert [what for what in problems if what.startswith(word)]

    def test_a_daemon_that_does_not_come_up_says_why(self, temporary: Path, tmp_path: Path) -> None:
        code = "import sys; sys.stderr.write('lamfuse: not today\\x1b.\\n'); sys.exit(1)"

        (found,) = look_in(tmp_path, [], patched(code))

        assert (found.check, found.level) == ("rules.tried", Level.PROBLEM)
        assert "lamfuse: not today\\x1b." in found.what

    def test_a_daemon_that_stays_mute_is_given_up(
        self, temporary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(private_view, "_READY_S", 0.3)

        (found,) = look_in(tmp_path, [], patched("import time; time.sleep(100)"))

        assert "was not ready within 0.3 s" in found.what

    def test_a_view_that_hangs_is_given_up_and_taken_away(
        self, temporary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rules, "LOOK_S", 1.0)
        monkeypatch.setattr(private_view, "_END_S", 2.0)
        code = (
            "import os, signal\nfrom lamfuse.fuse.operations import ViewOperations as V\n"
            "async def lookup(*a): os.kill(os.getpid(), signal.SIGSTOP)\nV.lookup = lookup"
        )

        (found,) = look_in(tmp_path, [], patched(code))

        assert (found.check, found.level) == ("rules.tried", Level.PROBLEM)
        assert "did not answer" in found.what

    def test_a_daemon_that_dies_leaves_no_mount(self, temporary: Path, tmp_path: Path) -> None:
        code = (
            "import os, signal\nfrom lamfuse.fuse.operations import ViewOperations as V\n"
            "async def lookup(*a): os.kill(os.getpid(), signal.SIGKILL)\nV.lookup = lookup"
        )

        (found,) = look_in(tmp_path, [], patched(code))

        assert (found.check, found.level) == ("rules.tried", Level.PROBLEM)

    def test_what_a_killed_examination_left_is_cleared_up(
        self, temporary: Path, tmp_path: Path
    ) -> None:
        code = (
            "import os, sys, tempfile\nfrom lamfuse.cli.probes import private_view as p\n"
            "tempfile.tempdir = sys.argv[1]\n"
            "with p.opened('k', [], [], os.environ) as place:\n"
            "    print(os.fsdecode(place.view), flush=True)\n"
            "    sys.stdin.read()\n"
        )
        with subprocess.Popen(
            [sys.executable, "-c", code, str(temporary)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        ) as process:
            assert process.stdout is not None
            place = process.stdout.readline().strip()
            assert views.mount_at(place) is not None
            os.killpg(process.pid, signal.SIGKILL)
        (temporary / "lamfuse-doctor-other-x").mkdir()

        private_view.clear_up_after("k")

        assert [path.name for path in temporary.iterdir()] == ["lamfuse-doctor-other-x"]
        (temporary / "lamfuse-doctor-other-x").rmdir()

    def test_what_cannot_be_unmounted_is_said(
        self, temporary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(_mount: object) -> None:
            raise RefusedError("The dead mount cannot be taken away: busy")

        code = (
            "import os, signal\nfrom lamfuse.fuse.operations import ViewOperations as V\n"
            "async def lookup(*a): os.kill(os.getpid(), signal.SIGKILL)\nV.lookup = lookup"
        )
        with monkeypatch.context() as patch:
            patch.setattr(views, "take_away", refuse)
            (found,) = look_in(tmp_path, [], patched(code))
        assert "cannot be taken away: busy" in found.what

        rules.clear_up(Subject(FakeMachine()))


def test_nobody_is_asked_by_a_private_view(temporary: Path, tmp_path: Path) -> None:
    """The desktop of the person is out of its reach, and so is their own configuration."""
    said = tmp_path / "said"
    code = (
        "import os, pathlib\n"
        f"pathlib.Path({str(said)!r}).write_text(repr(sorted(os.environ.items())))"
    )
    environ = {**os.environ, "DBUS_SESSION_BUS_ADDRESS": "unix:path=/x", "DISPLAY": ":9"}
    subject = configured(tmp_path, [])
    machine = FakeMachine(environ=environ)

    list(rules.look_with(Subject(machine, subject.home, subject.config_file),
                         [sys.executable, "-c", code]))  # fmt: skip

    text = said.read_text()
    assert "DBUS_SESSION_BUS_ADDRESS" not in text
    assert "DISPLAY" not in text
    for name in ("HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        assert f"('{name}', '{temporary}/lamfuse-doctor-" in text
