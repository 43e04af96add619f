"""The denylist hides what pathspec matches and what git ignores, and never less."""

from __future__ import annotations

import pathlib
import subprocess
from collections.abc import Sequence

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec

from lamfuse.core.rules import DEFAULT_DENY, Denylist
from tests import strategies

pytestmark = pytest.mark.requirement("H21")

HOME = b"/h"

_positive = strategies.pattern_lines.filter(
    lambda line: (
        not line.startswith("!") and "[!" not in line and not line.rstrip("/").endswith("**")
    )
)
_letters = st.lists(st.sampled_from(["a", "b", "ab", "c", "bc"]), min_size=1, max_size=4)


@settings(max_examples=400)
@given(lines=st.lists(_positive, min_size=1, max_size=3), names=_letters, is_dir=st.booleans())
def test_what_is_hidden_is_what_pathspec_matches(
    lines: list[str], names: list[str], is_dir: bool
) -> None:
    spec = GitIgnoreSpec.from_lines(lines)
    path = "/".join(names)
    found = Denylist(HOME, lines).rule_for(HOME + b"/" + path.encode(), is_dir=is_dir)

    assert (found is not None) is spec.match_file(path + ("/" if is_dir else ""))


@settings(max_examples=300)
@given(
    names=st.lists(
        st.one_of(st.sampled_from(strategies.TEMPTING), st.binary(min_size=1, max_size=5)),
        min_size=1,
        max_size=4,
    )
)
def test_the_defaults_hide_whatever_pathspec_matches(names: list[bytes]) -> None:
    names = [name.replace(b"/", b"_").replace(b"\0", b"0") for name in names]
    assume(not {b".", b".."} & set(names))
    spec = GitIgnoreSpec.from_lines(DEFAULT_DENY)
    path = b"/".join(names)
    matched = spec.match_file(path.decode("utf-8", "surrogateescape"))

    if matched:
        assert Denylist(HOME).rule_for(HOME + b"/" + path, is_dir=None) is not None


_TREE_FILES = ("a", "b/a", "b/ab", "c/a/b", "c/a/bc", "c/b/a/a", "ab/b", "ab/c/a/b/c", "bc")
_TREE = sorted(
    {
        "/".join(file.split("/")[:end])
        for file in _TREE_FILES
        for end in range(1, file.count("/") + 2)
    }
)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    root = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", root], check=True)
    for file in _TREE_FILES:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).touch()
    return root


def _ignored_by_git(repository: pathlib.Path, lines: Sequence[str]) -> set[str]:
    (repository / ".git/info/exclude").write_text("\n".join(lines) + "\n")
    answer = subprocess.run(
        ["git", "-c", "core.excludesFile=", "check-ignore", "-v", "-n", "-z", "--stdin"],
        cwd=repository,
        input="\0".join(_TREE),
        capture_output=True,
        text=True,
        check=False,
    )
    assert not answer.stderr
    fields = answer.stdout.split("\0")
    return {
        path
        for pattern, path in zip(fields[2::4], fields[3::4], strict=True)
        if pattern and not pattern.startswith("!")
    }


@settings(max_examples=120, deadline=None)
@given(
    lines=st.lists(
        strategies.pattern_lines.filter(lambda line: not line.endswith("**/")),
        min_size=1,
        max_size=4,
    )
)
def test_what_is_hidden_is_what_git_ignores(repository: pathlib.Path, lines: list[str]) -> None:
    denylist = Denylist(HOME, lines)
    hidden = {
        path
        for path in _TREE
        if denylist.rule_for(HOME + b"/" + path.encode(), is_dir=path not in _TREE_FILES)
    }

    assert hidden == _ignored_by_git(repository, lines)


def test_git_is_asked_in_earnest(repository: pathlib.Path) -> None:
    assert _ignored_by_git(repository, ["b/*", "!ab"]) == {"b/a"}


@pytest.mark.parametrize(
    ("lines", "path"),
    [
        pytest.param(["*.log", "!keep/"], b"keep/x.log", id="pathspec-unhides-a-directory"),
        pytest.param([".env"], b"a\nb/.env", id="pathspec-stops-at-a-newline"),
    ],
)
def test_where_pathspec_alone_would_show_it_is_hidden(lines: list[str], path: bytes) -> None:
    assert not GitIgnoreSpec.from_lines(lines).match_file(path.decode() + "/")
    assert Denylist(HOME, lines).rule_for(HOME + b"/" + path, is_dir=True) is not None
