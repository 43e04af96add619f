from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamfuse.control import wire
from lamfuse.core.approval import Scope, State
from tests.control.fake_backend import make_question, make_status

REQUESTS = [
    pytest.param(wire.Hello(version=1), id="hello"),
    pytest.param(wire.StatusRequest(seq=1), id="status"),
    pytest.param(wire.PendingRequest(seq=2), id="pending"),
    pytest.param(wire.ShowRequest(seq=3, id="k7f2"), id="show"),
    pytest.param(wire.AnswerRequest(seq=4, id="k7f2", allow=False), id="answer-no"),
    pytest.param(
        wire.AnswerRequest(seq=4, id="k7f2", allow=True, scope=Scope.FOLDER), id="answer-folder"
    ),
    pytest.param(wire.ResumeRequest(seq=5, session="other"), id="resume"),
    pytest.param(wire.TurnRequest(seq=6), id="turn"),
    pytest.param(wire.ReloadRequest(seq=7), id="reload"),
    pytest.param(wire.UnmountRequest(seq=8), id="unmount"),
    pytest.param(wire.WatchRequest(seq=9), id="watch"),
]

REPLIES = [
    pytest.param(wire.StatusReply(seq=1, status=make_status()), id="status"),
    pytest.param(wire.PendingReply(seq=2, questions=(make_question("k7f2"),)), id="pending"),
    pytest.param(wire.ShowReply(seq=3, question=None), id="show-nothing"),
    pytest.param(
        wire.AnswerReply(
            seq=4,
            outcome=wire.AnswerOutcome.DECIDED,
            state=State.TIMED_OUT,
            channel="desktop",
            offered=(Scope.ONCE,),
        ),
        id="answer",
    ),
    pytest.param(wire.SessionReply(seq=5, sessions=("other",)), id="session"),
    pytest.param(wire.ReloadReply(seq=6, done=False, message="no", problems=("x",)), id="reload"),
    pytest.param(wire.UnmountReply(seq=7, refused_questions=3), id="unmount"),
    pytest.param(wire.WatchReply(seq=8), id="watch"),
    pytest.param(
        wire.Failure(seq=9, code=wire.FailureCode.PEER, message="another user"), id="failure"
    ),
    pytest.param(wire.AskedEvent(question=make_question("m3qd")), id="asked"),
    pytest.param(wire.ChangedEvent(id="m3qd", state=State.GONE), id="changed"),
]

NOT_REQUESTS = [
    pytest.param(b"", id="empty"),
    pytest.param(b"{}", id="no-kind"),
    pytest.param(b'{"kind":"format-disk"}', id="unknown-kind"),
    pytest.param(b'{"kind":"status","more":1}', id="unknown-field"),
    pytest.param(b'{"kind":"status","seq":"1"}', id="text-for-number"),
    pytest.param(b'{"kind":"status","seq":-1}', id="negative-seq"),
    pytest.param(b'{"kind":"status","seq":99999999999999999999999}', id="seq-too-large"),
    pytest.param(b'{"kind":"answer","id":"k7f2"}', id="answer-without-verdict"),
    pytest.param(b'{"kind":"answer","id":"k7f2","allow":1}', id="number-for-yes"),
    pytest.param(b'{"kind":"answer","id":"k7f2","allow":"true"}', id="text-for-yes"),
    pytest.param(b'{"kind":"answer","id":"k7f2","allow":true,"scope":"ever"}', id="no-such-scope"),
    pytest.param(b'{"kind":"status"} {"kind":"status"}', id="two-in-one-line"),
    pytest.param(b'{"kind":"show","id":"\xff"}', id="not-utf-8"),
    pytest.param(b"[" * 100_000, id="deep"),
    pytest.param(b'{"kind":"show","id":' + b"[" * 100_000, id="deep-in-a-field"),
    pytest.param(b'{"kind":"asked"}', id="an-event"),
]


@pytest.mark.parametrize("message", REQUESTS)
def test_request_survives_the_wire(message: wire.FromClient) -> None:
    line = wire.encode(message)
    assert line.count(b"\n") == 1
    assert wire.decode_from_client(line) == message


@pytest.mark.parametrize("message", REPLIES)
def test_reply_survives_the_wire(message: wire.FromServer) -> None:
    line = wire.encode(message)
    assert line.count(b"\n") == 1
    assert wire.decode_from_server(line) == message


@pytest.mark.parametrize("line", NOT_REQUESTS)
def test_what_is_not_a_request_is_a_wire_error(line: bytes) -> None:
    with pytest.raises(wire.WireError):
        wire.decode_from_client(line)


def test_all_kinds_are_covered_here() -> None:
    client = {type(case.values[0]) for case in REQUESTS}
    server = {type(case.values[0]) for case in REPLIES}
    assert client == set(wire.FromClient.__args__)
    assert server | {wire.Hello} == set(wire.FromServer.__args__)


@given(st.binary())
def test_any_bytes_are_a_wire_error_or_a_message(line: bytes) -> None:
    for decode in (wire.decode_from_client, wire.decode_from_server):
        try:
            message = decode(line)
        except wire.WireError:
            continue
        assert isinstance(message, msgspec.Struct)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
_KINDS = st.sampled_from(["hello", "status", "show", "answer", "turn", "asked", "failure", "x"])
_FIELDS = st.sampled_from(["seq", "id", "allow", "scope", "session", "version", "question"])


@given(_KINDS, st.dictionaries(_FIELDS, _JSON, max_size=4))
def test_any_json_is_a_wire_error_or_a_message(kind: str, fields: dict[str, object]) -> None:
    line = msgspec.json.encode({"kind": kind, **fields})
    for decode in (wire.decode_from_client, wire.decode_from_server):
        try:
            message = decode(line)
        except wire.WireError:
            continue
        assert isinstance(message, msgspec.Struct)


@given(st.binary())
def test_every_file_name_survives_the_wire(path: bytes) -> None:
    question = make_question("k7f2", path=path)
    message = wire.decode_from_server(wire.encode(wire.AskedEvent(question=question)))
    assert isinstance(message, wire.AskedEvent)
    assert message.question.paths[0].raw == path


@given(st.lists(st.binary().map(lambda line: line.replace(b"\n", b"")), max_size=6), st.data())
def test_lines_are_the_same_however_they_are_cut(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    cutter = wire.Lines(limit=1000)
    found: list[bytes] = []
    while stream:
        length = data.draw(st.integers(1, len(stream)))
        found += cutter.feed(stream[:length])
        stream = stream[length:]
    assert found == lines
    assert cutter.is_clean


@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param([b"x" * 11], id="without-an-end"),
        pytest.param([b"x" * 11 + b"\n"], id="with-an-end"),
        pytest.param([b"x" * 6, b"x" * 5], id="in-pieces"),
        pytest.param([b"ok\n" + b"x" * 11], id="after-a-good-one"),
    ],
)
def test_a_line_over_the_limit_is_a_wire_error(chunks: list[bytes]) -> None:
    lines = wire.Lines(limit=10)
    for chunk in chunks[:-1]:
        lines.feed(chunk)
    with pytest.raises(wire.WireError, match="more than 10 bytes"):
        lines.feed(chunks[-1])


def test_a_line_of_exactly_the_limit_is_taken() -> None:
    assert wire.Lines(limit=10).feed(b"x" * 10 + b"\n") == [b"x" * 10]


def test_the_largest_possible_list_of_questions_fits_a_reply() -> None:
    path = b"\xff" * 4095
    question = make_question("k7f2", path=path)
    body = tuple("\\xff" * 4095 for _ in range(3))
    worst = msgspec.structs.replace(question, body=body, paths=question.paths * 2)
    line = wire.encode(wire.PendingReply(questions=(worst,) * 64))
    assert len(line) < wire.MAX_REPLY_BYTES
