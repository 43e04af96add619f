"""What is hidden is not there: not in listings, not on lookup, not under another name."""

import errno
import os
import subprocess
from pathlib import Path

import pytest

from tests.fuse.bench import Bench
from tests.fuse.changes import EXCHANGE, errno_of, prepare, rename2, snapshot
from tests.mounting import HIDDEN, Mounted
from tests.person import plain_yes

pytestmark = pytest.mark.mount

HIDDEN_NAMES = [
    ".ssh", ".ssh/id_ed25519", ".gnupg", ".gnupg/secring.gpg", ".aws", ".aws/credentials",
    ".config/gh", ".config/gh/hosts.yml",
    ".docker/config.json", ".netrc", "project/.env", "Documents/cert.pem", "Downloads/.env.local",
    "spare/credentials.json", ".config/lamfuse", ".config/lamfuse/config.toml",
    ".local/state/lamfuse", ".local/state/lamfuse/journal.jsonl",
]  # fmt: skip


@pytest.mark.requirement("H5", "H11", "H21", "L9")
@pytest.mark.parametrize("name", HIDDEN_NAMES)
def test_what_is_hidden_is_not_there_for_any_call(bench: Bench, name: str) -> None:
    assert (bench.home / name).exists()
    path = bench.view / name
    for act in (
        lambda: os.lstat(path), lambda: os.stat(path), lambda: os.listdir(path),
        lambda: os.open(path, os.O_RDONLY), lambda: os.open(path, os.O_PATH),
        lambda: os.readlink(path), lambda: os.getxattr(path, "user.a"), lambda: os.statvfs(path),
        lambda: os.unlink(path), lambda: os.rmdir(path),
        lambda: os.link(path, bench.here / "copy"), lambda: os.rename(path, bench.here / "copy"),
        lambda: os.chmod(path, 0o600), lambda: os.truncate(path, 0),
        lambda: os.open(path, os.O_RDWR),
    ):  # fmt: skip
        assert errno_of(act) == errno.ENOENT
    assert not os.access(path, os.F_OK)


@pytest.mark.requirement("H5", "H21")
def test_listings_leave_out_what_is_hidden_and_nothing_else(bench: Bench) -> None:
    for folder in ("", "project", "Documents", "Downloads", "spare", ".config", ".local"):
        real = set(os.listdir(bench.home / folder))
        hidden = {
            Path(name).name for name in HIDDEN_NAMES if Path(name).parent == Path(folder or ".")
        }
        shown = set(os.listdir(bench.view / folder)) - ({".lamfuse"} if not folder else set())
        assert shown == real - hidden


@pytest.mark.requirement("H5")
def test_no_hidden_byte_is_found_by_reading_the_whole_view(bench: Bench) -> None:
    here = ["grep", "-rlFs", HIDDEN.decode(), "."]
    found = subprocess.run(here, cwd=bench.view, capture_output=True, check=False)
    assert (found.returncode, found.stdout) in {(1, b""), (2, b"")}
    found = subprocess.run(here, cwd=bench.home, capture_output=True, check=False)
    assert len(found.stdout.splitlines()) >= 11


@pytest.mark.requirement("H5", "H21")
@pytest.mark.parametrize(
    "name",
    [".env", ".ENV", ".env.production", "id_rsa", "x.pem", "X.PEM", "a.key", "credentials.json"],
)
@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("place", ["write root", "read-only"])
def test_a_denied_name_cannot_be_made_whether_or_not_it_is_there(
    bench: Bench, name: str, there: bool, place: str
) -> None:
    here, real = (
        (bench.here, bench.real) if place == "write root" else (bench.closed, bench.closed_real)
    )
    prepare(real)
    if there:
        (real / name).write_bytes(HIDDEN)
    before = snapshot(real)
    bench.person.forget(plain_yes)
    for act in (
        lambda: os.open(here / name, os.O_CREAT | os.O_WRONLY),
        lambda: os.open(here / name, os.O_CREAT | os.O_EXCL | os.O_WRONLY),
        lambda: os.mkdir(here / name),
        lambda: os.symlink("file", here / name),
        lambda: os.mkfifo(here / name),
        lambda: os.link(here / "file", here / name),
        lambda: os.rename(here / "file", here / name),
    ):
        assert errno_of(act) == errno.EACCES
    assert errno_of(lambda: os.stat(here / name)) == errno.ENOENT
    assert errno_of(lambda: rename2(here / "file", here / name, EXCHANGE)) in {
        errno.EACCES, errno.ENOENT,
    }  # fmt: skip
    assert bench.person.asked == []
    assert snapshot(real) == before


@pytest.mark.requirement("H5")
def test_an_exchange_with_a_denied_name_tells_nothing(bench: Bench) -> None:
    prepare(bench.real)
    (bench.real / ".env").write_bytes(HIDDEN)
    with_hidden = errno_of(lambda: rename2(bench.here / "file", bench.here / ".env", EXCHANGE))
    (bench.real / ".env").unlink()
    assert errno_of(lambda: rename2(bench.here / "file", bench.here / ".env", EXCHANGE)) == (
        with_hidden
    )


@pytest.mark.requirement("H5", "H33")
def test_a_hard_link_to_a_credential_is_hidden_under_every_name(bench: Bench) -> None:
    os.link(bench.home / ".ssh/id_ed25519", bench.closed_real / "innocent")
    (bench.closed_real / "plain").write_bytes(b"x")
    os.link(bench.closed_real / "plain", bench.closed_real / "plain2")
    try:
        assert errno_of(lambda: os.stat(bench.closed / "innocent")) == errno.ENOENT
        assert errno_of(lambda: os.open(bench.closed / "innocent", os.O_RDONLY)) == errno.ENOENT
        assert sorted(os.listdir(bench.closed)) == ["plain", "plain2"]
    finally:
        (bench.closed_real / "innocent").unlink()


@pytest.mark.requirement("H3", "H18")
def test_a_file_with_a_second_name_in_a_read_only_place_is_read_only(bench: Bench) -> None:
    (bench.real / "file").write_bytes(b"x")
    os.link(bench.real / "file", bench.closed_real / "second")
    os.stat(bench.closed / "second")
    bench.person.forget(plain_yes)
    for act in (
        lambda: os.open(bench.here / "file", os.O_WRONLY),
        lambda: os.truncate(bench.here / "file", 0),
        lambda: os.chmod(bench.here / "file", 0o600),
    ):
        assert errno_of(act) == errno.EROFS
    assert bench.person.asked == []
    assert (bench.closed_real / "second").read_bytes() == b"x"


@pytest.mark.requirement("H5")
def test_a_folder_is_not_moved_when_something_hidden_in_it_would_show(bench: Bench) -> None:
    (bench.real / "keys").mkdir()
    (bench.real / "keys/.env").write_bytes(HIDDEN)
    (bench.real / "plain").mkdir()
    bench.person.forget(plain_yes)
    os.rename(bench.here / "keys", bench.here / "other")
    assert bench.person.operations == ["rename"]
    assert os.listdir(bench.here / "other") == []
    assert (bench.real / "other/.env").read_bytes() == HIDDEN


@pytest.mark.requirement("H33")
def test_a_folder_that_holds_only_hidden_things_is_not_empty(bench: Bench) -> None:
    (bench.real / "keys").mkdir()
    (bench.real / "keys/.env").write_bytes(HIDDEN)
    bench.person.forget(plain_yes)
    assert errno_of(lambda: os.rmdir(bench.here / "keys")) == errno.ENOTEMPTY
    assert bench.person.asked == []


@pytest.mark.requirement("H3")
@pytest.mark.parametrize(
    "written",
    ["Documents/../.ssh/id_ed25519", "Documents/./../.ssh/../.netrc", "spare/deep/../../.netrc"],
)
def test_dots_in_a_path_do_not_help(bench: Bench, written: str) -> None:
    assert errno_of(lambda: os.open(f"{bench.view}/{written}", os.O_RDONLY)) == errno.ENOENT


@pytest.mark.requirement("H5")
def test_a_file_hidden_by_its_new_name_outside_is_gone_from_the_view(bench: Bench) -> None:
    (bench.closed_real / "seen").write_bytes(b"x")
    with (bench.closed / "seen").open("rb") as file:
        (bench.closed_real / "seen").rename(bench.closed_real / "id_rsa")
        (bench.closed_real / "seen2").write_bytes(b"y")
        assert file.read() in {b"x", b""}
    assert errno_of(lambda: os.open(bench.closed / "id_rsa", os.O_RDONLY)) == errno.ENOENT


@pytest.mark.requirement("H21")
def test_a_rule_added_on_reload_hides_at_once_also_from_open_handles(shared: Mounted) -> None:
    folder = shared.fresh("spare")
    (shared.home / folder / "late.kdbx").write_bytes(b"secret " * 1000)
    path = shared.view / folder / "late.kdbx"
    shared.place.configure('deny = ["*.kdbx"]\n')
    with shared.watchdog(), path.open("rb", buffering=0) as file:
        assert file.read(7) == b"secret "
        try:
            assert shared.person.reload().done
            # As long as the kernel still has the name, it is the open object that is asked about.
            assert errno_of(lambda: os.stat(path)) in {errno.ENOENT, errno.EACCES}
            assert errno_of(lambda: file.read(7)) == errno.EACCES
            assert os.listdir(path.parent) == []
        finally:
            shared.place.configure("")
            assert shared.person.reload().done
        assert path.read_bytes() == b"secret " * 1000
        assert file.read(7) == b"secret "
