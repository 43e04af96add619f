"""Asks a person on a terminal: in the foreground daemon, and in ``lamfuse watch``.

A key counts only when it was pressed with intent: alone, after a moment of quiet since the question
appeared. Typed ahead, pasted, in the middle of typing, an arrow key, the end of input, a hang-up:
none of these answers. The terminal's mode is put back on every way out, nothing here can stop the
process (SIGTTIN, SIGTTOU), and a terminal that takes no output delays nobody else.
"""

from __future__ import annotations

import contextlib
import os
import signal
import termios
from collections.abc import Callable, Iterator
from typing import Any

import trio

from lamfuse.core.approval import Answer, Question
from lamfuse.core.errors import ChannelLost
from lamfuse.engine.open_questions import Standing
from lamfuse.notify import render
from lamfuse.notify.render import Card, Choice

__all__ = ["ARMING_S", "Terminal", "is_foreground"]

#: Seconds of quiet before a key counts: about the time to notice that something new is on screen.
ARMING_S = 0.7
#: Seconds after a key in which nothing may follow: what follows faster is typing, or a paste.
_ALONE_S = 0.08
#: Seconds between two looks at the clock and at who owns the terminal.
_TICK_S = 1.0
_WITHDRAW_S = 1.0
_END_OF_INPUT = b"\x04"
_LOCAL_FLAGS, _SPECIAL_CHARACTERS = 3, 6  # places in what tcgetattr returns


def is_foreground(fd: int) -> bool:
    """Tell whether this process may use the terminal *fd*: it is ours, and we are in front."""
    try:
        return os.tcgetpgrp(fd) == os.getpgrp()
    except OSError:
        return False


class Terminal:
    """A channel on the terminal with the descriptors *fd_in* and *fd_out*, which stay the caller's.

    *home* is what a tilde stands for; *standing* tells how long a question has left.
    """

    name = "terminal"

    def __init__(
        self,
        fd_in: int,
        fd_out: int,
        home: bytes,
        standing: Callable[[Question], Standing],
        *,
        arming_s: float = ARMING_S,
        foreground: Callable[[int], bool] = is_foreground,
    ) -> None:
        self._in = fd_in
        self._out = fd_out
        self._home = home
        self._standing = standing
        self._arming_s = arming_s
        self._foreground = foreground
        self._prompting = trio.Lock()
        # One thread at most may hang on a terminal that takes no output.
        self._writing = trio.CapacityLimiter(1)

    def is_ready(self) -> bool:
        """Whether both are terminals and we are in the foreground."""
        return os.isatty(self._in) and os.isatty(self._out) and self._foreground(self._in)

    async def ask(self, question: Question, shown: Callable[[], None]) -> Answer:
        """Prompt for *question*; raises ChannelLost at the end of input or in the background."""

        def ending() -> str:
            scope = question.answer.scope if question.answer is not None else None
            return render.ended(question.state, question.channel, scope)

        card = render.card_of(question, self._home)
        return await self.prompt(card, lambda: self._standing(question), shown, ending)

    async def prompt(
        self,
        card: Card,
        standing: Callable[[], Standing],
        shown: Callable[[], None],
        ending: Callable[[], str],
    ) -> Answer:
        """Show *card*, wait for a key, and return what it means.

        *shown* is called when the question is on the screen; *ending* says how it ended when this
        is cancelled. Raises ChannelLost.
        """
        async with self._prompting:
            last_line = "Not answered here."
            try:
                with self._keys_unbuffered():
                    answer, last_line = await self._converse(card, standing, shown)
                    return answer
            except trio.Cancelled:
                last_line = ending()
                raise
            except (OSError, termios.error) as error:
                raise ChannelLost(f"the terminal is lost: {error}") from error
            finally:
                with trio.CancelScope(shield=True, deadline=trio.current_time() + _WITHDRAW_S):
                    await self._say_last(last_line)

    async def _converse(
        self, card: Card, standing: Callable[[], Standing], shown: Callable[[], None]
    ) -> tuple[Answer, str]:
        now = standing()
        await self._write("\n".join(["", *render.lines(card, now.seconds_left, now.waiting), ""]))
        shown()
        choice = await self._chosen(card, standing)
        return Answer(choice.scope is not None, choice.scope, self.name), f"{choice.label}."

    async def _chosen(self, card: Card, standing: Callable[[], Standing]) -> Choice:
        """Wait for the key of one of the choices, pressed alone and after a moment of quiet.

        The line that asks for it appears when keys begin to count.
        """
        choices = {choice.key.encode(): choice for choice in card.choices}
        remark = ""
        await self._quiet()
        while True:
            await self._write("\r\x1b[K" + remark + render.hint(card, standing().seconds_left))
            with trio.move_on_after(_TICK_S):
                await trio.lowlevel.wait_readable(self._in)
            typed = self._read()
            if typed == _END_OF_INPUT:
                raise ChannelLost("end of input at the terminal")
            if typed in choices and await self._is_alone():
                return choices[typed]
            if typed:
                await self._quiet()
                remark = "one of these keys, alone: "

    async def _quiet(self) -> None:
        """Drop what was typed, until nothing was for the arming delay."""
        while True:
            self._flush()
            with trio.move_on_after(self._arming_s):
                await trio.lowlevel.wait_readable(self._in)
                continue
            return

    async def _is_alone(self) -> bool:
        with trio.move_on_after(_ALONE_S):
            await trio.lowlevel.wait_readable(self._in)
            return False
        return True

    def _read(self) -> bytes:
        """Return what was typed, or nothing; raises ChannelLost, or OSError without a terminal.

        After a hang-up every look at the mode fails.
        """
        self._look_who_is_in_front()
        with _unstoppable():
            self._unbuffer()
            return os.read(self._in, 256)

    def _look_who_is_in_front(self) -> None:
        if not self._foreground(self._in):
            raise ChannelLost("lamfuse is not in the foreground of its terminal")

    def _flush(self) -> None:
        with _unstoppable():
            termios.tcflush(self._in, termios.TCIFLUSH)

    @contextlib.contextmanager
    def _keys_unbuffered(self) -> Iterator[None]:
        """Let keys come one by one and unseen, and put the mode back; interrupt keys stay alive."""
        self._look_who_is_in_front()
        saved = termios.tcgetattr(self._in)
        try:
            with _unstoppable():
                self._unbuffer()
            yield
        finally:
            # In the background the mode is the shell's, not ours to put back. Output that is held
            # up must not hold us up: now, not after it has drained.
            if self._foreground(self._in):
                with _unstoppable(), contextlib.suppress(termios.error):
                    termios.tcsetattr(self._in, termios.TCSANOW, saved)

    def _unbuffer(self) -> None:
        """Set the mode, also when a shell has changed it while we were stopped.

        With VMIN and VTIME zero a read never blocks, although the descriptor is shared with others
        and cannot be made non-blocking for ourselves alone.
        """
        mode: list[Any] = termios.tcgetattr(self._in)
        wanted = mode[_LOCAL_FLAGS] & ~(termios.ICANON | termios.ECHO)
        special = list(mode[_SPECIAL_CHARACTERS])
        special[termios.VMIN] = special[termios.VTIME] = 0
        if (mode[_LOCAL_FLAGS], mode[_SPECIAL_CHARACTERS]) != (wanted, special):
            mode[_LOCAL_FLAGS], mode[_SPECIAL_CHARACTERS] = wanted, special
            termios.tcsetattr(self._in, termios.TCSANOW, mode)

    async def _say_last(self, text: str) -> None:
        """Put the last line of a prompt, if the terminal can still take it."""
        if self._foreground(self._in):
            with contextlib.suppress(OSError):
                await self._write(f"\r\x1b[K{render.printable(text)}\n")

    async def _write(self, text: str) -> None:
        """Write to the terminal in a thread, which is left alone when it hangs there."""
        data = text.encode(errors="backslashreplace")
        await trio.to_thread.run_sync(
            _write_all, self._out, data, abandon_on_cancel=True, limiter=self._writing
        )


def _write_all(fd: int, data: bytes) -> None:
    with _unstoppable():
        while data:
            data = data[os.write(fd, data) :]


@contextlib.contextmanager
def _unstoppable() -> Iterator[None]:
    """Use a terminal without being stopped for it: in the background it is an error instead."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTIN, signal.SIGTTOU})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
