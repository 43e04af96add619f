from __future__ import annotations

import os
import pty
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from lamfuse.store.dirs import Dirs
from tests.cli.fake_daemon import lamfuse

pytestmark = pytest.mark.requirement("H19")


def _written(dirs: Dirs) -> dict[str, object]:
    return tomllib.loads(Path(os.fsdecode(dirs.config_file)).read_text())


@pytest.mark.parametrize(
    ("arguments", "is_on"),
    [
        pytest.param([], False, id="nobody-to-ask"),
        pytest.param(["--file-access", "no"], False, id="no"),
        pytest.param(["--file-access", "yes"], True, id="yes"),
    ],
)
def test_file_access_is_off_unless_somebody_says_yes(
    dirs: Dirs, arguments: list[str], is_on: bool
) -> None:
    result = lamfuse("init", *arguments)
    assert result.code == 0
    assert result.out == (
        f"wrote ~/.config/lamfuse/config.toml; the file tools are {'on' if is_on else 'off'}\n"
    )
    assert _written(dirs)["file_access"] is is_on


def test_the_file_is_for_its_owner_alone_and_can_be_used(dirs: Dirs) -> None:
    assert lamfuse("init").code == 0
    assert stat.S_IMODE(os.stat(dirs.config_file).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(dirs.config_dir).st_mode) == 0o700
    assert os.listdir(dirs.config_dir) == [b"config.toml"]
    assert lamfuse("config").code == 0


@pytest.mark.parametrize("kind", ["file", "dangling-link", "directory"])
def test_what_is_there_is_never_overwritten(dirs: Dirs, kind: str) -> None:
    os.makedirs(dirs.config_dir, mode=0o700)
    place = Path(os.fsdecode(dirs.config_file))
    match kind:
        case "file":
            place.write_text("mine")
        case "dangling-link":
            place.symlink_to("nowhere")
        case _:
            place.mkdir()
    before = os.lstat(dirs.config_file)
    result = lamfuse("init", "--file-access", "yes")
    assert result.code == 1
    assert "~/.config/lamfuse/config.toml" in result.err
    after = os.lstat(dirs.config_file)
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert os.listdir(dirs.config_dir) == [b"config.toml"]


def test_another_place_can_be_named(dirs: Dirs, tmp_path: Path) -> None:
    place = tmp_path / "other.toml"
    assert lamfuse("init", "--config", str(place)).code == 0
    assert tomllib.loads(place.read_text())["file_access"] is False
    assert not os.path.exists(dirs.config_file)


@pytest.mark.parametrize(
    ("typed", "is_on"),
    [
        pytest.param(b"y\n", True, id="yes"),
        pytest.param(b"n\n", False, id="no"),
        pytest.param(b"\n", False, id="enter"),
        pytest.param(b"perhaps\n\n", False, id="unclear"),
    ],
)
def test_on_a_terminal_the_person_is_asked(dirs: Dirs, typed: bytes, is_on: bool) -> None:
    master, slave = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "lamfuse", "init"], stdin=slave, stdout=slave, stderr=slave
    ) as process:
        os.close(slave)
        said = b""
        while b"?" not in said:
            said += os.read(master, 1024)
        os.write(master, typed)
        try:
            while chunk := os.read(master, 1024):
                said += chunk
        except OSError:
            pass  # the other end of a terminal closes with EIO
        assert process.wait(10) == 0
    os.close(master)
    assert b"model" in said
    assert _written(dirs)["file_access"] is is_on


def test_the_end_of_input_is_no_answer_and_writes_nothing(dirs: Dirs) -> None:
    master, slave = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "lamfuse", "init"], stdin=slave, stdout=slave, stderr=slave
    ) as process:
        os.close(slave)
        said = b""
        while b"?" not in said:
            said += os.read(master, 1024)
        os.write(master, b"\x04")
        assert process.wait(10) != 0
    os.close(master)
    assert not os.path.exists(dirs.config_file)
