"""What a person sees of a name: one printable line, and never the same line for two names."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lamfuse.core.names import (
    Shown,
    count,
    number,
    shorten,
    show_age,
    show_name,
    show_path,
    show_size,
    show_text,
)
from tests import strategies

pytestmark = pytest.mark.requirement("H30")

HOME = b"/home/u"
_FENCES = "\u2068\u2069"
_MARK = "\u0301"
_ALEF, _ARABIC = "\u05d0", "\u0627"

NASTY = [
    pytest.param("a\nb", r"a\nb", id="newline"),
    pytest.param("a\rb", r"a\rb", id="carriage-return"),
    pytest.param("a\tb", r"a\tb", id="tab"),
    pytest.param("\x1b[2J\x1b[1;1Hok", r"\x1b[2J\x1b[1;1Hok", id="escape-sequence"),
    pytest.param("\x9b2J", r"\u009b2J", id="eight-bit-control"),
    pytest.param("a\x7f\x08b", r"a\x7f\x08b", id="rub-out"),
    pytest.param("gpj\u202etxt.exe", r"gpj\u202etxt.exe", id="override"),
    pytest.param("a\u2066b\u2067c\u2068d\u2069", r"a\u2066b\u2067c\u2068d\u2069", id="isolates"),
    pytest.param("a\u200e\u200f\u061cb", r"a\u200e\u200f\u061cb", id="direction-marks"),
    pytest.param(
        "a\u200b\u200c\u200d\u2060\ufeffb", r"a\u200b\u200c\u200d\u2060\ufeffb", id="zero"
    ),
    pytest.param("a\u00a0b", r"a\u00a0b", id="no-break-space"),
    pytest.param("a\u3000b\u2003c", r"a\u3000b\u2003c", id="wide-spaces"),
    pytest.param("a\u2028b\u2029c", r"a\u2028b\u2029c", id="line-separators"),
    pytest.param("a\u00adb", r"a\u00adb", id="soft-hyphen"),
    pytest.param("\u3164", r"\u3164", id="hangul-filler"),
    pytest.param("a\u115f\u1160\uffa0", r"a\u115f\u1160\uffa0", id="other-fillers"),
    pytest.param("\u2800\u2800", r"\u2800\u2800", id="blank-braille"),
    pytest.param("a\u034fb", r"a\u034fb", id="grapheme-joiner"),
    pytest.param("a\ufe0fb\ufe00", r"a\ufe0fb\ufe00", id="variation-selectors"),
    pytest.param("a\U000e0100\U000e01ef", r"a\U000e0100\U000e01ef", id="more-selectors"),
    pytest.param("a\u180b\u180e\u180f", r"a\u180b\u180e\u180f", id="mongolian-selectors"),
    pytest.param("a\u17b4\u17b5", r"a\u17b4\u17b5", id="inherent-vowels"),
    pytest.param("a\u2d7f\U00016fe4\U0001d159", r"a\u2d7f\U00016fe4\U0001d159", id="other-blanks"),
    pytest.param("a\ufffc", r"a\ufffc", id="object-replacement"),
    pytest.param("a\U000e0041", r"a\U000e0041", id="tag"),
    pytest.param("\ue000\U000f0000", r"\ue000\U000f0000", id="private-use"),
    pytest.param("\u0378", r"\u0378", id="unassigned"),
    pytest.param("e" + 2 * _MARK, "e" + 2 * _MARK, id="two-marks-stay"),
    pytest.param("e" + 4 * _MARK, "e" + 2 * _MARK + 2 * r"\u0301", id="flood-of-marks"),
    pytest.param("e" + 3 * _MARK + "e" + _MARK, f"e{2 * _MARK}\\u0301e{_MARK}", id="marks-anew"),
    pytest.param("e" + 3 * "\u302e", "e" + 2 * "\u302e" + r"\u302e", id="flood-of-wide-marks"),
    pytest.param("\u0915" + 3 * "\u0902", "\u0915\u0902\u0902\\u0902", id="flood-without-a-class"),
    pytest.param("\u3164" + _MARK, r"\u3164\u0301", id="mark-on-an-escaped-letter"),
    pytest.param("\uffff", r"\uffff", id="last-of-the-first-plane"),
    pytest.param("\u1810\ufe10", "\u1810\ufe10", id="visible-behind-the-selectors"),
    pytest.param(_MARK + "a", r"\u0301a", id="mark-on-nothing"),
    pytest.param("." + _MARK, r".\u0301", id="mark-on-a-dot"),
    pytest.param("\n" + _MARK, r"\n\u0301", id="mark-on-an-escape"),
    pytest.param("a\ufe0f" + _MARK, r"a\ufe0f\u0301", id="mark-on-an-escaped-mark"),
    pytest.param("a\u20dd", "a\u20dd", id="enclosing-mark"),
    pytest.param(".\u20dd", r".\u20dd", id="enclosing-mark-on-a-dot"),
    pytest.param(" a", r"\x20a", id="leading-space"),
    pytest.param("a ", r"a\x20", id="trailing-space"),
    pytest.param(" ", r"\x20", id="only-a-space"),
    pytest.param("a  b", r"a \x20b", id="two-spaces"),
    pytest.param("a   b", r"a \x20\x20b", id="three-spaces"),
    pytest.param("a b c", "a b c", id="single-spaces"),
    pytest.param('say "it\'s"', r"say \"it's\"", id="quotes"),
    pytest.param(r"a\b", r"a\\b", id="backslash"),
    pytest.param(r"a\nb", r"a\\nb", id="looks-escaped"),
    pytest.param(r"\xff", r"\\xff", id="looks-like-a-stray-byte"),
    pytest.param("<b>&amp;</b>", "<b>&amp;</b>", id="markup-is-text"),
    pytest.param("%s {0} $HOME `id`", "%s {0} $HOME `id`", id="formats-are-text"),
    pytest.param("a\u2026(12 left out)\u2026b", r"a\u2026(12 left out)\u2026b", id="our-own-gap"),
    pytest.param("a\u2215b\u2044c\u29f8\uff0f", r"a\u2215b\u2044c\u29f8\uff0f", id="slashes"),
    pytest.param(
        "\u2571\u27cb\U0001f67c", r"\u2571\u27cb\U0001f67c", id="slashes-of-mathematics-and-drawing"
    ),
    pytest.param(
        "a\u29f5nb\u29f9\ufe68\uff3c", r"a\u29f5nb\u29f9\ufe68\uff3c", id="backslashes-that-escape"
    ),
    pytest.param(
        "\u2216\u2572\u27cd\U0001f67d", r"\u2216\u2572\u27cd\U0001f67d", id="more-backslashes"
    ),
    pytest.param("a\u22efb", r"a\u22efb", id="dots-like-our-own-gap"),
    pytest.param("a  ->  b", r"a \x20-> \x20b", id="our-own-arrow"),
    pytest.param("résumé 简历 🙂.txt", "résumé 简历 🙂.txt", id="ordinary-letters-stay"),
    pytest.param("हिन्दी", "हिन्दी", id="devanagari-stays"),
    pytest.param("का\u0902", "का\u0902", id="a-mark-on-a-vowel-stays"),
    pytest.param("~a", "~a", id="a-tilde-before-more"),
    pytest.param(_ALEF + "b", f"\u2068{_ALEF}b\u2069", id="hebrew-is-fenced"),
    pytest.param("b" + _ARABIC, f"\u2068b{_ARABIC}\u2069", id="arabic-is-fenced"),
    pytest.param("\u0661", "\u2068\u0661\u2069", id="arabic-digits-are-fenced"),
    pytest.param(_ALEF + "\u2069x", f"\u2068{_ALEF}\\u2069x\u2069", id="fence-is-not-climbed"),
]


@pytest.mark.parametrize(("name", "shown"), NASTY)
def test_a_nasty_name_is_made_visible(name: str, shown: str) -> None:
    assert show_name(name.encode()) == shown
    assert show_text(name) == shown


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        pytest.param(b"\xff", r"\xff", id="stray-byte"),
        pytest.param(b"a\x80b", r"a\x80b", id="lone-continuation"),
        pytest.param(b"\xed\xa0\x80", r"\xed\xa0\x80", id="encoded-surrogate"),
        pytest.param(b"\xc0\xaf", r"\xc0\xaf", id="overlong-slash"),
        pytest.param(b"\xc2\x80", r"\u0080", id="not-a-stray-byte"),
        pytest.param(b"", "", id="empty"),
        pytest.param(b"~", r"\x7e", id="bare-tilde-means-home"),
    ],
)
def test_bytes_that_are_no_text_are_made_visible(name: bytes, shown: str) -> None:
    assert show_name(name) == shown


def test_a_surrogate_in_text_is_made_visible() -> None:
    assert show_text("\ud800\udfff") == r"\ud800\udfff"
    assert show_text("\udc7f\udd00") == r"\udc7f\udd00"
    assert show_text("\udc80\udcff") == r"\x80\xff"


#: Pieces that could run into each other, and all the classes that are escaped.
_PIECES = st.sampled_from(
    [
        *("\\", "x", "u", "n", "20", "ff", "0301", "e", " ", "\n", '"', "~", ".", "\u2026"),
        *(_MARK, _ALEF, "\u202e", "\u2068", "\u2069", "\u200b", "\u3164", "\ufe0f", "\u00e9"),
        *("\udcff", "\udce9"),
    ]
)
_texts = st.one_of(st.lists(_PIECES, max_size=8).map("".join), st.text(max_size=8))


def _is_plain(text: str) -> bool:
    without = text.translate({ord(fence): None for fence in _FENCES})
    return without.isprintable() and not any(
        unicodedata.category(character).startswith(("C", "Z")) and character != " "
        for character in without
    )


def _is_fenced(text: str) -> bool:
    """Tell whether the fences come in pairs, one after the other."""
    found = [character for character in text if character in _FENCES]
    return found == list(_FENCES) * (len(found) // 2)


@given(strategies.any_bytes)
def test_any_bytes_are_shown_on_one_plain_line(name: bytes) -> None:
    shown = show_name(name)

    assert _is_plain(shown)
    assert _is_fenced(shown)
    assert "  " not in shown
    assert shown.strip() == shown


@given(_texts, _texts)
@example("\n", r"\n")
@example("\x7f", "\\x7f")
@example("\u0080", "\udc80")
@example("a ", "a\\x20")
def test_two_texts_never_show_as_the_same(first: str, second: str) -> None:
    assert (show_text(first) == show_text(second)) is (first == second)


@given(strategies.any_bytes, strategies.any_bytes)
@example(b"~", HOME)
@example(b"~/x", HOME + b"/x")
@example(b"", b"/")
@example(HOME + b"/x", b"/home/u2/x")
@example(rb"\x7e/x", b"~/x")
def test_two_paths_never_show_as_the_same(first: bytes, second: bytes) -> None:
    assert (show_path(first, HOME) == show_path(second, HOME)) is (first == second)


@pytest.mark.parametrize(
    ("path", "home", "shown"),
    [
        pytest.param(HOME, HOME, "~", id="home"),
        pytest.param(HOME + b"/a b/c", HOME, "~/a b/c", id="below-home"),
        pytest.param(HOME + b"/a", HOME + b"/", "~/a", id="home-with-a-slash"),
        pytest.param(HOME + b"2/a", HOME, "/home/u2/a", id="longer-than-home"),
        pytest.param(b"/srv/a", HOME, "/srv/a", id="elsewhere"),
        pytest.param(b"/", HOME, "/", id="root"),
        pytest.param(b"/a", b"/", "/a", id="home-is-the-root"),
        pytest.param(b"/a", b"", "/a", id="no-home"),
        pytest.param(b"~/.ssh", HOME, r"\x7e/.ssh", id="a-tilde-that-is-no-home"),
        pytest.param(b"/~/~x", HOME, r"/\x7e/~x", id="a-tilde-further-on"),
        pytest.param(b"~user/x", HOME, r"\x7euser/x", id="another-home"),
        pytest.param(b"/a~", HOME, "/a~", id="a-tilde-at-the-end"),
        pytest.param(b"/home/ux/a", b"/home/ux", "~/a", id="any-home"),
        pytest.param(b"a/../b", HOME, "a/../b", id="relative"),
        pytest.param(HOME + b"/ a /b", HOME, r"~/\x20a\x20/b", id="spaces-at-the-edge-of-a-name"),
        pytest.param(HOME + b"/a\n\xff", HOME, r"~/a\n\xff", id="stray"),
        pytest.param(
            HOME + f"/{_ALEF}/b".encode(), HOME, f"~/\u2068{_ALEF}\u2069/b", id="a-fence-a-name"
        ),
    ],
)
def test_a_path_is_shown_whole(path: bytes, home: bytes, shown: str) -> None:
    assert show_path(path, home) == shown


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        pytest.param("report.md", 9, Shown("report.md"), id="fits-exactly"),
        pytest.param(
            "a" * 30 + "z" * 30,
            40,
            Shown("a" * 13 + "…(35 left out)…" + "z" * 12, 35),
            id="the-middle-goes",
        ),
        pytest.param(
            "a" * 3000, 41, Shown("a" * 12 + "…(2,977 left out)…" + "a" * 11, 2977), id="thousands"
        ),
        pytest.param("a" * 60, 60, Shown("a" * 60), id="fits-exactly-with-room-for-a-gap"),
        pytest.param(r"\u202e" + "b" * 60, 19, Shown(r"\u202e" + "b" * 60), id="no-beginning-fits"),
        pytest.param("b" * 60 + r"\u202e", 19, Shown("b" * 60 + r"\u202e"), id="no-end-fits"),
        pytest.param(_MARK * 40, 30, Shown(_MARK * 40), id="marks-on-nothing"),
        pytest.param(
            ("e" + 2 * _MARK) * 40,
            30,
            Shown(("e" + 2 * _MARK) * 2 + "…(36 left out)…" + ("e" + 2 * _MARK) * 2, 36),
            id="all-marks-stay-with-their-letter",
        ),
        pytest.param("abcdefghijklmnop", 12, Shown("abcdefghijklmnop"), id="no-room-to-shorten"),
        pytest.param(
            r"\n" * 30, 30, Shown(r"\n" * 4 + "…(23 left out)…" + r"\n" * 3, 23), id="short-escapes"
        ),
        pytest.param(
            r"\x1b" * 30, 30, Shown(r"\x1b" * 2 + "…(27 left out)…" + r"\x1b", 27), id="escapes"
        ),
        pytest.param(
            r"\u202e" * 30,
            30,
            Shown(r"\u202e" + "…(28 left out)…" + r"\u202e", 28),
            id="longer-escapes",
        ),
        pytest.param(r"\u202e" * 30, 26, Shown(r"\u202e" * 30), id="no-room-for-an-escape"),
        pytest.param(
            r"\U000e0041" * 30,
            36,
            Shown(r"\U000e0041" + "…(28 left out)…" + r"\U000e0041", 28),
            id="long-escapes",
        ),
        pytest.param(
            ("e" + _MARK) * 40,
            30,
            Shown(("e" + _MARK) * 4 + "…(33 left out)…" + ("e" + _MARK) * 3, 33),
            id="marks-stay-with-their-letter",
        ),
        pytest.param(
            show_name(_ALEF.encode() * 40),
            21,
            Shown(f"\u2068{_ALEF * 3}\u2069…(34 left out)…\u2068{_ALEF * 3}\u2069", 34),
            id="both-ends-stay-fenced",
        ),
        pytest.param(
            f"~/{show_name(_ALEF.encode() * 30)}/{'b' * 30}",
            21,
            Shown(f"~/\u2068{_ALEF}\u2069…(57 left out)…bbb", 57),
            id="the-cut-closes-a-fence",
        ),
        pytest.param(
            f"{'b' * 30}{show_name(_ALEF.encode() * 30)}",
            21,
            Shown(f"bbb…(54 left out)…\u2068{_ALEF * 3}\u2069", 54),
            id="the-cut-opens-a-fence",
        ),
        pytest.param(
            show_name(_ALEF.encode() * 15),
            15,
            Shown(show_name(_ALEF.encode() * 15)),
            id="fence-fits",
        ),
    ],
)
def test_a_long_text_is_shortened_in_its_middle(text: str, width: int, shown: Shown) -> None:
    assert shorten(text, width) == shown


def test_names_that_differ_at_the_end_only_stay_apart() -> None:
    first, second = (shorten(show_name(b"n" * 250 + end), 48) for end in (b"A.txt", b"B.txt"))

    assert first.text != second.text
    assert first.text.endswith("A.txt")
    assert second.text.endswith("B.txt")
    assert first.left_out == second.left_out == 223


@given(_texts, _texts, st.integers(0, 60))
@example("a" * 40, "a" * 20 + "b" + "a" * 19, 30)
@example("a" * 13 + "…(35 left out)…" + "z" * 12, "a" * 30 + "z" * 30, 40)
def test_only_what_says_so_shows_as_something_else(first: str, second: str, width: int) -> None:
    one, other = (shorten(show_text(text * 4), width) for text in (first, second))

    if one.text == other.text and first != second:
        assert one.left_out > 0
        assert other.left_out > 0


@given(_texts, st.integers(0, 60))
def test_a_shortened_text_is_plain_and_fits(text: str, width: int) -> None:
    whole = show_text(text * 8)

    shown = shorten(whole, width)

    assert _is_plain(shown.text)
    assert _is_fenced(shown.text)
    if shown.left_out:
        assert len(shown.text.translate({ord(fence): None for fence in _FENCES})) <= width
        assert f"…({shown.left_out:,} left out)…" in shown.text
    else:
        assert shown.text == whole


@pytest.mark.parametrize(
    ("value", "noun", "shown"),
    [
        pytest.param(0, "line", "0 lines", id="none"),
        pytest.param(1, "line", "1 line", id="one"),
        pytest.param(2, "line", "2 lines", id="two"),
        pytest.param(1204, "line", "1,204 lines", id="thousands"),
        pytest.param(1, "entry", "1 entry", id="one-entry"),
        pytest.param(42, "entry", "42 entries", id="entries"),
        pytest.param(2, "other name", "2 other names", id="two-words"),
    ],
)
def test_a_count_has_its_noun(value: int, noun: str, shown: str) -> None:
    assert count(value, noun) == shown


def test_a_number_has_its_thousands_parted() -> None:
    assert [number(999), number(1000), number(2936012)] == ["999", "1,000", "2,936,012"]


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        pytest.param(0, "0 bytes", id="empty"),
        pytest.param(1, "1 byte", id="one"),
        pytest.param(999, "999 bytes", id="hundreds"),
        pytest.param(2_936_012, "2,936,012 bytes", id="millions"),
    ],
)
def test_a_size_is_exact(size: int, shown: str) -> None:
    assert show_size(size) == shown


_DAY = 86400


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        pytest.param(-1, "in the future", id="ahead"),
        pytest.param(0, "just now", id="now"),
        pytest.param(0.999, "just now", id="less-than-a-second"),
        pytest.param(1, "1 second ago", id="second"),
        pytest.param(59, "59 seconds ago", id="seconds"),
        pytest.param(60, "1 minute ago", id="minute"),
        pytest.param(150, "2 minutes ago", id="minutes"),
        pytest.param(3599, "59 minutes ago", id="almost-an-hour"),
        pytest.param(3600, "1 hour ago", id="hour"),
        pytest.param(_DAY - 1, "23 hours ago", id="hours"),
        pytest.param(_DAY, "1 day ago", id="day"),
        pytest.param(3 * _DAY, "3 days ago", id="days"),
        pytest.param(30 * _DAY - 1, "29 days ago", id="almost-a-month"),
        pytest.param(30 * _DAY, "1 month ago", id="month"),
        pytest.param(365 * _DAY - 1, "12 months ago", id="almost-a-year"),
        pytest.param(365 * _DAY, "1 year ago", id="year"),
        pytest.param(365 * _DAY * 2000, "2,000 years ago", id="ages"),
    ],
)
def test_an_age_is_in_the_largest_unit_that_fits(seconds: float, shown: str) -> None:
    then = 10**18
    assert show_age(then + int(seconds * 1_000_000_000), then) == shown
