"""What an agent reads when it is refused: short, factual, with the next step.

A refusal is a value. A policy refusal says to stop trying there, an approval refusal to ask before
trying again. Nothing here tells whether something hidden exists, and a place outside home and the
roots is not named.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from lamfuse.core.names import show_path
from lamfuse.core.operations import TABLE, Operation, Verb
from lamfuse.core.roots import Area, Roots

__all__ = ["KINDS", "Kind", "Reason", "Refusal", "refusals_file", "text"]

Kind = Literal["policy", "approval", "io"]


class Reason(enum.StrEnum):
    """Why something was refused. Of several reasons the one that stands first here is told."""

    HIDDEN = "hidden"
    HIDDEN_SINCE = "hidden since"
    DENIED_NAME = "denied name"
    WOULD_REVEAL = "would reveal"
    CLIMBS = "climbs"
    LINK_LEAVES = "link leaves"
    TOO_BIG = "too big"
    DEVICE_NODE = "device node"
    PROTECTED_XATTR = "protected attribute"
    ROOT_ITSELF = "root itself"
    OTHER_ROOT = "other root"
    READ_ONLY = "read-only"
    EXISTS = "exists"
    NOT_EMPTY = "not empty"
    DECLINED = "declined"
    DECLINED_BEFORE = "declined before"
    BREAKER = "breaker"
    TIMED_OUT = "timed out"
    LOST = "lost"
    QUEUE_FULL = "queue full"
    REVOKED = "revoked"
    GONE = "gone"
    STALE = "stale"
    JOURNAL = "journal"
    STOPPING = "stopping"


#: A policy refusal means there is nothing here to touch; an approval refusal means that the person
#: said no to this one, or could not be asked.
KINDS: dict[Reason, Kind] = {
    Reason.HIDDEN: "policy",
    Reason.HIDDEN_SINCE: "policy",
    Reason.DENIED_NAME: "policy",
    Reason.WOULD_REVEAL: "policy",
    Reason.CLIMBS: "policy",
    Reason.LINK_LEAVES: "policy",
    Reason.TOO_BIG: "policy",
    Reason.DEVICE_NODE: "policy",
    Reason.PROTECTED_XATTR: "policy",
    Reason.ROOT_ITSELF: "policy",
    Reason.OTHER_ROOT: "policy",
    Reason.READ_ONLY: "policy",
    Reason.EXISTS: "policy",
    Reason.NOT_EMPTY: "io",
    Reason.DECLINED: "approval",
    Reason.DECLINED_BEFORE: "approval",
    Reason.BREAKER: "approval",
    Reason.TIMED_OUT: "approval",
    Reason.LOST: "approval",
    Reason.QUEUE_FULL: "approval",
    Reason.REVOKED: "approval",
    Reason.GONE: "io",
    Reason.STALE: "io",
    Reason.JOURNAL: "io",
    Reason.STOPPING: "io",
}

#: verb -> (to do it, what was not done).
_VERBS: dict[Verb, tuple[str, str]] = {
    Verb.READ: ("read", "Nothing was read."),
    Verb.WRITE: ("write", "Nothing was written."),
    Verb.ATTRIBUTES: ("change the attributes of", "Nothing was changed."),
    Verb.CREATE: ("create", "Nothing was created."),
    Verb.DELETE: ("delete", "Nothing was deleted."),
    Verb.MOVE: ("move", "Nothing was moved."),
}
_ASK_FIRST = "Ask before trying again."
_STOP = "Do not try again there."
#: One text for all that is found below a directory: a reason of its own for what is hidden there
#: would tell that it exists.
_NOT_AS_A_WHOLE = (
    "to {act} is not done as a whole. Below it is too much to be looked through, or something that"
    " may not be read or shown at its new place, or a link that could lead out of the view from"
    " there. {undone} Do not try the whole again; smaller parts, or a place as deep as the old one,"
    " may do."
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refusal of *operation* on *paths* (real paths, source first); *rule* said so."""

    reason: Reason
    operation: Operation
    paths: tuple[bytes, ...]
    rule: str | None = None

    @property
    def kind(self) -> Kind:
        """Whether the policy, the person, or the machine said no."""
        return KINDS[self.reason]


def text(refusal: Refusal, home: bytes, roots: Roots) -> str:
    """Return the refusal in words, for the agent: one line. The rule itself is not told."""
    about = refusal.paths
    if refusal.reason is Reason.READ_ONLY:
        about = _outside_write_roots(refusal.paths, roots) or refusal.paths
    places = dict.fromkeys(_place(path, home, roots) for path in about)
    said = _sentence(refusal, roots).format(
        act=_act(refusal, home, roots),
        what=" and ".join(places),
        be="is" if len(places) == 1 else "are",
        undone=_VERBS[TABLE[refusal.operation].verb][1],
        readable=_readable(roots),
        writable=_names(roots.write, home) or "none",
    )
    return f"Refused: {said}"


def refusals_file(refusals: Sequence[Refusal], home: bytes, roots: Roots) -> str:
    """Return the latest refusals, one paragraph each, the newest last."""
    if not refusals:
        return "Nothing was refused.\n"
    return "\n\n".join(text(refusal, home, roots) for refusal in refusals) + "\n"


def _sentence(refusal: Refusal, roots: Roots) -> str:
    if refusal.reason is Reason.HIDDEN and any(_is_outside(path, roots) for path in refusal.paths):
        return _OUTSIDE
    if refusal.reason is Reason.READ_ONLY and not _outside_write_roots(refusal.paths, roots):
        return _OTHER_NAME_READ_ONLY
    return _SENTENCES[refusal.reason]


def _act(refusal: Refusal, home: bytes, roots: Roots) -> str:
    """Return what was to be done, with every path of it."""
    first, *more = (_place(path, home, roots) for path in refusal.paths)
    if not more:
        verb, _ = _VERBS[TABLE[refusal.operation].verb]
        return f"{verb} {first}"
    second = more[0]
    if refusal.operation is Operation.LINK:
        return f"create {second} as one more name of {first}"
    if refusal.operation is Operation.EXCHANGE:
        return f"exchange {first} and {second}"
    return f"move {first} to {second}"


def _is_outside(path: bytes, roots: Roots) -> bool:
    return roots.area(path) is Area.OUTSIDE


def _outside_write_roots(places: Sequence[bytes], roots: Roots) -> tuple[bytes, ...]:
    return tuple(path for path in places if roots.area(path) is not Area.WRITE)


def _place(path: bytes, home: bytes, roots: Roots) -> str:
    return "a place outside" if _is_outside(path, roots) else show_path(path, home)


def _readable(roots: Roots) -> str:
    also = f", and {_names(roots.extra, roots.home)}" if roots.extra else ""
    return f"the home directory, except credential stores{also}"


def _names(places: Sequence[bytes], home: bytes) -> str:
    return ", ".join(show_path(path, home) for path in places)


#: act: to do what to what. what: the places that the reason is about. undone: what was not done.
#: What is hidden is named by nothing but the path that was asked for: no text tells that it exists.
_SENTENCES: dict[Reason, str] = {
    Reason.HIDDEN: (
        "{what} is a credential store or another hidden place, and is not read. {undone} " + _STOP
    ),
    Reason.HIDDEN_SINCE: (
        "to {act} would touch what is hidden by the rules that hold now. {undone} " + _STOP
    ),
    Reason.DENIED_NAME: (
        "to {act} would give a name that is kept for credentials or hidden places, and nothing is"
        " given such a name. {undone} Do not try that name again; another may do."
    ),
    Reason.WOULD_REVEAL: _NOT_AS_A_WHOLE,
    Reason.CLIMBS: _NOT_AS_A_WHOLE,
    Reason.LINK_LEAVES: (
        "{what}: the link would lead out of the view or to a hidden place. {undone}"
        " Do not try that target again; a relative one that stays inside may do."
    ),
    Reason.TOO_BIG: _NOT_AS_A_WHOLE,
    Reason.DEVICE_NODE: "{what}: device nodes are never made. {undone} Do not try again.",
    Reason.PROTECTED_XATTR: (
        "{what}: attributes named security.* and trusted.* are not changed. {undone}"
        " Do not try again."
    ),
    Reason.ROOT_ITSELF: (
        "to {act} would replace or take away a configured root, or a folder that leads to one."
        " {undone} Do not try again there; work on what is in it."
    ),
    Reason.OTHER_ROOT: (
        "to {act} needs every name of it in a write root. Write roots: {writable}. {undone}"
        " Do not try again there; copy the content instead."
    ),
    Reason.READ_ONLY: (
        "{what} {be} not in a write root, and read-only. Write roots: {writable}. {undone} " + _STOP
    ),
    Reason.EXISTS: (
        "to {act} would replace the destination, which exists. {undone} Do not try that name again;"
        " choose a free one."
    ),
    Reason.NOT_EMPTY: (
        "{what} is not empty, and directories are not deleted recursively. {undone}"
        " List it and delete what you actually need."
    ),
    Reason.DECLINED: "the user declined to {act}. {undone} " + _ASK_FIRST,
    Reason.DECLINED_BEFORE: (
        "the user declined before, in this turn, to {act}, and is not asked again. {undone} "
        + _ASK_FIRST
    ),
    Reason.BREAKER: (
        "so much was refused in this turn that the user is not asked any more (to {act})."
        " {undone} Stop, and ask the user before trying again."
    ),
    Reason.TIMED_OUT: "nobody answered in time whether to {act}. {undone} " + _ASK_FIRST,
    Reason.LOST: (
        "nobody could be asked whether to {act}. {undone} Tell the user that the question could"
        " not be shown, and ask before trying again."
    ),
    Reason.QUEUE_FULL: (
        "too many questions wait already, so nobody was asked whether to {act}. {undone}"
        " Let the others be answered, and ask before trying again."
    ),
    Reason.REVOKED: "what allowed you to {act} is over. {undone} Open it again, which asks.",
    Reason.GONE: (
        "the caller left before it was settled whether to {act}. {undone}"
        " Try again only if it is still needed, which asks anew."
    ),
    Reason.STALE: (
        "it changed or went away before it was settled whether to {act}. {undone}"
        " Look at it again before trying again."
    ),
    Reason.JOURNAL: (
        "the record of changes cannot be written, so nothing may change (to {act}). {undone}"
        " Tell the user."
    ),
    Reason.STOPPING: (
        "lamfuse is ending, and nobody is asked any more whether to {act}. {undone} Tell the user."
    ),
}
_OUTSIDE = "this leads outside the paths that may be read. Readable: {readable}. {undone} " + _STOP
_OTHER_NAME_READ_ONLY = (
    "{what} has another name that is not in a write root, and is read-only under all its names."
    " Write roots: {writable}. {undone} " + _STOP
)
