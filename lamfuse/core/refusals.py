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
    """Return the refusal in words, for the agent."""
    verb, undone = _VERBS[TABLE[refusal.operation].verb]
    what = " to ".join(_place(path, home, roots) for path in refusal.paths)
    said = _SENTENCES[refusal.reason].format(
        what=what, verb=verb, undone=undone, roots=_write_roots(roots)
    )
    return f"Refused: {said}"


def refusals_file(refusals: Sequence[Refusal], home: bytes, roots: Roots) -> str:
    """Return the latest refusals, one paragraph each, the newest last."""
    if not refusals:
        return "Nothing was refused.\n"
    return "\n\n".join(text(refusal, home, roots) for refusal in refusals) + "\n"


def _place(path: bytes, home: bytes, roots: Roots) -> str:
    if roots.area(path) is Area.OUTSIDE:
        return "a place outside"
    return show_path(path, home)


def _write_roots(roots: Roots) -> str:
    return ", ".join(show_path(root, roots.home) for root in roots.write) or "none"


_SENTENCES: dict[Reason, str] = {
    Reason.HIDDEN: (
        "{what} is a credential store or another hidden place, or outside the paths that may be"
        " read. {undone} " + _STOP
    ),
    Reason.HIDDEN_SINCE: ("{what} is hidden by the rules that hold now. {undone} " + _STOP),
    Reason.DENIED_NAME: (
        "{what} has a name that is kept for credentials or hidden places, and nothing of that name"
        " is made or changed. {undone} Use another name."
    ),
    Reason.WOULD_REVEAL: (
        "moving {what} would uncover something that is hidden. {undone} " + _STOP
    ),
    Reason.CLIMBS: (
        "{what}: a link below it climbs so far up that it would lead out from the new place."
        " {undone} Change the link first, or choose a place as deep as the old one."
    ),
    Reason.LINK_LEAVES: (
        "{what}: the link would lead out of the view or to a hidden place. {undone}"
        " Use a relative target that stays inside."
    ),
    Reason.TOO_BIG: (
        "{what}: there is too much below it to be looked through, or a part may not be read."
        " {undone} Move smaller parts."
    ),
    Reason.DEVICE_NODE: "{what}: device nodes are never made. {undone}",
    Reason.PROTECTED_XATTR: (
        "{what}: attributes named security.* and trusted.* are not changed. {undone}"
    ),
    Reason.ROOT_ITSELF: (
        "{what} is a configured root, or holds one, and stays where it is. {undone}"
        " Work on what is in it."
    ),
    Reason.OTHER_ROOT: (
        "{what}: a hard link needs both names in a write root. Write roots: {roots}. {undone}"
        " Copy the content instead."
    ),
    Reason.READ_ONLY: (
        "{what} is outside the write roots and is read-only. Write roots: {roots}. {undone}"
    ),
    Reason.EXISTS: (
        "{what}: the destination exists, and nothing is replaced by a move. {undone}"
        " Choose a free name."
    ),
    Reason.NOT_EMPTY: (
        "{what} is not empty, and directories are not deleted recursively. {undone}"
        " List it and delete what you actually need."
    ),
    Reason.DECLINED: "the user declined to {verb} {what}. {undone} " + _ASK_FIRST,
    Reason.DECLINED_BEFORE: (
        "the user declined to {verb} {what} before, in this turn, and is not asked again."
        " {undone} " + _ASK_FIRST
    ),
    Reason.BREAKER: (
        "so much was refused in this turn that the user is not asked any more ({verb} {what})."
        " {undone} Stop, and tell the user what you need."
    ),
    Reason.TIMED_OUT: "nobody answered in time whether to {verb} {what}. {undone} " + _ASK_FIRST,
    Reason.LOST: (
        "nobody could be asked whether to {verb} {what}. {undone}"
        " Tell the user that the question could not be shown."
    ),
    Reason.QUEUE_FULL: (
        "too many questions wait already, so nobody was asked whether to {verb} {what}. {undone}"
        " Wait for the others, one at a time."
    ),
    Reason.REVOKED: (
        "what allowed you to {verb} {what} is over. {undone} Open it again, which asks."
    ),
    Reason.GONE: "the caller left before anybody answered ({verb} {what}). {undone}",
    Reason.STALE: (
        "{what} changed again and again while the user was asked. {undone} Look at it again."
    ),
    Reason.JOURNAL: (
        "the record of changes cannot be written, so nothing may change ({verb} {what})."
        " {undone} Tell the user."
    ),
    Reason.STOPPING: "lamfuse is ending ({verb} {what}). {undone}",
}
