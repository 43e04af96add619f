from __future__ import annotations

import os
from pathlib import Path

import pytest

from lamfuse.store.dirs import Dirs
from tests.cli.fake_daemon import lamfuse

pytestmark = pytest.mark.requirement("L8")


@pytest.fixture
def written(dirs: Dirs) -> Path:
    os.makedirs(dirs.config_dir, mode=0o700)
    return Path(os.fsdecode(dirs.config_file))


def test_without_a_file_everything_is_a_default_and_it_says_so(person: Path) -> None:
    result = lamfuse("config")
    assert result.code == 0
    assert "does not exist; lamfuse init writes it" in result.out
    assert " file " not in result.out


def test_each_value_has_its_origin(written: Path) -> None:
    written.write_text('deny = ["secrets/"]\n[approval]\nshown_timeout_s = 30\n')
    data = lamfuse("config", "--json").data
    values = [(row["key"], row["value"], row["origin"]) for row in data["values"]]
    assert ("deny", ["secrets/"], str(written)) in values
    assert ("approval.shown_timeout_s", 30, str(written)) in values
    assert ("approval.total_timeout_s", 110, "default") in values
    assert data["exists"] is True
    out = lamfuse("config").out
    assert "approval.shown_timeout_s  file     30" in out
    assert "approval.total_timeout_s  default  110" in out


def test_an_entry_that_was_skipped_is_named(written: Path) -> None:
    written.write_text('read_roots = ["relative/place"]\n')
    assert "skipped: read_roots: 'relative/place'" in lamfuse("config").out


def test_control_characters_are_made_visible(written: Path) -> None:
    written.write_text('deny = ["a\\u001b[2J"]\n')
    assert "\x1b" not in lamfuse("config").out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(
            "denyy = []", ["config.toml", "denyy", "Did you mean deny?"], id="unknown-key"
        ),
        pytest.param("deny = [", ["config.toml:1", "not TOML"], id="broken"),
        pytest.param('deny = ["a\\\\"]', ["config.toml", "deny[0]"], id="bad-pattern"),
    ],
)
def test_a_wrong_file_is_named_with_the_key_and_a_remedy(
    written: Path, text: str, words: list[str]
) -> None:
    written.write_text(text)
    result = lamfuse("config")
    assert result.code == 1
    assert all(word in result.err for word in words)
    assert "Traceback" not in result.err


def test_a_file_that_was_named_must_exist(person: Path, tmp_path: Path) -> None:
    result = lamfuse("config", "--config", str(tmp_path / "missing.toml"))
    assert result.code == 1
    assert "missing.toml" in result.err


@pytest.mark.parametrize(
    ("make", "words"),
    [
        pytest.param(False, "does not exist", id="missing"),
        pytest.param(True, "is not a directory", id="file"),
    ],
)
def test_a_home_that_is_no_directory_is_refused(
    person: Path, tmp_path: Path, make: bool, words: str
) -> None:
    home = tmp_path / "elsewhere"
    if make:
        home.touch()
    result = lamfuse("config", "--home", str(home))
    assert result.code == 1
    assert words in result.err
    assert str(home) in result.err
    assert "--home DIR" in result.err
