"""The person's configuration, read from a TOML file and checked as a whole.

A configuration is a value: it never changes, and a wrong one is never used in part. Only an entry
of the roots that is not absolute is skipped, and reported in ``Config.notes``. Nothing here looks
at what the paths in it lead to: :mod:`lamfuse.store.config_roots` does.
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from lamfuse.core import paths
from lamfuse.core.errors import ConfigError
from lamfuse.core.operations import Verb
from lamfuse.core.roots import DEFAULT_WRITE_ROOTS, split_roots
from lamfuse.core.rules import Denylist, RuleError
from lamfuse.core.runs_later import RunsLater
from lamfuse.core.standing import StandingRule
from lamfuse.store.config_keys import Table

__all__ = [
    "CHANNELS",
    "DEFAULT",
    "DEFAULT_LINK_OK",
    "RULE_VERBS",
    "Approval",
    "Config",
    "build",
    "default_write_roots",
    "load",
    "read",
]

#: The origin of a value that no file sets.
DEFAULT = "default"

#: Directories of the system that links may lead into (``/lib*`` written out).
DEFAULT_LINK_OK: tuple[bytes, ...] = (
    b"/usr",
    b"/bin",
    b"/sbin",
    b"/lib",
    b"/lib32",
    b"/lib64",
    b"/libx32",
    b"/opt",
    b"/nix/store",
)

CHANNELS: tuple[str, ...] = ("desktop", "terminal", "program")

#: What a standing rule can speak of; reading needs no permission.
RULE_VERBS: tuple[str, ...] = tuple(verb.value for verb in Verb if verb is not Verb.READ)

_KEYS = ("file_access", "read_roots", "write_roots", "deny", "link_ok", "runs_later", "approval")
_APPROVAL_KEYS = (
    "channels",
    "program",
    "shown_timeout_s",
    "total_timeout_s",
    "turn_idle_s",
    "turn_max_s",
    "wait_for_cli",
    "rename_over",
    "rule",
)
_RULE_KEYS = ("paths", "operations", "answer")

#: A configuration is a page of text; what is larger is another file.
_MAX_SIZE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Approval:
    """How the person is asked. Times are seconds; ``rename_over`` is ``ask`` or ``refuse``."""

    channels: tuple[str, ...] = ("desktop", "terminal")
    program: tuple[str, ...] = ()
    shown_timeout_s: float = 60.0
    total_timeout_s: float = 110.0
    turn_idle_s: float = 900.0
    turn_max_s: float = 3600.0
    wait_for_cli: bool = False
    rename_over: str = "ask"
    rules: tuple[StandingRule, ...] = ()


@dataclass(frozen=True, slots=True)
class Config:
    """The whole configuration of one home, defaults included.

    Paths are absolute bytes, links in them not followed. ``write_roots`` holds the default ones
    first; ``deny`` and ``runs_later`` are the person's own lines alone, since the defaults always
    apply. ``notes`` says in words what was skipped. ``origin`` gives, for each dotted key,
    ``default`` or the file.
    """

    file: bytes
    home: bytes
    file_access: bool = False
    read_roots: tuple[bytes, ...] = ()
    write_roots: tuple[bytes, ...] = ()
    deny: tuple[str, ...] = ()
    link_ok: tuple[bytes, ...] = DEFAULT_LINK_OK
    runs_later: tuple[str, ...] = ()
    approval: Approval = field(default_factory=Approval)
    notes: tuple[str, ...] = ()
    origin: Mapping[str, str] = field(default_factory=dict)


def default_write_roots(home: bytes) -> tuple[bytes, ...]:
    """Return the write roots that are always there, absolute."""
    return tuple(paths.join(home, root) for root in DEFAULT_WRITE_ROOTS)


def load(path: bytes, home: bytes, *, must_exist: bool = False) -> Config:
    """Read the configuration at *path* for *home*; without a file everything has its default.

    *must_exist* is for a file that the person named. Raises ConfigError.
    """
    return build(read(path, must_exist=must_exist), path, home)


def read(path: bytes, *, must_exist: bool = False) -> dict[str, object]:
    """Return what the file at *path* writes, unchecked; empty without one. Raises ConfigError."""
    content = _read(path, must_exist=must_exist)
    return {} if content is None else _parse(content, os.fsdecode(path))


def build(data: Mapping[str, object], path: bytes, home: bytes) -> Config:
    """Return the configuration that *data*, read from *path*, describes; raises ConfigError."""
    top = Table(data, os.fsdecode(path), "", _KEYS)
    asking = top.table("approval", _APPROVAL_KEYS)
    read_roots, notes = _roots(top, "read_roots", home)
    write_roots, more_notes = _roots(top, "write_roots", home)
    return Config(
        file=path,
        home=home,
        file_access=top.boolean("file_access", default=False),
        read_roots=read_roots,
        write_roots=tuple(dict.fromkeys((*default_write_roots(home), *write_roots))),
        deny=_deny(top, home),
        link_ok=_link_ok(top, home),
        runs_later=_runs_later(top, home),
        approval=_approval(asking, home),
        notes=(*notes, *more_notes),
        origin=MappingProxyType(_origin(top, asking, os.fsdecode(path))),
    )


def _read(path: bytes, *, must_exist: bool) -> bytes | None:
    """Return what is in the file, or None where there is none; nobody else may have written it."""
    shown = os.fsdecode(path)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except (FileNotFoundError, NotADirectoryError) as error:
        if must_exist:
            raise ConfigError(
                shown, "there is no such file", "Give another with --config."
            ) from error
        return None
    except OSError as error:
        remedy = f"See: ls -l {shown}"
        raise ConfigError(shown, f"it cannot be opened ({error.strerror})", remedy) from error
    try:
        _check_file(os.fstat(fd), shown)
        with os.fdopen(os.dup(fd), "rb") as file:
            content = file.read(_MAX_SIZE + 1)
    except OSError as error:
        remedy = f"See: ls -l {shown}"
        raise ConfigError(shown, f"it cannot be read ({error.strerror})", remedy) from error
    finally:
        os.close(fd)
    if len(content) > _MAX_SIZE:
        raise ConfigError(shown, "it is larger than 1 MiB", "Is it the right file?")
    return content


def _check_file(found: os.stat_result, shown: str) -> None:
    """Refuse a file that somebody else may have written: it decides what an agent may do."""
    if not stat.S_ISREG(found.st_mode):
        raise ConfigError(shown, "it is not a file", "Give another with --config.")
    if found.st_uid not in {os.getuid(), 0}:
        what = f"it belongs to another user (uid {found.st_uid}), and is not trusted"
        raise ConfigError(shown, what, "Make a copy of your own.")
    if found.st_mode & 0o022:
        what = f"others may write it (mode {stat.S_IMODE(found.st_mode):04o})"
        raise ConfigError(shown, what, f"Run: chmod go-w {shown}")


def _parse(content: bytes, shown: str) -> dict[str, object]:
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        what = f"byte {content[error.start]:#04x} is not UTF-8"
        raise ConfigError(f"{shown}:{line}", what, "Save the file as UTF-8.") from error
    if text.startswith("\ufeff"):
        raise ConfigError(f"{shown}:1", "it starts with a byte order mark", "Save it without.")
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise ConfigError(shown, "it is nested too deeply", "No key needs that.") from error
    except ValueError as error:  # also what TOML allows and Python does not, as a year 0
        why = str(error)
        found = re.search(r" \(at line (\d+), column \d+\)$| \(at end of document\)$", why)
        line = int(found[1]) if found and found[1] else text.count("\n") + 1
        what = why[: found.start()] if found else why
        raise ConfigError(
            f"{shown}:{line}", f"it is not TOML: {what}", "Correct the line."
        ) from error


def _roots(top: Table, key: str, home: bytes) -> tuple[tuple[bytes, ...], tuple[str, ...]]:
    found = split_roots(top.text_or_list(key, '["~/work/scratch"]'), home)
    return found.paths, tuple(f"{key}: {problem}" for problem in found.problems)


def _deny(top: Table, home: bytes) -> tuple[str, ...]:
    lines = top.texts("deny", (), '["secrets/", "*.kdbx"]')
    try:
        Denylist(home, lines)
    except RuleError as error:
        raise _pattern_error(top, "deny", lines, error) from error
    return lines


def _runs_later(top: Table, home: bytes) -> tuple[str, ...]:
    lines = top.texts("runs_later", (), '["*.nix"]')
    try:
        RunsLater(home, lines)
    except RuleError as error:
        raise _pattern_error(top, "runs_later", lines, error) from error
    return lines


def _pattern_error(table: Table, key: str, lines: tuple[str, ...], error: RuleError) -> ConfigError:
    what = f"{lines[error.index]!r} is not a pattern: {error.why}"
    return table.error(key, what, "Patterns have the syntax of gitignore.", error.index)


def _link_ok(top: Table, home: bytes) -> tuple[bytes, ...]:
    if "link_ok" not in top:
        return DEFAULT_LINK_OK
    found = []
    for index, text in enumerate(top.texts("link_ok", (), '["/usr", "/bin"]')):
        if not text.startswith("/"):
            remedy = "Write a directory of the system, such as /usr."
            raise top.error("link_ok", f"{text!r} is not absolute", remedy, index)
        if any(character in text for character in "*?["):
            remedy = "Write each directory out."
            raise top.error("link_ok", f"{text!r} is a pattern", remedy, index)
        path = paths.expand(text, home)
        if paths.contains(path, home) or paths.contains(home, path):
            remedy = "Links there would lead around the denylist. Leave it out."
            raise top.error("link_ok", f"{text!r} holds the home, or lies in it", remedy, index)
        found.append(path)
    return tuple(dict.fromkeys(found))


def _approval(table: Table, home: bytes) -> Approval:
    basis = Approval()
    channels = table.choices("channels", CHANNELS, basis.channels, '["desktop", "terminal"]')
    shown_s = table.seconds("shown_timeout_s", basis.shown_timeout_s)
    total_s = table.seconds("total_timeout_s", basis.total_timeout_s)
    if shown_s > total_s:
        what = f"{shown_s:g} s is longer than total_timeout_s ({total_s:g} s)"
        raise table.error("shown_timeout_s", what, "Shorten it, or lengthen the total.")
    return Approval(
        channels=channels,
        program=_program(table, channels, home),
        shown_timeout_s=shown_s,
        total_timeout_s=total_s,
        turn_idle_s=table.seconds("turn_idle_s", basis.turn_idle_s),
        turn_max_s=table.seconds("turn_max_s", basis.turn_max_s),
        wait_for_cli=table.boolean("wait_for_cli", default=basis.wait_for_cli),
        rename_over=table.choice("rename_over", ("ask", "refuse"), basis.rename_over),
        rules=tuple(table.tables("rule", lambda rule: _rule(rule, home), _RULE_KEYS)),
    )


def _program(table: Table, channels: tuple[str, ...], home: bytes) -> tuple[str, ...]:
    program = table.texts("program", (), '["/usr/local/bin/ask-me", "--brief"]')
    if "program" in channels and not program:
        remedy = "Write the command as a list, or leave the channel out."
        raise table.error("program", 'it is empty, but "program" is among the channels', remedy)
    if not program:
        return ()
    if "program" not in channels:
        remedy = 'Add "program" to approval.channels, or remove it.'
        raise table.error("program", "it would never be asked", remedy)
    if not program[0].startswith(("/", "~/")):
        remedy = "Write its whole path, so that it is always the same program."
        raise table.error("program", f"{program[0]!r} is not absolute", remedy, 0)
    return (os.fsdecode(paths.expand(program[0], home)), *program[1:])


def _rule(table: Table, home: bytes) -> StandingRule:
    patterns = table.texts("paths", None, '["~/work/scratch/build/**"]')
    verbs = table.choices("operations", RULE_VERBS, None, '["create", "write"]')
    answer = table.choice("answer", ("allow", "decline"))
    text = f"{answer} {', '.join(verbs)}: {', '.join(patterns)}"
    try:
        return StandingRule(
            patterns, frozenset(map(Verb, verbs)), allow=answer == "allow", text=text, home=home
        )
    except RuleError as error:
        raise _pattern_error(table, "paths", patterns, error) from error


def _origin(top: Table, asking: Table, file: str) -> dict[str, str]:
    return {
        table.key(key): file if key in table else DEFAULT
        for table, keys in ((top, _KEYS[:-1]), (asking, _APPROVAL_KEYS))
        for key in keys
    }
