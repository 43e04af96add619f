"""A function that is called at most once."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Once"]


class Once:
    """Calls *function* the first time, and does nothing from then on."""

    def __init__(self, function: Callable[[], None]) -> None:
        self._function: Callable[[], None] | None = function

    def __call__(self) -> None:
        """Call the function, if that has not been done."""
        function, self._function = self._function, None
        if function is not None:
            function()
