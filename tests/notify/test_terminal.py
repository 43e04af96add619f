"""The terminal channel: a key pressed with intent answers, and nothing else does."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import termios
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import trio

from lamfuse.core.approval import Answer, Question, Scope, State
from lamfuse.engine.open_questions import Standing
from lamfuse.notify.terminal import Terminal, is_foreground
from tests.contract.notifier import Asking, Desk, NotifierContract
from tests.engine.fakes import make_question

HOME = b"/home/lam"
ARMING_S = 0.08
ASKS = b"d/a/o/f? "
KEYS = {None: b"a", Scope.FILE: b"a", Scope.FOLDER: b"f", Scope.ONCE: b"o"}


def standing(question: Question) -> Standing:
    return Standing(57.25, 2)


class TerminalDesk(Desk):
    """A person at a pseudo-terminal; ``screen`` is all that was printed."""

    def __init__(self, *, arming_s: float = ARMING_S) -> None:
        self.master, self.slave = os.openpty()
        os.set_blocking(self.master, False)
        self.screen = bytearray()
        self._answered = 0
        self.mode = termios.tcgetattr(self.slave)
        self.notifier = Terminal(
            self.slave, self.slave, HOME, standing, arming_s=arming_s, foreground=lambda fd: True
        )

    async def read(self) -> None:
        while self.master >= 0:
            await trio.lowlevel.wait_readable(self.master)
            if self.master < 0:
                return  # it was hung up meanwhile
            try:
                self.screen += os.read(self.master, 4096)
            except BlockingIOError:
                continue

    def type(self, keys: bytes) -> None:
        os.write(self.master, keys)

    async def press(self, keys: bytes) -> None:
        """Type *keys* once the line that asks for a key has appeared (anew)."""
        await self.until(lambda: self.screen.count(ASKS) > self._answered)
        self._answered = self.screen.count(ASKS)
        self.type(keys)

    async def until(self, condition: Callable[[], bool]) -> None:
        with trio.fail_after(10):
            while not condition():  # noqa: ASYNC110 - a screen has no event
                await trio.sleep(0.01)

    async def answer(self, question: Question, *, allow: bool, scope: Scope | None) -> None:
        await self.press(KEYS[scope] if allow else b"d")

    async def garbage(self, question: Question) -> None:
        await self.press(b"yes\n")

    async def end(self, question: Question) -> None:
        await self.press(b"\x04")

    async def is_withdrawn(self, question: Question) -> bool:
        await trio.sleep(0.05)
        return self.is_restored() and self.screen.rstrip().endswith(
            b"Withdrawn: nobody waits for it any more."
        )

    def is_restored(self) -> bool:
        return termios.tcgetattr(self.slave) == self.mode

    def hang_up(self) -> None:
        if self.master >= 0:
            os.close(self.master)
            self.master = -1


@pytest.fixture
async def desk(nursery: trio.Nursery) -> AsyncIterator[TerminalDesk]:
    async with at_work(nursery, TerminalDesk()) as made:
        yield made


@pytest.fixture
async def slow_desk(nursery: trio.Nursery) -> AsyncIterator[TerminalDesk]:
    async with at_work(nursery, TerminalDesk(arming_s=0.6)) as made:
        yield made


@contextlib.asynccontextmanager
async def at_work(nursery: trio.Nursery, made: TerminalDesk) -> AsyncIterator[TerminalDesk]:
    reading, has_left = trio.CancelScope(), trio.Event()

    async def read() -> None:
        with reading:
            await made.read()
        has_left.set()

    nursery.start_soon(read)
    yield made
    reading.cancel()
    await has_left.wait()  # it may be about to read what is closed now
    made.hang_up()
    os.close(made.slave)


class TestTerminal(NotifierContract):
    garbage_ends = False


async def put(nursery: trio.Nursery, desk: TerminalDesk) -> Asking:
    return await NotifierContract.put(nursery, desk)


async def ended(asking: Asking) -> Asking:
    with trio.fail_after(10):
        await asking.ended.wait()
    return asking


class TestKeysWithoutIntent:
    """Each of these is seen and answers nothing; a key pressed afterwards does."""

    @pytest.mark.requirement("H17")
    @pytest.mark.parametrize(
        "typed",
        [
            pytest.param(b"all done\n", id="pasted"),
            pytest.param(b"a\n", id="a-line"),
            pytest.param(b"\x1b[A", id="arrow"),
            pytest.param(b"\x1ba", id="alt-a"),
            pytest.param(b"A", id="capital"),
            pytest.param(b"y", id="another-letter"),
            pytest.param(b"l", id="scope-not-offered"),
            pytest.param(b"\n", id="enter"),
            pytest.param(b" ", id="space"),
            pytest.param(b"\xff\x00", id="bytes"),
        ],
    )
    async def test_they_answer_nothing(
        self, nursery: trio.Nursery, desk: TerminalDesk, typed: bytes
    ) -> None:
        asking = await put(nursery, desk)
        await desk.press(typed)
        await desk.until(lambda: b"one of these keys, alone" in desk.screen)
        assert asking.answer is None
        await desk.press(b"d")

        assert (await ended(asking)).answer == Answer(allow=False, channel="terminal")

    async def test_what_was_typed_ahead_is_dropped(
        self, nursery: trio.Nursery, desk: TerminalDesk
    ) -> None:
        desk.type(b"a")
        desk.type(b"aaa\n")
        asking = await put(nursery, desk)
        with trio.move_on_after(ARMING_S + 0.3):
            await asking.ended.wait()

        assert asking.answer is None
        asking.scope.cancel()

    async def test_somebody_who_is_typing_does_not_answer(
        self, nursery: trio.Nursery, slow_desk: TerminalDesk
    ) -> None:
        asking = await put(nursery, slow_desk)
        for letter in b"a man a plan a canal":
            slow_desk.type(bytes([letter]))
            await trio.sleep(0.04)

        assert not asking.ended.is_set()
        asking.scope.cancel()

    async def test_a_key_that_another_follows_at_once_does_not_answer(
        self, nursery: trio.Nursery, desk: TerminalDesk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("lamfuse.notify.terminal._ALONE_S", 1.0)
        asking = await put(nursery, desk)
        await desk.press(b"a")
        await trio.sleep(0.1)
        desk.type(b"n")
        await desk.until(lambda: b"one of these keys, alone" in desk.screen)

        assert not asking.ended.is_set()
        asking.scope.cancel()

    async def test_a_key_counts_only_after_the_arming_delay(
        self, nursery: trio.Nursery, slow_desk: TerminalDesk
    ) -> None:
        asking = await put(nursery, slow_desk)
        await trio.sleep(0.1)
        slow_desk.type(b"a")
        with trio.move_on_after(0.7):
            await asking.ended.wait()
        assert asking.answer is None
        await slow_desk.press(b"a")

        assert (await ended(asking)).answer is not None


class TestTheScreen:
    @pytest.mark.requirement("H4", "H30")
    async def test_it_has_path_sizes_caller_and_keys(
        self, nursery: trio.Nursery, desk: TerminalDesk
    ) -> None:
        asking = await put(nursery, desk)
        await desk.press(b"f")
        await ended(asking)
        await trio.sleep(0.05)
        text = desk.screen.decode()

        for part in (
            "Overwrite? [k7f2]\r\n",
            "/home/lam/Downloads/report.md\r\n",
            "  1,240 -> 2,180 (+940) bytes, 40 -> 61 (+21) lines\r\n",
            "claude-1",
            "[d] Decline\r\n",
            "[a] ",
            "[f] ",
            "[o] ",
            "d/a/o/f? 57 s ",
        ):
            assert part in text

    async def test_the_time_left_counts_down(
        self, nursery: trio.Nursery, desk: TerminalDesk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        began = trio.current_time()
        monkeypatch.setattr(
            desk.notifier,
            "_standing",
            lambda question: Standing(40 + began - trio.current_time(), 0),
        )
        asking = await put(nursery, desk)
        await trio.sleep(1.4)

        assert b"40 s" in desk.screen
        assert b"39 s" in desk.screen
        asking.scope.cancel()

    @pytest.mark.parametrize(
        ("state", "words"),
        [
            (State.TIMED_OUT, b"Nobody answered in time: refused."),
            (State.LOST, b"Refused: it cannot be asked any more."),
            (State.DECLINED, b"Declined through desktop."),
            (State.ALLOWED, b"Allowed through desktop (folder)."),
        ],
    )
    async def test_it_says_how_a_question_ended_elsewhere(
        self, nursery: trio.Nursery, desk: TerminalDesk, state: State, words: bytes
    ) -> None:
        asking = await put(nursery, desk)
        question = asking.question
        for following in (State.QUEUED, State.SHOWN, state):
            question.move(following)
        if state in {State.ALLOWED, State.DECLINED}:
            question.channel = "desktop"
        if state is State.ALLOWED:
            question.answer = Answer(allow=True, scope=Scope.FOLDER, channel="desktop")
        asking.scope.cancel()
        await ended(asking)
        await trio.sleep(0.05)

        assert desk.screen.rstrip().endswith(words)

    async def test_no_control_character_of_a_question_reaches_it(
        self, nursery: trio.Nursery, desk: TerminalDesk
    ) -> None:
        asking = Asking(make_question())
        text = asking.question.text
        nasty = "a\x1b]0;owned\x07\x9b2J\u202egpj.\ud800"
        asking.question.text = type(text)(nasty, (nasty,))
        nursery.start_soon(asking.run, desk.notifier)
        await asking.shown.wait()
        await trio.sleep(0.05)
        asking.scope.cancel()
        screen = desk.screen.decode()

        assert "owned" in screen
        assert not {letter for letter in screen if not letter.isprintable()} - set("\r\n\x1b")
        assert "\x1b" not in screen.replace("\x1b[K", "")


class TestTheTerminalItself:
    @pytest.mark.parametrize("way", ["answer", "end", "cancel", "fault"])
    async def test_its_mode_is_put_back(
        self,
        nursery: trio.Nursery,
        desk: TerminalDesk,
        way: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        asking = Asking(make_question())

        async def run() -> None:
            try:
                await asking.run(desk.notifier)
            except RuntimeError:
                asking.ended.set()

        nursery.start_soon(run)
        await asking.shown.wait()
        assert not desk.is_restored()
        match way:
            case "answer":
                await desk.press(b"a")
            case "end":
                await desk.press(b"\x04")
            case "cancel":
                asking.scope.cancel()
            case _:

                def broken(question: Question) -> Standing:
                    raise RuntimeError("a fault of our own")

                monkeypatch.setattr(desk.notifier, "_standing", broken)
        await ended(asking)

        assert desk.is_restored()

    @pytest.mark.requirement("H17")
    async def test_a_hang_up_is_a_lost_channel(self, nursery: trio.Nursery) -> None:
        desk = TerminalDesk()
        try:
            asking = await put(nursery, desk)
            await trio.sleep(0.3)
            desk.hang_up()
            await ended(asking)
            assert asking.answer is None
            assert "the terminal is lost" in str(asking.lost)
        finally:
            os.close(desk.slave)

    @pytest.mark.requirement("H17")
    async def test_a_terminal_that_takes_no_output_shows_nothing_and_delays_nobody(
        self, nursery: trio.Nursery, desk: TerminalDesk
    ) -> None:
        termios.tcflow(desk.slave, termios.TCOOFF)
        asking = Asking(make_question())
        nursery.start_soon(asking.run, desk.notifier)
        began = trio.current_time()
        await trio.sleep(0.2)
        assert trio.current_time() - began < 1
        assert asking.times_shown == 0
        asking.scope.cancel()
        await ended(asking)
        assert trio.current_time() - began < 2
        assert desk.is_restored()
        termios.tcflow(desk.slave, termios.TCOON)
        await trio.sleep(0.05)

    async def test_one_that_leaves_the_foreground_is_lost(
        self, nursery: trio.Nursery, desk: TerminalDesk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asking = await put(nursery, desk)
        monkeypatch.setattr(desk.notifier, "_foreground", lambda fd: False)
        assert not desk.notifier.is_ready()
        await ended(asking)

        assert asking.lost is not None

    def test_what_is_no_terminal_is_not_ready(self) -> None:
        reading, writing = os.pipe()
        try:
            terminal = Terminal(reading, writing, HOME, standing)
            assert not terminal.is_ready()
            assert not is_foreground(reading)
        finally:
            os.close(reading)
            os.close(writing)

    def test_a_terminal_that_is_not_our_own_is_not_ready(self) -> None:
        master, slave = os.openpty()
        try:
            assert not Terminal(slave, slave, HOME, standing).is_ready()
        finally:
            os.close(master)
            os.close(slave)


# The leader of a session of its own asks in the foreground, a child of it in the background.
JOB_CONTROL = """
import fcntl, json, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
mode = termios.tcgetattr(0)
mode[3] |= termios.TOSTOP
termios.tcsetattr(0, termios.TCSANOW, mode)
import trio
from lamfuse.core.errors import ChannelLost
from lamfuse.notify.terminal import Terminal
from tests.notify.test_terminal import HOME, standing
from tests.engine.fakes import make_question

async def ask(sure):
    terminal = Terminal(0, 1, HOME, standing, arming_s=0.05, foreground=sure or is_foreground)
    try:
        with trio.fail_after(20):
            return (await terminal.ask(make_question(), lambda: None)).allow
    except ChannelLost:
        return "lost"

from lamfuse.notify.terminal import is_foreground
found = {"front": is_foreground(0), "answer": trio.run(ask, None)}
reading, writing = os.pipe()
child = os.fork()
if not child:
    os.setpgid(0, 0)
    looks = iter([True] * 3)
    there = {"back": is_foreground(0), "lost": trio.run(ask, None)}
    # Also when it is moved to the background between the look and the act.
    there["raced"] = trio.run(ask, lambda fd: next(looks, False))
    os.write(writing, json.dumps(there).encode())
    os._exit(0)
_, status = os.waitpid(child, os.WUNTRACED)
found["stopped"] = os.WIFSTOPPED(status)
found |= json.loads(os.read(reading, 1000)) if not found["stopped"] else {}
print(json.dumps(found), file=sys.stderr)
"""


async def test_in_the_background_it_is_lost_and_never_stopped() -> None:
    master, slave = os.openpty()
    process = await trio.lowlevel.open_process(
        [sys.executable, "-c", JOB_CONTROL],
        stdin=slave,
        stdout=slave,
        stderr=subprocess.PIPE,
        start_new_session=True,
        cwd=Path(__file__).parents[2],
    )
    os.close(slave)
    try:
        with trio.fail_after(30):
            screen = b""
            while b"s " not in screen.partition(b"d/a/o/f?")[2]:
                await trio.lowlevel.wait_readable(master)
                screen += os.read(master, 4096)
            await trio.sleep(0.3)
            os.write(master, b"a")
            assert process.stderr is not None
            told = b"".join([chunk async for chunk in process.stderr])
            await process.wait()
    finally:
        process.kill()
        await process.wait()
        assert process.stderr is not None
        await process.stderr.aclose()
        os.close(master)

    assert json.loads(told.splitlines()[-1]) == {
        "front": True,
        "answer": True,
        "stopped": False,
        "back": False,
        "lost": "lost",
        "raced": "lost",
    }
