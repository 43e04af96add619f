from __future__ import annotations

import pytest

from lamfuse.cli.exit_codes import ExitCode, code_of, innermost
from lamfuse.core import errors


@pytest.mark.parametrize(
    ("error", "code"),
    [
        pytest.param(errors.UsageError("x"), 2, id="usage"),
        pytest.param(errors.NotRunningError("x"), 3, id="not-running"),
        pytest.param(errors.MachineError("x"), 4, id="machine"),
        pytest.param(errors.RefusedError("x"), 1, id="refused"),
        pytest.param(errors.ConfigError("f", "w", "r"), 1, id="config"),
        pytest.param(errors.JournalError("x"), 1, id="journal"),
        pytest.param(errors.InternalError("x"), 1, id="internal"),
        pytest.param(OSError(5, "x"), 1, id="os"),
        pytest.param(ZeroDivisionError(), 1, id="bug"),
        pytest.param(KeyboardInterrupt(), 130, id="interrupted"),
        pytest.param(ExceptionGroup("g", [errors.MachineError("x")]), 4, id="group-of-one"),
        pytest.param(
            ExceptionGroup("g", [errors.MachineError("x"), errors.UsageError("x")]), 1, id="group"
        ),
        pytest.param(
            BaseExceptionGroup("g", [KeyboardInterrupt(), errors.NotRunningError("x")]),
            130,
            id="group-interrupted",
        ),
    ],
)
def test_every_error_has_its_code(error: BaseException, code: int) -> None:
    assert code_of(error) == code


def test_every_error_of_ours_is_listed_here() -> None:
    kinds = {getattr(errors, name) for name in errors.__all__} - {errors.LamfuseError}
    assert all(code_of(kind.__new__(kind)) in set(ExitCode) for kind in kinds)


def test_nested_groups_of_one_are_opened() -> None:
    error = errors.RefusedError("x")
    assert innermost(ExceptionGroup("a", [ExceptionGroup("b", [error])])) is error
