"""What a request says when nothing else is said, and what makes two looks the same."""

from lamfuse.core.operations import Operation
from lamfuse.core.target import Below, Caller, Request, Subject


def test_a_request_destroys_and_points_to_nothing_unless_it_says_so() -> None:
    request = Request(Operation.CREATE, "s", Caller(), (Subject(b"/a"),))

    assert (request.target, request.detail) == (b"", "")
    assert not request.truncates
    assert not request.alone


def test_a_folder_is_the_same_while_only_the_content_of_what_is_in_it_changes() -> None:
    assert Below(stamps=frozenset()) == Below()
    assert Below((b"a",)) != Below()
