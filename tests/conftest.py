"""What every test gets: a private place, capability probes, and a look at what it left behind.

Nothing here knows the package: fixtures that build lamfuse's own objects stand beside their tests.
After each test no descriptor is open and no view mounted that was not before, and no log record of
level WARNING or above was made unless the test says so with `@pytest.mark.expects_log(REGEX)`, or
reads the log itself.
"""

import gc
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from tests import residue

__all__ = ["leaves_nothing", "log_is_quiet", "private_environment", "short_dir"]

# Deadlines measure the machine, not the code; the examples of a failed run are printed, since the
# database of a throw-away folder is gone.
hypothesis.settings.register_profile("lamfuse", deadline=None, print_blob=True)
hypothesis.settings.register_profile(
    "lamfuse-ci", deadline=None, print_blob=True, derandomize=True, max_examples=100
)
# A mutant is killed by any failure; the smallest example of it is of no use.
hypothesis.settings.register_profile(
    "lamfuse-mutate",
    deadline=None,
    derandomize=True,
    max_examples=60,
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
)
hypothesis.settings.load_profile(
    os.environ.get("LAMFUSE_HYPOTHESIS", "lamfuse-ci" if os.environ.get("CI") else "lamfuse")
)

# On a machine that is meant to be complete (scripts/test says so), a skip is a failure.
_NO_SKIPS = os.environ.get("LAMFUSE_NO_SKIPS") == "1"


def _lacks_for_mounting() -> str | None:
    if not os.path.exists("/dev/fuse"):
        return "no /dev/fuse"
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "/dev/fuse is closed to this user"
    if shutil.which("fusermount3") is None:
        return "no fusermount3"
    return None


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what this machine or user cannot run, with the reason."""
    lacks = None
    if item.get_closest_marker("root") is not None and os.geteuid() != 0:
        lacks = "needs root"
    elif item.get_closest_marker("mount") is not None:
        lacks = _lacks_for_mounting()
    if lacks is not None:
        if _NO_SKIPS:
            pytest.fail(f"this machine cannot run the test: {lacks}", pytrace=False)
        pytest.skip(lacks)


@pytest.fixture(scope="session", autouse=True)
def private_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the person's own home, configuration and running daemon out of every test."""
    place = tmp_path_factory.mktemp("person")
    runtime = place / "run"
    runtime.mkdir(mode=0o700)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(place))
        patch.setenv("XDG_RUNTIME_DIR", str(runtime))
        for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
            patch.delenv(name, raising=False)
        for name in ("DBUS_SESSION_BUS_ADDRESS", "SSH_AUTH_SOCK", "DISPLAY", "WAYLAND_DISPLAY"):
            patch.delenv(name, raising=False)
        yield


@pytest.fixture
def short_dir() -> Iterator[Path]:
    """Make a private directory with a short path: a socket's may have 107 bytes."""
    place = Path(tempfile.mkdtemp(prefix="lf-"))
    yield place
    residue.remove(place)


@pytest.fixture(autouse=True)
def leaves_nothing(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail the test that leaves a descriptor open or a view mounted."""
    mounting = request.node.get_closest_marker("mount") is not None
    mounts = residue.view_mounts() if mounting else set()
    descriptors = residue.descriptors()
    yield
    left = residue.descriptors() - descriptors
    if left:
        gc.collect()  # what only a cycle holds is not leaked; an open count that stays is
        left = residue.descriptors() - descriptors
    assert not left, f"left open: {sorted(residue.describe(fd) for fd in left)}"
    if mounting:
        here = os.fsencode(tempfile.gettempdir())
        new = {mount for mount in residue.view_mounts() - mounts if mount.is_below(here)}
        assert not new, f"left mounted: {sorted(mount.point for mount in new)}"


class _Recorder(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.levelname} {record.name}: {record.getMessage()}")


@pytest.fixture(autouse=True)
def log_is_quiet(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail on a WARNING nobody announced, and on an announced one that did not come.

    A test that takes the `caplog` fixture reads the log itself.
    """
    if "caplog" in request.fixturenames:
        yield
        return
    expected = [
        re.compile(pattern)
        for marker in request.node.iter_markers("expects_log")
        for pattern in marker.args
    ]
    recorder = _Recorder()
    logging.getLogger().addHandler(recorder)
    yield
    logging.getLogger().removeHandler(recorder)
    surprising = [
        line for line in recorder.lines if not any(pattern.search(line) for pattern in expected)
    ]
    assert not surprising, f"logged: {surprising}"
    absent = [
        pattern.pattern
        for pattern in expected
        if not any(pattern.search(line) for line in recorder.lines)
    ]
    assert not absent, f"not logged: {absent}, but {recorder.lines}"
