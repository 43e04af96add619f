"""Whether a configuration fits the disk: its roots, the mountpoint, and lamfuse's own places.

This looks at paths and follows links, so it may wait: for a slow disk, or for a view that a link
leads into. Once a view is mounted, call it in a thread.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from lamfuse.core import paths
from lamfuse.core.errors import ConfigError
from lamfuse.core.rules import Denylist
from lamfuse.store.config import DEFAULT, Config, default_write_roots
from lamfuse.store.dirs import Dirs, real_path

__all__ = ["check_roots"]


def check_roots(config: Config, mountpoint: bytes, dirs: Dirs) -> None:
    """Raise ConfigError, with a remedy, where *config* cannot be used with *mountpoint*.

    A root that does not exist yet is fine. Default roots may be hidden by the person's own rules.
    """
    mountpoint = paths.normalise(mountpoint)
    parent = real_path(paths.parent(mountpoint))
    mounts = tuple({mountpoint, paths.join(parent, paths.base(mountpoint))})
    _check_mountpoint(config, mounts)
    own = dirs.own_places(mountpoint)
    denylist = Denylist(config.home, config.deny, own=own, own_except=(dirs.agent_dir,))
    for key, root in _roots(config):
        real = real_path(root)
        _check_overlap(config, key, {root, real}, mounts)
        if root in default_write_roots(config.home):
            continue
        _check_kind(config, key, root)
        for path in (root, real):
            rule = denylist.rule_for(path, is_dir=True)
            if rule is not None:
                what = f"{_shown(root)} is hidden ({rule.text})"
                raise _error(config, key, what, "Leave it out: what is hidden is no root.")
    _check_link_ok(config)
    _check_program(config)


def _roots(config: Config) -> Iterator[tuple[str, bytes]]:
    yield from (("read_roots", root) for root in config.read_roots)
    yield from (("write_roots", root) for root in config.write_roots)


def _check_mountpoint(config: Config, mounts: tuple[bytes, ...]) -> None:
    """Refuse a mountpoint that would cover the home or a root; nothing is looked at."""
    remedy = "Mount the view somewhere else."
    for mount in mounts:
        if paths.contains(mount, config.home):
            where = f"mountpoint {_shown(mount)}"
            raise ConfigError(where, f"it covers the home {_shown(config.home)}", remedy)
        for key, root in _roots(config):
            if paths.contains(mount, root):
                what = f"{_shown(root)} lies on the mountpoint {_shown(mount)}"
                raise _error(config, key, what, remedy)


def _check_overlap(config: Config, key: str, root: set[bytes], mounts: tuple[bytes, ...]) -> None:
    """Refuse a root that holds the mountpoint. As a place to read, home itself may hold it."""
    if key == "read_roots" and config.home in root:
        return
    for path in sorted(root):
        for mount in mounts:
            if paths.contains(path, mount) or paths.contains(mount, path):
                what = f"{_shown(path)} holds the mountpoint {_shown(mount)}"
                raise _error(config, key, what, "Mount the view somewhere else.")


def _check_kind(config: Config, key: str, root: bytes) -> None:
    try:
        found = os.stat(root)
    except FileNotFoundError:
        return
    except OSError as error:
        what = f"{_shown(root)} cannot be looked at ({error.strerror})"
        raise _error(config, key, what, "Correct the path, or leave it out.") from error
    if not stat.S_ISDIR(found.st_mode):
        what = f"{_shown(root)} is a file, and a root is a directory"
        raise _error(config, key, what, "Write the directory that holds it.")


def _check_link_ok(config: Config) -> None:
    """Links may lead only where root alone can put something."""
    if config.origin.get("link_ok", DEFAULT) == DEFAULT:
        return
    for path in config.link_ok:
        try:
            found = os.stat(path)
        except OSError:
            continue  # no link can lead into what is not there
        if found.st_uid != 0:
            what = f"{_shown(path)} belongs to uid {found.st_uid}, not to root"
            raise _error(config, "link_ok", what, "Leave it out.")


def _check_program(config: Config) -> None:
    """Refuse an approval program that an agent could have changed."""
    if not config.approval.program:
        return
    program = os.fsencode(config.approval.program[0])
    for path in {program, real_path(program)}:
        for root in config.write_roots:
            if paths.contains(root, path) or paths.contains(real_path(root), path):
                what = f"{_shown(path)} lies in the write root {_shown(root)}"
                remedy = "Move it to where no agent can change it."
                raise _error(config, "approval.program[0]", what, remedy)


def _shown(path: bytes) -> str:
    return path.decode(errors="backslashreplace")


def _error(config: Config, key: str, what: str, remedy: str) -> ConfigError:
    return ConfigError(f"{os.fsdecode(config.file)}: {key}", what, remedy)
