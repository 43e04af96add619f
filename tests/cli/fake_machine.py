"""A machine that is as the test says."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lamfuse.cli.probes.finding import Finding, Level
from lamfuse.cli.probes.machine import Done

__all__ = ["FakeMachine", "must_be_useful", "only", "status"]


def status(mode: int, uid: int = 0) -> os.stat_result:
    """Return what stat tells of a file of this mode and owner."""
    return os.stat_result((mode, 1, 1, 1, uid, 0, 0, 0, 0, 0))


def only(findings: Iterable[Finding], check: str) -> Finding:
    """Return the one finding of that name."""
    (found,) = [finding for finding in findings if finding.check == check]
    return found


def must_be_useful(finding: Finding) -> None:
    """Fail unless the finding says what, why and how to mend it, in one line of plain text each."""
    texts = [finding.what, finding.why]
    if finding.level is not Level.OK:
        texts.append(finding.remedy)
    for text in texts:
        assert text
        assert text.isprintable(), text
        assert ".." not in text.replace("...", ""), text


@dataclass
class FakeMachine:
    """``texts`` by path, ``programs`` by name; ``said`` by the first words of a command."""

    uid: int = 1000
    environ: Mapping[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    stats: dict[str, os.stat_result] = field(default_factory=dict)
    refusals: dict[str, int] = field(default_factory=dict)
    programs: set[str] = field(default_factory=set)
    said: dict[str, Done] = field(default_factory=dict)
    inotify: tuple[int, int] = (0, 0)
    ran: list[Sequence[str]] = field(default_factory=list)

    def text(self, path: str) -> str | None:
        return self.texts.get(path)

    def stat(self, path: str) -> os.stat_result | None:
        return self.stats.get(path)

    def refusal(self, device: str) -> int:
        return self.refusals.get(device, 0)

    def find(self, program: str) -> str | None:
        return f"/usr/bin/{program}" if program in self.programs else None

    def run(self, command: Sequence[str], seconds: float) -> Done:
        assert 0 < seconds <= 10
        self.ran.append(command)
        line = " ".join(command)
        best = max((key for key in self.said if key in line), key=len, default=None)
        return self.said[best] if best is not None else Done(0)

    def inotify_use(self) -> tuple[int, int]:
        return self.inotify

    @classmethod
    def good(cls) -> FakeMachine:
        """Return a machine that has everything."""
        return cls(
            texts={
                "/proc/sys/kernel/osrelease": "6.18.0-1-amd64\n",
                "/proc/self/mounts": "sysfs /sys sysfs rw 0 0\nx /mnt fuse.sshfs rw 0 0\n",
                "/proc/sys/user/max_user_namespaces": "96000\n",
                "/proc/sys/kernel/unprivileged_userns_clone": "1\n",
                "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "0\n",
                "/proc/sys/fs/inotify/max_user_watches": "192536\n",
                "/proc/sys/fs/inotify/max_user_instances": "128\n",
                "/proc/sys/fs/fuse/max_request_timeout": "0\n",
                "/proc/sys/fs/fuse/default_request_timeout": "0\n",
            },
            stats={
                "/dev/fuse": status(stat.S_IFCHR | 0o666),
                "/usr/bin/fusermount3": status(stat.S_IFREG | stat.S_ISUID | 0o755),
            },
            programs={"fusermount3", "bwrap", "rg", "unshare"},
            said={
                "fusermount3 --version": Done(0, "fusermount3 version: 3.14.0\n"),
                "pyfuse3.__version__": Done(0, '["3.5.0", "3.14.0"]\n'),
                "bwrap --version": Done(0, "bubblewrap 0.8.0\n"),
                "rg --version": Done(0, "ripgrep 13.0.0\n-SIMD\n"),
            },
        )
