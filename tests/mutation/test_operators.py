"""The mutator makes the mistakes that it is there for, and nothing that is no mistake."""

import ast

import pytest

from tests.mutation import operators

ENUMS = {"Colour": ["RED", "GREEN"]}


def names(source: str) -> list[str]:
    return [m.name.partition(": ")[2] for m in operators.mutations(ast.parse(source), ENUMS)]


@pytest.mark.parametrize(
    ("source", "made"),
    [
        pytest.param(
            "x = a < b", ["x = a < b -> x = a <= b", "x = a < b -> x = a >= b"], id="bound"
        ),
        pytest.param("x = a in b", ["x = a in b -> x = a not in b"], id="containment"),
        pytest.param(
            "x = a and b",
            ["x = a and b -> x = a or b", "x = a and b -> x = b", "x = a and b -> x = a"],
            id="and",
        ),
        pytest.param("x = not a", ["x = not a -> x = a"], id="not"),
        pytest.param("x = Colour.GREEN", ["x = Colour.GREEN -> x = Colour.RED"], id="enum"),
        pytest.param("x = b'a'", ["x = b'a' -> x = b'ax'"], id="bytes"),
        pytest.param("x = True", ["x = True -> x = False"], id="flag"),
        pytest.param("f()", ["f() -> pass"], id="call-dropped"),
        pytest.param("o.x = a", ["o.x = a -> pass"], id="attribute-not-set"),
        pytest.param("raise E(a)", ["raise E(a) -> pass"], id="raise-dropped"),
        pytest.param(
            "x = [a for a in b if c(a)]",
            [
                "for a in b if c(a) -> for a in b if not c(a)",
                "for a in b if c(a) -> for a in b if True",
            ],
            id="filter",
        ),
        pytest.param("x = a.casefold()", ["x = a.casefold() -> x = a"], id="step"),
        pytest.param("def f(a=1): ...", ["1 -> 2"], id="default-value"),
    ],
)
def test_a_mistake_is_made(source: str, made: list[str]) -> None:
    assert names(source) == made


@pytest.mark.parametrize(
    "source",
    [
        pytest.param('"""A docstring."""', id="docstring"),
        pytest.param('__all__ = ["a"]', id="exports"),
        pytest.param("import a", id="import"),
        pytest.param("from __future__ import annotations", id="future"),
        pytest.param("x: Literal[1]", id="annotation"),
        pytest.param("@dataclass(slots=True)\nclass A: ...", id="decorator"),
        pytest.param("class A(B, x=1): ...", id="class-options"),
        pytest.param("assert a", id="assert"),
        pytest.param("x = a", id="plain"),
    ],
)
def test_what_is_no_behaviour_stays(source: str) -> None:
    assert names(source) == []


def test_the_message_of_an_own_fault_stays_but_not_that_of_a_refusal() -> None:
    assert names('raise ValueError("text")') == ["raise ValueError('text') -> pass"]
    assert len(names('raise PathError("text")')) == 2


def test_equal_lines_are_told_apart_by_their_number() -> None:
    first, second = names("def f():\n    g()\n    g()")

    assert first == "g() -> pass"
    assert second == "g() -> pass #2"


def test_applying_one_changes_the_tree_and_nothing_else() -> None:
    tree = ast.parse("def f(a):\n    return a > 0 and a < 9")
    found = list(operators.mutations(tree, {}))
    before = ast.unparse(tree)

    found[-1].apply()

    assert before == "def f(a):\n    return a > 0 and a < 9"
    assert ast.unparse(tree) == "def f(a):\n    return a > 0 and a < 10"


def test_what_runs_at_import_is_known() -> None:
    found = operators.mutations(ast.parse("x = 1\ndef f(a=2):\n    return a + 3\n"), {})

    assert {m.name.partition(": ")[2]: m.at_import for m in found} == {
        "x = 1 -> x = 2": True,
        "2 -> 3": True,
        "return a + 3 -> return None": False,
        "return a + 3 -> return a - 3": False,
        "a + 3 -> a + 4": False,
    }
