"""The places of lamfuse's own files."""

from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path

import pytest

from lamfuse.core.errors import RefusedError
from lamfuse.store.dirs import Dirs, HomeLock, find_dirs, make_private, user_home


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A home of one's own, a runtime directory, and a temp directory."""
    for name in ("home", "run", "temp", "other"):
        (tmp_path / name).mkdir(mode=0o700)
    return {
        "HOME": str(tmp_path / "home"),
        "XDG_RUNTIME_DIR": str(tmp_path / "run"),
        "TMPDIR": str(tmp_path / "temp"),
    }


def test_the_own_home_has_plain_names(environ: dict[str, str], tmp_path: Path) -> None:
    base = os.fsencode(tmp_path)

    dirs = find_dirs(environ)

    assert dirs.own
    assert dirs.home == base + b"/home"
    assert dirs.config_file == base + b"/home/.config/lamfuse/config.toml"
    assert dirs.journal == base + b"/home/.local/state/lamfuse/journal.jsonl"
    assert dirs.log_file == base + b"/home/.local/state/lamfuse/lamfuse.log"
    assert dirs.mountpoint == base + b"/run/lamfuse/home"
    assert dirs.agent_dir == base + b"/home/.local/share/lamfuse/agent"
    assert os.path.dirname(dirs.socket) == base + b"/run/lamfuse"


def test_another_home_has_a_key_in_every_name(environ: dict[str, str], tmp_path: Path) -> None:
    own = find_dirs(environ)
    other = find_dirs(environ, os.fsencode(tmp_path / "other"))

    assert not other.own
    assert other.config_file == own.config_file
    assert other.agent_dir == os.fsencode(tmp_path / "other/.local/share/lamfuse/agent")
    for name in ("journal", "log_file", "mountpoint", "socket", "lock_file"):
        assert getattr(own, name) != getattr(other, name), name
        assert other.key.encode() in getattr(other, name), name
        assert os.path.dirname(getattr(own, name)) == os.path.dirname(getattr(other, name)), name


def test_the_socket_of_a_home_is_found_from_another_home(
    environ: dict[str, str], tmp_path: Path
) -> None:
    """Whoever's home it is: the name is made from the home that is served."""
    own = find_dirs(environ)
    elsewhere = find_dirs({**environ, "HOME": str(tmp_path / "other")}, own.home)

    assert own.socket == elsewhere.socket
    assert own.lock_file == elsewhere.lock_file


def test_two_spellings_of_a_home_are_one(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "home")

    spelled = find_dirs(environ, os.fsencode(tmp_path / "link/../home/."))
    linked = find_dirs({**environ, "HOME": str(tmp_path / "link")})

    assert find_dirs(environ) == spelled
    assert find_dirs(environ) == linked


@pytest.mark.parametrize(
    ("name", "place"),
    [
        pytest.param("XDG_CONFIG_HOME", "config_file", id="config"),
        pytest.param("XDG_STATE_HOME", "journal", id="state"),
        pytest.param("XDG_RUNTIME_DIR", "mountpoint", id="runtime"),
    ],
)
def test_an_xdg_value_counts_only_when_it_is_absolute(
    environ: dict[str, str], tmp_path: Path, name: str, place: str
) -> None:
    absolute = str(tmp_path / "xdg")
    (tmp_path / "xdg").mkdir(mode=0o700)
    unset = {key: value for key, value in environ.items() if key != name}

    assert getattr(find_dirs({**environ, name: absolute}), place).startswith(absolute.encode())
    for relative in ("", "xdg", "./xdg", "~/xdg"):
        assert find_dirs({**unset, name: relative}) == find_dirs(unset), relative


@pytest.mark.parametrize("home", ["", "relative", None])
def test_without_a_home_in_the_environment_the_user_database_counts(home: str | None) -> None:
    environ = {} if home is None else {"HOME": home}

    assert user_home(environ) == os.path.realpath(os.fsencode(pwd.getpwuid(os.getuid()).pw_dir))


def test_without_any_home_there_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(uid: int) -> object:
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", unknown)

    with pytest.raises(RefusedError, match="--home DIR"):
        user_home({})


@pytest.mark.parametrize("runtime", [None, "/nowhere/at/all"])
def test_without_a_runtime_directory_a_private_one_is_made(
    environ: dict[str, str], tmp_path: Path, runtime: str | None
) -> None:
    del environ["XDG_RUNTIME_DIR"]
    if runtime:
        environ["XDG_RUNTIME_DIR"] = runtime

    dirs = find_dirs(environ)
    dirs.make_runtime_dir()

    assert os.fsdecode(dirs.runtime_dir) == str(tmp_path / f"temp/lamfuse-{os.getuid()}")
    assert stat.S_IMODE(os.lstat(dirs.runtime_dir).st_mode) == 0o700
    assert os.path.dirname(dirs.socket) == dirs.runtime_dir


def test_a_runtime_directory_that_others_may_write_is_refused(
    environ: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "run").chmod(0o770)

    with pytest.raises(RefusedError, match="mode 700"):
        find_dirs(environ)


class TestMakePrivate:
    """The directories that hold sockets and records are this user's alone."""

    def test_it_is_made_with_its_parents(self, tmp_path: Path) -> None:
        make_private(os.fsencode(tmp_path / "a/b/c"))
        make_private(os.fsencode(tmp_path / "a/b/c"))

        assert stat.S_IMODE((tmp_path / "a/b/c").stat().st_mode) == 0o700
        assert stat.S_IMODE((tmp_path / "a").stat().st_mode) & 0o022 == 0

    @pytest.mark.parametrize("mode", [0o701, 0o710, 0o750, 0o770, 0o777, 0o1777])
    def test_one_that_lets_others_in_is_refused(self, tmp_path: Path, mode: int) -> None:
        (tmp_path / "d").mkdir()
        (tmp_path / "d").chmod(mode)

        with pytest.raises(RefusedError, match=f"mode {mode:04o}.*chmod 700"):
            make_private(os.fsencode(tmp_path / "d"))

    def test_a_link_is_refused_even_to_a_good_one(self, tmp_path: Path) -> None:
        (tmp_path / "d").mkdir(mode=0o700)
        (tmp_path / "link").symlink_to(tmp_path / "d")

        with pytest.raises(RefusedError, match="symbolic link"):
            make_private(os.fsencode(tmp_path / "link"))

    def test_a_dangling_link_is_refused_and_nothing_is_made(self, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to(tmp_path / "d")

        with pytest.raises(RefusedError, match="symbolic link"):
            make_private(os.fsencode(tmp_path / "link"))

        assert not (tmp_path / "d").exists()

    def test_a_file_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "d").touch()

        with pytest.raises(RefusedError, match="not a directory"):
            make_private(os.fsencode(tmp_path / "d"))

    def test_a_parent_that_is_a_file_is_an_error_with_the_path(self, tmp_path: Path) -> None:
        (tmp_path / "f").touch()

        with pytest.raises(RefusedError, match="f/d cannot be made"):
            make_private(os.fsencode(tmp_path / "f/d"))

    def test_one_of_another_user_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "d").mkdir(mode=0o700)
        owner = os.getuid()
        monkeypatch.setattr(os, "getuid", lambda: owner + 1)

        with pytest.raises(RefusedError, match=rf"another user \(uid {owner}\)"):
            make_private(os.fsencode(tmp_path / "d"))


class TestOwnPlaces:
    """What no view may show."""

    def test_config_state_runtime_and_mountpoint_are_hidden(self, environ: dict[str, str]) -> None:
        dirs = find_dirs(environ)

        places = dirs.own_places()

        assert {dirs.config_dir, dirs.state_dir, dirs.runtime_dir, dirs.mountpoint} <= {*places}
        assert not any(dirs.agent_dir.startswith(place) for place in places)

    def test_a_config_file_elsewhere_is_hidden_too(
        self, environ: dict[str, str], tmp_path: Path
    ) -> None:
        elsewhere = os.fsencode(tmp_path / "home/my.toml")

        dirs = find_dirs(environ, config_file=elsewhere)

        assert {elsewhere, dirs.config_dir} <= {*dirs.own_places()}

    def test_both_ends_of_a_link_are_hidden(self, environ: dict[str, str], tmp_path: Path) -> None:
        (tmp_path / "home/dotfiles/lamfuse").mkdir(parents=True)
        (tmp_path / "home/.config").symlink_to("dotfiles")
        (tmp_path / "home/dotfiles/real.toml").touch()
        (tmp_path / "home/dotfiles/lamfuse/config.toml").symlink_to("../real.toml")

        places = find_dirs(environ).own_places()

        for name in ("dotfiles/lamfuse", "dotfiles/real.toml", ".config/lamfuse"):
            assert os.fsencode(tmp_path / "home" / name) in places, name

    def test_another_mountpoint_is_hidden_and_never_looked_at(
        self, environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A look at the mountpoint from its own daemon would wait for ever."""
        mountpoint = os.fsencode(tmp_path / "home/view")
        dirs = find_dirs(environ)
        looked: list[bytes] = []
        lstat = os.lstat

        def watch(path: bytes) -> os.stat_result:
            looked.append(path)
            return lstat(path)

        monkeypatch.setattr(os, "lstat", watch)
        places = dirs.own_places(mountpoint)

        assert mountpoint in places
        assert dirs.mountpoint in places
        assert os.path.dirname(mountpoint) in looked
        assert mountpoint not in looked
        assert dirs.mountpoint not in looked


class TestHomeLock:
    """One daemon a home."""

    @pytest.fixture
    def dirs(self, environ: dict[str, str]) -> Dirs:
        dirs = find_dirs(environ)
        dirs.make_runtime_dir()
        return dirs

    def test_a_second_holder_is_told_who_holds_it(self, dirs: Dirs) -> None:
        with (
            HomeLock(dirs.lock_file),
            pytest.raises(RefusedError, match=f"pid {os.getpid()}"),
            HomeLock(dirs.lock_file),
        ):
            pytest.fail("two daemons serve one home")

    def test_it_can_be_taken_again_after_it_was_let_go(self, dirs: Dirs) -> None:
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(2):
            with HomeLock(dirs.lock_file):
                pass
        with HomeLock(dirs.lock_file), pytest.raises(RefusedError), HomeLock(dirs.lock_file):
            pytest.fail("two daemons serve one home")

        assert len(os.listdir("/proc/self/fd")) == before
        assert stat.S_IMODE(os.stat(dirs.lock_file).st_mode) == 0o600

    def test_another_home_is_another_lock(
        self, dirs: Dirs, environ: dict[str, str], tmp_path: Path
    ) -> None:
        other = find_dirs(environ, os.fsencode(tmp_path / "other"))

        with HomeLock(dirs.lock_file) as first, HomeLock(other.lock_file) as second:
            assert first is not second

    def test_a_link_in_its_place_is_refused(self, dirs: Dirs, tmp_path: Path) -> None:
        os.symlink(os.fsencode(tmp_path / "victim"), dirs.lock_file)

        with pytest.raises(RefusedError, match="cannot be opened"), HomeLock(dirs.lock_file):
            pytest.fail("a link was followed")

        assert not (tmp_path / "victim").exists()
