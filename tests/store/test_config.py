"""The configuration: what is read, and what is refused with which words."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamfuse.core.errors import ConfigError
from lamfuse.core.operations import Verb
from lamfuse.core.standing import StandingRule
from lamfuse.store.config import (
    CHANNELS,
    DEFAULT,
    DEFAULT_LINK_OK,
    RULE_VERBS,
    Approval,
    Config,
    load,
)

HOME = b"/home/lam"
DEFAULT_ROOTS = (
    b"/home/lam/Downloads",
    b"/home/lam/Documents/Lam Agent",
    b"/home/lam/.local/share/lamfuse/agent",
)

_value = st.sampled_from(
    ["true", "1", "1.5", "inf", '"~/x"', '["a", "/b"]', "[1]", "{}", "[{}]", '""', "1979-05-27"]
)
_key = st.sampled_from(
    ["file_access", "read_roots", "write_roots", "deny", "link_ok", "runs_later", "approval", "x"]
    + [f"approval.{key}" for key in ("channels", "program", "turn_max_s", "rename_over", "rule")]
)
_toml_like = st.lists(st.tuples(_key, _value).map(" = ".join), max_size=4).map("\n".join)

Load = Callable[[str | bytes], Config]


class TestValues:
    """What a correct file means."""

    def test_a_missing_file_is_all_defaults(self, file: Path) -> None:
        config = load(os.fsencode(file), HOME)

        assert not config.file_access
        assert config.read_roots == ()
        assert config.deny == ()
        assert config.link_ok == DEFAULT_LINK_OK
        assert config.approval == Approval()
        assert config.notes == ()
        assert {*config.origin.values()} == {DEFAULT}

    @pytest.mark.requirement("H19")
    def test_file_access_is_off_until_it_is_switched_on(self, read: Load) -> None:
        assert not read("").file_access
        assert not read("file_access = false").file_access
        assert read("file_access = true").file_access

    @pytest.mark.requirement("H22")
    def test_the_default_write_roots_are_always_there(self, read: Load) -> None:
        assert read("").write_roots == DEFAULT_ROOTS
        assert read("write_roots = []").write_roots == DEFAULT_ROOTS
        assert read('write_roots = ["~/work", "/data/x/", "~/Downloads"]').write_roots == (
            *DEFAULT_ROOTS,
            b"/home/lam/work",
            b"/data/x",
        )

    @pytest.mark.requirement("H22")
    def test_a_root_that_does_not_exist_is_kept(self, read: Load) -> None:
        assert b"/no/such/place" in read('write_roots = ["/no/such/place"]').write_roots

    @pytest.mark.requirement("H23", "H11")
    @pytest.mark.parametrize(
        "written",
        [
            pytest.param('["~/a", "/b"]', id="list"),
            pytest.param('[" ~/a ", "", "/b"]', id="list with blanks and empties"),
            pytest.param('"~/a, /b"', id="text with a comma"),
            pytest.param('"""\n~/a\n\n/b,\n"""', id="text over lines"),
        ],
    )
    def test_roots_may_be_a_list_or_text(self, read: Load, written: str) -> None:
        assert read(f"read_roots = {written}").read_roots == (b"/home/lam/a", b"/b")

    @pytest.mark.requirement("H23")
    def test_a_bad_root_is_reported_and_disables_no_other(self, read: Load) -> None:
        config = read('read_roots = ["/a", "b/c", "/d"]\nwrite_roots = "~/w, ../x"')

        assert config.read_roots == (b"/a", b"/d")
        assert config.write_roots == (*DEFAULT_ROOTS, b"/home/lam/w")
        assert len(config.notes) == 2
        assert config.notes[0].startswith("read_roots: ")
        assert "b/c" in config.notes[0]
        assert config.notes[1].startswith("write_roots: ")
        assert "../x" in config.notes[1]

    def test_everything_is_read(self, read: Load, file: Path) -> None:
        config = read(
            """
            file_access = true
            deny = ["secrets/", "*.kdbx"]
            link_ok = ["/usr", "/usr/", "/gnu/store"]
            runs_later = ["*.nix"]
            [approval]
            channels = ["program", "desktop"]
            program = ["~/.local/bin/ask", "~/x"]
            shown_timeout_s = 5
            total_timeout_s = 5.5
            turn_idle_s = 1
            turn_max_s = 0.5
            wait_for_cli = true
            rename_over = "refuse"
            [[approval.rule]]
            paths = ["~/build/**", "/data/*.o"]
            operations = ["create", "delete"]
            answer = "allow"
            [[approval.rule]]
            paths = ["~/x"]
            operations = ["write"]
            answer = "decline"
            """
        )

        assert config.deny == ("secrets/", "*.kdbx")
        assert config.link_ok == (b"/usr", b"/gnu/store")
        assert config.runs_later == ("*.nix",)
        assert config.approval == Approval(
            channels=("program", "desktop"),
            program=("/home/lam/.local/bin/ask", "~/x"),
            shown_timeout_s=5.0,
            total_timeout_s=5.5,
            turn_idle_s=1.0,
            turn_max_s=0.5,
            wait_for_cli=True,
            rename_over="refuse",
            rules=(
                StandingRule(
                    ("~/build/**", "/data/*.o"),
                    frozenset({Verb.CREATE, Verb.DELETE}),
                    allow=True,
                    text="allow create, delete: ~/build/**, /data/*.o",
                    home=HOME,
                ),
                StandingRule(
                    ("~/x",),
                    frozenset({Verb.WRITE}),
                    allow=False,
                    text="decline write: ~/x",
                    home=HOME,
                ),
            ),
        )
        assert config.origin["deny"] == str(file)
        assert config.origin["approval.rule"] == str(file)
        assert config.origin["read_roots"] == DEFAULT

    def test_no_channel_at_all_is_a_choice(self, read: Load) -> None:
        """The control socket always works."""
        assert read("[approval]\nchannels = []").approval.channels == ()

    def test_a_rule_speaks_of_everything_but_reading(self) -> None:
        assert {*RULE_VERBS} == {"write", "attributes", "create", "delete", "move"}

    def test_a_configuration_cannot_be_changed(self, read: Load) -> None:
        config = read("")

        with pytest.raises(AttributeError):
            config.file_access = True  # type: ignore[misc] # that it is an error is the point
        with pytest.raises(TypeError):
            config.origin["deny"] = "me"  # type: ignore[index] # the same


_KEY_ERRORS = [
    pytest.param("file_acces = true", "file_acces", "Did you mean file_access?", id="near key"),
    pytest.param("colour = 1", "colour", "Known here: file_access, ", id="unknown key"),
    pytest.param('"a\\nb" = 1', "'a\\\\nb'", "Known here", id="a key with a newline"),
    pytest.param("[approval]\nchanels = []", "approval.chanels", "channels", id="near key below"),
    pytest.param("[aproval]", "aproval", "approval", id="near table"),
    pytest.param("approval = 1", "approval", "[approval]", id="no table"),
    pytest.param(
        'file_access = "true"', "file_access", "Write true or false", id="text for a flag"
    ),
    pytest.param("file_access = 1", "file_access", "Write true or false", id="number for a flag"),
    pytest.param("read_roots = 1", "read_roots", "Write a list", id="number for roots"),
    pytest.param('deny = "*.x"', "deny", "Write a list", id="text for a list"),
    pytest.param('deny = ["a", 1]', "deny[1]", "Write a list of texts", id="number in a list"),
    pytest.param('deny = ["a\\u0000"]', "deny[0]", "NUL", id="NUL"),
    pytest.param('deny = ["a", "[b"]', "deny[1]", "'[b' is not a pattern", id="deny pattern"),
    pytest.param('runs_later = ["a/../b"]', "runs_later[0]", "gitignore", id="class pattern"),
    pytest.param('link_ok = ["usr"]', "link_ok[0]", "not absolute", id="relative link_ok"),
    pytest.param('link_ok = ["/usr", "/lib*"]', "link_ok[1]", "pattern", id="pattern in link_ok"),
    pytest.param('link_ok = ["/"]', "link_ok[0]", "denylist", id="link_ok holds home"),
    pytest.param('link_ok = ["/home/lam/x"]', "link_ok[0]", "denylist", id="link_ok in home"),
    pytest.param("approval.shown_timeout_s = 0", "shown_timeout_s", "above 0", id="zero"),
    pytest.param("approval.turn_idle_s = -1", "approval.turn_idle_s", "above 0", id="negative"),
    pytest.param("approval.turn_max_s = inf", "approval.turn_max_s", "above 0", id="infinite"),
    pytest.param("approval.turn_max_s = nan", "approval.turn_max_s", "above 0", id="nan"),
    pytest.param(
        f"approval.turn_max_s = 1{'0' * 400}", "approval.turn_max_s", "above 0", id="huge"
    ),
    pytest.param("approval.turn_max_s = true", "approval.turn_max_s", "a number", id="flag"),
    pytest.param('approval.turn_max_s = "9"', "approval.turn_max_s", "a number", id="text"),
    pytest.param("approval.turn_max_s = 2024-01-01", "turn_max_s", "a date or time", id="date"),
    pytest.param(
        "approval.shown_timeout_s = 111", "shown_timeout_s", "total", id="longer than all"
    ),
    pytest.param("approval.total_timeout_s = 59", "shown_timeout_s", "total", id="all too short"),
    pytest.param('approval.channels = ["mail"]', "channels[0]", '"desktop"', id="unknown channel"),
    pytest.param('approval.channels = ["Desktop"]', "channels[0]", '"desktop"', id="near channel"),
    pytest.param(
        'approval.channels = ["terminal", "terminal"]', "channels[1]", "twice", id="channel twice"
    ),
    pytest.param('approval.channels = ["program"]', "program", "empty", id="no program"),
    pytest.param('approval.program = ["/x"]', "approval.program", "channels", id="program unused"),
    pytest.param(
        'approval = {channels = ["program"], program = ["ask"]}',
        "approval.program[0]",
        "not absolute",
        id="program by name",
    ),
    pytest.param(
        'approval.rename_over = "no"', "approval.rename_over", '"refuse"', id="rename_over"
    ),
    pytest.param("approval.rename_over = 1", "rename_over", '"refuse"', id="rename_over number"),
    pytest.param("approval.rule = {}", "approval.rule", "[[approval.rule]]", id="one rule"),
    pytest.param("approval.rule = [1]", "approval.rule[0]", "[[approval.rule]]", id="no rule"),
]

_RULE_ERRORS = [
    pytest.param({"paths": None}, "paths", "it is missing", id="no paths"),
    pytest.param({"paths": "[]"}, "paths", "it is empty", id="empty paths"),
    pytest.param({"paths": '["a/b"]'}, "paths[0]", "absolute or start with ~/", id="relative"),
    pytest.param({"paths": '["~/a", "~/[b"]'}, "paths[1]", "'~/[b'", id="bad pattern"),
    pytest.param({"operations": None}, "operations", "it is missing", id="no operations"),
    pytest.param({"operations": "[]"}, "operations", "it is empty", id="empty operations"),
    pytest.param({"operations": '["writ"]'}, "operations[0]", '"write"', id="near operation"),
    pytest.param({"operations": '["read"]'}, "operations[0]", '"write"', id="reading"),
    pytest.param({"operations": '["unlink"]'}, "operations[0]", "not known", id="system call"),
    pytest.param({"answer": None}, "answer", "it is missing", id="no answer"),
    pytest.param({"answer": '"deny"'}, "answer", '"decline"', id="unknown answer"),
    pytest.param({"path": "[]"}, "path", "Did you mean paths?", id="near key"),
]


class TestErrors:
    """Each names the file, the key, and what would be right."""

    @pytest.mark.parametrize(("text", "key", "remedy"), _KEY_ERRORS)
    def test_a_wrong_value_is_named(
        self, read: Load, file: Path, text: str, key: str, remedy: str
    ) -> None:
        with pytest.raises(ConfigError) as caught:
            read(text)

        assert caught.value.where.startswith(f"{file}: ")
        assert caught.value.where.endswith(key.replace("\\\\", "\\"))
        assert remedy in str(caught.value)

    @pytest.mark.parametrize(("change", "key", "remedy"), _RULE_ERRORS)
    def test_a_wrong_rule_is_named_with_its_number(
        self, read: Load, file: Path, change: dict[str, str | None], key: str, remedy: str
    ) -> None:
        right: dict[str, str | None] = {
            "paths": '["~/a"]',
            "operations": '["write"]',
            "answer": '"allow"',
        }
        rules = [
            "[[approval.rule]]",
            *(f"{name} = {value}" for name, value in right.items()),
            "[[approval.rule]]",
            *(f"{name} = {value}" for name, value in {**right, **change}.items() if value),
        ]

        with pytest.raises(ConfigError) as caught:
            read("\n".join(rules))

        assert caught.value.where == f"{file}: approval.rule[1].{key}"
        assert remedy in str(caught.value)

    @pytest.mark.parametrize(
        ("text", "line"),
        [
            pytest.param("a = 1\nb = \n", 2, id="no value"),
            pytest.param("a = 1\na = 2", 2, id="key twice"),
            pytest.param('a = 1\n\nb = "x', 3, id="open text at the end"),
            pytest.param("# x\ndeny = [", 2, id="open list at the end"),
            pytest.param(b"a = 1\nb = '\xff'\n", 2, id="no UTF-8"),
            pytest.param(b"\xef\xbb\xbfa = 1", 1, id="byte order mark"),
        ],
    )
    def test_what_is_not_toml_is_named_with_its_line(
        self, read: Load, file: Path, text: str | bytes, line: int
    ) -> None:
        with pytest.raises(ConfigError) as caught:
            read(text)

        assert caught.value.where == f"{file}:{line}"

    @pytest.mark.parametrize(
        ("text", "why"),
        [
            pytest.param("a = " + "[" * 100_000, "nested", id="nested"),
            pytest.param("a = 1" + "0" * 10_000, "not TOML", id="a number without end"),
            pytest.param("#" * (1024 * 1024 + 1), "larger than", id="too large"),
        ],
    )
    def test_a_monstrous_file_is_an_error_and_no_crash(
        self, read: Load, text: str, why: str
    ) -> None:
        with pytest.raises(ConfigError, match=why):
            read(text)

    @given(st.one_of(st.binary(max_size=200), _toml_like.map(str.encode)))
    def test_any_file_is_a_configuration_or_an_error(self, content: bytes) -> None:
        fd = os.memfd_create("config")
        with os.fdopen(fd, "wb") as file:
            os.fchmod(fd, 0o600)
            file.write(content)
            file.flush()
            with contextlib.suppress(ConfigError):
                config = load(b"/proc/self/fd/%d" % fd, HOME)
                assert not config.file_access or b"true" in content
                assert config.write_roots[:3] == DEFAULT_ROOTS


def test_the_channels_are_those_of_the_documentation() -> None:
    assert CHANNELS == ("desktop", "terminal", "program")
