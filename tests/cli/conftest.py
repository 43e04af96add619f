from __future__ import annotations

import os
import queue
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from lamfuse.control import server
from lamfuse.store.dirs import Dirs, find_dirs
from tests.cli.fake_daemon import FakeDaemon
from tests.control.fake_backend import FakeBackend


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, with the XDG directories that go with it."""
    home = tmp_path / "home"
    runtime = tmp_path / "run"
    home.mkdir()
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "LAMFUSE_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(home)
    return home


@pytest.fixture
def dirs(person: Path) -> Dirs:
    return find_dirs(os.environ)


@pytest.fixture
def daemon(dirs: Dirs) -> Iterator[FakeDaemon]:
    """The real server with a backend that answers from memory, in a thread of this process."""
    dirs.make_runtime_dir()
    started: queue.Queue[FakeDaemon] = queue.Queue()

    async def serve() -> None:
        backend = FakeBackend()
        async with trio.open_nursery() as nursery:
            await nursery.start(_serve, dirs.socket, backend)
            token = trio.lowlevel.current_trio_token()
            started.put(FakeDaemon(backend, token, nursery.cancel_scope))

    thread = threading.Thread(target=trio.run, args=(serve,))
    thread.start()
    try:
        fake = started.get(timeout=10)
        yield fake
        fake.end()
    finally:
        thread.join(10)


async def _serve(path: bytes, backend: FakeBackend, *, task_status: trio.TaskStatus[None]) -> None:
    await server.serve(path, backend, task_status=task_status)
