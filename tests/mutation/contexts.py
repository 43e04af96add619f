"""A pytest plugin for one recording run: each line is noted with the test that ran it.

coverage's own `test_function` contexts take hypothesis' engine for a test, since it calls a method
of that name.
"""

from collections.abc import Iterator

import coverage
import pytest

__all__ = ["pytest_runtest_protocol"]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Name the context after the test, without the case of its table."""
    recording = coverage.Coverage.current()
    assert recording is not None, "this plugin is for a run under coverage"
    recording.switch_context(item.nodeid.partition("[")[0])
    return (yield)
