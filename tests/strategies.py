"""Hypothesis strategies for names and paths, shared by the tests.

Names are bytes as a kernel hands them out: never empty, without slash and NUL, not ``.`` or ``..``.
"""

from __future__ import annotations

from hypothesis import strategies as st

__all__ = ["HOME", "TEMPTING", "any_bytes", "names", "paths", "paths_below", "pattern_lines"]

HOME = b"/home/u"

#: Names that rules speak of, in several spellings, and near misses.
TEMPTING: tuple[bytes, ...] = (
    b".ssh",
    b".SSH",
    b".ssh2",
    b".config",
    b".Config",
    b"gh",
    b"GH.",
    b".docker",
    b"config.json",
    b".env",
    b".env\n",
    b".env.local",
    b".envrc",
    b"ID_RSA",
    b"id_rsa.pub",
    b"a.pem",
    b"pem",
    b".key",
    b"a\nb",
    b"lamfuse",
    b"agent",
    b"home",
    b"u",
    b"secrets",
    b"e\xcc\x81",
    b"\xc3\xa9",
    b"\xff",
)

_raw = st.binary(min_size=1, max_size=8).map(
    lambda name: name.replace(b"/", b"_").replace(b"\0", b"0")
)

names = st.one_of(
    st.sampled_from(TEMPTING),
    st.sampled_from([b"a", b"b", b"ab", b"c"]),
    _raw.filter(lambda name: name not in {b".", b".."}),
)


def paths_below(root: bytes, max_depth: int = 5) -> st.SearchStrategy[bytes]:
    """Return normalised paths strictly below *root*."""
    below = st.lists(names, min_size=1, max_size=max_depth).map(b"/".join)
    return below.map(lambda relative: root.rstrip(b"/") + b"/" + relative)


#: Absolute, normalised paths, many of them below HOME.
paths = st.one_of(paths_below(HOME), paths_below(b"/"), st.sampled_from([b"/", b"/home", HOME]))

#: Anything at all, much of it like a path that is not normalised.
any_bytes = st.one_of(
    st.binary(max_size=40),
    st.lists(st.one_of(names, st.sampled_from([b"", b".", b"..", b"home", b"u"])), max_size=7).map(
        b"/".join
    ),
)

_segment = st.sampled_from(
    [
        "a",
        "b",
        "ab",
        "c",
        "*",
        "?",
        "a*",
        "*b",
        "*a*",
        "b*c",
        "*a*",
        "b*c",
        "?b",
        "[ab]",
        "[!a]",
        "[a-b]c",
        "**",
        "\\a",
    ]
)


def _line(parts: list[str], start: str, end: str) -> str:
    return start + "/".join(parts) + end


#: Gitignore lines over the letters a, b and c; some have a ``!``.
pattern_lines = st.one_of(
    st.builds(
        _line,
        st.lists(_segment, min_size=1, max_size=4),
        st.sampled_from(["", "", "/", "!", "!/"]),
        st.sampled_from(["", "", "/"]),
    ),
    st.sampled_from(["a**", "!a**", "**b", "a**b/", "**"]),
)
