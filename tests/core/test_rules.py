"""What the denylist hides, and that nothing gets around it."""

from __future__ import annotations

import dataclasses

import pytest

from lamfuse.core import paths
from lamfuse.core.rules import CREDENTIAL_PLACES, DEFAULT_DENY, Denylist, DenyRule, RuleError
from tests import strategies

pytestmark = pytest.mark.requirement("H5", "H21")

HOME = strategies.HOME
OWN = "lamfuse's own places"


def _at(relative: str | bytes) -> bytes:
    text = relative.encode("utf-8", "surrogateescape") if isinstance(relative, str) else relative
    return HOME + b"/" + text


# ---- The defaults


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        pytest.param(".ssh", "/.ssh", id="ssh"),
        pytest.param(".ssh/id_ed25519.pub", "/.ssh", id="ssh-below"),
        pytest.param(".gnupg", "/.gnupg", id="gnupg"),
        pytest.param(".gnupg/private-keys-v1.d/x", "/.gnupg", id="gnupg-below"),
        pytest.param(".aws", "/.aws", id="aws"),
        pytest.param(".aws/config", "/.aws", id="aws-below"),
        pytest.param(".config/gh", "/.config/gh", id="gh"),
        pytest.param(".config/gh/hosts.yml", "/.config/gh", id="gh-below"),
        pytest.param(".docker/config.json", "/.docker/config.json", id="docker"),
        pytest.param(".netrc", "/.netrc", id="netrc"),
        pytest.param(".env", ".env", id="env"),
        pytest.param("a/b/.env", ".env", id="env-deep"),
        pytest.param("a/.env/b", ".env", id="env-as-a-directory"),
        pytest.param(".env.local", ".env.*", id="env-ending"),
        pytest.param("a/.env.", ".env.*", id="env-empty-ending"),
        pytest.param("id_rsa", "id_rsa", id="rsa"),
        pytest.param("keys/id_dsa", "id_dsa", id="dsa"),
        pytest.param("keys/id_ecdsa", "id_ecdsa", id="ecdsa"),
        pytest.param("keys/id_ed25519", "id_ed25519", id="ed25519"),
        pytest.param("a/credentials.json", "credentials.json", id="credentials"),
        pytest.param("a.pem", "*.pem", id="pem"),
        pytest.param("a/.pem", "*.pem", id="pem-nothing-before"),
        pytest.param("a/b.key", "*.key", id="key"),
        pytest.param("a/b.p12", "*.p12", id="p12"),
        pytest.param("a/b.p12/c", "*.p12", id="p12-below"),
        # the same in other spellings
        pytest.param(".SSH/x", "/.ssh", id="case-of-a-place"),
        pytest.param(".Config/GH", "/.config/gh", id="case-above"),
        pytest.param("A/.Env", ".env", id="case-of-a-name"),
        pytest.param("X.PEM", "*.pem", id="case-of-an-ending"),
        pytest.param("x.\u212aey", "*.key", id="kelvin-sign"),
        pytest.param(".\u017fsh", "/.ssh", id="long-s"),
        pytest.param("a\nb/.env", ".env", id="newline-above"),
        pytest.param(".env\n", ".env", id="newline-after"),
        pytest.param("a\nb.pem", "*.pem", id="newline-in-a-name"),
        pytest.param(".env\n.local/x", None, id="not-newline-in-the-middle"),
        pytest.param("\udcff/.env", ".env", id="stray-byte-above"),
        pytest.param("\udcff.pem", "*.pem", id="stray-byte-in-a-name"),
        pytest.param(".ssh.", "/.ssh", id="dot-after"),
        pytest.param("id_rsa ", "id_rsa", id="blank-after"),
        pytest.param("id_\u200drsa", "id_rsa", id="invisible-inside"),
        pytest.param("a.pem\u00ad", "*.pem", id="invisible-after"),
        pytest.param("e\u0301.pem", "*.pem", id="decomposed"),
        # written otherwise
        pytest.param(".ssh/", "/.ssh", id="slash-after"),
        pytest.param("./.ssh", "/.ssh", id="dot-before"),
        pytest.param("a/../.ssh", "/.ssh", id="dots-before"),
        pytest.param("/.ssh//x", "/.ssh", id="two-slashes"),
        pytest.param(".ssh/.", "/.ssh", id="dot-at-the-end"),
        # not covered
        pytest.param("", None, id="not-home"),
        pytest.param(".ssh2", None, id="not-ssh-longer"),
        pytest.param(".ss", None, id="not-ssh-shorter"),
        pytest.param("a/.ssh", None, id="not-ssh-deep"),
        pytest.param(".config", None, id="not-config"),
        pytest.param(".config/ghx", None, id="not-gh-longer"),
        pytest.param("gh", None, id="not-gh-elsewhere"),
        pytest.param(".docker", None, id="not-docker"),
        pytest.param(".docker/config.jsonx", None, id="not-docker-longer"),
        pytest.param("config.json", None, id="not-docker-elsewhere"),
        pytest.param("a/.aws/config", None, id="not-aws-deep"),
        pytest.param(".envrc", None, id="not-env-longer"),
        pytest.param("x.env", None, id="not-env-before"),
        pytest.param("id_rsa.pub", None, id="not-a-public-key"),
        pytest.param("my_id_rsa", None, id="not-rsa-before"),
        pytest.param("credentials.jsonl", None, id="not-credentials-longer"),
        pytest.param("a.pem.txt", None, id="not-pem-inside"),
        pytest.param("pem", None, id="not-pem-alone"),
        pytest.param("apem", None, id="not-pem-without-dot"),
        pytest.param("keys/key", None, id="not-key"),
        pytest.param(".ssh/../notes", None, id="not-what-leads-out"),
    ],
)
@pytest.mark.parametrize("is_dir", [None, True, False])
def test_defaults(path: str, rule: str | None, is_dir: bool | None) -> None:
    found = Denylist(HOME).rule_for(_at(path), is_dir=is_dir)

    assert found == (None if rule is None else DenyRule(rule, "default"))


def test_every_default_line_is_in_the_table_of_the_requirements() -> None:
    assert [place.decode() for place in CREDENTIAL_PLACES] == [
        ".ssh",
        ".gnupg",
        ".aws",
        ".config/gh",
        ".docker/config.json",
        ".netrc",
    ]
    names = (".env", ".env.*", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "credentials.json")
    assert DEFAULT_DENY[6:] == (*names, "*.pem", "*.key", "*.p12")
    assert DEFAULT_DENY[:6] == tuple("/" + place.decode() for place in CREDENTIAL_PLACES)


@pytest.mark.parametrize(
    ("path", "hidden"),
    [
        pytest.param(b"/srv/.env", True, id="name"),
        pytest.param(b"/srv/x.pem/y", True, id="ending-above"),
        pytest.param(b"/srv/.ssh", False, id="place"),
        pytest.param(b"/.ssh", False, id="place-below-the-root"),
        pytest.param(b"/.config/gh", False, id="longer-place-below-the-root"),
        pytest.param(b"/home/u2/.ssh", False, id="place-of-a-longer-home"),
        pytest.param(b"/home/u/.ssh", True, id="place-of-home"),
        pytest.param(b"/home/../home/u/.ssh", True, id="place-of-home-with-dots"),
        pytest.param(b"/", False, id="root"),
        pytest.param(b"/home", False, id="above-home"),
        pytest.param(b"/home/u", False, id="home"),
    ],
)
def test_outside_home_only_names_count(path: bytes, hidden: bool) -> None:
    assert (Denylist(HOME).rule_for(path, is_dir=None) is not None) is hidden


def test_what_stands_above_home_does_not_hide_home() -> None:
    denylist = Denylist(b"/x/.env/u")

    assert denylist.rule_for(b"/x/.env/u", is_dir=True) is None
    assert denylist.rule_for(b"/x/.env/u/a", is_dir=False) is None
    assert denylist.rule_for_name(b"/x/.env", b"u", is_dir=True) is None
    assert denylist.rule_for(b"/x/.env/v", is_dir=True) is not None


def test_home_itself_is_not_hidden_by_its_name() -> None:
    denylist = Denylist(b"/x/.env")

    assert denylist.rule_for(b"/x/.env", is_dir=True) is None
    assert denylist.rule_for_name(b"/x", b".env", is_dir=True) is None


def test_the_root_may_be_home() -> None:
    denylist = Denylist(b"/")

    assert denylist.rule_for(b"/.ssh/x", is_dir=False) == DenyRule("/.ssh", "default")
    assert denylist.rule_for_name(b"/", b".ssh", is_dir=True) == DenyRule("/.ssh", "default")
    assert denylist.rule_for(b"/", is_dir=True) is None


# ---- The person's rules


@pytest.mark.parametrize(
    ("lines", "path", "is_dir", "rule"),
    [
        pytest.param(["secrets/"], "secrets", True, "secrets/", id="directory"),
        pytest.param(["secrets/"], "a/secrets/x", False, "secrets/", id="below-a-directory"),
        pytest.param(["secrets/"], "secrets", False, None, id="not-a-file"),
        pytest.param(["secrets/"], "secrets", None, "secrets/", id="unknown-kind"),
        pytest.param(["*.kdbx"], "a/b.KDBX", False, "*.kdbx", id="case"),
        pytest.param(["Work/Plan"], "work/plan", False, "Work/Plan", id="case-of-the-pattern"),
        pytest.param(["~/a"], "a", False, "~/a", id="tilde"),
        pytest.param(["~/a"], "b/a", False, None, id="tilde-is-anchored"),
        pytest.param(["a/**", "!a/b"], "a/b", False, None, id="taken-back"),
        pytest.param(["a/**", "!a/b"], "a/c", False, "a/**", id="not-taken-back"),
        pytest.param(["a", "!a/b"], "a/b", False, "a", id="nothing-below-a-hidden-directory"),
        pytest.param(["!a", "a"], "a", False, "a", id="the-last-counts"),
        pytest.param(["a", "!a/"], "a", False, "a", id="only-as-a-directory"),
        pytest.param(["a", "!a/"], "a", True, None, id="as-a-directory"),
        pytest.param(["a", "!a/"], "a", None, "a", id="unknown-kind-is-the-strictest"),
        pytest.param(["*.log", "!keep/"], "keep/x.log", True, "*.log", id="not-what-lies-below"),
        pytest.param(["a/**", "!a/**/"], "a/b", True, None, id="directories-taken-back"),
        pytest.param(["a/**", "!a/**/"], "a/b", False, "a/**", id="files-not-taken-back"),
        pytest.param(["a/**/"], "a/b", False, "a/**/", id="below-with-a-slash"),
        pytest.param(["x[\u00df]"], "x\u00df", False, "x[\u00df]", id="only-as-written"),
        pytest.param(["*a*"], "xay", False, "*a*", id="inside"),
        pytest.param(["x", "!X"], "x", False, "x", id="taken-back-in-another-case"),
        pytest.param(["x", "!x"], "X", False, None, id="taken-back-in-every-case"),
        pytest.param(["# .x", "", " "], ".x", False, None, id="comments-and-blanks"),
    ],
)
def test_person(lines: list[str], path: str, is_dir: bool | None, rule: str | None) -> None:
    found = Denylist(HOME, lines).rule_for(_at(path), is_dir=is_dir)

    assert found == (None if rule is None else DenyRule(rule, "person"))


@pytest.mark.parametrize("line", ["!.env", "!/.ssh", "!*", "!**", "!.ssh/", "!*.pem", "!~/.ssh"])
@pytest.mark.parametrize("path", [".env", ".ssh", ".ssh/x", "a/b.pem"])
def test_no_line_of_the_person_takes_back_a_default(line: str, path: str) -> None:
    denylist = Denylist(HOME, ["*", line])

    found = denylist.rule_for(_at(path), is_dir=None)
    assert found is not None
    assert Denylist(HOME, [line]).rule_for(_at(path), is_dir=None) is not None


def test_outside_home_the_persons_places_do_not_count() -> None:
    denylist = Denylist(HOME, ["/srv/x", "y", "!/z", "z"])

    assert denylist.rule_for(b"/srv/x", is_dir=None) is None
    assert denylist.rule_for(b"/home/u/srv/x", is_dir=None) is not None
    assert denylist.rule_for(b"/srv/y", is_dir=None) is not None


def test_a_pattern_that_cannot_be_used_is_named() -> None:
    with pytest.raises(RuleError) as caught:
        Denylist(HOME, ["# fine", "a", "b["])

    assert (caught.value.line, caught.value.index) == ("b[", 2)


# ---- lamfuse's own places

_OWN = (b"/home/u/.config/lamfuse", b"/run/user/1/lamfuse", b"/home/u/state")
_EXCEPT = (b"/home/u/state/x/agent",)


@pytest.mark.requirement("L9")
@pytest.mark.parametrize(
    ("path", "hidden"),
    [
        pytest.param(b"/home/u/.config/lamfuse", True, id="itself"),
        pytest.param(b"/home/u/.config/lamfuse/config.toml", True, id="below"),
        pytest.param(b"/home/u/.CONFIG/Lamfuse", True, id="case"),
        pytest.param(b"/home/u/.config/lamfuse.", True, id="dot-after"),
        pytest.param(b"/home/u/.config/lam\xe2\x80\x8dfuse", True, id="invisible-inside"),
        pytest.param(b"/run/user/1/lamfuse/socket", True, id="outside-home"),
        pytest.param(b"/home/u/state", True, id="itself-although-an-exception-is-below"),
        pytest.param(b"/home/u/state/journal", True, id="beside-the-way"),
        pytest.param(b"/home/u/state/x/other", True, id="beside-the-exception"),
        pytest.param(b"/home/u/state/x/agent2", True, id="longer-than-the-exception"),
        pytest.param(b"/home/u/state/x/Agent", True, id="the-exception-in-another-case"),
        pytest.param(b"/home/u/state/X", True, id="the-way-in-another-case"),
        pytest.param(b"/home/u/state/x", False, id="the-way"),
        pytest.param(b"/home/u/state/x/agent", False, id="the-exception"),
        pytest.param(b"/home/u/state/x/agent/a", False, id="below-the-exception"),
        pytest.param(b"/home/u/.config", False, id="above"),
        pytest.param(b"/home/u/.config/lamfuse2", False, id="longer"),
        pytest.param(b"/home/u/lamfuse", False, id="elsewhere"),
        pytest.param(b"/lamfuse", False, id="at-the-root"),
    ],
)
def test_own_places(path: bytes, hidden: bool) -> None:
    denylist = Denylist(HOME, own=_OWN, own_except=_EXCEPT)
    expected = DenyRule(OWN, "own") if hidden else None

    assert denylist.rule_for(path, is_dir=None) == expected
    assert denylist.rule_for_name(
        paths.parent(path), paths.base(path), is_dir=None
    ) == expected or (denylist.rule_for(paths.parent(path), is_dir=True) is not None)


def test_an_own_place_in_an_exception_is_hidden() -> None:
    denylist = Denylist(HOME, own=(b"/a", b"/a/b/c"), own_except=(b"/a/b",))

    assert denylist.rule_for(b"/a/b", is_dir=True) is None
    assert denylist.rule_for(b"/a/b/d", is_dir=True) is None
    assert denylist.rule_for(b"/a/b/c/d", is_dir=True) is not None
    assert denylist.rule_for_name(b"/a/b", b"c", is_dir=True) is not None
    assert denylist.rule_for_name(b"/a/b", b"d", is_dir=True) is None


def test_an_own_place_that_is_an_exception_is_hidden() -> None:
    denylist = Denylist(HOME, own=(b"/a",), own_except=(b"/a",))

    assert denylist.rule_for(b"/a", is_dir=True) is not None
    assert denylist.rule_for(b"/a/b", is_dir=True) is not None


def test_an_entry_beside_the_way_to_an_exception_is_hidden_by_name() -> None:
    denylist = Denylist(HOME, own=_OWN, own_except=_EXCEPT)

    assert denylist.rule_for_name(b"/home/u/state/x", b"other", is_dir=False) is not None
    assert denylist.rule_for_name(b"/home/u/state/x", b"agent", is_dir=True) is None
    assert denylist.rule_for_name(b"/home/u/state/x/agent", b"other", is_dir=False) is None


def test_an_exception_does_not_take_back_a_rule() -> None:
    denylist = Denylist(HOME, ["b"], own=(b"/home/u/a",), own_except=(b"/home/u/a/c",))

    assert denylist.rule_for(b"/home/u/a/c/.env", is_dir=False) == DenyRule(".env", "default")
    assert denylist.rule_for(b"/home/u/a/c/b", is_dir=False) == DenyRule("b", "person")


@pytest.mark.parametrize(
    "path", [b"/home/u/Own", b"/home/u/own/x", b"/home/u/OWN", b"/home/u/Own."]
)
def test_an_own_place_with_capitals_is_hidden_in_every_spelling(path: bytes) -> None:
    denylist = Denylist(HOME, own=(b"/home/u/Own",))

    assert denylist.rule_for(path, is_dir=None) == DenyRule(OWN, "own")


def test_own_places_are_written_normalised() -> None:
    denylist = Denylist(HOME, own=(b"/a//b/",), own_except=(b"/a/b/./c",))

    assert denylist.rule_for(b"/a/b", is_dir=True) is not None
    assert denylist.rule_for(b"/a/b/c", is_dir=True) is None


# ---- By name


@pytest.mark.parametrize("name", [b"", b".", b"..", b"a/.env", b"../.ssh"])
def test_what_is_no_name_is_judged_as_a_path(name: bytes) -> None:
    denylist = Denylist(HOME)

    expected = denylist.rule_for(HOME + b"/x/" + name, is_dir=None)
    assert denylist.rule_for_name(HOME + b"/x", name, is_dir=None) == expected
    assert (expected is not None) is (b".env" in name or b".ssh" in name)


@pytest.mark.parametrize("name", [b".", b".."])
def test_a_directory_is_not_hidden_by_the_dots_that_stand_for_it(name: bytes) -> None:
    denylist = Denylist(HOME, ["?", "??"])

    assert denylist.rule_for_name(HOME + b"/abc", name, is_dir=True) is None
    assert denylist.rule_for_name(HOME + b"/abc", b"x.", is_dir=True) is not None


def test_the_root_as_an_own_place_hides_everything() -> None:
    denylist = Denylist(HOME, own=(b"/",))

    assert denylist.rule_for(b"/", is_dir=True) is not None
    assert denylist.rule_for(HOME, is_dir=True) is not None


def test_a_name_is_judged_in_its_directory_each_time() -> None:
    denylist = Denylist(HOME, ["docs/plan"])

    for _ in range(2):
        assert denylist.rule_for_name(HOME, b".ssh", is_dir=True) is not None
        assert denylist.rule_for_name(HOME + b"/a", b".ssh", is_dir=True) is None
        assert denylist.rule_for_name(HOME + b"/docs", b"plan", is_dir=True) is not None
        assert denylist.rule_for_name(HOME, b"plan", is_dir=True) is None


def test_many_names_are_forgotten_again() -> None:
    denylist = Denylist(HOME)
    for number in range((1 << 16) + 3):
        denylist.rule_for_name(HOME, b"%d" % number, is_dir=False)

    assert len(denylist._candidates) == 3
    assert denylist.rule_for_name(HOME, b".env", is_dir=False) is not None


def test_a_rule_is_a_value() -> None:
    rule = DenyRule("a", "person")

    assert dataclasses.astuple(rule) == ("a", "person")
    with pytest.raises(dataclasses.FrozenInstanceError):
        rule.text = "b"  # type: ignore[misc] # that is what must fail
