"""The rules in plain words: what an agent is told before it is refused anything."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamfuse.core.agent_text import readme
from tests import strategies
from tests.core.acts import DOWNLOADS, HOME

pytestmark = pytest.mark.requirement("H32", "L7")

TEXT = readme(HOME, (DOWNLOADS, HOME + b"/Documents/Lam Agent", b"/srv/out"), (b"/srv/docs",))


def test_the_roots_are_listed_and_where_they_are_found() -> None:
    assert (
        """\
Everything is read-only, except these write roots:

- `~/Downloads`
- `~/Documents/Lam Agent`
- `/srv/out` (here: `.lamfuse/roots/srv/out`)

These may be read as well:

- `/srv/docs` (here: `.lamfuse/roots/srv/docs`)

## What holds
"""
        in TEXT
    )


def test_it_ends_with_where_the_same_is_found_as_data() -> None:
    assert TEXT.endswith("\n\n`policy.json` beside this file has the same as data.\n")


def test_no_roots_at_all_are_said_to_be_none() -> None:
    assert "write roots:\n\n- none\n\n## What holds\n" in readme(HOME, (), ())


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param(
            "Each change in a write root waits until a person has allowed it.", id="asked"
        ),
        pytest.param("A refusal is final.", id="final"),
        pytest.param("Ask the person instead.", id="ask"),
        pytest.param("Paths outside are refused outright, without asking anybody.", id="outside"),
        pytest.param("Read a large file in parts.", id="parts"),
        pytest.param(
            "What you read goes to the provider of your model.",
            id="disclosure",
            marks=pytest.mark.requirement("H7"),
        ),
        pytest.param("Read what the question needs, and nothing more.", id="need"),
        pytest.param("Deleting and moving is asked about every time.", id="every-time"),
        pytest.param("`.lamfuse/refusals` has the reason", id="reasons"),
        pytest.param("Sockets and FIFOs are shown, but nobody answers", id="sockets"),
        pytest.param("Locks hold among the users of this view", id="locks"),
    ],
)
def test_each_rule_is_told(rule: str) -> None:
    assert rule in TEXT


@pytest.mark.parametrize("name", ["EACCES", "EROFS", "ENOENT", "EPERM", "EXDEV", "EINTR", "ESTALE"])
def test_each_error_is_explained_on_a_line_of_its_own(name: str) -> None:
    assert sum(line.startswith(f"- `{name}`") for line in TEXT.splitlines()) == 1


def test_no_place_that_is_hidden_is_named() -> None:
    assert not [
        name for name in (".ssh", ".aws", ".gnupg", ".env", "lamfuse/config") if name in TEXT
    ]


@pytest.mark.parametrize(
    ("root", "shown"),
    [
        pytest.param(HOME + b"/a`b", "- `` ~/a`b ``", id="backtick"),
        pytest.param(HOME + b"/a``b`", "- ``` ~/a``b` ```", id="more-backticks"),
        pytest.param(HOME + b"/a\n# b", r"- `~/a\n# b`", id="newline"),
        pytest.param(HOME + b"/{writable}", "- `~/{writable}`", id="braces"),
        pytest.param(HOME, "- `~`", id="home"),
        pytest.param(
            b"/s`", "- `` /s` `` (here: `` .lamfuse/roots/s` ``)", id="backtick-outside-home"
        ),
    ],
)
def test_a_root_is_taken_literally(root: bytes, shown: str) -> None:
    assert shown in readme(HOME, (root,), ()).splitlines()


@given(st.lists(strategies.paths, max_size=3), st.lists(strategies.paths, max_size=3))
def test_any_roots_give_a_line_each(write: list[bytes], read: list[bytes]) -> None:
    lines = readme(HOME, write, read).split("\n")

    listed = lines[: lines.index("## What holds")]
    assert sum(line.startswith("- `") for line in listed) == len(write) + len(read)
    assert lines[lines.index("## What holds") :] == TEXT[TEXT.index("## What holds") :].split("\n")
