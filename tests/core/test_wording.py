"""What every question has besides its shape, and that no name can forge any of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamfuse.core.approval import Offer, Scope
from lamfuse.core.operations import TABLE, Operation
from lamfuse.core.target import Caller, FileKind, Request, Subject
from lamfuse.core.wording import caller_line, label
from tests import strategies
from tests.core import acts
from tests.core.acts import DOWNLOADS, HOME, act, free
from tests.core.questions import REPORT, file, folder, text

pytestmark = pytest.mark.requirement("H30")

RUNS_LATER = "Runs on your machine later, outside the boundary."
_FENCES = "\u2068\u2069"
_NAMES = tuple(DOWNLOADS + b"/n%d" % index for index in range(8))


@pytest.mark.parametrize(
    ("subject", "lines"),
    [
        pytest.param(file(), (), id="only-one-name"),
        pytest.param(
            file(names=_NAMES[:1]),
            ("It also has 1 other name that changes with it.", "  ~/Downloads/n0"),
            id="one-more",
        ),
        pytest.param(
            file(names=_NAMES[:2]),
            (
                "It also has 2 other names that change with it.",
                "  ~/Downloads/n0",
                "  ~/Downloads/n1",
            ),
            id="two-more",
        ),
        pytest.param(
            file(links=3), ("It also has 2 other names that change with it.",), id="not-known"
        ),
        pytest.param(
            file(names=_NAMES[:1], links=4),
            (
                "It also has 3 other names that change with it.",
                "  ~/Downloads/n0",
                "  and 2 more",
            ),
            id="known-in-part",
        ),
        pytest.param(
            file(names=_NAMES[:5]),
            (
                "It also has 5 other names that change with it.",
                *(f"  ~/Downloads/n{index}" for index in range(5)),
            ),
            id="as-many-as-are-listed",
        ),
        pytest.param(
            file(names=_NAMES, links=2),
            (
                "It also has 8 other names that change with it.",
                *(f"  ~/Downloads/n{index}" for index in range(5)),
                "  and 3 more",
            ),
            id="more-than-are-listed",
        ),
    ],
)
@pytest.mark.parametrize(
    "operation", [Operation.WRITE, Operation.TRUNCATE, Operation.CHMOD], ids=str
)
def test_other_names_of_what_changes_are_told(
    operation: Operation, subject: Subject, lines: tuple[str, ...]
) -> None:
    body = text(act(operation, subject)).body

    assert body[len(body) - len(lines) :] == lines
    assert any("other name" in line for line in body) is bool(lines)


def test_a_folder_has_no_other_names() -> None:
    linked = replace(folder(DOWNLOADS + b"/a"), links=7)

    assert text(act(Operation.CHMOD, linked)).body == ("~/Downloads/a",)
    assert len(text(act(Operation.RMDIR, linked)).body) == 2


@pytest.mark.parametrize(
    ("folders", "lines"),
    [
        pytest.param((), (), id="none"),
        pytest.param(
            (DOWNLOADS + b"/reports",),
            ("Creates the folder ~/Downloads/reports as well.",),
            id="one",
        ),
        pytest.param(
            (DOWNLOADS + b"/a", DOWNLOADS + b"/a/b"),
            ("Creates these folders as well:", "  ~/Downloads/a", "  ~/Downloads/a/b"),
            id="a-chain",
        ),
    ],
)
def test_folders_on_the_way_come_first(folders: tuple[bytes, ...], lines: tuple[str, ...]) -> None:
    words = text(act(Operation.CREATE, free(DOWNLOADS + b"/a/b/c")), new_folders=folders)

    assert words.body == (*lines, "~/Downloads/a/b/c")


_HOOK = DOWNLOADS + b"/r/.git/hooks/pre-commit"
_CONFIG = DOWNLOADS + b"/r/.git/config"


@pytest.mark.parametrize(
    ("request_", "classed", "lines"),
    [
        pytest.param(act(Operation.CREATE, free(_HOOK)), (), (), id="none"),
        pytest.param(act(Operation.CREATE, free(_HOOK)), (_HOOK,), (RUNS_LATER,), id="itself"),
        pytest.param(
            act(Operation.CREATE, free(_CONFIG + b".lock")),
            (_CONFIG, _CONFIG + b".lock"),
            (
                RUNS_LATER,
                "  ~/Downloads/r/.git/config",
                "  ~/Downloads/r/.git/config.lock",
            ),
            id="several",
        ),
        pytest.param(
            act(Operation.WRITE, file(DOWNLOADS + b"/a", names=(_HOOK,))),
            (_HOOK,),
            (RUNS_LATER, "  ~/Downloads/r/.git/hooks/pre-commit"),
            id="another-name",
        ),
        pytest.param(
            act(Operation.RENAME, file(DOWNLOADS + b"/a"), free(_HOOK)),
            (_HOOK,),
            (RUNS_LATER, "  ~/Downloads/r/.git/hooks/pre-commit"),
            id="one-of-two",
        ),
    ],
)
def test_what_runs_later_is_told(
    request_: Request, classed: tuple[bytes, ...], lines: tuple[str, ...]
) -> None:
    body = text(request_, runs_later=classed).body

    assert body == text(request_).body + lines


@pytest.mark.parametrize(
    ("many", "more"),
    [pytest.param(50, (), id="all"), pytest.param(1052, ("  and 1,002 more",), id="too-many")],
)
def test_a_long_list_of_what_runs_later_says_what_it_leaves_out(
    many: int, more: tuple[str, ...]
) -> None:
    classed = tuple(DOWNLOADS + b"/hooks/%04d" % index for index in range(many))
    request = act(Operation.RENAME, folder(DOWNLOADS + b"/h", b"x"), free(DOWNLOADS + b"/hooks"))

    lines = text(request, runs_later=classed).body[3:]

    assert lines[:2] == (RUNS_LATER, "  ~/Downloads/hooks/0000")
    assert lines[50:] == ("  ~/Downloads/hooks/0049", *more)


@pytest.mark.requirement("H9")
@pytest.mark.parametrize(
    ("existing", "line"),
    [
        pytest.param(
            1,
            "Allowing the folder also lets the 1 file in it be changed, and not deleted or moved:"
            " ~/Downloads",
            id="one",
        ),
        pytest.param(
            1204,
            "Allowing the folder also lets the 1,204 files in it be changed, and not deleted or"
            " moved: ~/Downloads",
            id="many",
        ),
        pytest.param(0, "The folder has no files yet: ~/Downloads", id="none"),
        pytest.param(
            None,
            "Allowing the folder leaves its files as they are, too many to count: ~/Downloads",
            id="not-counted",
        ),
    ],
)
def test_a_folder_on_offer_says_how_many_files_it_lets_change(
    existing: int | None, line: str
) -> None:
    offers = (
        Offer(Scope.ONCE),
        Offer(Scope.FILE, DOWNLOADS + b"/a"),
        Offer(Scope.FOLDER, DOWNLOADS, existing),
    )

    words = text(act(Operation.CREATE, free(DOWNLOADS + b"/a")), offers=offers)

    assert words.body == ("~/Downloads/a", line)


@pytest.mark.requirement("H9")
@pytest.mark.parametrize(
    ("offer", "words"),
    [
        pytest.param(Offer(Scope.ONCE), "Allow once", id="once"),
        pytest.param(Offer(Scope.FILE, REPORT), "Allow", id="file"),
        pytest.param(
            Offer(Scope.FOLDER, DOWNLOADS, 3), "Allow folder this turn (3 files in it)", id="folder"
        ),
        pytest.param(
            Offer(Scope.FOLDER, DOWNLOADS, 1),
            "Allow folder this turn (1 file in it)",
            id="one-file",
        ),
        pytest.param(
            Offer(Scope.FOLDER, DOWNLOADS, 0), "Allow folder this turn", id="empty-folder"
        ),
        pytest.param(
            Offer(Scope.FOLDER, DOWNLOADS),
            "Allow folder this turn (new files only)",
            id="uncounted",
        ),
        pytest.param(Offer(Scope.LISTED, DOWNLOADS, 1204), "Allow these 1,204", id="listed"),
        pytest.param(Offer(Scope.LISTED, DOWNLOADS), "Allow these", id="listed-without-a-number"),
    ],
)
def test_a_button_says_how_far_it_goes(offer: Offer, words: str) -> None:
    assert label(offer, HOME) == words


@pytest.mark.parametrize(
    ("caller", "session", "seconds", "waiting", "line"),
    [
        pytest.param(
            Caller(4411, 4411, b"/usr/bin/python3.12"),
            "claude-1",
            60.0,
            2,
            "by python3.12 (pid 4411), session claude-1 · declines in 60 s · 2 more waiting",
            id="full",
        ),
        pytest.param(
            Caller(1, 1, b"/bin/sh"),
            "other",
            0.4,
            0,
            "by sh (pid 1), session other · declines in 0 s",
            id="nobody-waits",
        ),
        pytest.param(
            Caller(), "other", -3, 1, "by an unknown program, session other · declines in 0 s"
            " · 1 more waiting", id="unknown",
        ),
        pytest.param(
            Caller(9, 9, b"bare"), "other", 1.6, 0,
            "by bare (pid 9), session other · declines in 2 s",
            id="no-directory",
        ),
        pytest.param(
            Caller(9, 9, "/x/sh (pid 1), a · b".encode()),
            "b\n, c",
            5,
            0,
            r"by sh \x28pid 1)\x2c a \u00b7 b (pid 9), session b\n\x2c c"
            " · declines in 5 s",
            id="a-program-named-like-the-line",
        ),
        pytest.param(
            Caller(9, 9, b"/x/" + b"p" * 255),
            "s" * 60,
            5,
            0,
            f"by {'p' * 16}…(223 left out)…{'p' * 16} (pid 9), session {'s' * 17}…(27 left out)…"
            f"{'s' * 16} · declines in 5 s",
            id="long-names",
        ),
    ],
)  # fmt: skip
def test_who_asks_is_told_on_one_line(
    caller: Caller, session: str, seconds: float, waiting: int, line: str
) -> None:
    assert caller_line(caller, session, seconds, waiting) == line


@pytest.mark.parametrize(
    ("name", "title"),
    [
        pytest.param(
            b"n" * 250 + b"A.txt",
            f"Delete {'n' * 16}…(223 left out)…{'n' * 11}A.txt? [k7f2]",
            id="long",
        ),
        pytest.param(b"a\n[k7f2]", r"Delete a\n[k7f2]? [k7f2]", id="newline"),
        pytest.param(
            b"a? [zzzz] b? [k7f2]", r"Delete a? \x5bzzzz] b? \x5bk7f2]? [k7f2]", id="our-own-end"
        ),
        pytest.param(
            "\u05d0?".encode(), "Delete \u2068\u05d0?\u2069? [k7f2]", id="right-to-left-is-fenced"
        ),
        pytest.param(b"<b>x<b>", "Delete <b>x<b>? [k7f2]", id="markup"),
    ],
)
def test_the_title_ends_where_we_say(name: bytes, title: str) -> None:
    words = text(act(Operation.UNLINK, file(DOWNLOADS + b"/" + name)))

    assert words.title == title


def test_the_root_has_a_title() -> None:
    assert text(act(Operation.CHMOD, acts.directory(b"/"))).title == (
        "Change permissions of /? [k7f2]"
    )


@pytest.mark.requirement("H4")
def test_the_whole_path_stands_in_the_body() -> None:
    path = DOWNLOADS + b"/" + b"/".join(bytes([letter]) * 255 for letter in b"abcdefghijklmno")

    words = text(act(Operation.UNLINK, file(path)))

    assert words.body[0] == "~" + path.removeprefix(HOME).decode()


_ASKED = sorted(operation for operation in Operation if TABLE[operation].mode != "allowed")


@st.composite
def _requests(draw: st.DrawFn) -> Request:
    operation = draw(st.sampled_from(_ASKED))
    below_home = strategies.paths_below(HOME)
    subjects = [
        file(
            draw(below_home),
            names=tuple(draw(st.lists(below_home, max_size=2))),
            kind=draw(st.sampled_from(FileKind)),
        )
        for _ in range(2 if TABLE[operation].two_paths else 1)
    ]
    request = act(operation, *subjects, truncates=draw(st.booleans()), detail=draw(st.text()))
    return replace(request, target=draw(strategies.any_bytes))


@given(_requests(), st.lists(strategies.paths, max_size=2), st.none() | st.integers(0, 3))
def test_every_line_of_a_question_is_plain(
    request_: Request, paths: list[bytes], existing: int | None
) -> None:
    words = text(
        request_,
        runs_later=tuple(paths),
        new_folders=tuple(paths),
        offers=tuple(Offer(Scope.FOLDER, path, existing) for path in paths),
    )

    for line in (words.title, *words.body):
        assert line.translate({ord(fence): None for fence in _FENCES}).isprintable()
    assert words.title.endswith("? [k7f2]")
    assert words.title.count("? [") == 1
