"""The errors of lamfuse, in a leaf module.

* ``LamfuseError``

  * ``UsageError``      what the caller of a command asked for makes no sense (exit code 2)
  * ``ConfigError``     the person's configuration is wrong; names file, key and remedy (1)
  * ``RefusedError``    it cannot be done here, and why (1)
  * ``NotRunningError`` no daemon to talk to (3)
  * ``MachineError``    the machine lacks something; says what and how to get it (4)
  * ``JournalError``    the journal cannot be written: nothing may change
  * ``ChannelLost``     a notifier cannot put, or no longer puts, a question
  * ``InternalError``   a bug of our own

A refusal of an agent's operation is a value (:class:`lamfuse.core.refusals.Refusal`), never an
exception.
"""

from __future__ import annotations

__all__ = [
    "ChannelLost",
    "ConfigError",
    "InternalError",
    "JournalError",
    "LamfuseError",
    "MachineError",
    "NotRunningError",
    "RefusedError",
    "UsageError",
]


class LamfuseError(Exception):
    """Base of all errors that lamfuse raises on purpose."""


class UsageError(LamfuseError):
    """The request itself makes no sense."""


class ConfigError(LamfuseError):
    """The configuration is wrong: *where* (file and key), *what*, and the *remedy*."""

    def __init__(self, where: str, what: str, remedy: str) -> None:
        super().__init__(f"{where}: {what}. {remedy}")
        self.where = where
        self.what = what
        self.remedy = remedy


class RefusedError(LamfuseError):
    """It cannot be done here."""


class NotRunningError(LamfuseError):
    """There is no daemon to talk to."""


class MachineError(LamfuseError):
    """The machine lacks something that is needed."""


class JournalError(LamfuseError):
    """The journal cannot be written."""


class ChannelLost(LamfuseError):  # noqa: N818 - named for what happened, as in trio
    """A channel cannot put a question, or lost it."""


class InternalError(LamfuseError):
    """A bug of our own."""
