"""One mounted home for all tasks."""

from collections.abc import Iterator

import pytest

from tests.mounting import Mounted, make_home, mounted, place


@pytest.fixture(scope="module")
def shared() -> Iterator[Mounted]:
    with place() as base, mounted(make_home(base)) as here:
        yield here
