"""The lines of the journal and their chain."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamfuse.core.approval import Scope, State
from lamfuse.core.operations import Operation
from lamfuse.core.records import (
    GENESIS,
    AnswerRecord,
    Basis,
    Chain,
    Damage,
    EffectRecord,
    IntentRecord,
    QuestionRecord,
    Record,
    RecordError,
    ReloadRecord,
    RotationRecord,
    StartRecord,
    StopRecord,
    TornRecord,
    TurnRecord,
    check,
    decode,
    encode,
)

pytestmark = pytest.mark.requirement("L9")

TIME = "2025-03-04T05:06:07.089Z"

_text = st.text(st.characters(codec="utf-8"), max_size=20)
_path = st.one_of(st.binary(max_size=20), _text.map(str.encode))
_paths = st.lists(_path, max_size=3).map(tuple)
_number = st.integers(0, 2**40)
_operation = st.sampled_from(Operation)

records: st.SearchStrategy[Record] = st.one_of(
    st.builds(StartRecord, version=_text, pid=_number, home=_path, mountpoint=_path),
    st.builds(StopRecord, reason=_text),
    st.builds(TurnRecord, session=_text, turn=_number, cause=_text),
    st.builds(
        QuestionRecord,
        question=_text,
        session=_text,
        turn=_number,
        operation=_operation,
        paths=_paths,
        title=_text,
        body=st.lists(_text, max_size=3).map(tuple),
        destructive=st.booleans(),
        scopes=st.lists(st.sampled_from(Scope), max_size=3).map(tuple),
        pid=_number,
        exe=_path,
    ),
    st.builds(
        AnswerRecord,
        question=_text,
        session=_text,
        outcome=st.sampled_from(State),
        scope=st.none() | st.sampled_from(Scope),
        channel=_text,
        granted=_paths,
    ),
    st.builds(
        IntentRecord,
        session=_text,
        turn=_number,
        operation=_operation,
        paths=_paths,
        decision=st.sampled_from(Basis),
        rule=_text,
        question=_text,
        channel=_text,
        pid=_number,
        exe=_path,
        destroyed=st.none() | _number,
    ),
    st.builds(EffectRecord, intent=_number, errno=st.integers(0, 133)),
    st.builds(ReloadRecord, file=_path, problem=_text),
    st.builds(RotationRecord, file=_text),
    st.builds(TornRecord, size=_number, sha256=_text),
)


def chain_of(*items: Record) -> list[bytes]:
    """Return the lines of *items*, numbered from 1."""
    lines, head = [], GENESIS
    for seq, record in enumerate(items, start=1):
        line, head = encode(record, seq, TIME, head)
        lines.append(line)
    return lines


FOUR = chain_of(
    StartRecord("1.0", 7, b"/home/lam"),
    IntentRecord("s", 1, Operation.UNLINK, (b"/home/lam/a\xff",), Basis.ANSWER, question="k7f2"),
    EffectRecord(2, 0),
    StopRecord("unmounted"),
)


@given(records, st.integers(1, 2**40), st.binary(min_size=32, max_size=32))
def test_a_record_comes_back_as_it_was(record: Record, seq: int, previous: bytes) -> None:
    """Whatever bytes its paths hold."""
    line, digest = encode(record, seq, TIME, previous.hex())

    entry = decode(line)

    assert (seq, TIME, previous.hex(), digest) == (
        entry.seq,
        entry.time,
        entry.previous,
        entry.hash,
    )
    assert record == entry.record


@given(records)
def test_a_record_is_one_line_of_json(record: Record) -> None:
    """Nothing in a name or a text can start a second line."""
    line, _ = encode(record, 1, TIME, GENESIS)

    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert isinstance(json.loads(line), dict)


@pytest.mark.parametrize(
    ("path", "written"),
    [
        pytest.param(b"/a/\xc3\xa9", "/a/é", id="utf-8 is text"),
        pytest.param(b"/a\n", "/a\n", id="a control character is escaped by JSON"),
        pytest.param(b"/a\xff", {"b64": "L2H/"}, id="stray byte"),
        pytest.param(b"\xed\xb2\x80", {"b64": "7bKA"}, id="a surrogate is not utf-8"),
        pytest.param(b"\xc0\xaf", {"b64": "wK8="}, id="overlong form"),
        pytest.param(b"", "", id="empty"),
    ],
)
def test_a_path_is_text_where_it_can_be(path: bytes, written: object) -> None:
    """And marked as base64 where it cannot."""
    line, _ = encode(ReloadRecord(path), 1, TIME, GENESIS)

    assert written == json.loads(line)["file"]
    assert ReloadRecord(path) == decode(line).record


@pytest.mark.parametrize(
    "time",
    [
        "2025-03-04T05:06:07Z",
        "2025-03-04 05:06:07.089Z",
        "2025-03-04T05:06:07.089+01:00",
        "2025-03-04T05:06:07.089Z\n",
        "",
    ],
)
def test_another_form_of_time_is_refused(time: str) -> None:
    """UTC with milliseconds, nothing else."""
    with pytest.raises(RecordError, match="UTC"):
        encode(StopRecord(), 1, time, GENESIS)


def test_text_that_is_no_unicode_is_refused() -> None:
    """A lone surrogate could not be read back."""
    with pytest.raises(RecordError, match="stop"):
        encode(StopRecord("\udc80"), 1, TIME, GENESIS)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\n", id="empty line"),
        pytest.param(FOUR[0][:-1], id="no newline"),
        pytest.param(FOUR[0][:40], id="cut short"),
        pytest.param(FOUR[0] + b"\n", id="one newline too many"),
        pytest.param(b" " + FOUR[0], id="a space before"),
        pytest.param(FOUR[0][:-67] + FOUR[0][-67:].upper(), id="hash in capitals"),
        pytest.param(b'{"seq":1,"hash":"' + b"0" * 64 + b'"}\n', id="fields missing"),
        pytest.param(b'[1,"hash":"' + b"0" * 64 + b'"}\n', id="no JSON"),
        pytest.param(b'{"a":"\xff","hash":"' + b"0" * 64 + b'"}\n', id="no UTF-8"),
    ],
)
def test_what_is_no_line_is_refused(line: bytes) -> None:
    """Whatever it is, it is one kind of error."""
    with pytest.raises(RecordError):
        decode(line)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(b'"kind":"stop"', b'"kind":"halt"', id="unknown kind"),
        pytest.param(b'"reason":""', b'"reason":"","more":1', id="unknown field"),
        pytest.param(b'"reason":""', b'"reason":1', id="wrong type"),
        pytest.param(b'"seq":1', b'"seq":"1"', id="seq is text"),
    ],
)
def test_a_line_with_a_right_hash_and_a_wrong_shape_is_refused(old: bytes, new: bytes) -> None:
    """The hash says who wrote it, not that it makes sense."""
    import hashlib  # noqa: PLC0415 - only here is a hash made by hand

    line, _ = encode(StopRecord(), 1, TIME, GENESIS)
    body = line[: -len(b',"hash":""}\n') - 64] + b"}"
    assert old in body
    body = body.replace(old, new)
    digest = hashlib.sha256(GENESIS.encode() + body).hexdigest().encode()

    with pytest.raises(RecordError, match="not a line"):
        decode(body[:-1] + b',"hash":"' + digest + b'"}\n')


def test_a_whole_chain_has_no_damage() -> None:
    """Also when it is taken up in the middle."""
    second = decode(FOUR[1])

    assert None is check(FOUR)
    assert None is check(FOUR[2:], second.seq, second.hash)
    assert None is check([])


@settings(max_examples=300)
@given(st.data())
def test_any_edit_of_a_byte_is_found_where_it_is(data: st.DataObject) -> None:
    """Also of a newline, a digit of a hash, or a brace."""
    content = b"".join(FOUR)
    place = data.draw(st.integers(0, len(content) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda value: value != content[place]))
    edited = content[:place] + bytes([byte]) + content[place + 1 :]
    index = content[:place].count(b"\n")

    found = check(line + b"\n" for line in edited.split(b"\n")[:-1])
    if place == len(content) - 1:
        found = check([*FOUR[:-1], edited.split(b"\n")[-1]])

    assert found is not None
    assert index == found.index


@given(st.data())
def test_any_removal_is_found_but_at_the_end(data: st.DataObject) -> None:
    """Cutting off whole lines at the end is what the chain cannot show."""
    start = data.draw(st.integers(0, 3))
    end = data.draw(st.integers(start + 1, 4))

    found = check([*FOUR[:start], *FOUR[end:]])

    if end == len(FOUR):
        assert found is None
    else:
        assert found is not None
        assert start == found.index


@given(st.permutations(range(4)))
def test_any_change_of_order_is_found(order: list[int]) -> None:
    """At the first line that stands in a wrong place."""
    expected = next((place for place, index in enumerate(order) if place != index), None)

    found = check([FOUR[index] for index in order])

    assert expected == (found.index if found else None)


@given(st.integers(0, 3), st.integers(0, 4))
def test_any_duplicate_is_found(which: int, where: int) -> None:
    """At its own place, or at the line that it pushed away."""
    lines = [*FOUR[:where], FOUR[which], *FOUR[where:]]

    found = check(lines)

    assert found is not None
    assert found.index == (where + 1 if which == where else where)


def test_a_lost_line_is_named_by_its_number() -> None:
    """So that a reader knows what to look for."""
    assert Damage(1, "number 3 stands where 2 belongs: a line is lost or moved") == check(
        [FOUR[0], FOUR[2]]
    )


def test_a_line_of_another_chain_with_the_right_number_is_found() -> None:
    """The number alone proves nothing."""
    other = chain_of(StopRecord("a"), StopRecord("b"))

    assert Damage(1, "does not follow the line before it") == check([FOUR[0], other[1]])


def test_a_line_put_in_is_one_damage() -> None:
    """What stood there before it was put in is still whole."""
    chain = Chain()
    lines = [*FOUR[:2], chain_of(StopRecord("x"))[0], *FOUR[2:]]

    found = [chain.follow(line)[1] for line in lines]

    assert [index for index, what in enumerate(found) if what] == [2]
    assert chain.seq == 4


def test_the_chain_goes_on_after_a_damaged_line() -> None:
    """A torn line and an edited one are one damage each; what follows is whole."""
    torn = [FOUR[0], FOUR[1][:30] + b"\n", *FOUR[1:]]
    edited = [FOUR[0], FOUR[1].replace(b"k7f2", b"k7f3"), *FOUR[2:]]

    for lines, whole in ((torn, 4), (edited, 3)):
        chain = Chain()
        found = [chain.follow(line)[1] for line in lines]

        assert [index for index, what in enumerate(found) if what] == [1]
        assert whole == chain.count
        assert decode(FOUR[-1]).hash == chain.head
        assert chain.seq == 4
