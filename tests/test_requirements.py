"""The list of requirements and the tests are in step, in both directions.

The marks are read from the syntax trees, so a test that is skipped or deselected still counts, and
a mark in a file that no longer parses fails.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.requirements import COVERED, REQUIREMENTS

TESTS = Path(__file__).resolve().parent


def ids_of(decorator: ast.expr) -> list[str]:
    """Return the ids of one mark, or nothing when the expression is another mark."""
    if not isinstance(decorator, ast.Call) or ast.unparse(decorator.func) != (
        "pytest.mark.requirement"
    ):
        return []
    # What is no literal cannot be read here, and fails as an id that nobody knows.
    ids = [
        argument.value
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
        else ast.unparse(argument)
        for argument in decorator.args
    ]
    return ids or ["no id at all"]


def has_test(node: ast.AST) -> bool:
    """Tell whether there is a test function at or below *node*."""
    return any(
        isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) and child.name.startswith("test")
        for child in ast.walk(node)
    )


def marks_in(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield id and line of every mark that reaches a test, by its class, case or module too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for decorator in node.decorator_list:
                # A case of a table may have marks of its own, inside the decorator.
                for expression in ast.walk(decorator):
                    if isinstance(expression, ast.expr) and has_test(node):
                        yield from ((name, node.lineno) for name in ids_of(expression))
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = {target.id for target in targets if isinstance(target, ast.Name)}
            # A table above its test has marks in its cases; pytestmark marks the module.
            if node.value is not None and names and has_test(tree):
                for expression in ast.walk(node.value):
                    if isinstance(expression, ast.expr):
                        yield from ((name, node.lineno) for name in ids_of(expression))


def collect() -> dict[str, list[str]]:
    """Return id -> places of the tests that claim it."""
    claims: dict[str, list[str]] = defaultdict(list)
    for path in sorted(TESTS.rglob("*.py")):
        for name, line in marks_in(ast.parse(path.read_bytes(), str(path))):
            claims[name].append(f"{path.relative_to(TESTS)}:{line}")
    return claims


CLAIMS = collect()


def test_every_id_of_a_mark_is_a_requirement() -> None:
    assert {name: CLAIMS[name] for name in CLAIMS if name not in REQUIREMENTS} == {}


@pytest.mark.parametrize("name", REQUIREMENTS)
def test_a_requirement_is_covered_exactly_when_it_says_so(name: str) -> None:
    places = CLAIMS.get(name, [])
    state = REQUIREMENTS[name].state

    if state == COVERED:
        assert places, f"no test claims {name}: {REQUIREMENTS[name].text}"
    else:
        assert not places, f"{name} is '{state}', yet tests claim it"


def test_the_list_is_whole() -> None:
    expected = [f"H{n}" for n in range(1, 34)]
    expected += [f"R{n}" for n in range(1, 17)]
    expected += [f"L{n}" for n in range(1, 11)]

    assert list(REQUIREMENTS) == expected


@pytest.mark.parametrize("name", REQUIREMENTS)
def test_a_requirement_that_is_not_covered_says_what_will_bring_it(name: str) -> None:
    state = REQUIREMENTS[name].state

    assert state == COVERED or state.startswith("later: with ")


@pytest.mark.parametrize(
    ("source", "found"),
    [
        pytest.param(
            '@pytest.mark.requirement("H1", "L2")\ndef test_a(): ...', ["H1", "L2"], id="function"
        ),
        pytest.param(
            '@pytest.mark.requirement("H1")\nclass TestA:\n def test_a(self): ...',
            ["H1"],
            id="class",
        ),
        pytest.param(
            'pytestmark = [pytest.mark.mount, pytest.mark.requirement("H3")]\ndef test_a(): ...',
            ["H3"],
            id="module",
        ),
        pytest.param(
            "@pytest.mark.parametrize('x', ["
            'pytest.param(1, marks=pytest.mark.requirement("H4"))])\ndef test_a(x): ...',
            ["H4"],
            id="case",
        ),
        pytest.param(
            'TABLE = [pytest.param(1, marks=pytest.mark.requirement("H4"))]\ndef test_a(): ...',
            ["H4"],
            id="case-in-a-table",
        ),
        pytest.param(
            "@pytest.mark.requirement(*IDS)\ndef test_a(): ...", ["*IDS"], id="not-a-literal"
        ),
        pytest.param(
            "@pytest.mark.requirement()\ndef test_a(): ...", ["no id at all"], id="without-an-id"
        ),
        pytest.param('@pytest.mark.requirement("H1")\ndef fixture(): ...', [], id="no-test"),
        pytest.param('pytestmark = pytest.mark.requirement("H3")', [], id="module-without-test"),
        pytest.param('"""@pytest.mark.requirement("H1")"""\ndef test_a(): ...', [], id="text"),
        pytest.param("@pytest.mark.mount\ndef test_a(): ...", [], id="another-mark"),
    ],
)
def test_a_mark_counts_where_it_reaches_a_test(source: str, found: list[str]) -> None:
    assert [name for name, _ in marks_in(ast.parse(source))] == found
