from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys

import click
import pytest

from lamfuse.cli import main as cli
from lamfuse.core.errors import MachineError
from tests.cli.fake_daemon import lamfuse

pytestmark = pytest.mark.requirement("L8")


def _lamfuse_process(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lamfuse", *arguments], capture_output=True, text=True, check=False
    )


def test_help_lists_every_command_in_order() -> None:
    result = lamfuse("--help")
    assert result.code == 0
    listed = re.findall(r"^  ([a-z]+)  ", result.out, re.MULTILINE)
    assert listed == list(cli._COMMANDS)


@pytest.mark.parametrize("name", list(cli._COMMANDS))
def test_every_listed_command_explains_itself(name: str) -> None:
    command = importlib.import_module(f"lamfuse.cli.{name}").command
    assert isinstance(command, click.Command)
    assert command.name == name
    result = lamfuse(name, "--help")
    assert result.code == 0
    assert result.out.startswith(f"Usage: lamfuse {name} ")


@pytest.mark.parametrize("name", ["run", "mcp", "prompt", "hooks", "nonsense"])
def test_a_command_that_does_not_exist_is_a_usage_error(name: str) -> None:
    result = lamfuse(name)
    assert result.code == 2
    assert name in result.err


def test_an_unknown_option_is_a_usage_error() -> None:
    assert lamfuse("status", "--frobnicate").code == 2


def test_the_version_is_the_installed_one() -> None:
    result = lamfuse("--version")
    assert result.code == 0
    assert re.fullmatch(r"lamfuse \d+\.\d+\.\d+\n", result.out)


def test_help_needs_none_of_the_heavy_modules() -> None:
    code = (
        "import sys; from lamfuse.cli.main import run; run(['--help']);"
        "print([name for name in ('trio', 'pyfuse3', 'msgspec', 'hashlib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")


def test_mount_imports_neither_loop_nor_fuse_before_the_fork() -> None:
    code = (
        "import sys, lamfuse.cli.mount;"
        "print([name for name in ('trio', 'pyfuse3', 'threading_') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_fault_of_our_own_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAMFUSE_DEBUG", raising=False)
    monkeypatch.setattr("lamfuse.cli.options.places_of", lambda _home, _config: 1 / 0)
    result = lamfuse("status")
    assert result.code == 1
    assert result.err == (
        "lamfuse: a fault of lamfuse itself: ZeroDivisionError: division by zero."
        " LAMFUSE_DEBUG=1 shows where.\n"
    )


def test_a_fault_shows_where_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMFUSE_DEBUG", "1")
    monkeypatch.setattr("lamfuse.cli.options.places_of", lambda _home, _config: 1 / 0)
    result = lamfuse("status")
    assert result.code == 1
    assert "Traceback" in result.err


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        pytest.param(MachineError("no \x1b[2J fuse."), 4, "lamfuse: no \\x1b[2J fuse.", id="ours"),
        pytest.param(
            PermissionError(13, "Permission denied", b"/x\n\xff"),
            1,
            "lamfuse: /x\\n\\xff: Permission denied.",
            id="os-with-a-name",
        ),
        pytest.param(OSError(28, "No space left on device"), 1, "lamfuse: No space", id="os"),
        pytest.param(KeyboardInterrupt(), 130, "", id="interrupted"),
        pytest.param(
            ExceptionGroup("g", [MachineError("no fuse.")]), 4, "lamfuse: no fuse.", id="group"
        ),
    ],
)
def test_an_error_becomes_a_line_and_a_code(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, line: str
) -> None:
    def fail(_home: object, _config: object) -> None:
        raise error

    monkeypatch.delenv("LAMFUSE_DEBUG", raising=False)
    monkeypatch.setattr("lamfuse.cli.options.places_of", fail)
    result = lamfuse("status")
    assert result.code == code
    assert result.err.startswith(line)
    assert result.err.count("\n") == 1


def test_a_reader_that_goes_away_is_no_fault() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with subprocess.Popen(
        [sys.executable, "-m", "lamfuse", "--help"], stdout=writing, stderr=subprocess.PIPE
    ) as process:
        os.close(writing)
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert process.returncode == 1


def test_a_terminal_that_lacks_a_character_gets_an_escape() -> None:
    code = (
        "import sys; from lamfuse.cli import render, main; main.run(['--version']);"
        "render.aside('\\u2192')"
    )
    environment = {**os.environ, "PYTHONIOENCODING": "iso-8859-1"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stderr == "\\u2192\n"
