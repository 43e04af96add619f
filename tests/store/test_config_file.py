"""Who may have written the configuration: it decides what an agent may do."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lamfuse.core.errors import ConfigError
from lamfuse.store.config import (
    Config,
    load,
)

HOME = b"/home/lam"

Load = Callable[[str | bytes], Config]


def test_a_named_file_must_exist(file: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        load(os.fsencode(file), HOME, must_exist=True)


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666, 0o777])
def test_one_that_others_may_write_is_refused(file: Path, mode: int) -> None:
    file.touch()
    file.chmod(mode)

    with pytest.raises(ConfigError, match=f"mode {mode:04o}.*chmod go-w"):
        load(os.fsencode(file), HOME)


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o644, 0o755])
def test_one_that_others_may_read_is_fine(file: Path, mode: int) -> None:
    file.write_text("file_access = true")
    file.chmod(mode)

    assert load(os.fsencode(file), HOME).file_access


def test_one_of_another_user_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.touch(0o600)
    found = os.stat(file)
    other = os.stat_result((found.st_mode, 0, 0, 1, found.st_uid + 1, 0, 0, 0, 0, 0))
    monkeypatch.setattr(os, "fstat", lambda fd: other)

    with pytest.raises(ConfigError, match=rf"uid {found.st_uid + 1}\)"):
        load(os.fsencode(file), HOME)


def test_one_of_root_is_fine(file: Path, monkeypatch: pytest.MonkeyPatch, read: Load) -> None:
    file.write_text("file_access = true")
    file.chmod(0o600)
    found = os.stat(file)
    roots = os.stat_result((found.st_mode, 0, 0, 1, 0, 0, found.st_size, 0, 0, 0))
    with monkeypatch.context() as patch:
        patch.setattr(os, "getuid", lambda: 1000)
        patch.setattr("lamfuse.store.config.os.fstat", lambda fd: roots)
        config = load(os.fsencode(file), HOME)

    assert config.file_access


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda file: file.mkdir(), id="directory"),
        pytest.param(lambda file: os.mkfifo(file, 0o600), id="fifo"),
        pytest.param(lambda file: file.symlink_to(file), id="loop"),
        pytest.param(lambda file: file.symlink_to("/dev/zero"), id="device"),
    ],
)
def test_what_is_no_file_is_refused_without_waiting(
    file: Path, spoil: Callable[[Path], None]
) -> None:
    spoil(file)

    with pytest.raises(ConfigError):
        load(os.fsencode(file), HOME)


def test_a_link_to_a_good_file_is_followed(file: Path) -> None:
    target = file.with_name("dotfiles.toml")
    target.write_text("file_access = true")
    target.chmod(0o600)
    file.symlink_to(target)

    assert load(os.fsencode(file), HOME).file_access


def test_no_descriptor_is_left_open(file: Path, read: Load) -> None:
    before = len(os.listdir("/proc/self/fd"))
    read("file_access = true")
    with pytest.raises(ConfigError):
        read("file_access = 1")
    file.chmod(0o666)
    with pytest.raises(ConfigError):
        load(os.fsencode(file), HOME)

    assert len(os.listdir("/proc/self/fd")) == before
