"""``lamfuse explain``: what would happen to a path, and which rule says so.

It needs no daemon: it builds the policy from the configuration and follows links as the view does,
stopping at the first hidden name. It looks at the disk and opens nothing.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

import click

from lamfuse.cli import options, render
from lamfuse.core import names, paths
from lamfuse.core.policy import Explanation, Policy, Verdict
from lamfuse.core.target import FileKind
from lamfuse.tree import mounts
from lamfuse.tree.resolve import kind_of

__all__ = ["Route", "command", "follow"]

#: As many as the kernel follows.
_MOST_LINKS = 40

_STEPS = frozenset({b".", b".."})
_VERDICTS = {Verdict.ALLOW: "allowed", Verdict.ASK: "asks you", Verdict.REFUSE: "refused"}


@dataclass(slots=True)
class Route:
    """The way from a path as it was written to what it means.

    ``links`` are (link, target as written) in order. ``end`` is the real path, or where the way
    ended: at a hidden name, or for the reason in ``stop``. ``kind`` is None where nothing exists,
    or where nobody looked.
    """

    written: bytes
    end: bytes
    links: list[tuple[bytes, bytes]] = field(default_factory=list)
    kind: FileKind | None = None
    hidden: str = ""
    stop: str = ""


@click.command("explain")
@click.argument("path", type=click.Path(path_type=bytes))
@options.places
@options.as_json
def command(*, path: bytes, home: bytes | None, config: bytes | None, json: bool) -> None:
    """Say what would happen to PATH for each operation, and which rule says so."""
    from lamfuse import app  # noqa: PLC0415 - it brings trio and pyfuse3 along

    dirs = options.places_of(home, config)
    policy = app.build_policy(options.load(dirs, config), dirs, dirs.mountpoint)
    route = follow(policy, _out_of_view(os.path.abspath(path), dirs.mountpoint, policy.home))
    explanations = policy.explain(route.end, route.kind)
    if route.hidden and route.kind is None:
        # Nobody looked whether something is there: both ways.
        explanations = [*policy.explain(route.end, FileKind.FILE), *explanations]
    if json:
        render.data(_as_data(route, explanations))
        return
    for line in [*_lines(route, policy), *_table(explanations)]:
        click.echo(line)


def follow(policy: Policy, written: bytes) -> Route:
    """Follow *written* (absolute, normalised) to what it means for *policy*."""
    route = Route(written, written)
    rule = policy.hides(written, is_dir=False)
    if rule is not None:
        route.hidden = rule.text
        return route
    foreign = mounts.below(policy.home)
    ahead = list(paths.components(written))
    here = b"/"
    while ahead:
        name = ahead.pop(0)
        if name in _STEPS:
            # ``here`` is real: its parent is where the kernel goes.
            here = paths.parent(here) if name == b".." else here
            route.end, route.kind = here, FileKind.DIRECTORY
            continue
        place = paths.join(here, name)
        route.end = place
        rule = policy.hides(place, is_dir=False)
        if rule is not None:
            # Hidden whatever it is: it is not even looked at.
            route.hidden = rule.text
            return route
        if place in foreign and not _is_rooted(policy, place):
            route.hidden = "another file system is mounted there"
            return route
        try:
            found = os.lstat(place)
        except (FileNotFoundError, NotADirectoryError):
            route.end = paths.normalise(b"/".join((place, *ahead)))
            route.kind = None
            return _check_end(policy, route)
        except OSError as error:
            route.stop = error.strerror or str(error)
            return route
        route.kind = kind_of(found.st_mode)
        if route.kind is not FileKind.SYMLINK:
            here = place
            rule = policy.hides(place, is_dir=route.kind is FileKind.DIRECTORY)
            if rule is not None:
                route.hidden = rule.text
                return route
            continue
        if len(route.links) == _MOST_LINKS:
            route.stop = "too many links"
            return route
        target = os.readlink(place)
        route.links.append((place, target))
        ahead = [*paths.components(target), *ahead]
        here = b"/" if target.startswith(b"/") else here
    return _check_end(policy, route)


def _check_end(policy: Policy, route: Route) -> Route:
    """Judge the end once more: now it is known whether it is a directory."""
    is_dir = None if route.kind is None else route.kind is FileKind.DIRECTORY
    rule = policy.hides(route.end, is_dir=is_dir)
    if rule is not None:
        route.hidden = rule.text
    return route


def _is_rooted(policy: Policy, mountpoint: bytes) -> bool:
    """Tell whether the file system at *mountpoint* is a configured root, or holds one."""
    return any(
        root != policy.home and paths.contains(mountpoint, root) for root in policy.roots.all
    )


def _out_of_view(path: bytes, mountpoint: bytes, home: bytes) -> bytes:
    """Return the place in the real home for a *path* that was written as seen through the view."""
    if not paths.contains(mountpoint, path):
        return path
    return paths.join(home, paths.relative(mountpoint, path))


def _lines(route: Route, policy: Policy) -> list[str]:
    lines = [
        f"{render.person_path(link)} is a link to {names.show_name(target)}"
        for link, target in route.links
    ]
    place = render.person_path(route.end)
    if route.hidden:
        lines.append(f"{place} is hidden: {names.show_text(route.hidden)}")
        lines.append("It is not listed, cannot be found, and no such name can be made:")
    elif route.stop:
        lines.append(f"{place} cannot be looked at: {route.stop}")
    elif route.kind is None:
        lines.append(f"{place} does not exist; this is what would happen if it were made:")
    else:
        root = policy.roots.write_root_of(route.end) or policy.roots.root_of(route.end)
        within = f", in {render.person_path(root)}" if root else ", outside home and the roots"
        lines.append(f"{place} is a {route.kind}{within}")
        if route.links and any(paths.contains(place, route.end) for place in policy.link_ok):
            lines.append("Links may lead there (link_ok): who follows one leaves the view.")
    return lines


def _table(explanations: list[Explanation]) -> list[str]:
    rows = [
        (
            item.operation,
            _VERDICTS[item.verdict],
            names.show_text(item.rule),
        )
        for item in explanations
    ]
    return render.table(rows, indent="  ")


def _as_data(route: Route, explanations: list[Explanation]) -> dict[str, object]:
    return {
        "path": route.written,
        "real_path": route.end,
        "kind": route.kind,
        "links": [{"path": link, "target": target} for link, target in route.links],
        "hidden": route.hidden,
        "stop": route.stop,
        "operations": [
            {
                "operation": item.operation,
                "verdict": item.verdict.name.lower(),
                "rule": item.rule,
                "reason": item.reason,
            }
            for item in explanations
        ],
    }
