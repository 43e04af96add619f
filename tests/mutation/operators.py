"""The mutations of a module: each is one small change of its syntax tree that a test should notice.

Deterministic: the same source gives the same mutations in the same order, so that another process
can name one by its number. Nothing here runs anything.
"""

import ast
import copy
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Mutation", "enum_members", "mutations"]

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
CALLS = {
    "startswith": "endswith",
    "endswith": "startswith",
    "any": "all",
    "all": "any",
    "min": "max",
    "max": "min",
    "lstrip": "rstrip",
    "rstrip": "lstrip",
    "partition": "rpartition",
    "rpartition": "partition",
    "index": "rindex",
    "rindex": "index",
    "search": "match",
    "fullmatch": "match",
}
# x.casefold() -> x: what a step of normalising is there for.
STEPS = {"casefold", "lower", "strip", "lstrip", "rstrip"}
# These say that lamfuse itself is wrong; their message is for whoever mends it.
OWN_FAULTS = {
    "AssertionError", "InternalError", "KeyError", "NotImplementedError", "RuntimeError",
    "TypeError", "ValueError",
}  # fmt: skip
# Types are checked by mypy, exports and imports by ruff; decorators say how a class is built.
IDLE_FIELDS = {"annotation", "returns", "decorator_list", "type_params"}


@dataclass(frozen=True)
class _Slot:
    """A place in the tree: the node that owns it, the field, and the index in a list."""

    owner: ast.AST
    field: str
    index: int | None

    def get(self) -> ast.AST | None:
        value = getattr(self.owner, self.field)
        found = value if self.index is None else value[self.index]
        return found if isinstance(found, ast.AST) else None

    def put(self, node: ast.AST) -> None:
        if self.index is None:
            setattr(self.owner, self.field, node)
        else:
            getattr(self.owner, self.field)[self.index] = node


@dataclass(frozen=True)
class Mutation:
    """One change: a name that stays while its line does, where it is, and how to make it."""

    name: str
    lines: range
    at_import: bool
    slot: _Slot
    replacement: ast.AST

    def apply(self) -> None:
        """Change the tree that this mutation was made from, in place."""
        old = self.slot.get()
        assert old is not None
        self.slot.put(ast.fix_missing_locations(ast.copy_location(self.replacement, old)))


def enum_members(trees: Sequence[ast.Module]) -> dict[str, list[str]]:
    """Return the members of every enumeration that the modules define."""
    found: dict[str, list[str]] = {}
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and any(
                "Enum" in ast.unparse(base) or "Flag" in ast.unparse(base) for base in node.bases
            ):
                found[node.name] = [
                    target.id
                    for statement in node.body
                    if isinstance(statement, ast.Assign)
                    for target in statement.targets
                    if isinstance(target, ast.Name)
                ]
    return found


def mutations(tree: ast.Module, enums: Mapping[str, Sequence[str]]) -> Iterator[Mutation]:
    """Yield every mutation of a module, in the order of the source."""
    seen: Counter[str] = Counter()
    for place in _places(tree, _Around("module", at_import=True, lines=range(1, 2))):
        slot, around = place.slot, place.around
        for replacement in _replacements(slot, enums):
            name = f"{around.where}: {_show(slot, replacement)}"
            seen[name] += 1
            if seen[name] > 1:
                name += f" #{seen[name]}"
            yield Mutation(name, around.lines, around.at_import, slot, replacement)


@dataclass(frozen=True)
class _Around:
    """What a walk stands in: the function, whether it runs at import, the statement's lines."""

    where: str
    at_import: bool
    lines: range


@dataclass(frozen=True)
class _Place:
    """One node that may be replaced, and what it stands in."""

    slot: _Slot
    around: _Around


def _places(node: ast.AST, above: _Around) -> Iterator[_Place]:
    is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    for field, value in ast.iter_fields(node):
        if field in IDLE_FIELDS or (isinstance(node, ast.ClassDef) and field != "body"):
            continue
        indexes = range(len(value)) if isinstance(value, list) else [None]
        for index in indexes:
            slot = _Slot(node, field, index)
            child = slot.get()
            if child is None or _is_idle(child):
                continue
            at_import = above.at_import and not (is_function and field == "body")
            around = _Around(_where(child, above), at_import, _lines(child, above))
            yield _Place(slot, around)
            if not _is_own_fault(child):
                yield from _places(child, around)


def _where(child: ast.AST, above: _Around) -> str:
    if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return above.where
    return child.name if above.where == "module" else f"{above.where}.{child.name}"


def _lines(child: ast.AST, above: _Around) -> range:
    """Return the lines whose execution means that the mutated place was reached."""
    if isinstance(child, ast.stmt):
        if hasattr(child, "body") or hasattr(child, "cases"):
            return range(child.lineno, child.lineno + 1)
        return range(child.lineno, (child.end_lineno or child.lineno) + 1)
    if isinstance(child, ast.expr) and child.lineno not in above.lines:
        return range(child.lineno, (child.end_lineno or child.lineno) + 1)
    return above.lines


def _is_idle(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)  # a docstring, or an ellipsis
    if isinstance(node, ast.Assign):
        return ast.unparse(node.targets[0]) == "__all__"
    if isinstance(node, ast.If):
        return ast.unparse(node.test).endswith("TYPE_CHECKING")
    # An assert speaks to the type checker.
    return isinstance(node, ast.Import | ast.ImportFrom | ast.arg | ast.Assert | ast.Pass)


def _is_own_fault(node: ast.AST) -> bool:
    if not isinstance(node, ast.Raise) or not isinstance(node.exc, ast.Call):
        return False
    return ast.unparse(node.exc.func) in OWN_FAULTS


def _show(slot: _Slot, replacement: ast.AST) -> str:
    """Write the change with enough around it to be found: a bare constant says little."""
    node = slot.get()
    assert node is not None
    owner = slot.owner
    around = isinstance(owner, ast.expr | ast.keyword | ast.comprehension) or (
        isinstance(owner, ast.stmt) and not hasattr(owner, "body")
    )
    before = ast.unparse(owner if around else node)
    slot.put(replacement)
    after = ast.unparse(owner if around else replacement)
    slot.put(node)
    return f"{_cut(before)} -> {_cut(after)}"


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 100 else f"{text[:70]} ... {text[-25:]}"


def _replacements(slot: _Slot, enums: Mapping[str, Sequence[str]]) -> Iterator[ast.AST]:
    node = slot.get()
    if isinstance(node, ast.stmt):
        yield from _of_statement(node)
    elif isinstance(node, ast.expr):
        yield from _of_condition(slot.field, node)
        yield from _of_expression(node)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            members = enums.get(node.value.id, [])
            if node.attr in members and len(members) > 1:
                other = members[(members.index(node.attr) + 1) % len(members)]
                yield ast.Attribute(node.value, other, node.ctx)


def _of_condition(field: str, node: ast.expr) -> Iterator[ast.AST]:
    """Negate a condition that no other mutation negates, and drop the filter of a comprehension."""
    if field in {"test", "ifs", "guard"} and not isinstance(
        node, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.Constant
    ):
        yield ast.UnaryOp(ast.Not(), node)
    if field == "ifs":
        yield ast.Constant(value=True)


def _of_expression(node: ast.expr) -> Iterator[ast.AST]:
    if isinstance(node, ast.Constant):
        yield from _of_constant(node)
    elif isinstance(node, ast.Compare):
        for index, operator in enumerate(node.ops):
            for other in COMPARISONS[type(operator)]:
                changed = copy.copy(node)
                changed.ops = [*node.ops[:index], other(), *node.ops[index + 1 :]]
                yield changed
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
        for index in range(len(node.values)):
            rest = [*node.values[:index], *node.values[index + 1 :]]
            yield rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC and not _is_format(node):
        yield ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right)
    elif isinstance(node, ast.Call):
        yield from _of_call(node)


def _is_format(node: ast.BinOp) -> bool:
    return isinstance(node.left, ast.Constant) and isinstance(node.left.value, str | bytes)


def _of_constant(node: ast.Constant) -> Iterator[ast.AST]:
    value = node.value
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int | float):
        yield ast.Constant(value + 1)
    elif isinstance(value, str):
        yield ast.Constant(value + "x")
    elif isinstance(value, bytes):
        yield ast.Constant(value + b"x")


def _of_call(node: ast.Call) -> Iterator[ast.AST]:
    function = node.func
    if isinstance(function, ast.Name) and function.id in CALLS:
        yield ast.Call(ast.Name(CALLS[function.id], ast.Load()), node.args, node.keywords)
    elif isinstance(function, ast.Attribute):
        if function.attr in CALLS:
            swapped = ast.Attribute(function.value, CALLS[function.attr], ast.Load())
            yield ast.Call(swapped, node.args, node.keywords)
        if function.attr in STEPS:
            yield function.value
    if isinstance(function, ast.Name) and function.id in {"sorted", "reversed"} and node.args:
        yield ast.Call(ast.Name("list", ast.Load()), node.args[:1], [])


def _of_statement(node: ast.stmt) -> Iterator[ast.AST]:
    if isinstance(node, ast.Expr | ast.Raise | ast.Continue | ast.Break | ast.Delete):
        yield ast.Pass()
    elif isinstance(node, ast.Return):
        value = node.value
        if value is None or (isinstance(value, ast.Constant) and value.value is None):
            yield ast.Pass()
        elif not (isinstance(value, ast.Constant) and isinstance(value.value, bool)):
            yield ast.Return(ast.Constant(None))  # a bool is flipped instead
    elif isinstance(node, ast.AugAssign):
        yield ast.Pass()
        if type(node.op) in ARITHMETIC:
            yield ast.AugAssign(node.target, ARITHMETIC[type(node.op)](), node.value)
    elif isinstance(node, ast.Assign):
        if all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets):
            yield ast.Pass()
    elif isinstance(node, ast.If) and node.orelse:
        yield ast.If(node.test, node.body, [])
