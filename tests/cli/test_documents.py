"""The pages about the command line say what the commands are."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
from pathlib import Path

import click
import pytest

from lamfuse.cli import main as cli
from lamfuse.cli.exit_codes import ExitCode

_DOCS = Path(__file__).parents[2] / "docs"
_PAGE = (_DOCS / "cli.md").read_text()
_MANUAL = (_DOCS / "man" / "lamfuse.1.md").read_text()
_ROFF = (_DOCS / "man" / "lamfuse.1").read_text()


def _options(name: str) -> list[str]:
    command = importlib.import_module(f"lamfuse.cli.{name}").command
    assert isinstance(command, click.Command)
    return [
        option
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for option in parameter.opts
    ]


@pytest.mark.parametrize("name", list(cli._COMMANDS))
def test_every_command_is_on_both_pages(name: str) -> None:
    assert f"`lamfuse {name}" in _PAGE
    assert f"\n**{name}**" in _MANUAL


@pytest.mark.parametrize("name", list(cli._COMMANDS))
def test_every_option_is_on_both_pages(name: str) -> None:
    for option in _options(name):
        assert option in _PAGE
        assert f"**{option}**" in _MANUAL


def test_no_command_is_described_that_does_not_exist() -> None:
    assert set(re.findall(r"`lamfuse ([a-z]+)", _PAGE)) == set(cli._COMMANDS)
    commands = _MANUAL.partition("## COMMANDS")[2].partition("## OPTIONS")[0]
    assert re.findall(r"^\*\*([a-z]+)\*\*", commands, re.MULTILINE) == list(cli._COMMANDS)


def test_no_option_is_described_that_does_not_exist() -> None:
    known = {option for name in cli._COMMANDS for option in _options(name)}
    known |= {"--help", "--version"}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", _PAGE + _MANUAL)) <= known


def test_every_exit_code_is_on_both_pages() -> None:
    listed = re.findall(r"^\| (\d+) \|", _PAGE, re.MULTILINE)
    assert [int(code) for code in listed] == [int(code) for code in ExitCode]
    status = _MANUAL.partition("## EXIT STATUS")[2].partition("## ENVIRONMENT")[0]
    assert [int(code) for code in re.findall(r"^(\d+)$", status, re.MULTILINE)] == list(ExitCode)


def test_the_manual_says_the_same_in_both_forms() -> None:
    source = re.sub(r"^(# .*|## |: )", "", _MANUAL, flags=re.MULTILINE)
    plain = re.sub(r"[*`]", "", source).split()
    text = re.sub(r'^(\.\\".*|\.TH .*|\.TP|\.PP|\.SH )', "", _ROFF, flags=re.MULTILINE)
    text = re.sub(r"\\f[BIR]", "", text).replace("\\-", "-").replace('"', "")
    assert text.split() == plain


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_the_manual_can_be_set() -> None:
    done = subprocess.run(
        ["groff", "-man", "-ww", "-Tutf8"], input=_ROFF.encode(), capture_output=True, check=True
    )
    assert done.stderr == b""
