"""The policy: what may be seen, and what a change needs.

One function decides (:meth:`Policy.decide`); it is total and knows nothing of grants: whether an
ASK is covered by this turn is the ledger's business. It must not look at the disk: the tree
describes the objects, and every path here is a resolved real path.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lamfuse.core import paths, touched
from lamfuse.core.operations import CHANGES, TABLE, Operation, Verb
from lamfuse.core.refusals import Reason
from lamfuse.core.roots import Area, Roots
from lamfuse.core.rules import Denylist, DenyRule
from lamfuse.core.runs_later import RunsLater
from lamfuse.core.standing import StandingRule, StandingRules
from lamfuse.core.target import Below, Caller, FileKind, Request, Subject

__all__ = ["Decision", "Explanation", "Policy", "Verdict", "strictest"]

_PROTECTED_XATTRS = ("security.", "trusted.")
_LOCK = b".lock"
_GIVES_NAMES = frozenset({Verb.CREATE, Verb.MOVE})
_NAMES = _GIVES_NAMES | {Verb.DELETE}


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
    return Decision(
        winner.verdict,
        winner.rule,
        winner.reason,
        always=first.always or second.always,
        runs_later=tuple(sorted({*first.runs_later, *second.runs_later})),
        standing=winner.standing,
    )


def _rank(decision: Decision) -> tuple[object, ...]:
    order = list(Reason).index(decision.reason) if decision.reason is not None else -1
    rule = decision.standing
    if rule is None:
        return order, decision.rule
    verbs = tuple(verb in rule.verbs for verb in Verb)
    return order, decision.rule, rule.text, rule.patterns, verbs, rule.allow


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
        kinds: dict[bytes, set[bool]] = {}
        for path, is_dir in touched.all_names(request):
            kinds.setdefault(path, set()).update(() if is_dir is None else (is_dir,))
        found = {
            path
            for path, known in kinds.items()
            for is_dir in known or (makes_directory,)
            if self._runs_later.rule_for(path, is_dir=is_dir) is not None
        }
        if request.operation is Operation.CREATE:
            found |= {
                path.removesuffix(_LOCK)
                for path in found
                if paths.base(path) != _LOCK
                and self._runs_later.rule_for(path.removesuffix(_LOCK), is_dir=False) is not None
            }
        return tuple(sorted(found))

    def decide(self, request: Request) -> Decision:
        """Decide on *request*: allow, ask or refuse, with the rule that said so."""
        if any(subject.unlinked for subject in request.subjects):
            return _decide_unlinked(request)
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
            decision = self.decide(Request(operation, "", Caller(), (Subject(path, kind),)))
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
        """Return the refusal of *request*, or None.

        What is said of the places comes first: where nothing may change, no refusal tells what is
        below a directory.
        """
        for refusals in (self._refuse_places, self._refuse_roots, self._refuse_kind):
            found = [*refusals(request)]
            if found:
                return functools.reduce(strictest, found)
        found = [
            refusal
            for source, destination in touched.moves(request)
            for refusal in self._refuse_below(source, destination)
        ]
        return functools.reduce(strictest, found) if found else None

    def _refuse_places(self, request: Request) -> Iterator[Decision]:
        """Refuse hidden names, and what is not in a write root.

        The other names of a file are touched by what changes its content or attributes, and by a
        new link; a hidden one hides the file under all its names.
        """
        verb = TABLE[request.operation].verb
        touches_names = verb in touched.KEEPS_NAMES or request.operation is Operation.LINK
        for path, is_dir in touched.direct_names(request):
            rule = self.denylist.rule_for(path, is_dir=is_dir)
            if rule is not None:
                # Whether something stands under a name that is to be given makes no difference.
                given = verb in _GIVES_NAMES and path == request.paths[-1]
                reason = Reason.DENIED_NAME if given else Reason.HIDDEN_SINCE
                yield _refusal(reason, f"denylist: {rule.text}")
            yield from self._refuse_area(request, path)
        for subject in request.subjects:
            for name in subject.other_names:
                rule = self.denylist.rule_for(name, is_dir=subject.is_directory)
                if rule is not None:
                    yield _refusal(Reason.HIDDEN_SINCE, f"denylist: {rule.text}")
                if touches_names:
                    yield from self._refuse_area(request, name)

    def _refuse_area(self, request: Request, path: bytes) -> Iterator[Decision]:
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

    def _refuse_roots(self, request: Request) -> Iterator[Decision]:
        """Refuse to take a root or its chain away, and to put anything but a new folder there."""
        verb = TABLE[request.operation].verb
        if verb not in _NAMES or request.operation is Operation.MKDIR:
            return
        for path in request.paths:
            if any(paths.contains(path, root) for root in self.roots.all):
                yield _refusal(Reason.ROOT_ITSELF, "a root itself")

    def _refuse_kind(self, request: Request) -> Iterator[Decision]:
        operation = request.operation
        if request.makes is FileKind.DEVICE:
            yield _refusal(Reason.DEVICE_NODE, "device nodes")
        if operation in {Operation.SET_XATTR, Operation.REMOVE_XATTR} and request.detail.startswith(
            _PROTECTED_XATTRS
        ):
            yield _refusal(Reason.PROTECTED_XATTR, "protected attributes")
        if operation is Operation.REPLACE and self.rename_over == "refuse":
            yield _refusal(Reason.EXISTS, "rename_over = refuse")

    def _refuse_below(self, source: Subject, destination: bytes) -> Iterator[Decision]:
        """Judge everything below a directory that is to be moved, at its old and its new place."""
        below = source.below
        if below is None:
            return
        if not below.complete:
            yield _refusal(Reason.TOO_BIG, "too much below it to look through")
        if self._lets_climb(source.path, destination, below):
            yield _refusal(Reason.CLIMBS, "a link below it would lead out")
        for old, new, is_dir in touched.below(source, destination):
            was_hidden = self.denylist.rule_for(old, is_dir=is_dir) is not None
            rule = self.denylist.rule_for(new, is_dir=is_dir)
            if was_hidden and rule is None:
                yield _refusal(Reason.WOULD_REVEAL, "a hidden entry would become visible")
            if rule is not None and not was_hidden:
                yield _refusal(Reason.DENIED_NAME, f"denylist: {rule.text}")

    def _lets_climb(self, old: bytes, new: bytes, below: Below) -> bool:
        """Tell whether a link below would climb too far if the directory *old* became *new*.

        A caller may have read it just before. What the view shows as a path from its top climbs
        all the way: absolute targets, and those with ``..`` behind a name.
        """
        old_anchor, new_anchor = self._anchor_of(old), self._anchor_of(new)
        if old_anchor is None or new_anchor is None:
            return True
        room = paths.depth(new_anchor, new)
        if old_anchor == new_anchor and room >= paths.depth(old_anchor, old):
            return False
        rewritten = below.winds or not all(map(self._is_kept, below.absolute))
        return rewritten or below.climb > room

    def _anchor_of(self, path: bytes) -> bytes | None:
        """Return home or the extra root below which the view shows *path*."""
        return self.home if paths.contains(self.home, path) else self.roots.root_of(path)

    def _is_kept(self, target: bytes) -> bool:
        """Tell whether the view shows an absolute link target as it is: it leads to the system."""
        path = paths.normalise(target)
        return (
            b".." not in target.split(b"/")
            and self.roots.root_of(path) is None
            and any(paths.contains(place, path) for place in self.link_ok)
        )

    def _standing_answer(
        self, request: Request, verb: Verb, classed: tuple[bytes, ...]
    ) -> StandingRule | None:
        """Return the person's rule that answers for every path of *request*, if there is one.

        A file that runs later is answered for only by a rule that names exactly that file. A file
        with names that nobody knows is never changed unasked.
        """
        every = {path for path, _ in touched.acted_names(request)}.union(classed)
        found = {path: self._standing.answer(verb, path) for path in sorted(every)}
        declined = next((rule for rule in found.values() if rule and not rule.allow), None)
        if declined is not None:
            return declined
        if verb in touched.KEEPS_NAMES and touched.has_unknown_names(request.subjects[0]):
            return None
        result = None
        for path, rule in found.items():
            if rule is None or (path in classed and not rule.names_exactly(path)):
                return None
            result = rule
        return result


def _refusal(reason: Reason, rule: str) -> Decision:
    return Decision(Verdict.REFUSE, rule, reason)


def _decide_unlinked(request: Request) -> Decision:
    """Decide on what has no name any more, before its path: whoever holds it open goes on."""
    if request.operation in CHANGES or request.operation is Operation.OPEN:
        return _refusal(Reason.STALE, "it has no name any more")
    return Decision(Verdict.ALLOW, "held open")
