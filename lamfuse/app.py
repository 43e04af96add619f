"""The composition root: builds the object graph of a daemon, runs it, and ends it in order.

Nobody else builds objects of another layer. At the end: open questions are refused, the kernel's
requests are answered, the view is unmounted, the journal gets its last line, descriptors are
closed.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import logging
import os
import resource
import signal
import sys
import syslog
import time
from collections.abc import Callable
from dataclasses import dataclass

import trio

from lamfuse.backend import DaemonBackend, Facts
from lamfuse.control import server
from lamfuse.core import names, paths, wording
from lamfuse.core.approval import Offer, Text
from lamfuse.core.errors import JournalError
from lamfuse.core.ledger import Limits as LedgerLimits
from lamfuse.core.policy import Policy
from lamfuse.core.records import StartRecord, StopRecord
from lamfuse.core.roots import Roots
from lamfuse.core.rules import CREDENTIAL_PLACES, Denylist
from lamfuse.core.runs_later import RunsLater
from lamfuse.core.standing import StandingRules
from lamfuse.core.target import Request
from lamfuse.engine.broker import Broker
from lamfuse.engine.gate import Gate
from lamfuse.engine.limits import Limits
from lamfuse.engine.ports import Notifier
from lamfuse.engine.turns import Sessions
from lamfuse.fuse import mount
from lamfuse.fuse.cache import KernelCache
from lamfuse.fuse.callers import ProcCallers
from lamfuse.fuse.context import Mounted
from lamfuse.fuse.operations import ViewOperations
from lamfuse.fuse.texts import Rules, texts_of
from lamfuse.fuse.view import View
from lamfuse.fuse.virtual import NAME, ROOTS, Virtual
from lamfuse.notify.desktop import Desktop
from lamfuse.notify.program import Program
from lamfuse.notify.screen import Screen
from lamfuse.notify.terminal import Terminal
from lamfuse.store.config import Config, load
from lamfuse.store.config_roots import check_roots
from lamfuse.store.dirs import Dirs, HomeLock, real_path
from lamfuse.store.journal import FileJournal
from lamfuse.tree import mounts, syscalls
from lamfuse.tree.handles import Handles
from lamfuse.tree.links import Anchor
from lamfuse.tree.resolve import Tree

__all__ = ["Settings", "build_policy", "run"]

log = logging.getLogger(__name__)

_PR_SET_DUMPABLE = 4
#: Directories and objects without a name that are held open at most, beside the roots.
_OPEN_DIRECTORIES = 512
_NAMELESS = 256
#: The mount table is not read more often than this (seconds), whatever happens to it.
_MOUNTS_S = 0.1


@dataclass(frozen=True, slots=True)
class Settings:
    """What a daemon is started with. ``home`` and ``mountpoint`` are absolute."""

    home: bytes
    config: Config
    dirs: Dirs
    mountpoint: bytes
    foreground: bool = False


def build_policy(config: Config, dirs: Dirs, mountpoint: bytes) -> Policy:
    """Make the policy that *config* describes. Roots are followed to where they really are."""
    home = dirs.home
    own = [*dirs.own_places(mountpoint), paths.join(home, NAME), *_credential_targets(home)]
    return Policy(
        home,
        Denylist(home, config.deny, own, [dirs.agent_dir]),
        Roots(
            home,
            [real_path(root) for root in config.read_roots],
            [real_path(root) for root in config.write_roots],
        ),
        RunsLater(home, config.runs_later),
        StandingRules(config.approval.rules),
        link_ok=[place for place in config.link_ok if _belongs_to_root(place)],
        rename_over=config.approval.rename_over,
    )


def _credential_targets(home: bytes) -> list[bytes]:
    """Return where credential places that are links really are: both names are hidden."""
    found = []
    for place in CREDENTIAL_PLACES:
        written = paths.join(home, place)
        real = real_path(written)
        if real != written and paths.contains(home, real) and real != home:
            found.append(real)
    return found


def _belongs_to_root(place: bytes) -> bool:
    try:
        return os.stat(place).st_uid == 0
    except OSError:
        return False


def run(settings: Settings, ready: Callable[[str], None]) -> None:
    """Serve the view until it is unmounted or the process is told to end.

    *ready* gets the line to print once the view can be used. Raises LamfuseError for what keeps
    it from starting; nothing is then left behind.
    """
    _harden()
    with HomeLock(settings.dirs.lock_file):
        journal = FileJournal(settings.dirs.journal)
        try:
            trio.run(_main, settings, journal, ready)
        finally:
            journal.close()


async def _main(settings: Settings, journal: FileJournal, ready: Callable[[str], None]) -> None:
    async with trio.open_nursery() as nursery:
        daemon = _Daemon(settings, journal, nursery)
        try:
            await daemon.serve(nursery, ready)
        finally:
            nursery.cancel_scope.cancel()
            daemon.close()


def _harden() -> None:
    """Keep other processes of the same user out of this one, and let it open enough files.

    Without dumpable, nobody may read its memory or take its descriptors (its own /proc/self/fd
    keeps working). The umask is the caller's business, so the daemon's own is empty.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_DUMPABLE)")
    os.umask(0)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def version() -> str:
    """Return the version of lamfuse that is installed."""
    return importlib.metadata.version("lamfuse")


class _Daemon:
    """One daemon: its parts, in the order in which they are built."""

    def __init__(self, settings: Settings, journal: FileJournal, nursery: trio.Nursery) -> None:
        self._settings = settings
        self._journal = journal
        config = settings.config
        policy = build_policy(config, settings.dirs, settings.mountpoint)
        self.facts = Facts(
            version(), settings.home, settings.mountpoint, config.file, config.file_access,
            trio.current_time(), list(config.notes),
        )  # fmt: skip
        # What callers can have opened leaves room for the calls that wait and for our own files.
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self.tree = Tree(
            syscalls.open_root(policy.home),
            open_directories=min(_OPEN_DIRECTORIES, most // 8),
            nameless=min(_NAMELESS, most // 16),
        )
        self.handles = Handles(most // 2)
        sessions = Sessions(_ledger_limits(config), trio.current_time)
        callers = ProcCallers()
        self.broker = Broker(
            (),
            journal,
            callers,
            _limits(config),
            self._describe,
        )
        self.screen = Screen(lambda: self.broker.refuse_all("the machine went to sleep"))
        self.desktop = Desktop(config.home, self.broker.standing, screen=self.screen)
        self.broker.notifiers = self._notifiers(config)
        self.gate = Gate(policy, sessions, self.broker, journal, callers, now=trio.current_time)
        self.rules = Rules(len(config.deny), config.runs_later)
        virtual = Virtual(self.tree, texts_of(self.gate, self.rules), os.getuid(), os.getgid())
        self.view = View(self.tree, policy, self._anchors(policy, virtual))
        self.mounted = Mounted(
            self.tree, self.view, self.gate, self.handles, virtual, os.getuid(), KernelCache(),
            nursery,
        )  # fmt: skip

    def close(self) -> None:
        """Close every descriptor."""
        self.handles.close()
        self.tree.close()

    async def reread(self) -> list[str]:
        """Read the configuration again and put it into force; returns what is to be reported.

        Raises ConfigError, and then nothing has changed. Roots outside home that are new are
        shown from the next start on.
        """
        # In a thread: a root may be a link that leads into our own mount, which we have to serve.
        config, policy = await trio.to_thread.run_sync(_read_again, self._settings)
        self.gate.policy = policy
        self.view.apply(policy)
        self.view.mountpoints = _mountpoints(policy)
        self.gate.sessions.set_limits(_ledger_limits(config))
        self.gate.sessions.end_grants()
        self.broker.limits = _limits(config)
        self.broker.notifiers = self._notifiers(config)
        self.rules.deny, self.rules.runs_later = len(config.deny), config.runs_later
        self.facts.file_access = config.file_access
        problems = list(config.notes)
        shown = {anchor.path for anchor in self.view.anchors}
        problems += [
            f"the root {names.show_path(root, policy.home)} is shown from the next start on"
            for root in policy.roots.extra
            if root not in shown
        ]
        self.facts.problems[:] = problems
        return problems

    async def serve(self, nursery: trio.Nursery, ready: Callable[[str], None]) -> None:
        """Mount, serve until the end, and end in order."""
        settings = self._settings
        backend = DaemonBackend(self.facts, self.mounted, self.broker, self._journal, self.reread)
        self.view.mountpoints = _mountpoints(self.gate.policy)
        await nursery.start(self.broker.run)
        await nursery.start(server.serve, settings.dirs.socket, backend)
        # Neither is waited for: a mute bus must not delay the view.
        nursery.start_soon(self.screen.run)
        nursery.start_soon(self.desktop.run)
        nursery.start_soon(self._journal.run)
        cache = self.mounted.cache
        with mount.mounted(ViewOperations(self.mounted), settings.mountpoint, cache):
            nursery.start_soon(_follow_mounts, self.view)
            await nursery.start(_follow_signals, backend)
            self._begin()
            nursery.start_soon(self._announce, ready)
            await mount.serve()
            self.broker.close()
            self._end()
        await self._journal.sync()

    async def _announce(self, ready: Callable[[str], None]) -> None:
        home, place = self._settings.home, self._settings.mountpoint
        ready(f"mounted {names.show_path(home, b'')} at {names.show_path(place, b'')}")

    def _begin(self) -> None:
        self._journal.append(
            StartRecord(
                version=version(), pid=os.getpid(), home=self._settings.home,
                mountpoint=self._settings.mountpoint,
            )
        )  # fmt: skip
        _note_in_system_log("mounted", self._journal)

    def _end(self) -> None:
        try:
            self._journal.append(StopRecord(reason="unmounted"))
        except JournalError as error:
            log.error("the end is not in the journal: %s", error)  # noqa: TRY400 - no fault of ours
        _note_in_system_log("unmounted", self._journal)

    def _describe(
        self,
        request: Request,
        question_id: str,
        offers: tuple[Offer, ...],
        runs_later: tuple[bytes, ...],
    ) -> Text:
        return wording.describe(
            request,
            self.gate.policy.home,
            time.time_ns(),
            question_id=question_id,
            runs_later=runs_later,
            offers=offers,
        )

    def _notifiers(self, config: Config) -> list[Notifier]:
        """Return the channels that *config* names and that this process can have."""
        channels = config.approval.channels
        notifiers: list[Notifier] = []
        if "desktop" in channels:
            notifiers.append(self.desktop)
        if "program" in channels:
            notifiers.append(Program(config.approval.program, self.broker.standing))
        if "terminal" in channels and self._settings.foreground and sys.stdin.isatty():
            notifiers.append(
                Terminal(sys.stdin.fileno(), sys.stderr.fileno(), config.home, self.broker.standing)
            )
        return notifiers

    def _anchors(self, policy: Policy, virtual: Virtual) -> list[Anchor]:
        """Return home and every extra root that is there; the others are reported."""
        written = {self._settings.home, os.fsencode(os.environ.get("HOME", ""))} - {
            b"",
            policy.home,
        }
        aliases = tuple(place for place in written if real_path(place) == policy.home)
        anchors = [Anchor(policy.home, self.tree.home, b"", aliases)]
        for root in policy.roots.extra:
            try:
                fd = syscalls.open_root(root)
            except OSError as error:
                self.facts.problems.append(
                    f"the root {names.show_path(root, policy.home)} is not shown"
                    f" ({error.strerror}); it is looked for again at the next start"
                )
                continue
            virtual.add_root(root, fd, syscalls.fstat(fd))
            shown = paths.join(paths.join(NAME, ROOTS), root.lstrip(b"/"))
            anchors.append(Anchor(root, fd, shown))
        return anchors


def _read_again(settings: Settings) -> tuple[Config, Policy]:
    config = load(settings.config.file, settings.home)
    check_roots(config, settings.mountpoint, settings.dirs)
    return config, build_policy(config, settings.dirs, settings.mountpoint)


def _limits(config: Config) -> Limits:
    approval = config.approval
    total = min(approval.total_timeout_s, mount.longest_wait_s())
    return Limits(min(approval.shown_timeout_s, total), total, approval.wait_for_cli)


def _ledger_limits(config: Config) -> LedgerLimits:
    return LedgerLimits(config.approval.turn_idle_s, config.approval.turn_max_s)


def _mountpoints(policy: Policy) -> frozenset[bytes]:
    """Return the file systems mounted below the roots that are no roots themselves: all hidden."""
    found = frozenset[bytes]().union(*(mounts.below(root) for root in policy.roots.all))
    return frozenset(path for path in found if not policy.roots.is_root(path))


async def _follow_mounts(view: View) -> None:
    """Keep the known mountpoints right: the kernel reports every change of the mount table."""
    fd = mounts.open_mountinfo()
    limiter = trio.CapacityLimiter(1)
    try:
        while True:
            await trio.to_thread.run_sync(
                mounts.wait_changed, fd, abandon_on_cancel=True, limiter=limiter
            )
            try:
                view.mountpoints = _mountpoints(view.policy)
            except OSError:
                log.exception("the mount table cannot be read; what was known of it still holds")
            await trio.sleep(_MOUNTS_S)
    finally:
        syscalls.close(fd)


async def _follow_signals(
    backend: DaemonBackend, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """End in order on SIGTERM and SIGINT; read the configuration again on SIGHUP."""
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as received:
        task_status.started()
        async for number in received:
            if number != signal.SIGHUP:
                await backend.unmount()
                continue
            reply = await backend.reload()
            if not reply.done:
                log.warning("the configuration is left as it was: %s", reply.message)


def _note_in_system_log(what: str, journal: FileJournal) -> None:
    """Leave count and head hash of the journal where its own file's owner cannot take them back."""
    syslog.openlog("lamfuse", syslog.LOG_PID, syslog.LOG_USER)
    syslog.syslog(
        syslog.LOG_INFO, f"{what}: journal has {journal.count} lines, head {journal.head}"
    )
    syslog.closelog()
