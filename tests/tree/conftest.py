"""A throw-away tree for each test, and a descriptor of its top."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamfuse.tree import syscalls


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Make an empty directory whose path has no link in it."""
    place = Path(os.path.realpath(tmp_path)) / "home"
    place.mkdir()
    return place


@pytest.fixture
def top(home: Path) -> Iterator[int]:
    """Give an O_PATH descriptor of the home."""
    fd = syscalls.open_root(os.fsencode(home))
    yield fd
    syscalls.close(fd)
