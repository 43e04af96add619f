"""The policy: what may be seen, and what a change needs.

One function decides (:meth:`Policy.decide`); it is total and knows nothing of grants: whether an
ASK is covered by this turn is the ledger's business. It must not look at the disk: the tree
describes the objects, and every path here is a resolved real path.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lamfuse.core import paths
from lamfuse.core.operations import CHANGES, TABLE, Operation, Verb
from lamfuse.core.refusals import Reason
from lamfuse.core.roots import Area, Roots
from lamfuse.core.rules import Denylist, DenyRule
from lamfuse.core.runs_later import RunsLater
from lamfuse.core.standing import StandingRule, StandingRules
from lamfuse.core.target import Caller, FileKind, Request, Subject

__all__ = ["Decision", "Explanation", "Policy", "Verdict", "strictest"]

_PROTECTED_XATTRS = ("security.", "trusted.")
_LOCK = b".lock"
_KEEPS_NAMES = frozenset({Verb.WRITE, Verb.ATTRIBUTES})


class Verdict(enum.IntEnum):
    """What is to be done with a request; a higher value is stricter."""

    ALLOW = 0
    ASK = 1
    REFUSE = 2


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict, and the rule that said so.

    ``reason`` is set for REFUSE only. ``always`` says that no file grant can answer the question.
    ``runs_later`` are the paths of the request that run later outside the boundary. ``standing``
    is set where a rule of the person gave the answer.
    """

    verdict: Verdict
    rule: str
    reason: Reason | None = None
    always: bool = False
    runs_later: tuple[bytes, ...] = ()
    standing: StandingRule | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """What would happen to a path for one operation, and which rule says so."""

    operation: Operation
    verdict: Verdict
    rule: str
    reason: Reason | None


def strictest(first: Decision, second: Decision) -> Decision:
    """Return the stricter of two decisions; what either asks for or lists is kept.

    Of two refusals the one whose reason stands first in :class:`Reason` counts, so that the order
    of the arguments does not matter.
    """
    if first.verdict is not second.verdict:
        winner = max(first, second, key=lambda decision: decision.verdict)
    else:
        winner = min(first, second, key=_rank)
    if winner.verdict is Verdict.REFUSE:
        return winner
    return Decision(
        winner.verdict,
        winner.rule,
        winner.reason,
        always=first.always or second.always,
        runs_later=tuple(sorted({*first.runs_later, *second.runs_later})),
        standing=winner.standing,
    )


def _rank(decision: Decision) -> tuple[int, str, str]:
    order = list(Reason).index(decision.reason) if decision.reason is not None else -1
    return order, decision.rule, decision.standing.text if decision.standing else ""


class Policy:
    """The rules of one view.

    *link_ok* are absolute directories that links may lead into; *rename_over* is ``ask`` or
    ``refuse``.
    """

    def __init__(
        self,
        home: bytes,
        denylist: Denylist,
        roots: Roots,
        runs_later: RunsLater,
        standing: StandingRules,
        *,
        link_ok: Sequence[bytes] = (),
        rename_over: str = "ask",
    ) -> None:
        self.home = home
        self.denylist = denylist
        self.roots = roots
        self.link_ok = tuple(link_ok)
        self.rename_over = rename_over
        self._runs_later = runs_later
        self._standing = standing

    def hides(self, path: bytes, *, is_dir: bool | None) -> DenyRule | None:
        """Return the rule that hides *path*, or None when it is visible."""
        return self.denylist.rule_for(path, is_dir=is_dir)

    def is_readable(self, path: bytes, *, is_dir: bool | None) -> bool:
        """Tell whether *path* lies inside home or a root, and is not hidden."""
        return (
            self.roots.area(path) is not Area.OUTSIDE
            and self.denylist.rule_for(path, is_dir=is_dir) is None
        )

    def runs_later(self, request: Request) -> tuple[bytes, ...]:
        """Return every path of *request*, at its old and its new place, that runs later outside.

        A lock file that is created (``config.lock``) lists the file that it stands for as well:
        it is going to be renamed onto it, and one question can be about both.
        """
        makes_directory = request.makes is FileKind.DIRECTORY
        found = {
            path
            for path, is_dir in _all_paths(request)
            if self._runs_later.rule_for(path, is_dir=makes_directory if is_dir is None else is_dir)
            is not None
        }
        if request.operation is Operation.CREATE:
            locked = {path.removesuffix(_LOCK) for path in found if path.endswith(_LOCK)}
            found |= {
                path for path in locked if self._runs_later.rule_for(path, is_dir=False) is not None
            }
        return tuple(sorted(found))

    def decide(self, request: Request) -> Decision:
        """Decide on *request*: allow, ask or refuse, with the rule that said so."""
        if request.operation not in CHANGES:
            return self._decide_reading(request)
        refused = self._refuse(request)
        if refused is not None:
            return refused
        row = TABLE[request.operation]
        classed = self.runs_later(request)
        standing = self._standing_answer(request, row.verb, classed)
        if standing is not None and not standing.allow:
            rule = f"your rule {standing.text}"
            return Decision(Verdict.REFUSE, rule, Reason.DECLINED, standing=standing)
        if standing is not None:
            return Decision(Verdict.ALLOW, f"your rule {standing.text}", standing=standing)
        rule = "runs on your machine later" if classed else f"{row.verb} in a write root"
        return Decision(Verdict.ASK, rule, always=row.mode == "always", runs_later=classed)

    def explain(self, path: bytes, kind: FileKind | None) -> list[Explanation]:
        """Return what would happen to *path* for every operation that can apply to it."""
        result = []
        for operation in Operation:
            row = TABLE[operation]
            if row.two_paths or operation is Operation.STATFS:
                continue
            creates = row.verb is Verb.CREATE
            if creates is not (kind is None):
                continue
            if operation in {Operation.RMDIR, Operation.LIST} and kind is not FileKind.DIRECTORY:
                continue
            if operation in {Operation.UNLINK, Operation.WRITE, Operation.TRUNCATE} and (
                kind is FileKind.DIRECTORY
            ):
                continue
            if operation is Operation.READLINK and kind is not FileKind.SYMLINK:
                continue
            subject = Subject(path, None if creates else kind)
            decision = self.decide(Request(operation, "", Caller(), (subject,)))
            result.append(Explanation(operation, decision.verdict, decision.rule, decision.reason))
        return result

    def _decide_reading(self, request: Request) -> Decision:
        decision = Decision(Verdict.ALLOW, "readable")
        for subject in request.subjects:
            for path in (subject.path, *subject.other_names):
                rule = self.denylist.rule_for(path, is_dir=subject.is_directory)
                if rule is not None:
                    decision = _refusal(Reason.HIDDEN, f"denylist: {rule.text}")
                elif self.roots.area(path) is Area.OUTSIDE:
                    decision = strictest(decision, _refusal(Reason.HIDDEN, "outside the roots"))
        return decision

    def _refuse(self, request: Request) -> Decision | None:
        """Return the strictest refusal for any name that *request* touches, or None."""
        refusals = [*self._refusals(request)]
        if not refusals:
            return None
        result = refusals[0]
        for refusal in refusals[1:]:
            result = strictest(result, refusal)
        return result

    def _refusals(self, request: Request) -> Iterator[Decision]:
        operation = request.operation
        if request.makes is FileKind.DEVICE:
            yield _refusal(Reason.DEVICE_NODE, "device nodes")
        if operation in {Operation.SET_XATTR, Operation.REMOVE_XATTR} and request.detail.startswith(
            _PROTECTED_XATTRS
        ):
            yield _refusal(Reason.PROTECTED_XATTR, "protected attributes")
        for path, is_dir in _direct_paths(request):
            yield from self._refuse_path(request, path, is_dir=is_dir)
        if TABLE[operation].verb in {Verb.DELETE, Verb.MOVE}:
            yield from self._refuse_root(request)
        for source, destination in _moves(request):
            yield from self._refuse_below(source, destination)
        if operation is Operation.REPLACE and self.rename_over == "refuse":
            yield _refusal(Reason.EXISTS, "rename_over = refuse")

    def _refuse_path(
        self, request: Request, path: bytes, *, is_dir: bool | None
    ) -> Iterator[Decision]:
        rule = self.denylist.rule_for(path, is_dir=is_dir)
        if rule is not None:
            known = any(subject.exists and subject.path == path for subject in request.subjects)
            reason = Reason.HIDDEN_SINCE if known else Reason.DENIED_NAME
            yield _refusal(reason, f"denylist: {rule.text}")
        if self.roots.area(path) is Area.WRITE:
            return
        makes_chain = (
            request.operation is Operation.MKDIR
            and not request.subjects[0].exists
            and self.roots.leads_to_write_root(path)
        )
        if not makes_chain:
            linking = request.operation is Operation.LINK
            yield _refusal(
                Reason.OTHER_ROOT if linking else Reason.READ_ONLY, "not in a write root"
            )

    def _refuse_root(self, request: Request) -> Iterator[Decision]:
        for subject in request.subjects:
            if subject.exists and any(
                paths.contains(subject.path, root) for root in self.roots.all
            ):
                yield _refusal(Reason.ROOT_ITSELF, "a root itself")

    def _refuse_below(self, source: Subject, destination: bytes) -> Iterator[Decision]:
        """Judge everything below a directory that is to be moved, at its old and its new place."""
        below = source.below
        if below is None:
            return
        if not below.complete:
            yield _refusal(Reason.TOO_BIG, "too much below it to look through")
        at_home = paths.contains(self.home, destination)
        root = self.home if at_home else self.roots.root_of(destination)
        if root is None or below.climb > paths.depth(root, destination):
            yield _refusal(Reason.CLIMBS, "a link below it would lead out")
        for old, new, is_dir in _below(source, destination):
            was_hidden = self.denylist.rule_for(old, is_dir=is_dir) is not None
            rule = self.denylist.rule_for(new, is_dir=is_dir)
            if was_hidden and rule is None:
                yield _refusal(Reason.WOULD_REVEAL, "a hidden entry would become visible")
            if rule is not None and not was_hidden:
                yield _refusal(Reason.DENIED_NAME, f"denylist: {rule.text}")
            if self.roots.area(old) is not Area.WRITE or self.roots.area(new) is not Area.WRITE:
                yield _refusal(Reason.READ_ONLY, "not in a write root")

    def _standing_answer(
        self, request: Request, verb: Verb, classed: tuple[bytes, ...]
    ) -> StandingRule | None:
        """Return the person's rule that answers for every path of *request*, if there is one.

        A file that runs later is answered for only by a rule that names exactly that file.
        """
        every = {path for path, _ in _all_paths(request)}
        found = {path: self._standing.answer(verb, path) for path in sorted(every)}
        declined = next((rule for rule in found.values() if rule and not rule.allow), None)
        if declined is not None:
            return declined
        result = None
        for path, rule in found.items():
            if rule is None or (path in classed and not rule.names_exactly(path)):
                return None
            result = rule
        return result


def _refusal(reason: Reason, rule: str) -> Decision:
    return Decision(Verdict.REFUSE, rule, reason)


def _direct_paths(request: Request) -> Iterator[tuple[bytes, bool | None]]:
    """Yield every name that *request* itself touches, at its old and its new place.

    The other names of a file are touched by what changes its content or attributes, and by a new
    link.
    """
    keeps_names = TABLE[request.operation].verb in _KEEPS_NAMES
    for subject in request.subjects:
        is_dir = subject.is_directory if subject.exists else None
        yield subject.path, is_dir
        if keeps_names or request.operation is Operation.LINK:
            for name in subject.other_names:
                yield name, is_dir
    for source, destination in _moves(request):
        yield destination, source.is_directory


def _below(source: Subject, destination: bytes) -> Iterator[tuple[bytes, bytes, bool]]:
    """Yield (old path, new path, is it a directory) for everything below a moved directory."""
    if source.below is not None:
        for relative in source.below.relative:
            old, new = paths.join(source.path, relative), paths.join(destination, relative)
            yield old, new, relative in source.below.directories


def _all_paths(request: Request) -> Iterator[tuple[bytes, bool | None]]:
    yield from _direct_paths(request)
    for source, destination in _moves(request):
        for old, new, is_dir in _below(source, destination):
            yield old, is_dir
            yield new, is_dir


def _moves(request: Request) -> Iterator[tuple[Subject, bytes]]:
    """Yield (moved object, its new path) for a rename; an exchange has two."""
    if TABLE[request.operation].verb is not Verb.MOVE:
        return
    source, destination = request.subjects
    yield source, destination.path
    if request.operation is Operation.EXCHANGE:
        yield destination, source.path
