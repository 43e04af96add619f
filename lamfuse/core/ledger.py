"""The ledger: the grants of a turn, what was born in it, and what was declined.

One :class:`Ledger` is one session's. It is keyed by the resolved real path, and a grant remembers
which object it was given for. Nothing here asks anybody, and nothing here is ever "for ever": a
new turn starts with an empty ledger.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from lamfuse.core import paths
from lamfuse.core.approval import Offer, Scope
from lamfuse.core.operations import TABLE, Operation, Verb
from lamfuse.core.target import Below, FileId, FileKind, Identity, Request, Stamp, Subject

__all__ = ["Birth", "FolderGrant", "Ledger", "Limits", "is_atomic_save"]

_NAME_CHANGES = frozenset({Verb.DELETE, Verb.MOVE})


@dataclass(frozen=True, slots=True)
class Limits:
    """When grants end by themselves (seconds), and how many refusals open the breaker."""

    idle_s: float = 900.0
    turn_max_s: float = 3600.0
    refusals: int = 8


@dataclass(frozen=True, slots=True)
class FolderGrant:
    """This folder for this turn.

    ``files`` are those that were there already and were counted in the question: no others of what
    was not born in this turn are covered.
    """

    path: bytes
    files: frozenset[FileId]


@dataclass(slots=True)
class Birth:
    """An object that this session created in this turn, as our last operation left it."""

    identity: Identity
    ctime_ns: int
    size: int


@dataclass(slots=True)
class Ledger:
    """The grants of one session in one turn.

    ``turn`` counts a person's turns; ``epoch`` grows whenever grants end, so that what was opened
    under an older epoch has to be looked at again. Times are monotonic seconds.

    ``files`` are the paths granted for this turn, with the object that the person was shown there;
    None where nothing stood yet: then only what this session makes there is covered. ``listed`` are
    the paths that run later and that a question named beside its own. ``refused`` are the questions
    that were shown and refused.
    """

    limits: Limits = field(default_factory=Limits)
    turn: int = 1
    epoch: int = 1
    started: float = 0.0
    last_change: float = 0.0
    files: dict[bytes, Identity | None] = field(default_factory=dict)
    listed: set[bytes] = field(default_factory=set)
    folders: list[FolderGrant] = field(default_factory=list)
    births: dict[tuple[int, int], Birth] = field(default_factory=dict)
    declined: set[Hashable] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)

    def new_turn(self, now: float) -> None:
        """Begin a turn for a person: every grant, decline and refusal so far is over."""
        self.turn += 1
        self.declined.clear()
        self.refused.clear()
        self.end_grants(now)

    def end_grants(self, now: float) -> None:
        """End every grant; declines and the breaker stay."""
        self.epoch += 1
        self.started = now
        self.last_change = now
        self.files.clear()
        self.listed.clear()
        self.folders.clear()
        self.births.clear()

    def expire(self, now: float) -> bool:
        """End the grants after an idle time or at the age limit; tells whether it did."""
        due = (
            now - self.last_change >= self.limits.idle_s
            or now - self.started >= self.limits.turn_max_s
        )
        if due and (self.files or self.folders or self.births):
            self.end_grants(now)
            return True
        if due:
            self.started = self.last_change = now
        return False

    @property
    def refusals(self) -> int:
        """How many questions that had been shown were refused in this turn."""
        return len(self.refused)

    @property
    def breaker_is_open(self) -> bool:
        """Whether so much was refused in this turn that nothing is asked any more."""
        return self.refusals >= self.limits.refusals

    def resume(self) -> None:
        """Close the breaker."""
        self.refused.clear()

    def was_declined(self, request: Request) -> bool:
        """Whether this very question was declined in this turn."""
        return self._question_key(request) in self.declined

    def note_declined(self, request: Request) -> None:
        """Remember that this question was declined."""
        self.declined.add(self._question_key(request))

    def note_refusal(self, question: str) -> None:
        """Count the refusal of the question *question* (its id), once for all who waited for it."""
        self.refused.add(question)

    def grant(self, request: Request, offer: Offer, classed: tuple[bytes, ...], now: float) -> None:
        """Enter what a yes with the scope of *offer* leaves behind."""
        self.last_change = now
        if not self.started:
            self.started = now
        if offer.scope is Scope.FILE:
            granted = request.subjects[-1]  # what is written to, or comes into being
            self.files[granted.path] = granted.identity
            for path in {*classed} - {granted.path}:
                if path in granted.other_names:
                    self.files[path] = granted.identity
                else:
                    self.listed.add(path)
        elif offer.scope is Scope.FOLDER:
            self.folders.append(FolderGrant(offer.path, offer.files))

    def covers(self, request: Request, classed: tuple[bytes, ...]) -> str | None:
        """Return the grant that covers *request*, in words for the journal, or None.

        *classed* are the paths of the request that run later outside: each needs a grant of its
        own.
        """
        if request.alone:
            return None
        if any(path not in self.files and path not in self.listed for path in classed):
            return None
        verb = TABLE[request.operation].verb
        if self.saves(request):
            return self._covers_content(request.subjects[1], has_grant=bool(classed))
        if verb in _NAME_CHANGES:
            return self._covers_names(request)
        if verb is Verb.CREATE:
            return self._covers_creation(request, classed)
        return self._covers_content(request.subjects[0], has_grant=bool(classed))

    def saves(self, request: Request) -> bool:
        """Whether *request* is an atomic save: judged as a write of its destination."""
        return is_atomic_save(request) and self.is_born(request.subjects[0])

    def is_born(self, subject: Subject) -> bool:
        """Whether this session created the object in this turn.

        Nobody else changed it since.
        """
        identity = subject.identity
        if identity is None:
            return False
        birth = self.births.get((identity.dev, identity.ino))
        if birth is None or birth.identity != identity:
            return False
        if subject.is_directory:
            return True
        return birth.ctime_ns == subject.ctime_ns and birth.size == subject.size

    def note_birth(self, subject: Subject, now: float) -> None:
        """Remember an object that was just created, as it is now."""
        self.last_change = now
        identity = subject.identity
        if identity is not None:
            self.births[identity.dev, identity.ino] = Birth(
                identity, subject.ctime_ns, subject.size
            )
            if subject.path in self.files:
                self.files[subject.path] = identity

    def note_change(self, dev: int, ino: int, ctime_ns: int, size: int, now: float) -> None:
        """Remember what our own operation left of an object."""
        self.last_change = now
        birth = self.births.get((dev, ino))
        if birth is not None:
            birth.ctime_ns = ctime_ns
            birth.size = size

    def note_gone(self, identity: Identity | None) -> None:
        """Forget the birth of an object of which a name was removed."""
        if identity is not None:
            self.births.pop((identity.dev, identity.ino), None)

    def note_moved(self, moved: Subject, destination: bytes) -> None:
        """Let a file grant of the destination go over to an object of this turn that stands there.

        It never goes over to what was there before: that was not asked about.
        """
        if destination in self.files and self.is_born(moved):
            self.files[destination] = moved.identity

    def _question_key(self, request: Request) -> Hashable:
        """Return what makes two questions of this session the same: the verb and the real paths.

        A save is the same question as writing to the file: the temporary name differs each time.
        """
        if self.saves(request):
            return (Verb.WRITE, request.paths[1:])
        return (TABLE[request.operation].verb, request.paths)

    def _covers_content(self, subject: Subject, *, has_grant: bool) -> str | None:
        born = self.is_born(subject)
        if subject.links > 1 and not subject.is_directory and not born:
            return None
        if subject.path in self.files:
            granted = self.files[subject.path]
            if born or (granted is not None and granted == subject.identity):
                return "this file for this turn"
        if subject.path in self.listed:
            return "this file for this turn"
        if has_grant:
            return None
        for folder in self.folders:
            identity = subject.identity
            counted = identity is not None and identity.file_id in folder.files
            if (born or counted) and paths.contains(folder.path, subject.path):
                return "this folder for this turn"
        return None

    def _covers_creation(self, request: Request, classed: tuple[bytes, ...]) -> str | None:
        created = request.subjects[-1]
        # A link, a folder or a FIFO in the place of a file is something else, and so is one more
        # name of a file that was there before.
        is_file = request.makes is FileKind.FILE
        if request.operation is Operation.LINK:
            is_file = is_file and self.is_born(request.subjects[0])
        if is_file and (created.path in self.files or created.path in self.listed):
            return "this file for this turn"
        if classed:
            return None
        return self._folder_of(created.path)

    def _covers_names(self, request: Request) -> str | None:
        """Cover deleting and moving: only of what was born in this turn, in a granted folder."""
        if request.operation is Operation.EXCHANGE:
            return None
        objects = [subject for subject in request.subjects if subject.exists]
        if not all(self.is_born(subject) for subject in objects):
            return None
        for subject in objects:
            if subject.below is not None and not self._all_born(subject.below):
                return None
        grants = [self._folder_of(path) for path in request.paths]
        return None if None in grants else grants[0]

    def _all_born(self, below: Below) -> bool:
        if not below.complete or below.stamps is None:
            return False
        return all(map(self._is_born_there, below.stamps))

    def _is_born_there(self, stamp: Stamp) -> bool:
        file_id, ctime_ns, size = stamp
        birth = self.births.get(file_id[:2])
        if birth is None or birth.identity.file_id != file_id:
            return False
        return size < 0 or (birth.ctime_ns, birth.size) == (ctime_ns, size)

    def _folder_of(self, path: bytes) -> str | None:
        for folder in self.folders:
            if folder.path != path and paths.contains(folder.path, path):
                return "this folder for this turn"
        return None


def is_atomic_save(request: Request) -> bool:
    """Whether a rename replaces a file by a file.

    With a source born in this turn, that is a save.
    """
    if request.operation is not Operation.REPLACE:
        return False
    return all(subject.kind is FileKind.FILE for subject in request.subjects)
