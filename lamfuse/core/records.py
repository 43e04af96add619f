"""The lines of the journal, and the chain that ties each to the one before.

A line is one JSON object: ``seq``, ``time``, ``previous`` (the hash of the line before), ``kind``,
what the kind holds, and last ``hash``: SHA-256 over the previous hash and the line without it.
It must not write anything and reads no clock: :mod:`lamfuse.store.journal` does that.

A path is any bytes. Valid UTF-8 is written as a JSON string; anything else as ``{"b64": "..."}``.
A string is never base64 and an object is never text, so both ways lead back to the same bytes.

What the chain shows: any edit, removal, insertion, duplication or change of order. What it cannot:
lines cut off at the very end, and a rewrite of all that follows by somebody who may write the file.
Against the first, count and head hash are also kept elsewhere (``status``, system log).
"""

from __future__ import annotations

import binascii
import enum
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, get_args

import msgspec

from lamfuse.core.approval import Scope, State
from lamfuse.core.operations import Operation

__all__ = [
    "GENESIS",
    "AnswerRecord",
    "Basis",
    "Chain",
    "Damage",
    "EffectRecord",
    "Entry",
    "IntentRecord",
    "QuestionRecord",
    "Record",
    "RecordError",
    "ReloadRecord",
    "RotationRecord",
    "StartRecord",
    "StopRecord",
    "TornRecord",
    "TurnRecord",
    "check",
    "decode",
    "encode",
]

#: What stands for the hash of the line before the first one.
GENESIS = "0" * 64

_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z", re.ASCII)
_SEAL = re.compile(rb',"hash":"([0-9a-f]{64})"\}\n')
_SEAL_LENGTH = len(b',"hash":""}\n') + 64


class RecordError(ValueError):
    """A line is not a record of this journal, or a record cannot be written as a line."""


class Basis(enum.StrEnum):
    """On what ground a change is carried out, or not.

    ANSWER: the question named in the intent was answered yes. GRANT: an earlier answer of this turn
    covers it. RULE: a standing rule of the person. HANDLE: an open write handle does so.
    UNASKED: approvals are switched off. REFUSED: it is not carried out, and recorded because it had
    begun (a late write-back).
    """

    ANSWER = "answer"
    GRANT = "grant"
    RULE = "rule"
    HANDLE = "handle"
    UNASKED = "unasked"
    REFUSED = "refused"


class _Base(msgspec.Struct, frozen=True, tag_field="kind", forbid_unknown_fields=True):
    """What all records share: they never change, and their ``kind`` tells them apart."""


class StartRecord(_Base, frozen=True, tag="start"):
    """A daemon or server began: its version, pid, home, and mountpoint (empty: none)."""

    version: str
    pid: int
    home: bytes
    mountpoint: bytes = b""


class StopRecord(_Base, frozen=True, tag="stop"):
    """The daemon or server ended in order."""

    reason: str = ""


class TurnRecord(_Base, frozen=True, tag="turn"):
    """A turn of *session* began, or its grants ended; *cause*: a person, a hook, idle, limit."""

    session: str
    turn: int
    cause: str


class QuestionRecord(_Base, frozen=True, tag="question"):
    """A question was opened; ``title`` and ``body`` are what the person is shown."""

    question: str
    session: str
    turn: int
    operation: Operation
    paths: tuple[bytes, ...]
    title: str = ""
    body: tuple[str, ...] = ()
    destructive: bool = False
    scopes: tuple[Scope, ...] = ()
    pid: int = 0
    exe: bytes = b""


class AnswerRecord(_Base, frozen=True, tag="answer"):
    """A question came to its end: ``outcome`` is a final state.

    ``granted`` are the paths the answer reaches beyond the call: a file, a folder, a frozen list.
    """

    question: str
    session: str
    outcome: State
    scope: Scope | None = None
    channel: str = ""
    granted: tuple[bytes, ...] = ()


class IntentRecord(_Base, frozen=True, tag="intent"):
    """A change is about to be made, written before the act.

    ``destroyed`` is the number of bytes of old content that are lost, None where that is not known.
    """

    session: str
    turn: int
    operation: Operation
    paths: tuple[bytes, ...]
    decision: Basis
    rule: str = ""
    question: str = ""
    channel: str = ""
    pid: int = 0
    exe: bytes = b""
    destroyed: int | None = None


class EffectRecord(_Base, frozen=True, tag="effect"):
    """What became of the intent with sequence number ``intent``: errno, 0 when it was done."""

    intent: int
    errno: int


class ReloadRecord(_Base, frozen=True, tag="reload"):
    """The configuration was read again; ``problem`` says why the old one stays (empty: it went)."""

    file: bytes
    problem: str = ""


class RotationRecord(_Base, frozen=True, tag="rotation"):
    """The first line of a journal file that goes on where *file* (a name, no path) ended."""

    file: str


class TornRecord(_Base, frozen=True, tag="torn"):
    """The line before was found cut short: its length in bytes and their SHA-256."""

    size: int
    sha256: str


Record = (
    StartRecord
    | StopRecord
    | TurnRecord
    | QuestionRecord
    | AnswerRecord
    | IntentRecord
    | EffectRecord
    | ReloadRecord
    | RotationRecord
    | TornRecord
)

#: kind -> names of the fields that hold bytes, and of those that hold several.
_BYTES_FIELDS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    str(kind.__struct_config__.tag): (
        frozenset(field.name for field in msgspec.structs.fields(kind) if field.type is bytes),
        frozenset(
            field.name for field in msgspec.structs.fields(kind) if field.type == tuple[bytes, ...]
        ),
    )
    for kind in get_args(Record)
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One line, read: ``hash`` and ``previous`` are 64 hexadecimal digits."""

    seq: int
    time: str
    previous: str
    hash: str
    record: Record


@dataclass(frozen=True, slots=True)
class Damage:
    """A line that is not as it was written: its index (from 0) and what is wrong with it."""

    index: int
    what: str


def encode(record: Record, seq: int, time: str, previous_hash: str) -> tuple[bytes, str]:
    """Return the line of *record*, with its newline, and its hash.

    *time* is RFC 3339, UTC, with milliseconds. Raises :class:`RecordError` for another time, and
    for text that is no Unicode.
    """
    if not _TIME.fullmatch(time):
        raise RecordError(f"not a time in UTC with milliseconds: {time!r}")
    fields = msgspec.to_builtins(record, builtin_types=(bytes,))
    line = {"seq": seq, "time": time, "previous": previous_hash}
    line.update((name, _write(value)) for name, value in fields.items())
    try:
        body = msgspec.json.encode(line)
    except UnicodeEncodeError as error:
        raise RecordError(f"the {fields['kind']} record holds text that is no Unicode") from error
    digest = _hash(previous_hash, body)
    return b'%s,"hash":"%s"}\n' % (body[:-1], digest.encode()), digest


def decode(line: bytes) -> Entry:
    """Read one line; raises :class:`RecordError` unless it is whole and its own hash is right.

    That it follows the line before is what :class:`Chain` tells.
    """
    seal = _SEAL.fullmatch(line[-_SEAL_LENGTH:])
    if seal is None:
        raise RecordError("cut short, or not a line of the journal")
    digest = seal[1].decode()
    body = line[:-_SEAL_LENGTH] + b"}"
    try:
        fields = msgspec.json.decode(body, type=dict[str, Any])
        seq, time, previous = (fields.pop(name) for name in ("seq", "time", "previous"))
        header = msgspec.convert((seq, time, previous), tuple[int, str, str])
        if _hash(header[2], body) != digest:
            raise RecordError("changed since it was written: its hash is another")
        return Entry(*header, digest, _record(fields))
    except (msgspec.MsgspecError, UnicodeError, KeyError) as error:
        raise RecordError(f"not a line of the journal: {error}") from error


class Chain:
    """Follows lines one after the other, and goes on after a damaged one.

    ``seq`` and ``head`` are those of the last line that counts; ``count`` is how many were whole.
    """

    def __init__(self, seq: int = 0, head: str = GENESIS) -> None:
        self.seq = seq
        self.head = head
        self.count = 0
        self._claimed: tuple[int, str] | None = None

    def follow(self, line: bytes) -> tuple[Entry | None, str]:
        """Take the next *line*; return what it holds, and what is wrong (empty: nothing)."""
        try:
            entry = decode(line)
        except RecordError as error:
            self._claimed = _claim(line)
            return None, str(error)
        before, claimed = (self.seq, self.head), self._claimed
        self.seq, self.head, self._claimed = entry.seq, entry.hash, None
        self.count += 1
        # A damaged line may still bear the number and hash it had: then what follows it is whole.
        if (entry.seq - 1, entry.previous) in (before, claimed):
            return entry, ""
        self._claimed = before  # if this line does not belong here, the next may well
        if entry.seq == before[0] + 1:
            return entry, "does not follow the line before it"
        wanted = before[0] + 1
        return entry, f"number {entry.seq} stands where {wanted} belongs: a line is lost or moved"


def check(lines: Iterable[bytes], seq: int = 0, head: str = GENESIS) -> Damage | None:
    """Return the first damaged one of *lines* (each with its newline), or None.

    *seq* and *head* are those of the line before the first. Lines cut off at the end are not seen.
    """
    chain = Chain(seq, head)
    for index, line in enumerate(lines):
        _, what = chain.follow(line)
        if what:
            return Damage(index, what)
    return None


def _hash(previous: str, body: bytes) -> str:
    return hashlib.sha256(previous.encode() + body).hexdigest()


def _claim(line: bytes) -> tuple[int, str] | None:
    """Return the number and hash that a damaged line says it has, where it still says so."""
    seal = _SEAL.fullmatch(line[-_SEAL_LENGTH:])
    number = re.match(rb'\{"seq":([0-9]{1,18}),', line)
    return (int(number[1]), seal[1].decode()) if seal and number else None


def _record(fields: dict[str, Any]) -> Record:
    single, several = _BYTES_FIELDS.get(str(fields.get("kind")), (frozenset(), frozenset()))
    for name, value in fields.items():
        if name in single:
            fields[name] = _read(value)
        elif name in several:
            fields[name] = [_read(item) for item in value]
    record: Record = msgspec.convert(fields, type=Record, builtin_types=(bytes,))
    return record


def _write(value: object) -> object:
    """Put bytes, also in a list, into their JSON form."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"b64": binascii.b2a_base64(value, newline=False).decode()}
    if isinstance(value, list | tuple):
        return [_write(item) for item in value]
    return value


def _read(value: object) -> bytes:
    """Undo :func:`_write` for one value."""
    match value:
        case str():
            return value.encode()
        case {"b64": str(text)}:
            try:
                return binascii.a2b_base64(text, strict_mode=True)
            except ValueError as error:
                raise RecordError("not a line of the journal: a path is not base64") from error
        case _:
            raise RecordError("not a line of the journal: a path is neither text nor base64")
