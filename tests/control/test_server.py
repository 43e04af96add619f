from __future__ import annotations

import logging
import math
import os
import socket
import stat
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
import trio.testing

from lamfuse.control import client, connection, server, wire
from lamfuse.core.approval import Scope, State
from lamfuse.core.errors import NotRunningError, RefusedError
from tests.control.fake_backend import FakeBackend, make_question

pytestmark = pytest.mark.requirement("L8")


@pytest.fixture
def path(tmp_path: Path) -> bytes:
    return bytes(tmp_path / "run" / "home.sock")


#: The streams that a test opened; closed when its server ends.
_dialled: list[trio.SocketStream] = []


@asynccontextmanager
async def serving(
    path: bytes,
    backend: FakeBackend,
    judge: Callable[[object], str | None] | None = None,
    limit_s: float = 20,
) -> AsyncGenerator[None, None]:
    try:
        async with trio.open_nursery() as nursery:
            with trio.fail_after(limit_s):
                await nursery.start(_serve, path, backend, judge)
                yield
            nursery.cancel_scope.cancel()
    finally:
        while _dialled:
            await trio.aclose_forcefully(_dialled.pop())


async def _serve(
    path: bytes,
    backend: FakeBackend,
    judge: Callable[[object], str | None] | None,
    *,
    task_status: trio.TaskStatus[None],
) -> None:
    if judge is None:
        await server.serve(path, backend, task_status=task_status)
    else:
        await server.serve(path, backend, judge=judge, task_status=task_status)


class Raw:
    """A client that sends what it likes."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self._lines = wire.Lines(wire.MAX_REPLY_BYTES)
        self._received: list[bytes] = []

    async def say(self, *messages: wire.FromClient) -> None:
        await self.stream.send_all(b"".join(wire.encode(message) for message in messages))

    async def hear(self) -> wire.FromServer | None:
        while not self._received:
            data = await self.stream.receive_some(65536)
            if not data:
                return None
            self._received = self._lines.feed(bytes(data))
        return wire.decode_from_server(self._received.pop(0))


def exists(path: bytes) -> bool:
    return os.path.lexists(path)


async def dial(path: bytes) -> Raw:
    stream = await trio.open_unix_socket(os.fsdecode(path))
    _dialled.append(stream)
    return Raw(stream)


async def dial_and_greet(path: bytes) -> Raw:
    raw = await dial(path)
    await raw.say(wire.Hello(version=wire.VERSION))
    assert await raw.hear() == wire.Hello(version=wire.VERSION)
    return raw


# --- the socket as a file


async def test_the_socket_is_0600_in_a_0700_directory(path: bytes) -> None:
    async with serving(path, FakeBackend()):
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700


async def test_the_socket_is_removed_at_the_end(path: bytes) -> None:
    async with serving(path, FakeBackend()):
        assert exists(path)
    assert not exists(path)


async def test_a_socket_that_took_our_place_is_left_alone(path: bytes) -> None:
    async with serving(path, FakeBackend()):
        os.unlink(path)
        os.mknod(path)
    assert exists(path)


async def test_a_socket_that_was_removed_meanwhile_does_not_matter(path: bytes) -> None:
    async with serving(path, FakeBackend()):
        os.unlink(path)
    assert not exists(path)


async def test_a_left_over_socket_is_replaced(path: bytes) -> None:
    os.mkdir(os.path.dirname(path), 0o700)
    with socket.socket(socket.AF_UNIX) as left_over:
        left_over.bind(path)
    async with serving(path, FakeBackend()):
        await dial_and_greet(path)


async def test_a_socket_that_is_listened_at_is_not_replaced(path: bytes) -> None:
    async with serving(path, FakeBackend()):
        with pytest.raises(RefusedError, match="running already"):
            await server.serve(path, FakeBackend())
        await dial_and_greet(path)


async def test_a_daemon_with_a_full_queue_is_not_replaced(path: bytes) -> None:
    os.mkdir(os.path.dirname(path), 0o700)
    with socket.socket(socket.AF_UNIX) as busy, socket.socket(socket.AF_UNIX) as waiting:
        busy.bind(path)
        busy.listen(0)
        waiting.connect(path)
        with pytest.raises(RefusedError, match="running already"):
            await server.serve(path, FakeBackend())


@pytest.mark.parametrize("mode", [0o755, 0o750, 0o701])
async def test_a_directory_that_others_can_enter_is_refused(path: bytes, mode: int) -> None:
    os.mkdir(os.path.dirname(path))
    os.chmod(os.path.dirname(path), mode)
    with pytest.raises(RefusedError, match="must belong to you alone"):
        await server.serve(path, FakeBackend())


async def test_a_link_in_place_of_the_directory_is_refused(path: bytes, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    os.symlink(tmp_path / "elsewhere", os.path.dirname(path))
    with pytest.raises(OSError) as caught:
        await server.serve(path, FakeBackend())
    assert isinstance(caught.value, NotADirectoryError)
    assert os.listdir(tmp_path / "elsewhere") == []


async def test_a_path_longer_than_an_address_works(tmp_path: Path) -> None:
    directory = tmp_path / ("d" * 120)
    directory.mkdir(mode=0o700)
    path = bytes(directory / "home.sock")
    async with serving(path, FakeBackend()):
        status = await trio.to_thread.run_sync(_ask_status, path)
        assert status.pid == 4000


def _ask_status(path: bytes) -> wire.Status:
    with client.connect(path) as connected:
        return connected.status()


# --- requests


async def test_every_request_reaches_the_backend_and_its_reply_the_client(path: bytes) -> None:
    backend = FakeBackend({"k7f2": make_question("k7f2")})

    def talk() -> None:
        with client.connect(path) as connected:
            assert connected.daemon_pid == os.getpid()
            assert connected.status().home.raw == b"/home/lam"
            assert [question.id for question in connected.pending()] == ["k7f2"]
            shown = connected.show("k7f2")
            assert shown is not None
            assert shown.title == "Overwrite report.md? [k7f2]"
            assert connected.show("zzzz") is None
            reply = connected.answer("k7f2", allow=True, scope=Scope.FOLDER)
            assert (reply.outcome, reply.state) == (wire.AnswerOutcome.ACCEPTED, State.ALLOWED)
            late = connected.answer("k7f2", allow=False)
            assert (late.outcome, late.channel) == (wire.AnswerOutcome.DECIDED, "terminal")
            assert connected.resume("other").sessions == ("other",)
            assert connected.turn(None).sessions == ("claude-1", "other")
            assert connected.reload().done

    async with serving(path, backend):
        await trio.to_thread.run_sync(talk)
    assert ("answer", "k7f2", True, Scope.FOLDER, "cli") in backend.asked


async def test_replies_come_in_order_and_carry_the_seq_of_their_request(path: bytes) -> None:
    async with serving(path, FakeBackend()):
        raw = await dial_and_greet(path)
        await raw.say(
            wire.StatusRequest(seq=7), wire.PendingRequest(seq=3), wire.TurnRequest(seq=9)
        )
        heard = [await raw.hear() for _ in range(3)]
        assert [reply.seq for reply in heard if isinstance(reply, wire.Reply)] == [7, 3, 9]


async def test_unmount_is_answered_before_it_begins(path: bytes) -> None:
    backend = FakeBackend({"k7f2": make_question("k7f2")})
    async with serving(path, backend):
        raw = await dial_and_greet(path)
        await raw.say(wire.UnmountRequest(seq=1))
        assert await raw.hear() == wire.UnmountReply(seq=1, refused_questions=1)
        await backend.unmounted.wait()


async def test_a_fault_of_the_backend_is_a_failure_of_that_request_alone(
    path: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    backend = FakeBackend(fault=ZeroDivisionError("boom"))
    async with serving(path, backend):
        raw = await dial_and_greet(path)
        await raw.say(wire.StatusRequest(seq=1))
        reply = await raw.hear()
        assert isinstance(reply, wire.Failure)
        assert (reply.seq, reply.code) == (1, wire.FailureCode.INTERNAL)
        assert "boom" not in reply.message
        await raw.say(wire.PendingRequest(seq=2))
        assert await raw.hear() == wire.PendingReply(seq=2, questions=())
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    caplog.clear()


# --- who may speak, and how


async def test_a_peer_that_is_judged_unfit_is_told_why_and_logged(
    path: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    def talk() -> None:
        with pytest.raises(RefusedError, match="does not talk to this process: it is in a cage"):
            client.connect(path)

    backend = FakeBackend()
    async with serving(path, backend, lambda _: "it is in a cage"):
        await trio.to_thread.run_sync(talk)
    assert backend.asked == []
    assert [(record.levelno, record.message) for record in caplog.records] == [
        (logging.WARNING, "refused a process at the control socket: it is in a cage")
    ]
    caplog.clear()


async def test_another_version_is_refused_with_a_remedy(path: bytes) -> None:
    async with serving(path, FakeBackend()):
        raw = await dial(path)
        await raw.say(wire.Hello(version=99), wire.StatusRequest())
        failure = await raw.hear()
        assert isinstance(failure, wire.Failure)
        assert failure.code is wire.FailureCode.VERSION
        assert "mount again" in failure.message
        assert await raw.hear() is None


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="http"),
        pytest.param(b'{"kind":"status"}\n', id="no-hello"),
        pytest.param(b"\xff\xfe\n", id="bytes"),
        pytest.param(b"x" * (wire.MAX_REQUEST_BYTES + 1), id="endless-line"),
        pytest.param(b'{"kind":"hello","version":1}\n{"kind":"hello","version":1}\n', id="twice"),
        pytest.param(
            b'{"kind":"hello","version":1}\n{"kind":"watch"}\n{"kind":"watch"}\n', id="two-watches"
        ),
        pytest.param(b'{"kind":"hello","version":1}\n{"kind":"answer"}\n', id="half-an-answer"),
    ],
)
async def test_garbage_ends_that_conversation_only(path: bytes, sent: bytes) -> None:
    async with serving(path, FakeBackend()):
        good = await dial_and_greet(path)
        bad = await dial(path)
        with trio.move_on_after(5):
            try:
                await bad.stream.send_all(sent)
            except trio.BrokenResourceError:
                assert len(sent) > wire.MAX_REQUEST_BYTES
        failures = [message async for message in _until_closed(bad) if _is_failure(message)]
        assert [failure.code for failure in failures if isinstance(failure, wire.Failure)] == [
            wire.FailureCode.MALFORMED
        ]
        await good.say(wire.PendingRequest(seq=1))
        assert await good.hear() == wire.PendingReply(seq=1, questions=())


def _is_failure(message: wire.FromServer) -> bool:
    return isinstance(message, wire.Failure)


async def _until_closed(raw: Raw) -> AsyncGenerator[wire.FromServer, None]:
    while (message := await raw.hear()) is not None:
        yield message


async def test_a_half_line_at_the_end_changes_nothing(path: bytes) -> None:
    backend = FakeBackend({"k7f2": make_question("k7f2")})
    async with serving(path, backend):
        raw = await dial_and_greet(path)
        await raw.stream.send_all(b'{"kind":"answer","id":"k7f2","allow":true}')
        await raw.stream.send_eof()
        assert _is_failure(await raw.hear() or wire.Hello(version=0))
    assert backend.asked == []


# --- limits


async def test_the_client_over_the_limit_is_told_so_and_the_next_after_one_left_is_served(
    path: bytes,
) -> None:
    async with serving(path, FakeBackend()):
        crowd = [await dial_and_greet(path) for _ in range(server.MAX_CONNECTIONS)]
        late = await dial(path)
        failure = await late.hear()
        assert isinstance(failure, wire.Failure)
        assert failure.code is wire.FailureCode.BUSY
        await crowd.pop().stream.aclose()
        await trio.testing.wait_all_tasks_blocked()
        await dial_and_greet(path)


async def test_a_mute_client_is_let_go(path: bytes, mock_clock: trio.testing.MockClock) -> None:
    async with serving(path, FakeBackend(), limit_s=math.inf):
        raw = await dial(path)
        await trio.testing.wait_all_tasks_blocked()
        mock_clock.jump(connection.HELLO_TIMEOUT_S + 1)
        assert await raw.hear() is None


async def test_an_idle_client_is_let_go_but_a_watcher_stays(
    path: bytes, mock_clock: trio.testing.MockClock
) -> None:
    backend = FakeBackend()
    async with serving(path, backend, limit_s=math.inf):
        watcher = await dial_and_greet(path)
        await watcher.say(wire.WatchRequest(seq=1))
        assert await watcher.hear() == wire.WatchReply(seq=1)
        idle = await dial_and_greet(path)
        await trio.testing.wait_all_tasks_blocked()
        mock_clock.jump(server.IDLE_TIMEOUT_S + 1)
        assert await idle.hear() is None
        backend.tell(wire.ChangedEvent(id="k7f2", state=State.GONE))
        assert await watcher.hear() == wire.ChangedEvent(id="k7f2", state=State.GONE)


async def test_a_client_that_does_not_read_is_dropped_and_blocks_nobody(
    path: bytes, mock_clock: trio.testing.MockClock
) -> None:
    backend = FakeBackend({f"{n:04}": make_question(f"{n:04}") for n in range(64)})
    async with serving(path, backend, limit_s=math.inf):
        deaf = await dial_and_greet(path)
        await deaf.say(*(wire.PendingRequest(seq=n) for n in range(100)))
        await trio.testing.wait_all_tasks_blocked()
        other = await dial_and_greet(path)
        await other.say(wire.StatusRequest(seq=1))
        assert isinstance(await other.hear(), wire.StatusReply)
        mock_clock.jump(connection.SEND_TIMEOUT_S + 1)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(trio.BrokenResourceError):
            await deaf.stream.send_all(b"x")


# --- watching


async def test_a_watcher_gets_events_and_its_answers_count_as_watch(path: bytes) -> None:
    backend = FakeBackend({"k7f2": make_question("k7f2")})
    async with serving(path, backend):
        raw = await dial_and_greet(path)
        await raw.say(wire.WatchRequest(seq=1))
        assert await raw.hear() == wire.WatchReply(seq=1)
        assert await raw.hear() == wire.AskedEvent(question=make_question("k7f2"))
        await raw.say(wire.AnswerRequest(seq=2, id="k7f2", allow=True))
        heard = [await raw.hear(), await raw.hear()]
        changed = wire.ChangedEvent(
            id="k7f2", state=State.ALLOWED, channel="watch", scope=Scope.FILE
        )
        assert changed in heard
        assert [m.seq for m in heard if isinstance(m, wire.AnswerReply)] == [2]
    assert backend.watchers == []


async def test_a_watcher_that_leaves_is_detached(path: bytes) -> None:
    backend = FakeBackend()
    async with serving(path, backend):
        raw = await dial_and_greet(path)
        await raw.say(wire.WatchRequest(seq=1))
        await raw.hear()
        assert len(backend.watchers) == 1
        await raw.stream.aclose()
        await trio.testing.wait_all_tasks_blocked()
        assert backend.watchers == []


async def test_a_watcher_that_does_not_keep_up_is_dropped(path: bytes) -> None:
    backend = FakeBackend()
    async with serving(path, backend):
        raw = await dial_and_greet(path)
        await raw.say(wire.WatchRequest(seq=1))
        assert await raw.hear() == wire.WatchReply(seq=1)
        for _ in range(200_000):
            backend.tell(wire.ChangedEvent(id="k7f2", state=State.SHOWN))
            if not backend.watchers:
                break
        assert backend.watchers == []
        assert [message async for message in _until_closed(raw)]


async def test_the_client_keeps_events_that_come_while_it_waits_for_a_reply(path: bytes) -> None:
    backend = FakeBackend({"k7f2": make_question("k7f2")})

    def talk() -> list[wire.Event]:
        with client.connect(path) as connected:
            connected.watch()
            connected.status()
            connected.answer("k7f2", allow=False)
            return [connected.next_event(), connected.next_event()]

    async with serving(path, backend):
        asked, changed = await trio.to_thread.run_sync(talk)
    assert asked == wire.AskedEvent(question=make_question("k7f2"))
    assert changed == wire.ChangedEvent(id="k7f2", state=State.DECLINED, channel="watch")


# --- the client without a daemon


def test_without_a_directory_nobody_runs(path: bytes) -> None:
    assert not client.is_running(path)
    with pytest.raises(NotRunningError, match="lamfuse mount"):
        client.connect(path)


def test_with_a_left_over_socket_nobody_runs(path: bytes) -> None:
    os.mkdir(os.path.dirname(path), 0o700)
    with socket.socket(socket.AF_UNIX) as left_over:
        left_over.bind(path)
    with pytest.raises(NotRunningError):
        client.connect(path)


async def test_a_daemon_that_ends_in_the_middle_is_not_running(path: bytes) -> None:
    def talk() -> None:
        with client.connect(path) as connected:
            connected.watch()
            trio.from_thread.run_sync(nursery.cancel_scope.cancel)
            with pytest.raises(NotRunningError):
                connected.next_event()

    async with trio.open_nursery() as nursery:
        await nursery.start(_serve, path, FakeBackend(), None)
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(talk)
