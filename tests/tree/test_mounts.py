"""The file systems that are mounted below a directory."""

from __future__ import annotations

import os
import tempfile

import pytest

from lamfuse.tree import mounts
from lamfuse.tree.mounts import Mount

LINES = rb"""22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
23 22 0:21 / /proc rw,nosuid - proc proc rw
41 22 0:40 / /home/u/view rw,nosuid shared:7 master:1 - fuse.lamfuse lamfuse rw,user_id=1000
42 22 0:41 / /home/u/with\040space rw - tmpfs tmp\040fs rw
43 22 0:42 / /home/u/tab\011nl\012back\134slash rw - tmpfs tmpfs rw
44 22 0:43 / /home/u/\303\244 rw - tmpfs tmpfs rw
45 22 0:44 /- /home/u/a-b rw - tmpfs - rw
46 22 0:45 / /home/user/x rw - tmpfs  rw
47 22 0:46 / /home/u/cr"""  # fmt: skip
AWKWARD = (
    LINES
    + b"\r"
    + rb"""line rw - tmpfs tmpfs rw
48 22 0:47 / /home/u/\134040 rw - tmpfs tmpfs rw
"""
)


@pytest.fixture
def awkward(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let mountinfo hold every kind of escape that the kernel makes, and what it does not."""

    def open_text() -> int:
        with tempfile.TemporaryFile() as file:
            file.write(AWKWARD)
            file.seek(0)
            return os.dup(file.fileno())

    monkeypatch.setattr(mounts, "open_mountinfo", open_text)


@pytest.mark.usefixtures("awkward")
def test_every_line_is_read_with_its_escapes() -> None:
    assert mounts.mounts() == [
        Mount(b"/", b"ext4", b"/dev/vda"),
        Mount(b"/proc", b"proc", b"proc"),
        Mount(b"/home/u/view", b"fuse.lamfuse", b"lamfuse"),
        Mount(b"/home/u/with space", b"tmpfs", b"tmp fs"),
        Mount(b"/home/u/tab\tnl\nback\\slash", b"tmpfs", b"tmpfs"),
        Mount("/home/u/ä".encode(), b"tmpfs", b"tmpfs"),
        Mount(b"/home/u/a-b", b"tmpfs", b"-"),
        Mount(b"/home/user/x", b"tmpfs", b""),
        Mount(b"/home/u/cr\rline", b"tmpfs", b"tmpfs"),
        Mount(b"/home/u/\\040", b"tmpfs", b"tmpfs"),
    ]


@pytest.mark.requirement("H3")
@pytest.mark.usefixtures("awkward")
def test_below_is_by_components_and_without_the_directory_itself() -> None:
    assert b"/home/u/view" in mounts.below(b"/home/u")
    assert b"/home/u/cr\rline" in mounts.below(b"/home/u")
    assert b"/home/user/x" not in mounts.below(b"/home/u")
    assert mounts.below(b"/home/u/view") == frozenset()
    assert mounts.below(b"/home/us") == frozenset()
    assert mounts.below(b"/home/user") == {b"/home/user/x"}
    assert len(mounts.below(b"/")) == len(mounts.mounts()) - 1


def test_the_mounts_of_this_machine_can_be_read() -> None:
    here = mounts.mounts()
    assert b"/" in {mount.path for mount in here}
    assert Mount(b"/proc", b"proc", b"proc") in here
