"""A handle on the fake daemon that runs in another thread, and a way to run commands."""

from __future__ import annotations

import contextlib
import io
import json
from dataclasses import dataclass
from typing import Any

import trio

from lamfuse.cli.main import run
from tests.control.fake_backend import FakeBackend

__all__ = ["FakeDaemon", "Result", "lamfuse"]


@dataclass(frozen=True)
class Result:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)


@dataclass
class FakeDaemon:
    """``backend`` may be changed while no command runs."""

    backend: FakeBackend
    token: trio.lowlevel.TrioToken
    scope: trio.CancelScope

    def end(self) -> None:
        with contextlib.suppress(trio.RunFinishedError):
            trio.from_thread.run_sync(self.scope.cancel, trio_token=self.token)


def lamfuse(*arguments: str) -> Result:
    """Run a command in this process."""
    out, err = io.BytesIO(), io.BytesIO()
    # Text over bytes, as the real ones: JSON is written as bytes.
    stdout = io.TextIOWrapper(out, encoding="utf-8", write_through=True)
    stderr = io.TextIOWrapper(err, encoding="utf-8", write_through=True)
    with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
        code = run(arguments)
    return Result(int(code), out.getvalue().decode(), err.getvalue().decode())
