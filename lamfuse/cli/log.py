"""``lamfuse log``: the journal for people and programs, and whether it is whole."""

from __future__ import annotations

import errno
import os
from collections import deque
from collections.abc import Iterable, Iterator
from datetime import datetime

import click
import msgspec

from lamfuse.cli import options, render
from lamfuse.cli.exit_codes import ExitCode
from lamfuse.core import names, records
from lamfuse.core.approval import State
from lamfuse.store import journal_files
from lamfuse.store.journal_files import Line

__all__ = ["command"]

_LIMITS = (
    "This finds damage and edits. It cannot find lines cut off at the very end, nor a journal that"
    " the same user wrote anew: compare the count and the hash with those in the system log."
)


@click.command("log")
@click.option("--verify", is_flag=True, help="Check that no line was damaged, changed or removed.")
@click.option("-n", "last", type=click.IntRange(min=1), metavar="LAST", help="Only the last lines.")
@click.option("--session", help="Only what concerns this session.")
@click.option("--denied", is_flag=True, help="Only what was refused, or failed.")
@options.places
@options.as_json
def command(
    *,
    verify: bool,
    last: int | None,
    session: str | None,
    denied: bool,
    home: bytes | None,
    config: bytes | None,
    json: bool,
) -> int:
    """Print the journal, oldest first, over all its files."""
    dirs = options.places_of(home, config)
    if verify:
        return _verify(dirs.journal, json=json)
    lines = _with_context(journal_files.walk(dirs.journal))
    chosen: Iterable[_Told] = (
        told for told in lines if _is_wanted(told, session=session, denied=denied)
    )
    if last is not None:
        chosen = deque(chosen, maxlen=last)
    for told in chosen:
        if json:
            render.data(_as_data(told))
        else:
            click.echo(_as_text(told, dirs.home))
    return ExitCode.DONE


def _verify(path: bytes, *, json: bool) -> int:
    found = journal_files.verify(path)
    if json:
        render.data(
            {
                "whole": found.damage is None,
                "count": found.count,
                "head": found.head,
                "files": found.files,
                "damaged": found.damaged,
                "damage": None if found.damage is None else _place(found.damage),
            }
        )
    elif found.damage is None:
        click.echo(f"{names.count(found.count, 'line')}, all whole. Last hash: {found.head}")
        click.echo(_LIMITS)
    else:
        place = _place(found.damage)
        click.echo(f"{place['file']}, line {place['line']}: {place['problem']}.", err=True)
        more = names.count(found.damaged, "line")
        click.echo(f"{more} damaged, {names.count(found.count, 'line')} whole.", err=True)
    return ExitCode.DONE if found.damage is None else ExitCode.FAILED


class _Told:
    """A line with what was said before it: the question of an answer, the intent of an effect."""

    def __init__(
        self,
        line: Line,
        question: records.QuestionRecord | None = None,
        intent: records.IntentRecord | None = None,
    ) -> None:
        self.line = line
        self.question = question
        self.intent = intent

    @property
    def session(self) -> str | None:
        """The session that the line concerns, or None."""
        record = self.line.entry.record if self.line.entry else None
        if self.intent is not None:
            return self.intent.session
        return getattr(record, "session", None)


def _with_context(lines: Iterator[Line]) -> Iterator[_Told]:
    questions: dict[str, records.QuestionRecord] = {}
    intents: dict[int, records.IntentRecord] = {}
    for line in lines:
        match line.entry:
            case records.Entry(record=records.QuestionRecord() as record):
                questions[record.question] = record
                yield _Told(line)
            case records.Entry(record=records.AnswerRecord(question=name)):
                yield _Told(line, question=questions.pop(name, None))
            case records.Entry(seq=seq, record=records.IntentRecord() as record):
                intents[seq] = record
                yield _Told(line)
            case records.Entry(record=records.EffectRecord(intent=seq)):
                yield _Told(line, intent=intents.pop(seq, None))
            case _:
                yield _Told(line)


def _is_wanted(told: _Told, *, session: str | None, denied: bool) -> bool:
    """Filter; a damaged line is never kept back."""
    if told.line.entry is None:
        return True
    if session is not None and told.session != session:
        return False
    if not denied:
        return True
    match told.line.entry.record:
        case records.AnswerRecord(outcome=outcome):
            return outcome is not State.ALLOWED
        case records.IntentRecord(decision=decision):
            return decision is records.Basis.REFUSED
        case records.EffectRecord(errno=number):
            return number != 0
        case _:
            return False


def _place(line: Line) -> dict[str, object]:
    file = names.show_name(os.path.basename(line.file))
    return {"file": file, "line": line.number, "problem": line.problem}


def _as_data(told: _Told) -> object:
    line = told.line
    if line.entry is None:
        return _place(line)
    entry = line.entry
    record = msgspec.to_builtins(entry.record, builtin_types=(bytes,))
    data = {"seq": entry.seq, "time": entry.time, **record, "hash": entry.hash}
    return {**data, "problem": line.problem} if line.problem else data


def _as_text(told: _Told, home: bytes) -> str:
    line = told.line
    if line.entry is None:
        place = _place(line)
        return f"DAMAGED {place['file']}, line {place['line']}: {place['problem']}"
    when = datetime.fromisoformat(line.entry.time).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    kind = type(line.entry.record).__struct_config__.tag
    text = f"{when}  #{line.entry.seq:<5} {kind:<8}  {_words(told, home)}"
    return f"{text}  DAMAGED: {line.problem}" if line.problem else text


def _words(told: _Told, home: bytes) -> str:
    """Return what a line says, in words."""
    assert told.line.entry is not None
    match told.line.entry.record:
        case records.StartRecord() as start:
            at = f" at {_shown((start.mountpoint,), home)}" if start.mountpoint else ""
            version = names.show_text(start.version)
            return f"lamfuse {version}, pid {start.pid}, {_shown((start.home,), b'')}{at}"
        case records.StopRecord(reason=reason):
            return _text(reason)
        case records.TurnRecord() as turn:
            return f"{_text(turn.session)}: turn {turn.turn}, {_text(turn.cause)}"
        case records.QuestionRecord() as question:
            what = f"{question.operation} {_shown(question.paths, home)}"
            return f"{_text(question.question)} {_text(question.session)}: {what}"
        case records.AnswerRecord() as answer:
            return _words_of_answer(answer, told.question, home)
        case records.IntentRecord() as intent:
            ground = f"{intent.decision} {_text(intent.question or intent.rule)}".strip()
            what = f"{intent.operation} {_shown(intent.paths, home)}"
            return f"{_text(intent.session)}: {what}, by {ground}"
        case records.EffectRecord(intent=seq, errno=number):
            result = "done" if number == 0 else f"{_errno(number)}"
            about = told.intent
            what = f": {about.operation} {_shown(about.paths, home)}" if about else ""
            return f"of #{seq}: {result}{what}"
        case records.ReloadRecord() as reload:
            result = _text(reload.problem) or "in force"
            return f"{_shown((reload.file,), home)}: {result}"
        case records.RotationRecord() as rotation:
            return f"goes on after {_text(rotation.file)}"
        case records.TornRecord(size=size):
            return f"the line before was cut short ({names.show_size(size)})"


def _words_of_answer(
    answer: records.AnswerRecord, question: records.QuestionRecord | None, home: bytes
) -> str:
    scope = f" ({answer.scope})" if answer.scope else ""
    by = f" by {_text(answer.channel)}" if answer.channel else ""
    what = f": {question.operation} {_shown(question.paths, home)}" if question else ""
    return f"{_text(answer.question)} {answer.outcome}{scope}{by}{what}"


def _shown(places: tuple[bytes, ...], home: bytes) -> str:
    return " -> ".join(names.show_path(place, home) for place in places)


def _text(text: str) -> str:
    return names.show_text(text)


def _errno(number: int) -> str:
    name = errno.errorcode.get(number, str(number))
    return f"{name} ({os.strerror(number)})"
