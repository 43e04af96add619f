"""Questions about contents, attributes and what is new, to the letter."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lamfuse.core.approval import Text
from lamfuse.core.operations import Operation
from lamfuse.core.target import FileKind, Request
from tests.core.acts import DOWNLOADS, act, free
from tests.core.questions import SECOND, file, text

pytestmark = pytest.mark.requirement("H30")

SHAPES = [
    pytest.param(
        replace(
            act(Operation.WRITE, file(), truncates=True),
            new_size=2180,
            new_lines=61,
        ),
        "Overwrite report.md? [k7f2]",
        (
            "~/Downloads/report.md",
            "Replaces 1,240 bytes, 40 lines, last changed 3 days ago.",
            "New content is 2,180 bytes, 61 lines.",
        ),
        True,
        id="overwrite-with-known-content",
    ),
    pytest.param(
        act(Operation.WRITE, file(size=1, lines=1, age=SECOND), truncates=True),
        "Overwrite report.md? [k7f2]",
        ("~/Downloads/report.md", "Replaces 1 byte, 1 line, last changed 1 second ago."),
        True,
        id="overwrite-of-one",
    ),
    pytest.param(
        act(Operation.WRITE, file()),
        "Change report.md? [k7f2]",
        (
            "~/Downloads/report.md",
            "Has 1,240 bytes, 40 lines, last changed 3 days ago. Any part of it may change.",
        ),
        False,
        id="change",
    ),
    pytest.param(
        replace(act(Operation.WRITE, file()), new_size=1300),
        "Change report.md? [k7f2]",
        (
            "~/Downloads/report.md",
            "Has 1,240 bytes, 40 lines, last changed 3 days ago. Any part of it may change.",
            "New content is 1,300 bytes.",
        ),
        False,
        id="change-with-known-size",
    ),
    pytest.param(
        act(Operation.WRITE, file(lines=None)),
        "Change report.md? [k7f2]",
        (
            "~/Downloads/report.md",
            (
                "Has 1,240 bytes, lines not counted (binary, unreadable, or over 4 MB), last"
                " changed 3 days ago. Any part of it may change."
            ),
        ),
        False,
        id="change-without-lines",
    ),
    pytest.param(
        act(Operation.WRITE, file(kind=FileKind.FIFO)),
        "Change report.md? [k7f2]",
        (
            "~/Downloads/report.md",
            "Is a FIFO, last changed 3 days ago. Any part of it may change.",
        ),
        False,
        id="change-of-no-file",
    ),
    pytest.param(
        replace(
            act(Operation.TRUNCATE, file(DOWNLOADS + b"/data.bin", size=2936012, lines=None)),
            new_size=0,
        ),
        "Shorten data.bin? [k7f2]",
        (
            "~/Downloads/data.bin",
            (
                "From 2,936,012 bytes to 0; lines not counted (binary, unreadable, or over 4 MB),"
                " last changed 3 days ago."
            ),
        ),
        True,
        id="shorten",
    ),
    pytest.param(
        act(Operation.TRUNCATE, file()),
        "Shorten report.md? [k7f2]",
        ("~/Downloads/report.md", "From 1,240 bytes to 0; 40 lines, last changed 3 days ago."),
        True,
        id="shorten-to-nothing-said",
    ),
    pytest.param(
        act(Operation.TRUNCATE, file(size=1, lines=1)),
        "Shorten report.md? [k7f2]",
        ("~/Downloads/report.md", "From 1 byte to 0; 1 line, last changed 3 days ago."),
        True,
        id="shorten-by-one",
    ),
    pytest.param(
        replace(act(Operation.TRUNCATE, file(), detail="mode 0644 to 0600"), new_size=12400),
        "Extend report.md? [k7f2]",
        (
            "~/Downloads/report.md",
            "From 1,240 bytes to 12,400; 40 lines, last changed 3 days ago.",
            "mode 0644 to 0600",
        ),
        False,
        id="extend-and-more",
    ),
    pytest.param(
        replace(act(Operation.TRUNCATE, file()), new_size=1240),
        "Set the size of report.md? [k7f2]",
        (
            "~/Downloads/report.md",
            "It stays at 1,240 bytes; 40 lines, last changed 3 days ago.",
        ),
        False,
        id="same-size",
    ),
    pytest.param(
        act(Operation.CHMOD, file(), detail="mode 0644 to 0755"),
        "Change permissions of report.md? [k7f2]",
        ("~/Downloads/report.md", "mode 0644 to 0755"),
        False,
        id="chmod",
    ),
    pytest.param(
        act(Operation.CHOWN, file(), detail="owner 1000:1000 to 1000:100"),
        "Change the owner of report.md? [k7f2]",
        ("~/Downloads/report.md", "owner 1000:1000 to 1000:100"),
        False,
        id="chown",
    ),
    pytest.param(
        act(Operation.UTIMENS, file()),
        "Change the times of report.md? [k7f2]",
        ("~/Downloads/report.md",),
        False,
        id="utimens",
    ),
    pytest.param(
        act(Operation.SET_XATTR, file(), detail="user.a\nb\udcff"),
        "Set an attribute of report.md? [k7f2]",
        ("~/Downloads/report.md", r"user.a\nb\xff"),
        False,
        id="set-xattr",
    ),
    pytest.param(
        act(Operation.REMOVE_XATTR, file(), detail="user.tag"),
        "Remove an attribute of report.md? [k7f2]",
        ("~/Downloads/report.md", "user.tag"),
        False,
        id="remove-xattr",
    ),
    pytest.param(
        replace(
            act(Operation.CREATE, free(DOWNLOADS + b"/reports/may.md")), new_size=812, new_lines=20
        ),
        "Create may.md? [k7f2]",
        ("~/Downloads/reports/may.md", "New content is 812 bytes, 20 lines."),
        False,
        id="create",
    ),
    pytest.param(
        act(Operation.MKDIR, free(DOWNLOADS + b"/x")),
        "Create the folder x? [k7f2]",
        ("~/Downloads/x",),
        False,
        id="mkdir",
    ),
    pytest.param(
        act(Operation.SYMLINK, free(DOWNLOADS + b"/a"), target=b"../b  c/\n"),
        "Create the link a? [k7f2]",
        ("~/Downloads/a", r"It points to ../b \x20c/\n"),
        False,
        id="symlink",
    ),
    pytest.param(
        act(Operation.SYMLINK, free(DOWNLOADS + b"/a"), target=b"x/y"),
        "Create the link a? [k7f2]",
        ("~/Downloads/a", "It points to x/y"),
        False,
        id="symlink-as-it-is-written",
    ),
    pytest.param(
        act(Operation.SYMLINK, free(DOWNLOADS + b"/a"), target=b"~/.ssh"),
        "Create the link a? [k7f2]",
        ("~/Downloads/a", r"It points to \x7e/.ssh"),
        False,
        id="symlink-to-a-tilde-is-not-home",
    ),
    pytest.param(
        act(Operation.SYMLINK, free(DOWNLOADS + b"/a"), target=b"t" * 4000),
        "Create the link a? [k7f2]",
        ("~/Downloads/a", "It points to " + "t" * 4000),
        False,
        id="symlink-target-stands-whole",
    ),
    pytest.param(
        act(Operation.MKNOD, free(DOWNLOADS + b"/a"), makes=FileKind.FILE),
        "Create a? [k7f2]",
        ("~/Downloads/a",),
        False,
        id="mknod-file",
    ),
    pytest.param(
        act(Operation.MKNOD, free(DOWNLOADS + b"/a"), makes=FileKind.FIFO),
        "Create the FIFO a? [k7f2]",
        ("~/Downloads/a",),
        False,
        id="mknod-fifo",
    ),
    pytest.param(
        replace(act(Operation.MKNOD, free(DOWNLOADS + b"/a")), makes=None),
        "Create a? [k7f2]",
        ("~/Downloads/a",),
        False,
        id="mknod-of-nothing-said",
    ),
]


@pytest.mark.requirement("H4", "H14")
@pytest.mark.parametrize(("request_", "title", "body", "destructive"), SHAPES)
def test_a_question_about_a_content_is_worded_to_the_letter(
    request_: Request, title: str, body: tuple[str, ...], destructive: bool
) -> None:
    assert text(request_) == Text(title, body, destructive)
