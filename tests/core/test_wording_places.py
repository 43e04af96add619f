"""Questions about links, deleting and moving, to the letter."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lamfuse.core.approval import Text
from lamfuse.core.operations import TABLE, Operation
from lamfuse.core.target import Below, FileKind, Request
from tests.core.acts import DOWNLOADS, act, free
from tests.core.questions import SECOND, file, folder, text

pytestmark = pytest.mark.requirement("H30")

SHAPES = [
    pytest.param(
        act(Operation.LINK, file(), free(DOWNLOADS + b"/a")),
        "Link a? [k7f2]",
        (
            "~/Downloads/a",
            "becomes one more name of ~/Downloads/report.md",
            (
                "That has 1,240 bytes, 40 lines, last changed 3 days ago. Both change together from"
                " then on."
            ),
        ),
        False,
        id="link",
    ),
    pytest.param(
        act(Operation.LINK, file(kind=FileKind.SYMLINK), free(DOWNLOADS + b"/a")),
        "Link a? [k7f2]",
        (
            "~/Downloads/a",
            "becomes one more name of ~/Downloads/report.md",
            "That is a link, last changed 3 days ago. Both change together from then on.",
        ),
        False,
        id="link-to-no-file",
    ),
    pytest.param(
        act(
            Operation.UNLINK,
            file(DOWNLOADS + b"/thesis.tex", size=48112, lines=1204, age=120 * SECOND),
        ),
        "Delete thesis.tex? [k7f2]",
        (
            "~/Downloads/thesis.tex",
            "48,112 bytes, 1,204 lines, last changed 2 minutes ago. This cannot be undone.",
        ),
        True,
        id="delete",
    ),
    pytest.param(
        act(Operation.UNLINK, file(names=(DOWNLOADS + b"/a",))),
        "Delete report.md? [k7f2]",
        (
            "~/Downloads/report.md",
            "1,240 bytes, 40 lines, last changed 3 days ago. This cannot be undone.",
            "Its content stays under 1 other name.",
        ),
        True,
        id="delete-of-one-name",
    ),
    pytest.param(
        act(Operation.UNLINK, file(kind=FileKind.SYMLINK)),
        "Delete report.md? [k7f2]",
        ("~/Downloads/report.md", "A link, last changed 3 days ago. This cannot be undone."),
        True,
        id="delete-link",
    ),
    pytest.param(
        act(Operation.RMDIR, folder(DOWNLOADS + b"/old")),
        "Delete the empty folder old? [k7f2]",
        ("~/Downloads/old", "A folder, last changed 1 day ago. This cannot be undone."),
        True,
        id="rmdir",
    ),
    pytest.param(
        act(Operation.RENAME, file(DOWNLOADS + b"/a.txt"), free(DOWNLOADS + b"/old/a.txt")),
        "Move a.txt? [k7f2]",
        (
            "~/Downloads/a.txt  ->  ~/Downloads/old/a.txt",
            "The destination does not exist.",
        ),
        False,
        id="move",
    ),
    pytest.param(
        act(Operation.RENAME, folder(DOWNLOADS + b"/a", b"x"), free(DOWNLOADS + b"/b")),
        "Move a? [k7f2]",
        (
            "~/Downloads/a  ->  ~/Downloads/b",
            "With 1 entry below it.",
            "The destination does not exist.",
        ),
        False,
        id="move-with-one-below",
    ),
    pytest.param(
        act(Operation.RENAME, folder(DOWNLOADS + b"/a", b"x", b"y"), free(DOWNLOADS + b"/b")),
        "Move a? [k7f2]",
        (
            "~/Downloads/a  ->  ~/Downloads/b",
            "With 2 entries below it.",
            "The destination does not exist.",
        ),
        False,
        id="move-with-more-below",
    ),
    pytest.param(
        act(
            Operation.RENAME,
            replace(folder(DOWNLOADS + b"/a"), below=Below()),
            free(DOWNLOADS + b"/b"),
        ),
        "Move a? [k7f2]",
        ("~/Downloads/a  ->  ~/Downloads/b", "The destination does not exist."),
        False,
        id="move-with-none-below",
    ),
    pytest.param(
        act(Operation.REPLACE, file(DOWNLOADS + b"/a"), file(names=(DOWNLOADS + b"/b",))),
        "Move a? [k7f2]",
        (
            "~/Downloads/a  ->  ~/Downloads/report.md",
            (
                "Replaces 1,240 bytes, 40 lines, last changed 3 days ago, of the destination. This"
                " cannot be undone."
            ),
            "Its content stays under 1 other name.",
        ),
        True,
        id="move-onto-a-file",
    ),
    pytest.param(
        act(Operation.REPLACE, folder(DOWNLOADS + b"/a"), folder(DOWNLOADS + b"/b")),
        "Move a? [k7f2]",
        (
            "~/Downloads/a  ->  ~/Downloads/b",
            "Replaces a folder, last changed 1 day ago, of the destination. This cannot be undone.",
        ),
        True,
        id="move-onto-a-folder",
    ),
    pytest.param(
        act(Operation.EXCHANGE, file(DOWNLOADS + b"/a"), folder(DOWNLOADS + b"/b")),
        "Exchange a and b? [k7f2]",
        (
            "~/Downloads/a  <->  ~/Downloads/b",
            "The first: 1,240 bytes, 40 lines, last changed 3 days ago.",
            "The second: a folder, last changed 1 day ago.",
        ),
        True,
        id="exchange",
    ),
    pytest.param(
        act(Operation.OPEN, file()),
        "Read report.md? [k7f2]",
        ("~/Downloads/report.md",),
        False,
        id="reading-is-total",
    ),
]


@pytest.mark.requirement("H4")
@pytest.mark.parametrize(("request_", "title", "body", "destructive"), SHAPES)
def test_a_question_about_a_place_is_worded_to_the_letter(
    request_: Request, title: str, body: tuple[str, ...], destructive: bool
) -> None:
    assert text(request_) == Text(title, body, destructive)


@pytest.mark.parametrize("operation", list(Operation), ids=str)
def test_every_change_is_told_from_reading(operation: Operation) -> None:
    row = TABLE[operation]
    subjects = (file(), free(DOWNLOADS + b"/a"))[: 2 if row.two_paths else 1]

    title = text(act(operation, *subjects)).title

    assert title.startswith("Read ") is (row.mode == "allowed")
