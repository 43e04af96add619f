"""Everything that is wrong is found, each thing once, at the place that it has in the file."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamfuse.core.errors import ConfigError
from lamfuse.store import config, config_problems
from lamfuse.store.config_problems import Found
from lamfuse.store.dirs import Dirs, find_dirs

pytestmark = pytest.mark.requirement("L8")

HOME = b"/home/lam"


def find(place: Path, text: str) -> Found:
    file = place / "config.toml"
    file.write_text(text)
    file.chmod(0o600)
    return config_problems.find(bytes(file), HOME)


def keys(found: Found) -> list[str]:
    """Return what each error speaks of."""
    return [error.where.rpartition("config.toml: ")[2] for error in found.errors]


ALL_WRONG = r"""
"we ird" = 1
denyy = []
file_access = "yes"
read_roots = ["relative", "/srv"]
deny = ["ok", "[", "fine", "a/../b", "\\"]
link_ok = ["/usr", "x", "/opt*"]
runs_later = 5
[approval]
channels = ["desktop", "progam"]
program = ["ask"]
shown_timeout_s = 200
total_timeout_s = 100
[[approval.rule]]
paths = ["relative", "["]
operations = ["creat"]
answer = "yes"
foo = 1
[[approval.rule]]
paths = []
answer = "allow"
"""


def test_every_error_is_found_at_its_place(tmp_path: Path) -> None:
    found = find(tmp_path, ALL_WRONG)

    assert sorted(keys(found)) == sorted(
        [
            "'we ird'", "denyy", "file_access", "deny[1]", "deny[3]", "deny[4]", "link_ok[1]",
            "link_ok[2]", "runs_later", "approval.channels[1]", "approval.program[0]",
            "approval.shown_timeout_s", "approval.rule[0].foo", "approval.rule[0].operations[0]",
            "approval.rule[0].answer", "approval.rule[0].paths[0]", "approval.rule[0].paths[1]",
            "approval.rule[1].paths", "approval.rule[1].operations",
        ]
    )  # fmt: skip
    assert all(error.remedy for error in found.errors)


def test_what_is_left_has_nothing_of_what_was_wrong(tmp_path: Path) -> None:
    left = find(tmp_path, ALL_WRONG).config

    assert left.deny == ("ok", "fine")
    assert left.read_roots == (b"/srv",)
    assert left.link_ok == (b"/usr",)
    assert left.approval.rules == ()
    assert len(left.notes) == 1


def test_what_is_right_is_the_configuration_itself(tmp_path: Path) -> None:
    text = """
    deny = ["*.kdbx"]
    [[approval.rule]]
    paths = ["~/x/**"]
    operations = ["create"]
    answer = "allow"
    """
    found = find(tmp_path, text)

    assert found.errors == ()
    assert found.config == config.load(bytes(tmp_path / "config.toml"), HOME)
    assert len(found.config.approval.rules) == 1


def test_a_missing_file_has_nothing_wrong_unless_it_was_named(tmp_path: Path) -> None:
    place = bytes(tmp_path / "absent")

    assert config_problems.find(place, HOME).errors == ()
    (error,) = config_problems.find(place, HOME, must_exist=True).errors
    assert "no such file" in error.what


def test_what_is_no_toml_is_one_error_and_the_defaults_are_left(tmp_path: Path) -> None:
    found = find(tmp_path, "deny = [\n")

    assert len(found.errors) == 1
    assert "not TOML" in found.errors[0].what
    assert found.config == config.build({}, bytes(tmp_path / "config.toml"), HOME)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("approval = 5\nx = 1\n", ["x", "approval"], id="no-table"),
        pytest.param("deny = 'x'\nx = 1\n", ["x", "deny"], id="no-list"),
        pytest.param(
            "[approval]\ntotal_timeout_s = 5\nrename_over = 'x'\n",
            ["approval.shown_timeout_s", "approval.rename_over"],
            id="default-too-long",
        ),
        pytest.param(
            "[approval]\nprogram = ['/bin/x']\nwait_for_cli = 1\n",
            ["approval.program", "approval.wait_for_cli"],
            id="program-without-channel",
        ),
        pytest.param(
            "[approval]\nchannels = ['program']\nwait_for_cli = 1\n",
            ["approval.program", "approval.wait_for_cli"],
            id="channel-without-program",
        ),
        pytest.param(
            "[approval]\nchannels = 3\nprogram = ['x']\n",
            ["approval.channels", "approval.program[0]"],
            id="channels-of-another-type",
        ),
        pytest.param(
            "[approval]\nrule = [1, 2]\n", ["approval.rule[0]", "approval.rule[1]"], id="rules"
        ),
        pytest.param('"a.b" = 1\n\'c"d\' = 2\n', ["'a.b'", "'c\"d'"], id="quoted"),
        pytest.param("deny = [[1], {a = 1}, 'x']\n", ["deny[0]", "deny[1]"], id="odd"),
    ],
)  # fmt: skip
def test_one_error_does_not_make_another(tmp_path: Path, text: str, expected: list[str]) -> None:
    assert keys(find(tmp_path, text)) == expected


_VALUES = st.recursive(
    st.one_of(st.integers(-5, 5), st.booleans(), st.sampled_from(["", "[", "/usr", "x", "allow"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from([*config._APPROVAL_KEYS, *config._RULE_KEYS]), inner,
                        max_size=4),
    ),
    max_leaves=12,
)  # fmt: skip
_DATA = st.dictionaries(st.sampled_from([*config._KEYS, "odd key"]), _VALUES, max_size=6)


def first_error(data: dict[str, object], file: bytes) -> list[str]:
    try:
        config.build(data, file, HOME)
    except ConfigError as error:
        return [str(error)]
    return []


@given(data=_DATA)
def test_whatever_a_file_says_the_search_ends_with_what_can_be_used(
    data: dict[str, object],
) -> None:
    file = b"/x/config.toml"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(config, "read", lambda *_, **__: data)
        found = config_problems.find(file, HOME)
    assert [str(error) for error in found.errors[:1]] == first_error(data, file)
    assert len({str(error) for error in found.errors}) == len(found.errors)


# --- what does not fit the disk


@pytest.fixture
def dirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dirs:
    home, run = tmp_path / "home", tmp_path / "run"
    home.mkdir()
    run.mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(run))
    return find_dirs(os.environ)


def test_every_root_that_does_not_fit_is_found(dirs: Dirs, tmp_path: Path) -> None:
    home = Path(os.fsdecode(dirs.home))
    (home / "file").touch()
    (home / "good").mkdir()
    (home / "Downloads").mkdir()
    (home / "Downloads" / "ask").touch()
    text = """
    read_roots = ["~/file", "~/.ssh", "~/good"]
    write_roots = ["~/.aws/x", "~/good/not-yet"]
    link_ok = ["/usr", "{tmp}/mine"]
    [approval]
    channels = ["program"]
    program = ["~/Downloads/ask"]
    """
    (tmp_path / "mine").mkdir()
    os.chown(tmp_path / "mine", os.getuid(), -1)
    file = tmp_path / "c.toml"
    file.write_text(text.replace("{tmp}", str(tmp_path)))
    file.chmod(0o600)
    loaded = config.load(bytes(file), dirs.home)

    found = [str(error) for error in config_problems.find_in_places(loaded, dirs.mountpoint, dirs)]

    words = ["a root is a directory", "is hidden (/.ssh)", "is hidden (/.aws)", "write root"]
    words += [] if os.getuid() == 0 else ["not to root"]
    assert len(found) == len(words), found
    for word in words:
        assert sum(word in line for line in found) == 1


def test_a_mountpoint_that_fits_nowhere_is_one_error(dirs: Dirs, tmp_path: Path) -> None:
    loaded = config.build({}, bytes(tmp_path / "c"), dirs.home)
    loaded = replace(loaded, read_roots=(b"/srv", b"/opt"))

    (error,) = config_problems.find_in_places(loaded, dirs.home, dirs)

    assert "covers the home" in error.what


def test_a_configuration_that_fits_has_no_error(dirs: Dirs, tmp_path: Path) -> None:
    loaded = config.build({}, bytes(tmp_path / "c"), dirs.home)

    assert list(config_problems.find_in_places(loaded, dirs.mountpoint, dirs)) == []
