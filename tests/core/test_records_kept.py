"""What the journal keeps for years: its words, its defaults, and what it says of a broken line."""

import hashlib
import json

import pytest

from lamfuse.core.approval import State
from lamfuse.core.errors import ConfigError
from lamfuse.core.operations import Operation
from lamfuse.core.records import (
    GENESIS,
    AnswerRecord,
    Basis,
    IntentRecord,
    QuestionRecord,
    RecordError,
    ReloadRecord,
    StartRecord,
    StopRecord,
    check,
    decode,
    encode,
)

pytestmark = pytest.mark.requirement("L9")

TIME = "2025-03-04T05:06:07.089Z"


def _sealed(fields: dict[str, object]) -> bytes:
    """Make a line whose hash is right, whatever is in it."""
    whole = {"seq": 1, "time": TIME, "previous": GENESIS, **fields}
    body = json.dumps(whole, separators=(",", ":")).encode()
    digest = hashlib.sha256(GENESIS.encode() + body).hexdigest()
    return b'%s,"hash":"%s"}\n' % (body[:-1], digest.encode())


def test_the_chain_begins_with_zeros() -> None:
    assert GENESIS == "0" * 64


def test_the_grounds_of_a_change_have_these_words() -> None:
    words = {basis.name: basis.value for basis in Basis}

    assert words == {
        "ANSWER": "answer",
        "GRANT": "grant",
        "RULE": "rule",
        "HANDLE": "handle",
        "UNASKED": "unasked",
        "REFUSED": "refused",
    }


def test_what_is_not_said_is_empty() -> None:
    question = QuestionRecord("k7f2", "s", 1, Operation.WRITE, (b"/a",))
    intent = IntentRecord("s", 1, Operation.WRITE, (b"/a",), Basis.RULE)

    assert StartRecord("1", 2, b"/h").mountpoint == b""
    assert (question.title, question.destructive) == ("", False)
    assert (question.pid, question.exe) == (0, b"")
    assert AnswerRecord("k7f2", "s", State.LOST).channel == ""
    assert (intent.rule, intent.question, intent.channel) == ("", "", "")
    assert (intent.pid, intent.exe, intent.destroyed) == (0, b"", None)
    assert ReloadRecord(b"/c").problem == ""


def test_a_wrong_time_and_a_text_that_is_no_unicode_are_named() -> None:
    with pytest.raises(RecordError, match=r"^not a time in UTC with milliseconds: 'now'$"):
        encode(StopRecord(), 1, "now", GENESIS)
    with pytest.raises(RecordError, match=r"^the stop record holds text that is no Unicode$"):
        encode(StopRecord("\udc80"), 1, TIME, GENESIS)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        pytest.param(b"{}\n", "cut short, or not a line of the journal", id="no seal"),
        pytest.param(
            encode(StopRecord(), 1, TIME, GENESIS)[0] + b"x",
            "cut short, or not a line of the journal",
            id="more behind the seal",
        ),
        pytest.param(
            encode(StopRecord("a"), 1, TIME, GENESIS)[0].replace(b'"a"', b'"b"'),
            "changed since it was written: its hash is another",
            id="changed",
        ),
        pytest.param(
            _sealed({"kind": "start", "version": "1", "pid": 1, "home": {"b64": "=!"}}),
            "not a line of the journal: a path is not base64",
            id="not base64",
        ),
        pytest.param(
            _sealed({"kind": "start", "version": "1", "pid": 1, "home": {"b64": "YQ==x"}}),
            "not a line of the journal: a path is not base64",
            id="something behind base64",
        ),
        pytest.param(
            _sealed({"kind": "start", "version": "1", "pid": 1, "home": 7}),
            "not a line of the journal: a path is neither text nor base64",
            id="a number for a path",
        ),
    ],
)
def test_a_broken_line_says_what_is_wrong(line: bytes, said: str) -> None:
    with pytest.raises(RecordError) as caught:
        decode(line)

    assert str(caught.value) == said


def test_a_line_with_unknown_fields_is_no_line_of_the_journal() -> None:
    with pytest.raises(RecordError, match=r"^not a line of the journal: Object"):
        decode(_sealed({"kind": "stop", "more": 1}))


def test_a_whole_journal_has_no_damage() -> None:
    assert check([encode(StopRecord(), 1, TIME, GENESIS)[0]]) is None


def test_an_error_of_the_configuration_names_place_fault_and_remedy() -> None:
    error = ConfigError("config.toml: deny", "it is no list", "Write a list.")

    assert str(error) == "config.toml: deny: it is no list. Write a list."
    assert (error.where, error.what) == ("config.toml: deny", "it is no list")
    assert error.remedy == "Write a list."
