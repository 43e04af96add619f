"""A journal in a directory of its own, and a configuration file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lamfuse.store.config import Config, load
from lamfuse.store.journal import FileJournal
from tests.store.journals import closing

HOME = b"/home/lam"

Load = Callable[[str | bytes], Config]


@pytest.fixture
def path(tmp_path: Path) -> bytes:
    """Where the journal is to be; its directory does not exist yet."""
    return os.fsencode(tmp_path / "state/journal.jsonl")


@pytest.fixture
def journal(path: bytes) -> Iterator[FileJournal]:
    """An empty journal with a clock that stands still."""
    with closing(FileJournal(path, clock=lambda: 1_700_000_000.1239)) as opened:
        yield opened


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where the configuration is; it does not exist yet."""
    return tmp_path / "config.toml"


@pytest.fixture
def read(file: Path) -> Load:
    """Write a configuration and load it."""

    def write_and_load(text: str | bytes) -> Config:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        file.chmod(0o600)
        return load(os.fsencode(file), HOME)

    return write_and_load
