"""Every refusal to the letter: each reason, with each kind of operation that can meet it."""

from __future__ import annotations

import pytest

from lamfuse.core.operations import Operation
from lamfuse.core.refusals import Reason, Refusal, text
from tests.core.acts import DOWNLOADS, HOME
from tests.core.questions import DRAFT, NEW, NOTES, ROOTS, SHADOW

pytestmark = pytest.mark.requirement("H6", "H31")


_NOT_AS_A_WHOLE = (
    "is not done as a whole. Below it is too much to be looked through, or something that may not"
    " be read or shown at its new place, or a link that could lead out of the view from there."
    " Nothing was moved. Do not try the whole again; smaller parts, or a place as deep as the old"
    " one, may do."
)


def _golden(
    reason: Reason, operation: Operation, paths: tuple[bytes, ...], words: str
) -> tuple[Refusal, str]:
    return Refusal(reason, operation, paths, "denylist: a-rule"), f"Refused: {words}"


GOLDEN = [
    _golden(
        Reason.HIDDEN,
        Operation.OPEN,
        (HOME + b"/.ssh/id_ed25519",),
        "~/.ssh/id_ed25519 is a credential store or another hidden place, and is not read."
        " Nothing was read. Do not try again there.",
    ),
    _golden(
        Reason.HIDDEN,
        Operation.OPEN,
        (SHADOW,),
        "this leads outside the paths that may be read. Readable: the home directory, except"
        " credential stores, and /srv/docs, /srv/out. Nothing was read. Do not try again"
        " there.",
    ),
    _golden(
        Reason.HIDDEN_SINCE,
        Operation.OPEN,
        (DRAFT,),
        "to read ~/Downloads/draft.md would touch what is hidden by the rules that hold now."
        " Nothing was read. Do not try again there.",
    ),
    _golden(
        Reason.HIDDEN_SINCE,
        Operation.WRITE,
        (DRAFT,),
        "to write ~/Downloads/draft.md would touch what is hidden by the rules that hold now."
        " Nothing was written. Do not try again there.",
    ),
    _golden(
        Reason.HIDDEN_SINCE,
        Operation.CHMOD,
        (DRAFT,),
        "to change the attributes of ~/Downloads/draft.md would touch what is hidden by the"
        " rules that hold now. Nothing was changed. Do not try again there.",
    ),
    _golden(
        Reason.HIDDEN_SINCE,
        Operation.UNLINK,
        (DRAFT,),
        "to delete ~/Downloads/draft.md would touch what is hidden by the rules that hold"
        " now. Nothing was deleted. Do not try again there.",
    ),
    _golden(
        Reason.HIDDEN_SINCE,
        Operation.RENAME,
        (DRAFT, NEW),
        "to move ~/Downloads/draft.md to ~/Downloads/new.md would touch what is hidden by the"
        " rules that hold now. Nothing was moved. Do not try again there.",
    ),
    _golden(
        Reason.DENIED_NAME,
        Operation.CREATE,
        (DOWNLOADS + b"/.env",),
        "to create ~/Downloads/.env would give a name that is kept for credentials or hidden"
        " places, and nothing is given such a name. Nothing was created. Do not try that name"
        " again; another may do.",
    ),
    _golden(
        Reason.DENIED_NAME,
        Operation.CREATE,
        (SHADOW,),
        "to create a place outside would give a name that is kept for credentials or hidden"
        " places, and nothing is given such a name. Nothing was created. Do not try that name"
        " again; another may do.",
    ),
    _golden(
        Reason.DENIED_NAME,
        Operation.LINK,
        (DRAFT, DOWNLOADS + b"/.env"),
        "to create ~/Downloads/.env as one more name of ~/Downloads/draft.md would give a"
        " name that is kept for credentials or hidden places, and nothing is given such a"
        " name. Nothing was created. Do not try that name again; another may do.",
    ),
    _golden(
        Reason.DENIED_NAME,
        Operation.RENAME,
        (DRAFT, DOWNLOADS + b"/.env"),
        "to move ~/Downloads/draft.md to ~/Downloads/.env would give a name that is kept for"
        " credentials or hidden places, and nothing is given such a name. Nothing was moved."
        " Do not try that name again; another may do.",
    ),
    _golden(
        Reason.DENIED_NAME,
        Operation.RENAME,
        (DOWNLOADS + b"/.env",),
        "to move ~/Downloads/.env would give a name that is kept for credentials or hidden"
        " places, and nothing is given such a name. Nothing was moved. Do not try that name"
        " again; another may do.",
    ),
    _golden(
        Reason.WOULD_REVEAL,
        Operation.RENAME,
        (DOWNLOADS + b"/a", DOWNLOADS + b"/b"),
        f"to move ~/Downloads/a to ~/Downloads/b {_NOT_AS_A_WHOLE}",
    ),
    _golden(
        Reason.CLIMBS,
        Operation.RENAME,
        (DOWNLOADS + b"/a/b", DOWNLOADS + b"/b"),
        f"to move ~/Downloads/a/b to ~/Downloads/b {_NOT_AS_A_WHOLE}",
    ),
    _golden(
        Reason.LINK_LEAVES,
        Operation.SYMLINK,
        (NEW,),
        "~/Downloads/new.md: the link would lead out of the view or to a hidden place."
        " Nothing was created. Do not try that target again; a relative one that stays inside"
        " may do.",
    ),
    _golden(
        Reason.TOO_BIG,
        Operation.EXCHANGE,
        (DOWNLOADS + b"/a", DOWNLOADS + b"/b"),
        f"to exchange ~/Downloads/a and ~/Downloads/b {_NOT_AS_A_WHOLE}",
    ),
    _golden(
        Reason.DEVICE_NODE,
        Operation.MKNOD,
        (NEW,),
        "~/Downloads/new.md: device nodes are never made. Nothing was created. Do not try again.",
    ),
    _golden(
        Reason.PROTECTED_XATTR,
        Operation.SET_XATTR,
        (DRAFT,),
        "~/Downloads/draft.md: attributes named security.* and trusted.* are not changed."
        " Nothing was changed. Do not try again.",
    ),
    _golden(
        Reason.ROOT_ITSELF,
        Operation.RMDIR,
        (DOWNLOADS,),
        "to delete ~/Downloads would replace or take away a configured root, or a folder that"
        " leads to one. Nothing was deleted. Do not try again there; work on what is in it.",
    ),
    _golden(
        Reason.ROOT_ITSELF,
        Operation.RENAME,
        (DOWNLOADS, DOWNLOADS + b"/x"),
        "to move ~/Downloads to ~/Downloads/x would replace or take away a configured root,"
        " or a folder that leads to one. Nothing was moved. Do not try again there; work on"
        " what is in it.",
    ),
    _golden(
        Reason.OTHER_ROOT,
        Operation.LINK,
        (NOTES, NEW),
        "to create ~/Downloads/new.md as one more name of ~/Documents/notes.md needs every"
        " name of it in a write root. Write roots: ~/Downloads, /srv/out. Nothing was created."
        " Do not try again there; copy the content instead.",
    ),
    _golden(
        Reason.READ_ONLY,
        Operation.WRITE,
        (NOTES,),
        "~/Documents/notes.md is not in a write root, and read-only. Write roots:"
        " ~/Downloads, /srv/out. Nothing was written. Do not try again there.",
    ),
    _golden(
        Reason.READ_ONLY,
        Operation.UNLINK,
        (b"/srv/docs/a",),
        "/srv/docs/a is not in a write root, and read-only. Write roots: ~/Downloads,"
        " /srv/out. Nothing was deleted. Do not try again there.",
    ),
    _golden(
        Reason.READ_ONLY,
        Operation.RENAME,
        (NOTES, NEW),
        "~/Documents/notes.md is not in a write root, and read-only. Write roots:"
        " ~/Downloads, /srv/out. Nothing was moved. Do not try again there.",
    ),
    _golden(
        Reason.READ_ONLY,
        Operation.RENAME,
        (SHADOW, b"/etc/passwd"),
        "a place outside is not in a write root, and read-only. Write roots: ~/Downloads,"
        " /srv/out. Nothing was moved. Do not try again there.",
    ),
    _golden(
        Reason.READ_ONLY,
        Operation.WRITE,
        (DRAFT,),
        "~/Downloads/draft.md has another name that is not in a write root, and is read-only"
        " under all its names. Write roots: ~/Downloads, /srv/out. Nothing was written. Do not"
        " try again there.",
    ),
    _golden(
        Reason.READ_ONLY,
        Operation.EXCHANGE,
        (NOTES, SHADOW),
        "~/Documents/notes.md and a place outside are not in a write root, and read-only."
        " Write roots: ~/Downloads, /srv/out. Nothing was moved. Do not try again there.",
    ),
    _golden(
        Reason.EXISTS,
        Operation.REPLACE,
        (DRAFT, NEW),
        "to move ~/Downloads/draft.md to ~/Downloads/new.md would replace the destination,"
        " which exists. Nothing was moved. Do not try that name again; choose a free one.",
    ),
    _golden(
        Reason.NOT_EMPTY,
        Operation.RMDIR,
        (DOWNLOADS + b"/archive",),
        "~/Downloads/archive is not empty, and directories are not deleted recursively."
        " Nothing was deleted. List it and delete what you actually need.",
    ),
    _golden(
        Reason.DECLINED,
        Operation.WRITE,
        (DRAFT,),
        "the user declined to write ~/Downloads/draft.md. Nothing was written. Ask before"
        " trying again.",
    ),
    _golden(
        Reason.DECLINED,
        Operation.TRUNCATE,
        (DRAFT,),
        "the user declined to write ~/Downloads/draft.md. Nothing was written. Ask before"
        " trying again.",
    ),
    _golden(
        Reason.DECLINED,
        Operation.CHMOD,
        (DRAFT,),
        "the user declined to change the attributes of ~/Downloads/draft.md. Nothing was"
        " changed. Ask before trying again.",
    ),
    _golden(
        Reason.DECLINED,
        Operation.MKDIR,
        (NEW,),
        "the user declined to create ~/Downloads/new.md. Nothing was created. Ask before"
        " trying again.",
    ),
    _golden(
        Reason.DECLINED,
        Operation.LINK,
        (DRAFT, NEW),
        "the user declined to create ~/Downloads/new.md as one more name of"
        " ~/Downloads/draft.md. Nothing was created. Ask before trying again.",
    ),
    _golden(
        Reason.DECLINED,
        Operation.UNLINK,
        (DRAFT,),
        "the user declined to delete ~/Downloads/draft.md. Nothing was deleted. Ask before"
        " trying again.",
    ),
    _golden(
        Reason.DECLINED,
        Operation.REPLACE,
        (DRAFT, NEW),
        "the user declined to move ~/Downloads/draft.md to ~/Downloads/new.md. Nothing was"
        " moved. Ask before trying again.",
    ),
    _golden(
        Reason.DECLINED,
        Operation.EXCHANGE,
        (DRAFT, NEW),
        "the user declined to exchange ~/Downloads/draft.md and ~/Downloads/new.md. Nothing"
        " was moved. Ask before trying again.",
    ),
    _golden(
        Reason.DECLINED_BEFORE,
        Operation.UNLINK,
        (DRAFT,),
        "the user declined before, in this turn, to delete ~/Downloads/draft.md, and is not"
        " asked again. Nothing was deleted. Ask before trying again.",
    ),
    _golden(
        Reason.BREAKER,
        Operation.CREATE,
        (NEW,),
        "so much was refused in this turn that the user is not asked any more (to create"
        " ~/Downloads/new.md). Nothing was created. Stop, and ask the user before trying"
        " again.",
    ),
    _golden(
        Reason.TIMED_OUT,
        Operation.WRITE,
        (DRAFT,),
        "nobody answered in time whether to write ~/Downloads/draft.md. Nothing was written."
        " Ask before trying again.",
    ),
    _golden(
        Reason.LOST,
        Operation.WRITE,
        (DRAFT,),
        "nobody could be asked whether to write ~/Downloads/draft.md. Nothing was written."
        " Tell the user that the question could not be shown, and ask before trying again.",
    ),
    _golden(
        Reason.QUEUE_FULL,
        Operation.RENAME,
        (DRAFT, NEW),
        "too many questions wait already, so nobody was asked whether to move"
        " ~/Downloads/draft.md to ~/Downloads/new.md. Nothing was moved. Let the others be"
        " answered, and ask before trying again.",
    ),
    _golden(
        Reason.REVOKED,
        Operation.WRITE,
        (DRAFT,),
        "what allowed you to write ~/Downloads/draft.md is over. Nothing was written. Open it"
        " again, which asks.",
    ),
    _golden(
        Reason.GONE,
        Operation.WRITE,
        (DRAFT,),
        "the caller left before it was settled whether to write ~/Downloads/draft.md."
        " Nothing was written. Try again only if it is still needed, which asks anew.",
    ),
    _golden(
        Reason.STALE,
        Operation.UNLINK,
        (DRAFT,),
        "it changed or went away before it was settled whether to delete"
        " ~/Downloads/draft.md. Nothing was deleted. Look at it again before trying again.",
    ),
    _golden(
        Reason.JOURNAL,
        Operation.WRITE,
        (DRAFT,),
        "the record of changes cannot be written, so nothing may change (to write"
        " ~/Downloads/draft.md). Nothing was written. Tell the user.",
    ),
    _golden(
        Reason.STOPPING,
        Operation.WRITE,
        (DRAFT,),
        "lamfuse is ending, and nobody is asked any more whether to write"
        " ~/Downloads/draft.md. Nothing was written. Tell the user.",
    ),
]


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        pytest.param(refusal, words, id=f"{refusal.reason}-{refusal.operation}-{index}")
        for index, (refusal, words) in enumerate(GOLDEN)
    ],
)
def test_a_refusal_is_worded_to_the_letter(refusal: Refusal, words: str) -> None:
    assert text(refusal, HOME, ROOTS) == words


def test_every_reason_has_its_words() -> None:
    assert {refusal.reason for refusal, _ in GOLDEN} == set(Reason)
