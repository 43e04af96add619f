"""What most tests of a mount get: a folder of their own on both sides of the view."""

from dataclasses import dataclass
from pathlib import Path

from tests.mounting import Mounted
from tests.person import Person

__all__ = ["Bench"]


@dataclass(frozen=True)
class Bench:
    """A mounted home with a folder of one's own in a write root, and in a read-only place."""

    mount: Mounted
    person: Person
    name: str
    closed_name: str

    @property
    def home(self) -> Path:
        return self.mount.home

    @property
    def view(self) -> Path:
        return self.mount.view

    @property
    def here(self) -> Path:
        """The own folder, in the view."""
        return self.view / self.name

    @property
    def real(self) -> Path:
        """The own folder, on the disk."""
        return self.home / self.name

    @property
    def closed(self) -> Path:
        """The own folder in a read-only place, in the view."""
        return self.view / self.closed_name

    @property
    def closed_real(self) -> Path:
        return self.home / self.closed_name

    def refusals(self) -> str:
        return self.mount.refusals()
