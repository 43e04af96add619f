"""The protocol of the control socket, without I/O: one JSON object a line.

The client sends :class:`Hello`, the server answers with its own, then requests are answered in
order; ``seq`` ties a reply to its request. After :class:`WatchRequest` events come in between the
replies. Decoding is strict (unknown fields, wrong types and over-long lines are errors) and
whatever comes in, nothing but :class:`WireError` is raised.
"""

from __future__ import annotations

import enum
from typing import Annotated, Final, TypeAlias, TypeVar

import msgspec

from lamfuse.control.views import (
    CallerView,
    ChannelView,
    JournalView,
    PathView,
    QuestionView,
    ScopeView,
    SessionView,
    Status,
    Value,
)
from lamfuse.core.approval import Scope, State
from lamfuse.core.errors import LamfuseError

__all__ = [
    "MAX_REPLY_BYTES",
    "MAX_REQUEST_BYTES",
    "VERSION",
    "AnswerOutcome",
    "AnswerReply",
    "AnswerRequest",
    "AskedEvent",
    "CallerView",
    "ChangedEvent",
    "ChannelView",
    "Event",
    "Failure",
    "FailureCode",
    "FromClient",
    "FromServer",
    "Hello",
    "JournalView",
    "Lines",
    "PathView",
    "PendingReply",
    "PendingRequest",
    "QuestionView",
    "ReloadReply",
    "ReloadRequest",
    "Reply",
    "Request",
    "ResumeRequest",
    "ScopeView",
    "SessionReply",
    "SessionView",
    "ShowReply",
    "ShowRequest",
    "Status",
    "StatusReply",
    "StatusRequest",
    "TurnRequest",
    "UnmountReply",
    "UnmountRequest",
    "WatchReply",
    "WatchRequest",
    "WireError",
    "decode_from_client",
    "decode_from_server",
    "encode",
]

#: Changes whenever an old client or daemon would misunderstand a new one.
VERSION: Final = 1

#: A request is a few words; more than this is not one of ours.
MAX_REQUEST_BYTES: Final = 1 << 20

#: 64 questions, two paths each, every byte escaped, twice in the text: below this with room to
#: spare.
MAX_REPLY_BYTES: Final = 1 << 24


#: A number that ties a reply to its request.
Sequence: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]


class WireError(LamfuseError):
    """What came over the socket is not the protocol."""


# --- client to server ---------------------------------------------------------------------------


class Hello(Value, frozen=True, kw_only=True, tag="hello", tag_field="kind"):
    """The first line of both sides."""

    version: int


class _Request(Value, frozen=True, kw_only=True, tag_field="kind"):
    """A request; ``seq`` comes back in its reply."""

    seq: Sequence = 0


class StatusRequest(_Request, frozen=True, kw_only=True, tag="status"):
    """Ask how the daemon is."""


class PendingRequest(_Request, frozen=True, kw_only=True, tag="pending"):
    """Ask for all open questions; none counts as shown by that."""


class ShowRequest(_Request, frozen=True, kw_only=True, tag="show"):
    """Ask for one question; it counts as shown to a person from now on."""

    id: str


class AnswerRequest(_Request, frozen=True, kw_only=True, tag="answer"):
    """Answer a question; without a scope the question's default is meant."""

    id: str
    allow: bool
    scope: Scope | None = None


class ResumeRequest(_Request, frozen=True, kw_only=True, tag="resume"):
    """Close the breaker of a session (None: of all)."""

    session: str | None = None


class TurnRequest(_Request, frozen=True, kw_only=True, tag="turn"):
    """Begin a new turn for a session (None: for all)."""

    session: str | None = None


class ReloadRequest(_Request, frozen=True, kw_only=True, tag="reload"):
    """Read the configuration again."""


class UnmountRequest(_Request, frozen=True, kw_only=True, tag="unmount"):
    """End the daemon in order."""


class WatchRequest(_Request, frozen=True, kw_only=True, tag="watch"):
    """Attach as a watcher: events follow until the connection ends."""


# --- server to client ---------------------------------------------------------------------------


class _Reply(Value, frozen=True, kw_only=True, tag_field="kind"):
    """A reply to the request with this ``seq``."""

    seq: int = 0


class StatusReply(_Reply, frozen=True, kw_only=True, tag="status"):
    """How the daemon is."""

    status: Status


class PendingReply(_Reply, frozen=True, kw_only=True, tag="pending"):
    """The open questions, oldest first."""

    questions: tuple[QuestionView, ...]


class ShowReply(_Reply, frozen=True, kw_only=True, tag="show"):
    """One question, or None when no such question is open."""

    question: QuestionView | None


class AnswerOutcome(enum.StrEnum):
    """What became of an answer. Only ``ACCEPTED`` changed anything."""

    ACCEPTED = "accepted"
    UNKNOWN = "unknown"
    DECIDED = "decided"
    NOT_SHOWN = "not shown"
    NOT_OFFERED = "not offered"


class AnswerReply(_Reply, frozen=True, kw_only=True, tag="answer"):
    """What became of an answer.

    ``state`` is the question's state after it (None when unknown), ``channel`` who decided it,
    ``scope`` the scope that a yes got, ``offered`` what could have been chosen.
    """

    outcome: AnswerOutcome
    state: State | None = None
    channel: str = ""
    scope: Scope | None = None
    offered: tuple[Scope, ...] = ()


class SessionReply(_Reply, frozen=True, kw_only=True, tag="session"):
    """The sessions that were meant, or ``known`` is True when the one named does not exist."""

    sessions: tuple[str, ...]
    known: bool = True


class ReloadReply(_Reply, frozen=True, kw_only=True, tag="reload"):
    """Whether the new configuration holds; ``message`` says why not, ``problems`` what it skips."""

    done: bool
    message: str = ""
    problems: tuple[str, ...] = ()


class UnmountReply(_Reply, frozen=True, kw_only=True, tag="unmount"):
    """The daemon ends now; the connection closes when it has."""

    refused_questions: int = 0


class WatchReply(_Reply, frozen=True, kw_only=True, tag="watch"):
    """Attached: what is open already follows as events."""


class FailureCode(enum.StrEnum):
    """Why a request was not carried out."""

    PEER = "peer"
    VERSION = "version"
    BUSY = "busy"
    MALFORMED = "malformed"
    TOO_LONG = "too long"
    INTERNAL = "internal"
    STOPPING = "stopping"


class Failure(_Reply, frozen=True, kw_only=True, tag="failure"):
    """A request that was not carried out, and why, in words."""

    code: FailureCode
    message: str


class AskedEvent(Value, frozen=True, kw_only=True, tag="asked", tag_field="kind"):
    """A question is to be put to the person now. Whoever does so sends :class:`ShowRequest`."""

    question: QuestionView


class ChangedEvent(Value, frozen=True, kw_only=True, tag="changed", tag_field="kind"):
    """A question got another state; ``channel`` says who decided it (empty: nobody)."""

    id: str
    state: State
    channel: str = ""
    scope: Scope | None = None


Request: TypeAlias = (
    StatusRequest
    | PendingRequest
    | ShowRequest
    | AnswerRequest
    | ResumeRequest
    | TurnRequest
    | ReloadRequest
    | UnmountRequest
    | WatchRequest
)
Reply: TypeAlias = (
    StatusReply
    | PendingReply
    | ShowReply
    | AnswerReply
    | SessionReply
    | ReloadReply
    | UnmountReply
    | WatchReply
    | Failure
)
Event: TypeAlias = AskedEvent | ChangedEvent
FromClient: TypeAlias = Hello | Request
FromServer: TypeAlias = Hello | Reply | Event

_from_client: Final[msgspec.json.Decoder[FromClient]] = msgspec.json.Decoder(FromClient)
_from_server: Final[msgspec.json.Decoder[FromServer]] = msgspec.json.Decoder(FromServer)
_Message = TypeVar("_Message")
_encoder: Final = msgspec.json.Encoder()


def encode(message: FromClient | FromServer) -> bytes:
    """Return *message* as one line, with its end."""
    return _encoder.encode(message) + b"\n"


def decode_from_client(line: bytes) -> FromClient:
    """Read one line of a client; raises :class:`WireError`."""
    return _decode(_from_client, line)


def decode_from_server(line: bytes) -> FromServer:
    """Read one line of a server; raises :class:`WireError`."""
    return _decode(_from_server, line)


def _decode(decoder: msgspec.json.Decoder[_Message], line: bytes) -> _Message:
    try:
        return decoder.decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError) as exc:
        raise WireError(f"not a message: {exc}") from exc


class Lines:
    """Cuts a stream of bytes into lines of at most *limit* bytes (the end not counted)."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Take what was received and return the lines that are complete now.

        Raises :class:`WireError` for a line over the limit; the stream cannot be used after that.
        """
        searched = len(self._buffer)
        self._buffer += data
        lines: list[bytes] = []
        start = 0
        while (end := self._buffer.find(b"\n", max(start, searched))) >= 0:
            self._check(end - start)
            lines.append(bytes(self._buffer[start:end]))
            start = end + 1
        del self._buffer[:start]
        self._check(len(self._buffer))
        return lines

    @property
    def is_clean(self) -> bool:
        """Whether nothing is left of a line that did not end."""
        return not self._buffer

    def _check(self, length: int) -> None:
        if length > self._limit:
            raise WireError(f"a line of more than {self._limit} bytes")
