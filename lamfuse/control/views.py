"""What a daemon tells about itself and its questions: values that travel over the control socket.

File names travel as :class:`PathView`: the raw bytes (base64 in JSON) for programs and the visible
text for people. Nothing here does I/O.
"""

from __future__ import annotations

import msgspec

from lamfuse.core.approval import Scope, State
from lamfuse.core.operations import Operation

__all__ = [
    "CallerView",
    "ChannelView",
    "JournalView",
    "PathView",
    "QuestionView",
    "ScopeView",
    "SessionView",
    "Status",
    "Value",
]


class Value(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A part of a message."""


class PathView(Value, frozen=True, kw_only=True):
    """A file name for programs (``raw``) and for people (``text``, all made visible)."""

    raw: bytes
    text: str


class CallerView(Value, frozen=True, kw_only=True):
    """Who waits: process id (0: unknown) and executable."""

    pid: int
    exe: PathView


class ScopeView(Value, frozen=True, kw_only=True):
    """A scope on offer: the words of its button, and for a folder which one and what is in it.

    ``existing`` is None when the files were not counted.
    """

    scope: Scope
    label: str
    path: PathView | None = None
    existing: int | None = None


class QuestionView(Value, frozen=True, kw_only=True):
    """One question as a person sees it.

    ``paths`` is source first and never shortened. ``title`` and ``body`` are made visible already.
    ``deadline_s`` is what is left of the time, ``age_s`` how long ago the question arrived,
    ``shown_s`` how long ago it was first put to a person (None: not yet), all in seconds.
    ``waiting`` is how many other questions stand.
    """

    id: str
    operation: Operation
    paths: tuple[PathView, ...]
    title: str
    body: tuple[str, ...]
    destructive: bool
    state: State
    scopes: tuple[ScopeView, ...]
    default: Scope
    deadline_s: float
    age_s: float
    caller: CallerView
    session: str
    waiting: int
    shown_s: float | None = None


class ChannelView(Value, frozen=True, kw_only=True):
    """A channel and whether it could put a question now."""

    name: str
    ready: bool


class SessionView(Value, frozen=True, kw_only=True):
    """One session: its turn, how many grants it holds, how many questions wait, and its breaker."""

    name: str
    turn: int
    grants: int
    open: int
    refusals: int
    breaker_open: bool


class JournalView(Value, frozen=True, kw_only=True):
    """The journal: its place, its number of lines, the last hash, and whether it can be written."""

    path: PathView
    count: int
    head: str
    writable: bool


class Status(Value, frozen=True, kw_only=True):
    """What a daemon says about itself. ``uptime_s`` is in seconds.

    ``descriptors`` is how many it holds open: nobody else can count those of a process that is not
    dumpable.
    """

    version: str
    pid: int
    home: PathView
    mountpoint: PathView
    config: PathView
    uptime_s: float
    file_access: bool
    read_roots: tuple[PathView, ...]
    write_roots: tuple[PathView, ...]
    channels: tuple[ChannelView, ...]
    watchers: int
    sessions: tuple[SessionView, ...]
    open_questions: int
    journal: JournalView
    problems: tuple[str, ...] = ()
    descriptors: int = 0
