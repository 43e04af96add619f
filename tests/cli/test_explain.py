from __future__ import annotations

import os
from pathlib import Path

import pytest

from lamfuse.cli.explain import follow
from lamfuse.core.policy import Policy
from lamfuse.core.roots import Roots
from lamfuse.core.rules import Denylist
from lamfuse.core.runs_later import RunsLater
from lamfuse.core.standing import StandingRules
from lamfuse.core.target import FileKind

pytestmark = pytest.mark.requirement("L8", "H20")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    place = tmp_path / "home"
    (place / "Downloads").mkdir(parents=True)
    (place / ".ssh").mkdir()
    (place / ".ssh" / "id_ed25519").write_text("secret")
    (place / "Downloads" / "report.md").write_text("text")
    return place


@pytest.fixture
def policy(home: Path) -> Policy:
    root = bytes(home)
    return Policy(
        root,
        Denylist(root, ["secrets/"]),
        Roots(root, write=[root + b"/Downloads"]),
        RunsLater(root),
        StandingRules(),
        link_ok=[b"/usr"],
    )


def test_a_plain_file_is_what_it_is(policy: Policy, home: Path) -> None:
    route = follow(policy, bytes(home / "Downloads" / "report.md"))
    assert (route.end, route.kind) == (bytes(home / "Downloads" / "report.md"), FileKind.FILE)
    assert (route.hidden, route.stop, route.links) == ("", "", [])


def test_links_on_the_way_are_followed_and_told(policy: Policy, home: Path) -> None:
    (home / "recent").symlink_to("Downloads/../there")
    (home / "there").symlink_to(home / "Downloads")
    route = follow(policy, bytes(home / "recent" / "report.md"))
    assert route.end == bytes(home / "Downloads" / "report.md")
    assert route.kind is FileKind.FILE
    assert route.links == [
        (bytes(home / "recent"), b"Downloads/../there"),
        (bytes(home / "there"), bytes(home / "Downloads")),
    ]


def test_dot_dot_after_a_link_leads_where_the_kernel_goes(policy: Policy, home: Path) -> None:
    (home / "deep" / "er").mkdir(parents=True)
    (home / "Downloads" / "in").symlink_to("../deep/er")
    (home / "odd").symlink_to("Downloads/in/../x")
    (home / "deep" / "x").touch()
    assert follow(policy, bytes(home / "odd")).end == bytes(home / "deep" / "x")


def test_a_link_to_something_hidden_stops_there(policy: Policy, home: Path) -> None:
    (home / "harmless").symlink_to(".ssh")
    route = follow(policy, bytes(home / "harmless" / "known_hosts"))
    assert route.end == bytes(home / ".ssh")
    assert route.hidden == "/.ssh"


def test_a_hidden_link_is_not_followed(policy: Policy, home: Path) -> None:
    (home / ".env").symlink_to("Downloads/report.md")
    route = follow(policy, bytes(home / ".env"))
    assert (route.hidden, route.links) == (".env", [])


def test_a_directory_rule_hides_a_directory_and_not_a_file(policy: Policy, home: Path) -> None:
    (home / "a" / "secrets").mkdir(parents=True)
    (home / "secrets").write_text("a file")
    assert follow(policy, bytes(home / "a" / "secrets")).hidden == "secrets/"
    assert follow(policy, bytes(home / "secrets")).hidden == ""


def test_what_does_not_exist_is_judged_by_its_name(policy: Policy, home: Path) -> None:
    (home / "to").symlink_to("Downloads/new")
    route = follow(policy, bytes(home / "to" / "deeper.md"))
    assert (route.end, route.kind) == (bytes(home / "Downloads" / "new" / "deeper.md"), None)


def test_a_link_that_dangles_is_judged_by_where_it_would_lead(policy: Policy, home: Path) -> None:
    (home / "dangling").symlink_to("/nonexistent/../etc/new")
    route = follow(policy, bytes(home / "dangling"))
    assert (route.end, route.kind) == (b"/etc/new", None)


def test_links_in_a_circle_end(policy: Policy, home: Path) -> None:
    (home / "a").symlink_to("b")
    (home / "b").symlink_to("a")
    assert follow(policy, bytes(home / "a")).stop == "too many links"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may look everywhere")
def test_what_may_not_be_looked_at_stops_the_way(policy: Policy, home: Path) -> None:
    closed = home / "closed"
    closed.mkdir(mode=0)
    try:
        assert follow(policy, bytes(closed / "x")).stop == "Permission denied"
    finally:
        closed.chmod(0o700)


def test_another_file_system_below_home_is_not_shown(
    policy: Policy, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "usb").mkdir()
    monkeypatch.setattr("lamfuse.tree.mounts.below", lambda _home: frozenset({bytes(home / "usb")}))
    route = follow(policy, bytes(home / "usb" / "file"))
    assert route.hidden == "another file system is mounted there"
    rooted = Policy(
        policy.home,
        policy.denylist,
        Roots(policy.home, read=[bytes(home / "usb")]),
        RunsLater(policy.home),
        StandingRules(),
    )
    assert follow(rooted, bytes(home / "usb" / "file")).hidden == ""
