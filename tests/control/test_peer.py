from __future__ import annotations

import ctypes
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lamfuse.control import peer

pytestmark = pytest.mark.requirement("L8")

_PR_SET_DUMPABLE = 4
_OURS = {"user": (4, 1), "pid": (4, 2), "mnt": (4, 3)}

#: A client that connects, says so, and stays until its standard input ends.
_CLIENT = """
import ctypes, socket, sys
if sys.argv[2] == "secret":
    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
print("connected", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(peer.Peer(9, 1000, _OURS), None, id="ours"),
        pytest.param(peer.Peer(9, 1001, _OURS), "another user (uid 1001)", id="another-user"),
        pytest.param(peer.Peer(9, 0, _OURS), "another user (uid 0)", id="root"),
        pytest.param(
            peer.Peer(9, 1000, {**_OURS, "user": (4, 9)}), "another user namespace", id="user-ns"
        ),
        pytest.param(
            peer.Peer(9, 1000, {**_OURS, "pid": (4, 9)}), "another pid namespace", id="pid-ns"
        ),
        pytest.param(
            peer.Peer(9, 1000, {**_OURS, "mnt": (4, 9)}), "another mnt namespace", id="mnt-ns"
        ),
        pytest.param(
            peer.Peer(9, 1000, {**_OURS, "mnt": (5, 3)}), "another mnt namespace", id="other-dev"
        ),
        pytest.param(peer.Peer(0, 1000, None, "it has ended"), "it has ended", id="unknown"),
    ],
)
def test_only_our_user_in_our_namespaces_may_speak(found: peer.Peer, expected: str | None) -> None:
    why = peer._judge(found, 1000, _OURS)
    assert (why is None) if expected is None else (why is not None and expected in why)


@pytest.fixture
def listening(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(bytes(tmp_path / "sock"))
        listener.listen()
        yield listener


def _judge_client(listening: socket.socket, argv: list[str], secret: str = "") -> str | None:
    """Start a client by way of *argv* and return what is said about it while it lives."""
    command = [*argv, sys.executable, "-c", _CLIENT, listening.getsockname(), secret]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as client:
        assert client.stdin is not None
        assert client.stdout is not None
        if client.stdout.readline() != b"connected\n":
            assert client.stderr is not None
            pytest.skip(f"{argv[0]} cannot be used here: {client.stderr.read().decode()}")
        with listening.accept()[0] as connection:
            why = peer.refusal(connection)
        client.stdin.close()
    return why


def test_a_plain_process_of_ours_may_speak(listening: socket.socket) -> None:
    assert _judge_client(listening, []) is None


@pytest.mark.skipif(shutil.which("unshare") is None, reason="unshare is not installed")
@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        pytest.param(["-U", "-r"], "user namespace", id="user"),
        pytest.param(["-U", "-r", "-m"], "namespace", id="user-and-mnt"),
        pytest.param(["-U", "-r", "-p", "-f"], "namespace", id="user-and-pid"),
        pytest.param(["-U", "-r", "-m", "-p", "-f", "--mount-proc"], "namespace", id="sandbox"),
    ],
)
def test_a_process_in_another_namespace_may_not_speak(
    listening: socket.socket, flags: list[str], expected: str
) -> None:
    why = _judge_client(listening, ["unshare", *flags])
    assert why is not None
    assert expected in why


@pytest.mark.root
@pytest.mark.skipif(os.getuid() != 0, reason="only root may make these without a user namespace")
@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        pytest.param(["-m"], "mnt namespace", id="mnt"),
        pytest.param(["-p", "-f"], "pid namespace", id="pid"),
    ],
)
def test_one_other_namespace_is_enough_to_be_refused(
    listening: socket.socket, flags: list[str], expected: str
) -> None:
    why = _judge_client(listening, ["unshare", *flags])
    assert why is not None
    assert expected in why


@pytest.mark.skipif(os.getuid() == 0, reason="root may examine every process")
def test_a_process_that_hides_itself_may_not_speak(listening: socket.socket) -> None:
    why = _judge_client(listening, [], "secret")
    assert why is not None
    assert "not dumpable" in why


def test_a_daemon_that_hides_itself_still_knows_its_clients(listening: socket.socket) -> None:
    status = _in_child(lambda: _hide_and_judge(listening))
    assert status == 0


def _hide_and_judge(listening: socket.socket) -> int:
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    return 0 if _judge_client(listening, []) is None else 1


def _in_child(act: Callable[[], int]) -> int:
    pid = os.fork()
    if pid == 0:
        status = 99
        try:
            status = act()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_peer_that_has_ended_may_not_speak(listening: socket.socket) -> None:
    def connect() -> int:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(listening.getsockname())
        return 0

    assert _in_child(connect) == 0
    with listening.accept()[0] as connection:
        assert peer.refusal(connection) == "it has ended"


def test_a_peer_that_is_a_zombie_may_not_speak(listening: socket.socket) -> None:
    pid = os.fork()
    if pid == 0:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(listening.getsockname())
        os._exit(0)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    try:
        with listening.accept()[0] as connection:
            assert peer.refusal(connection) == "it has ended"
    finally:
        os.waitpid(pid, 0)


def test_a_number_that_was_taken_over_does_not_speak_for_the_old_process(
    listening: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The namespaces that were read belong to somebody else once the peer itself has ended."""

    def connect() -> int:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(listening.getsockname())
        return 0

    pid = os.fork()
    if pid == 0:
        os._exit(connect())
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    ours = peer._namespaces(os.getpid())
    monkeypatch.setattr(peer, "_namespaces", lambda _pid: ours)
    try:
        with listening.accept()[0] as connection:
            assert peer.refusal(connection) == "it has ended"
    finally:
        os.waitpid(pid, 0)


def test_the_kernel_without_peer_pidfds_is_served_by_the_number(
    listening: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer, "_SO_PEERPIDFD", 9999)
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(listening.getsockname())
        with listening.accept()[0] as connection:
            found = peer.examine(connection)
    assert (found.pid, found.uid, found.held) == (os.getpid(), os.getuid(), False)
    assert found.namespaces is not None


def test_examining_leaves_no_descriptor_behind(listening: socket.socket) -> None:
    before = os.listdir("/proc/self/fd")
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(listening.getsockname())
        with listening.accept()[0] as connection:
            for _ in range(10):
                assert peer.refusal(connection) is None
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_the_kernel_holds_the_peer_itself_where_it_can(listening: socket.socket) -> None:
    release = tuple(int(part) for part in os.uname().release.split(".")[:2])
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(listening.getsockname())
        with listening.accept()[0] as connection:
            assert peer.examine(connection).held is (release >= (6, 5))
