"""``lamfuse doctor``: what keeps a view from working as it should, and how to mend it.

Each part is looked at in a process of its own and waited for only so long, so that a file system
that hangs, or a fault in one part, costs that part alone. Nothing is changed, but for a private
mount, which is taken away again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import click
import msgspec

from lamfuse.cli import options, render
from lamfuse.cli.exit_codes import ExitCode
from lamfuse.cli.probes import (
    apart,
    asking,
    configuration,
    files,
    fuse,
    inotify,
    notifications,
    programs,
    rules,
    view,
)
from lamfuse.cli.probes.finding import Finding, Level, note, problem
from lamfuse.cli.probes.machine import Here
from lamfuse.cli.probes.subject import Subject
from lamfuse.core import names
from lamfuse.core.errors import LamfuseError

__all__ = ["SECTIONS", "Section", "code_for", "command", "examine"]

_WHY_TIME: Final = "A file system or a program that does not answer keeps a view from working too."
_WHY_FAULT: Final = "This part is not examined."
_MARKS: Final = {Level.OK: "ok", Level.NOTE: "note", Level.PROBLEM: "PROBLEM"}


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the examination: its *title*, what looks, and for how long (seconds).

    *clear_up* is called when what looks had to be ended.
    """

    title: str
    look: Callable[[Subject], Iterable[Finding]]
    seconds: float
    needs_home: bool = True
    needs_mounts: bool = False
    clear_up: Callable[[Subject], None] | None = None


SECTIONS: Final = (
    Section("FUSE", lambda subject: fuse.look(subject.machine), 25.0, needs_home=False),
    Section("Sandbox", lambda subject: programs.look(subject.machine), 25.0, needs_home=False),
    Section("Configuration", configuration.look, 10.0, needs_home=False),
    Section("View", view.look, 60.0),
    Section("Files", files.look, 10.0),
    Section("Journal", files.look_at_journal, 60.0),
    Section("Deny rules", rules.look, 150.0, needs_mounts=True, clear_up=rules.clear_up),
    Section("Asking", asking.look, 30.0),
    Section("Watching", inotify.look, 10.0),
    Section("Boundary", view.boundary, 5.0, needs_home=False),
)


#: Only when it is asked for: it wants something of the person.
_TRIAL: Final = Section("Test question", asking.ask_person, notifications.ASK_S + 20.0)


@click.command("doctor")
@click.option("--notify", is_flag=True, help="Show a test question, and say what was pressed.")
@options.places
@options.as_json
def command(*, notify: bool, home: bytes | None, config: bytes | None, json: bool) -> int:
    """Say what keeps a view from working as it should, and how to mend it."""
    subject = Subject(Here(), home, config)
    examined: list[tuple[Section, list[Finding]]] = []
    for section, findings in examine(subject, (*SECTIONS, _TRIAL) if notify else SECTIONS):
        examined.append((section, findings))
        if not json:
            for line in _lines(section, findings):
                click.echo(line)
    found = [finding for _, findings in examined for finding in findings]
    if json:
        render.data(_as_data(examined))
    else:
        click.echo(_sum(found))
    return code_for(found)


def examine(
    subject: Subject, sections: Sequence[Section]
) -> Iterator[tuple[Section, list[Finding]]]:
    """Yield each section with its findings; parts that cannot be looked at say why."""
    found: list[Finding] = []
    for section in sections:
        findings = _skipped(section, found) or _look(section, subject)
        found += findings
        if _has_problem(findings, view.DAEMON_CHECK):
            subject = replace(subject, is_mute=True)
        yield section, findings


def code_for(found: Iterable[Finding]) -> ExitCode:
    """Return the exit code: what the machine lacks comes before any other problem."""
    problems = [finding for finding in found if finding.level is Level.PROBLEM]
    if any(finding.lacking for finding in problems):
        return ExitCode.MACHINE
    return ExitCode.FAILED if problems else ExitCode.DONE


def _skipped(section: Section, found: Sequence[Finding]) -> list[Finding]:
    """Return why *section* cannot be looked at after what was *found*, or nothing."""
    is_homeless = _has_problem(found, configuration.HOME_CHECK)
    cannot_mount = code_for(found) is ExitCode.MACHINE
    check = f"doctor.{_slug(section)}"
    if section.needs_home and is_homeless:
        what = "Not examined: the home is not known."
        return [note(check, what, _WHY_FAULT, "Mend that first.")]
    if section.needs_mounts and cannot_mount:
        what = "Not examined: nothing can be mounted on this machine."
        return [note(check, what, _WHY_FAULT, "Mend that first.")]
    return []


def _has_problem(found: Iterable[Finding], check: str) -> bool:
    return any(finding.check == check and finding.level is Level.PROBLEM for finding in found)


def _look(section: Section, subject: Subject) -> list[Finding]:
    """Have *section* looked at, and return what was found in its time."""

    def work() -> Iterator[bytes]:
        for finding in section.look(subject):
            yield msgspec.json.encode(finding)

    told = apart.gather(work, section.seconds)
    findings = [msgspec.json.decode(line, type=Finding) for line in told.lines]
    check = f"doctor.{_slug(section)}"
    if told.fault:
        what = f"A fault of lamfuse itself: {names.show_text(told.fault)}."
        findings.append(problem(check, what, _WHY_FAULT, "Report it, with the lamfuse version."))
    elif not told.has_ended:
        what = f"This did not end within {section.seconds:g} s."
        remedy = "See what hangs (a network file system, a dead mount), then run this again."
        findings.append(problem(check, what, _WHY_TIME, remedy))
        findings += _cleared_up(section, subject)
    return findings


def _cleared_up(section: Section, subject: Subject) -> list[Finding]:
    """Clear up after a look that had to be ended; what stays behind is a finding."""
    if section.clear_up is None:
        return []
    try:
        section.clear_up(subject)
    except (LamfuseError, OSError) as error:
        what = f"Something is left behind: {render.printable(str(error))}"
        why = "It is of no use to anybody, and a dead mount gets in the way."
        remedy = "Unmount it (fusermount3 -uz), then remove the directory."
        return [problem(f"doctor.{_slug(section)}", what, why, remedy)]
    return []


def _slug(section: Section) -> str:
    return section.title.lower().replace(" ", "_")


def _lines(section: Section, findings: Sequence[Finding]) -> Iterator[str]:
    yield section.title
    width = max(map(len, _MARKS.values()))
    for finding in findings:
        yield f"  {_MARKS[finding.level]:<{width}}  {finding.what}"
        if finding.level is not Level.OK:
            yield f"  {'':<{width}}  {finding.why}"
            yield f"  {'':<{width}}  -> {finding.remedy}"
    yield ""


def _sum(found: Sequence[Finding]) -> str:
    counts = [
        names.count(sum(finding.level is level for finding in found), word)
        for level, word in ((Level.PROBLEM, "problem"), (Level.NOTE, "note"))
    ]
    if code_for(found) is ExitCode.MACHINE:
        counts.append("nothing can be mounted on this machine")
    return f"{', '.join(counts)}."


def _as_data(examined: Sequence[tuple[Section, Sequence[Finding]]]) -> dict[str, object]:
    found = [finding for _, findings in examined for finding in findings]
    return {
        "problems": sum(finding.level is Level.PROBLEM for finding in found),
        "notes": sum(finding.level is Level.NOTE for finding in found),
        "can_mount": code_for(found) is not ExitCode.MACHINE,
        "findings": [
            {
                "section": section.title,
                "check": finding.check,
                "level": finding.level,
                "what": finding.what,
                "why": finding.why,
                "remedy": finding.remedy,
                "lacking": finding.lacking,
            }
            for section, findings in examined
            for finding in findings
        ],
    }
