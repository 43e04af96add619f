"""Whose view is examined: the machine, the places of the home, and its configuration.

Places and configuration are looked up when they are asked for: that touches the disk, which only
the process of a probe does.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property

from lamfuse.cli import options
from lamfuse.cli.probes import talk
from lamfuse.cli.probes.machine import Machine
from lamfuse.cli.probes.talk import Said
from lamfuse.store import config_problems
from lamfuse.store.config import Config
from lamfuse.store.config_problems import Found
from lamfuse.store.dirs import Dirs

__all__ = ["Subject"]


@dataclass(frozen=True)
class Subject:
    """What the probes are about; *home* and *config_file* as the person named them, or None.

    ``key`` tells this examination from another that runs at the same time. ``is_mute``: the daemon
    was asked already, and did not answer.
    """

    machine: Machine
    home: bytes | None = None
    config_file: bytes | None = None
    key: str = field(default_factory=lambda: str(os.getpid()))
    is_mute: bool = False

    @cached_property
    def dirs(self) -> Dirs:
        """The places of the home; raises RefusedError where they cannot be used."""
        return options.places_of(self.home, self.config_file)

    @cached_property
    def found(self) -> Found:
        """The configuration with all that is wrong in it."""
        return config_problems.find(
            self.dirs.config_file, self.dirs.home, must_exist=self.config_file is not None
        )

    def ask_daemon(self) -> Said:
        """Ask the daemon of the home how it is; a mute one is waited for once only."""
        return Said(fault="it is mute") if self.is_mute else talk.status_of(self.dirs.socket)

    @property
    def config(self) -> Config:
        """The configuration without what is wrong in it."""
        return self.found.config
