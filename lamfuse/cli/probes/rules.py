"""Whether the deny rules hide what they name: tried on a private mount, with throw-away files.

For each default rule and each line of the person there are files that it names; each of them must
be absent from the view. Beside them lie files that no rule names; each of them must be there.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from lamfuse.cli import render
from lamfuse.cli.probes import apart, private_view
from lamfuse.cli.probes.finding import Finding, note, ok, problem
from lamfuse.cli.probes.instances import Instance, Plan, make_plan
from lamfuse.cli.probes.private_view import COMMAND, Made, PrivateView
from lamfuse.cli.probes.subject import Subject
from lamfuse.core import names, paths
from lamfuse.core.errors import LamfuseError
from lamfuse.core.rules import DEFAULT_DENY

__all__ = ["LOOK_S", "clear_up", "judge", "look", "look_with", "seen_in"]

LOOK_S: Final = 15.0
_CHECK: Final = "rules.hide"
_WHY: Final = (
    "What a rule does not hide, an agent can read, and what it reads goes to its provider."
)
_WHY_CONTROL: Final = "A file that no rule names must be seen, or the test would prove nothing."
_WHY_TRIED: Final = "Only what was tried on a mounted view is known to be hidden."
_BROKEN: Final = (
    "Give no view to an agent until that is mended. Report it with this output, and the lamfuse"
    " version."
)
_ABSENT: Final = frozenset({errno.ENOENT, errno.ENOTDIR})
_NAMED: Final = 3


def look(subject: Subject) -> Iterator[Finding]:
    """Yield whether the rules hold."""
    yield from look_with(subject, COMMAND)


def look_with(subject: Subject, command: Sequence[str]) -> Iterator[Finding]:
    """Yield whether the rules hold in the daemon that *command* starts."""
    plan = make_plan(subject.config.deny)
    try:
        seen = _try(plan, subject, command)
    except (LamfuseError, OSError) as error:
        what = f"The rules could not be tried on a private mount: {render.printable(str(error))}"
        remedy = "See the findings above, and the directory for temporary files (TMPDIR)."
        yield problem("rules.tried", what, _WHY_TRIED, remedy)
        return
    if seen is None:
        what = f"The private mount did not answer within {LOOK_S:g} s."
        remedy = "Run lamfuse doctor again when the machine has less to do."
        yield problem("rules.tried", what, _WHY_TRIED, remedy)
        return
    yield from judge(plan, *seen)


def clear_up(subject: Subject) -> None:
    """Take away what a look left behind that had to be ended; raises RefusedError."""
    private_view.clear_up_after(subject.key)


def judge(plan: Plan, shown: frozenset[int], missing: frozenset[int]) -> Iterator[Finding]:
    """Yield what it means that hidden names of *plan* are *shown*, and controls are *missing*."""
    broken = [plan.hidden[index] for index in sorted(shown)]
    for rule in dict.fromkeys((instance.kind, instance.rule) for instance in broken):
        yield _broken(*rule, [item for item in broken if (item.kind, item.rule) == rule])
    for index in sorted(missing):
        shown_path = names.show_path(paths.join(b"/", plan.controls[index]), b"")
        what = f"No rule names ~{shown_path}, and the view does not show it."
        yield problem("rules.control", what, _WHY_CONTROL, _BROKEN)
    if not plan.controls:
        what = "Your rules hide every file that could show that others are seen."
        yield note("rules.control", what, _WHY_CONTROL, "See: lamfuse explain PATH")
    elif not broken and not missing:
        yield _all_well(plan)
    for line in plan.untried:
        what = f"Your rule {names.show_text(line)} was not tried: no name could be made of it."
        remedy = "A later ! line may take all of it back. See: lamfuse explain PATH"
        yield note("rules.untried", what, _WHY_TRIED, remedy)
    for line in plan.idle:
        what = f"Your rule {names.show_text(line)} takes nothing back: a default rule hides it."
        yield note("rules.idle", what, "The default rules always apply.", "Leave it out.")


def _broken(kind: str, rule: str, instances: Sequence[Instance]) -> Finding:
    whose = "Your" if kind == "person" else "The default"
    some = [_shown(instance) for instance in instances[:_NAMED]]
    what = f"{whose} rule {names.show_text(rule)} does not hide {', '.join(some)}."
    return problem(_CHECK, what, _WHY, _BROKEN)


def _shown(instance: Instance) -> str:
    return "~" + names.show_path(paths.join(b"/", instance.path), b"")


def _all_well(plan: Plan) -> Finding:
    theirs = len({instance.rule for instance in plan.hidden if instance.kind == "person"})
    yours = f" and {theirs} of yours" if theirs else ""
    tried = names.count(len(plan.hidden), "file")
    what = (
        f"The {len(DEFAULT_DENY)} default rules{yours} hide what they name: {tried} on a private"
        f" mount, none to be seen, and {len(plan.controls)} others all there."
    )
    return ok(_CHECK, what, _WHY)


def _try(
    plan: Plan, subject: Subject, command: Sequence[str]
) -> tuple[frozenset[int], frozenset[int]] | None:
    """Return the numbers of hidden names that are shown and of controls that are not there."""
    files = [Made(instance.path, instance.is_dir) for instance in plan.hidden]
    files += [Made(path, is_dir=False) for path in plan.controls]
    environ = subject.machine.environ
    with private_view.opened(subject.key, subject.config.deny, files, environ, command) as place:
        told = apart.gather(lambda: _look_in(place, plan), LOOK_S)
    if told.fault:
        raise OSError(told.fault)
    if not told.has_ended:
        return None
    numbers = {kind: frozenset(int(line[1:]) for line in told.lines if line[:1] == kind)
               for kind in (b"s", b"m")}  # fmt: skip
    return numbers[b"s"], numbers[b"m"]


def _look_in(place: PrivateView, plan: Plan) -> Iterator[bytes]:
    for index, instance in enumerate(plan.hidden):
        if seen_in(place.view, instance.path):
            yield b"s%d" % index
    for index, path in enumerate(plan.controls):
        if not _is_whole(place.view, path):
            yield b"m%d" % index


def seen_in(view: bytes, path: bytes) -> bool:
    """Tell whether *path* is in the *view* in any way: found by its name, listed, or openable."""
    here = paths.join(view, path)
    listed = _listed(paths.parent(here), paths.base(here))
    return listed or _is_there(lambda: os.lstat(here)) or _is_there(lambda: _open(here))


def _listed(folder: bytes, name: bytes) -> bool:
    try:
        return name in os.listdir(folder)
    except OSError as error:
        if error.errno in _ABSENT:
            return False
        raise


def _is_there(act: Callable[[], object]) -> bool:
    try:
        act()
    except OSError as error:
        # Any other refusal tells that there is something.
        return error.errno not in _ABSENT
    return True


def _open(path: bytes) -> None:
    os.close(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))  # noqa: TID251 - as a caller


def _is_whole(view: bytes, path: bytes) -> bool:
    """Tell whether a control file is listed and has its content."""
    here = paths.join(view, path)
    try:
        with open(here, "rb") as file:
            content = file.read()
    except OSError:
        return False
    return content == path and _listed(paths.parent(here), paths.base(here))
