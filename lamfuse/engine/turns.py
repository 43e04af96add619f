"""Sessions and their turns: one ledger and one list of refusals for each.

It keeps, and decides nothing: the gate reads and writes the ledgers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from lamfuse.core.ledger import Ledger, Limits
from lamfuse.core.refusals import Refusal

__all__ = ["OTHER", "Session", "Sessions"]

#: Everyone at a mount who is not started by lamfuse itself.
OTHER = "other"
_REFUSALS_KEPT = 50


@dataclass(slots=True)
class Session:
    """One agent: its ledger, and the latest refusals it got (oldest first).

    ``late`` are the files that were written too late while the ledger was in ``late_epoch``.
    """

    name: str
    ledger: Ledger
    refusals: deque[Refusal] = field(default_factory=lambda: deque(maxlen=_REFUSALS_KEPT))
    late: set[bytes] = field(default_factory=set)
    late_epoch: int = 0

    def is_first_late(self, path: bytes) -> bool:
        """Note a late write to *path*; tells whether it is the first one since grants ended."""
        if self.late_epoch != self.ledger.epoch:
            self.late.clear()
            self.late_epoch = self.ledger.epoch
        first = path not in self.late
        self.late.add(path)
        return first


class Sessions:
    """All sessions of a daemon, by name. *now* is the monotonic clock in seconds."""

    def __init__(self, limits: Limits, now: Callable[[], float]) -> None:
        self._limits = limits
        self._now = now
        self._sessions: dict[str, Session] = {}

    def get(self, name: str) -> Session:
        """Return the session *name*, with a fresh ledger the first time.

        Grants that are due end.
        """
        session = self._sessions.get(name)
        if session is None:
            session = Session(name, Ledger(self._limits))
            session.ledger.started = session.ledger.last_change = self._now()
            self._sessions[name] = session
        else:
            session.ledger.expire(self._now())
        return session

    def all(self) -> list[Session]:
        """Return every session that did something so far."""
        return [self.get(name) for name in self._sessions]

    def new_turn(self, name: str | None = None) -> list[Session]:
        """Begin a turn of *name*, or of every session; returns those that it was begun for."""
        sessions = self.all() if name is None else [self.get(name)]
        for session in sessions:
            session.ledger.new_turn(self._now())
        return sessions

    def end_grants(self) -> None:
        """End the grants of every session (the rules changed)."""
        for session in self.all():
            session.ledger.end_grants(self._now())

    def set_limits(self, limits: Limits) -> None:
        """Apply other limits from now on."""
        self._limits = limits
        for session in self._sessions.values():
            session.ledger.limits = limits
