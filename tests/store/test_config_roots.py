"""Whether a configuration fits the disk."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lamfuse.core.errors import ConfigError
from lamfuse.store.config import load
from lamfuse.store.config_roots import check_roots
from lamfuse.store.dirs import Dirs, find_dirs

Check = Callable[..., None]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Hold home, run, and data beside them."""
    for name in ("home", "run", "data"):
        (tmp_path / name).mkdir(mode=0o700)
    return tmp_path


@pytest.fixture
def dirs(place: Path) -> Dirs:
    return find_dirs({"HOME": str(place / "home"), "XDG_RUNTIME_DIR": str(place / "run")})


@pytest.fixture
def check(place: Path, dirs: Dirs) -> Check:
    """Check a configuration; PLACE in its text stands for the directory of the test."""

    def check_text(text: str, mountpoint: str | None = None) -> None:
        os.makedirs(os.path.dirname(dirs.config_file), exist_ok=True)
        file = Path(os.fsdecode(dirs.config_file))
        file.write_text(text.replace("PLACE", str(place)))
        file.chmod(0o600)
        config = load(dirs.config_file, dirs.home)
        assert config.notes == ()
        mount = dirs.mountpoint if mountpoint is None else os.fsencode(place / mountpoint)
        check_roots(config, mount, dirs)

    return check_text


@pytest.mark.requirement("H22")
@pytest.mark.parametrize(
    ("text", "mountpoint"),
    [
        pytest.param("", None, id="defaults"),
        pytest.param(
            'write_roots = ["~/new", "/no/such/place"]', None, id="missing roots are kept"
        ),
        pytest.param('write_roots = ["~"]', None, id="home as a write root"),
        pytest.param('read_roots = ["~"]', "home/view", id="home as a read root holds the mount"),
        pytest.param('read_roots = ["PLACE/data"]', "home/view", id="mount in home"),
        pytest.param('deny = ["Downloads/"]', None, id="a default root may be hidden"),
        pytest.param('link_ok = ["/usr", "/no/such"]', None, id="link_ok of root"),
        pytest.param(
            'approval = {channels = ["program"], program = ["~/.local/bin/ask"]}',
            None,
            id="program",
        ),
    ],
)
def test_what_fits_passes(check: Check, text: str, mountpoint: str | None) -> None:
    check(text, mountpoint)


@pytest.mark.parametrize(
    ("text", "mountpoint", "key", "why"),
    [
        pytest.param('write_roots = ["~/file"]', None, "write_roots", "is a file", id="file"),
        pytest.param(
            'read_roots = ["~/file/x"]', None, "read_roots", "looked at", id="below a file"
        ),
        pytest.param('read_roots = ["~/loop"]', None, "read_roots", "looked at", id="loop"),
        pytest.param('read_roots = ["~/.ssh"]', None, "read_roots", "hidden", id="hidden"),
        pytest.param('read_roots = ["~/.ssh/x"]', None, "read_roots", "hidden", id="below hidden"),
        pytest.param('read_roots = ["~/link"]', None, "read_roots", "hidden", id="link to hidden"),
        pytest.param(
            'read_roots = ["PLACE/data/.env"]', None, "read_roots", "hidden", id="by name"
        ),
        pytest.param(
            'deny = ["x/"]\nwrite_roots = ["~/x"]',
            None,
            "write_roots",
            "hidden (x/)",
            id="own rule",
        ),
        pytest.param(
            'write_roots = ["~/.config/lamfuse"]', None, "write_roots", "hidden", id="own places"
        ),
        pytest.param('read_roots = ["PLACE/run"]', None, "read_roots", "mountpoint", id="runtime"),
        pytest.param('read_roots = ["/"]', None, "read_roots", "mountpoint", id="everything"),
        pytest.param('read_roots = ["~/torun"]', None, "read_roots", "mountpoint", id="link to it"),
        pytest.param("", "home/Downloads/v", "write_roots", "mountpoint", id="in a default root"),
        pytest.param("", "home/Downloads", "write_roots", "mountpoint", id="on a default root"),
        pytest.param('write_roots = ["~"]', "home/v", "write_roots", "mountpoint", id="in home"),
        pytest.param(
            'read_roots = ["PLACE/data/x"]', "data", "read_roots", "mountpoint", id="over a root"
        ),
        pytest.param(
            "", "home/toroot/v", "write_roots", "mountpoint", id="in a root through a link"
        ),
        pytest.param(
            'approval = {channels = ["program"], program = ["~/Downloads/ask"]}',
            None,
            "approval.program[0]",
            "no agent can change",
            id="program in a write root",
        ),
    ],
)
def test_what_does_not_fit_is_named(
    check: Check, place: Path, text: str, mountpoint: str | None, key: str, why: str
) -> None:
    home = place / "home"
    (home / "file").touch()
    (home / "loop").symlink_to("loop")
    (home / "link").symlink_to(".ssh")
    (home / "torun").symlink_to(place / "run")
    (home / "Downloads").mkdir()
    (home / "toroot").symlink_to("Downloads")

    with pytest.raises(ConfigError) as caught:
        check(text, mountpoint)

    assert caught.value.where.endswith(f"config.toml: {key}")
    assert why in str(caught.value)
    assert caught.value.remedy


@pytest.mark.parametrize("mountpoint", ["home", ".", "home/."])
def test_a_mountpoint_over_home_is_refused(check: Check, mountpoint: str) -> None:
    with pytest.raises(ConfigError, match="covers the home"):
        check("", mountpoint)


def test_link_ok_of_an_ordinary_user_is_refused(
    check: Check, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever owns it can put a link there that leads anywhere."""
    real = os.stat
    target = str(place / "data")

    def stat(path: bytes | str, *args: object, **kwargs: object) -> os.stat_result:
        found = real(path)
        if os.fsdecode(path) != target:
            return found
        return os.stat_result((found.st_mode, 0, 0, 1, 1000, 0, 0, 0, 0, 0))

    monkeypatch.setattr("lamfuse.store.config_roots.os.stat", stat)

    with pytest.raises(ConfigError, match="belongs to uid 1000"):
        check('link_ok = ["PLACE/data"]')
