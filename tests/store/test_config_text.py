"""The configuration in words."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from lamfuse.core.rules import DEFAULT_DENY
from lamfuse.core.runs_later import DEFAULT_RUNS_LATER
from lamfuse.store.config import Config, load
from lamfuse.store.config_text import effective, first_text

HOME = b"/home/lam"


def read(place: Path, text: str) -> Config:
    file = place / "config.toml"
    file.write_text(text)
    file.chmod(0o600)
    return load(os.fsencode(file), HOME)


@pytest.mark.requirement("H19")
@pytest.mark.parametrize("file_access", [True, False])
def test_the_first_file_changes_nothing_but_file_access(tmp_path: Path, file_access: bool) -> None:
    default = load(os.fsencode(tmp_path / "config.toml"), HOME)

    config = read(tmp_path, first_text(file_access=file_access))

    assert replace(config, origin={}) == replace(default, file_access=file_access, origin={})


def test_every_example_in_the_first_file_is_right(tmp_path: Path) -> None:
    """With each commented-out line in force, every key of the documentation is set."""
    text = first_text(file_access=False)
    in_force = re.sub(r"^# (?=\[\[|[a-z_]+ = )", "", text, flags=re.MULTILINE)

    config = read(tmp_path, in_force)

    assert {key for key, origin in config.origin.items() if origin == "default"} == set()
    assert config.approval.rules
    assert config.notes == ()
    assert replace(config.approval, rules=()) == replace(Config(b"", b"").approval, rules=())
    assert config.link_ok == Config(b"", b"").link_ok


def test_the_first_file_names_the_default_roots_and_rules() -> None:
    text = first_text(file_access=False)

    for part in ("~/Documents/Lam Agent", *DEFAULT_DENY):
        assert part in text, part


def test_lines_of_the_first_file_fit_a_screen() -> None:
    lines = first_text(file_access=False).splitlines()

    assert [line for line in lines if len(line) > 100] == []


class TestEffective:
    """What is in force, and where it comes from."""

    def test_every_key_has_a_row_also_without_a_file(self, tmp_path: Path) -> None:
        config = load(os.fsencode(tmp_path / "config.toml"), HOME)

        rows = effective(config)

        assert {key for key, _, _ in rows} == {*config.origin}
        assert {origin for _, _, origin in rows} == {"default"}
        assert ("deny", list(DEFAULT_DENY), "default") in rows
        assert ("runs_later", list(DEFAULT_RUNS_LATER), "default") in rows
        assert ("approval.shown_timeout_s", 60.0, "default") in rows

    def test_what_is_added_has_a_row_of_its_own(self, tmp_path: Path) -> None:
        config = read(
            tmp_path,
            'deny = ["x/"]\nwrite_roots = ["~/w", "~/Downloads"]\nread_roots = ["/data"]\n'
            '[[approval.rule]]\npaths = ["~/w/**"]\noperations = ["write"]\nanswer = "allow"\n',
        )
        file = str(tmp_path / "config.toml")

        rows = effective(config)

        assert [row for row in rows if row[0] == "deny"] == [
            ("deny", list(DEFAULT_DENY), "default"),
            ("deny", ["x/"], file),
        ]
        assert [row[1:] for row in rows if row[0] == "write_roots"] == [
            (
                [
                    "/home/lam/Downloads",
                    "/home/lam/Documents/Lam Agent",
                    "/home/lam/.local/share/lamfuse/agent",
                ],
                "default",
            ),
            (["/home/lam/w"], file),
        ]
        assert ("read_roots", ["/data"], file) in rows
        assert ("approval.rule", ["allow write: ~/w/**"], file) in rows
        assert ("link_ok", [p.decode() for p in config.link_ok], "default") in rows

    def test_stray_bytes_are_escaped(self) -> None:
        rows = effective(Config(b"/c", b"/home/\xff"))

        assert [
            value[0] for key, value, _ in rows if key == "write_roots" and isinstance(value, list)
        ] == ["/home/\\xff/Downloads"]
