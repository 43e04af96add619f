"""The layout holds: who may import whom, who may touch what, and how long things are.

Read from the syntax trees; nothing of the package is imported, so a broken module is still judged.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "lamfuse"

# From the bottom up. Imports go downward only, never between names on one line. A package that does
# not exist yet stands here already; one that exists and does not stand here fails.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("core",),
    ("engine", "tree"),
    ("control",),
    ("fuse", "notify", "store", "mcp_server", "sandbox"),
    ("backend",),
    ("backend",),  # what the control socket may ask of the running daemon; app builds it
    ("app",),
    ("cli",),
    ("__main__",),
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}

# The core decides and does no I/O, and has no clock: these would let it.
BANNED_IN_CORE = {
    "asyncio", "ctypes", "fcntl", "glob", "io", "logging", "mmap", "multiprocessing", "os",
    "pathlib", "random", "secrets", "select", "shutil", "signal", "socket", "stat", "subprocess",
    "sys", "tempfile", "threading", "time", "trio",
}  # fmt: skip

# One edge each: the kernel's FUSE protocol, the desktop's bus, the terminal's pictures.
ONLY_IN = {
    "pyfuse3": {"fuse"},
    "jeepney": {"notify"},
    "click": {"cli"},
    "rich": {"cli", "notify"},
    "ctypes": {"tree", "control", "app", "sandbox"},
}

# Calls that name something in a file system. In tree/ only syscalls.py has them, so that there is
# one place to see that each is relative to a descriptor and follows nothing.
FILE_CALLS = {
    "access", "chmod", "chown", "getxattr", "lchown", "link", "listdir", "listxattr", "lstat",
    "makedirs", "mkdir", "mkfifo", "mknod", "open", "readlink", "remove", "removexattr", "rename",
    "renames", "replace", "rmdir", "scandir", "setxattr", "stat", "statvfs", "symlink", "truncate",
    "unlink", "utime", "walk",
}  # fmt: skip

# Who may name files, and whose these are. A file of /proc itself may be named anywhere
# outside the core: it belongs to no home.
FILE_CALLS_ALLOWED = {
    "tree/syscalls.py": "the tree's *at calls",
    "store": "lamfuse's own configuration, state and runtime files",
    "control": "the socket, and /proc of its peers",
    "cli": "the config file that init writes, and what doctor looks at",
    "notify": "the terminal device",
    "sandbox": "the namespaces of the agent",
    "app": "the folders of the daemon at start and end",
}

# Who may resolve a path at one moment for use at a later one.
RESOLVING_ALLOWED = {
    "app.py": "the configured places, at start and at reload",
    "cli/views.py": "the mountpoint that a command names",
    "store/dirs.py": "home and lamfuse's own places, once, before anything is mounted",
}

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
# Path, or path::function -> why it may be longer.
LONG_FILES: dict[str, str] = {}
LONG_FUNCTIONS: dict[str, str] = {}

VAGUE_NAMES = re.compile(r"(^|_)(managers?|utils?|utilities|helpers?|common|misc|stuff)(_|$)")

MODULES = sorted(PACKAGE.rglob("*.py"))


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes(), str(path))


def short(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def place_of(path: Path) -> str:
    """Name the package below lamfuse, or the module beside the packages."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and the absolute dotted name of everything that a module imports."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = module_name(path).split(".")
                if path.name != "__init__.py":
                    package = package[:-1]
                package = package[: len(package) - node.level + 1]
                base = ".".join([*package, base] if base else package)
            for alias in node.names:
                yield node.lineno, f"{base}.{alias.name}"


def functions_of(path: Path) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Yield every function with its dotted name inside the module."""

    def walk(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.FunctionDef]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                name = f"{prefix}{child.name}"
                yield name, child  # type: ignore[misc]  # both kinds have the same fields
                yield from walk(child, f"{name}.")
            elif isinstance(child, ast.ClassDef):
                yield from walk(child, f"{prefix}{child.name}.")
            else:
                yield from walk(child, prefix)

    yield from walk(tree_of(path), "")


def code_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the lines of a function without its docstring and decorators."""
    assert function.end_lineno is not None
    total = function.end_lineno - function.lineno + 1
    first = function.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        assert first.end_lineno is not None
        total -= first.end_lineno - first.lineno + 1
    return total


each_module = pytest.mark.parametrize("path", MODULES, ids=short)


def test_every_package_is_placed() -> None:
    places = {place_of(path) for path in MODULES} - {"__init__"}

    assert places - set(LEVEL) == set()


@each_module
def test_imports_go_downward_only(path: Path) -> None:
    here = place_of(path)
    wrong = []
    for line, name in imports_of(path):
        parts = name.split(".")
        if parts[0] != "lamfuse" or len(parts) < 2:
            continue
        there = parts[1]
        if there == here:
            continue
        if here == "__init__" or there not in LEVEL or LEVEL[there] >= LEVEL[here]:
            wrong.append(f"line {line}: {here} imports {name}")

    assert not wrong


@pytest.mark.parametrize("path", [p for p in MODULES if place_of(p) == "core"], ids=short)
def test_core_can_do_no_io(path: Path) -> None:
    wrong = [
        f"line {line}: {name}"
        for line, name in imports_of(path)
        if name.split(".")[0] in BANNED_IN_CORE
    ]
    wrong += [
        f"line {node.lineno}: {node.func.id}()"
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {"open", "print", "input", "exec", "eval", "__import__"}
    ]

    assert not wrong


@each_module
def test_a_third_party_stays_at_its_edge(path: Path) -> None:
    wrong = [
        f"line {line}: {name}"
        for line, name in imports_of(path)
        if place_of(path) not in ONLY_IN.get(name.split(".")[0], {place_of(path)})
    ]

    assert not wrong


def is_of_proc(argument: ast.expr) -> bool:
    """Tell whether an argument is literally a file of /proc, not what a link there leads to."""
    while isinstance(argument, ast.BinOp):
        argument = argument.left
    if isinstance(argument, ast.JoinedStr):
        argument = argument.values[0]
    value = argument.value if isinstance(argument, ast.Constant) else None
    text = value.decode("ascii", "replace") if isinstance(value, bytes) else value
    if not isinstance(text, str) or not text.startswith("/proc/"):
        return False
    parts = text.split("/")
    return "fd" not in parts[:-1] and not {"root", "cwd"} & set(parts)


def file_calls(path: Path) -> list[str]:
    """List the calls of a module that name something in a file system."""
    found = []
    for node in ast.walk(tree_of(path)):
        if not isinstance(node, ast.Call) or (node.args and is_of_proc(node.args[0])):
            continue
        func = node.func
        if isinstance(func, ast.Name) and func.id == "open":
            found.append(f"line {node.lineno}: open")
        elif isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name):
            if func.value.id in {"os", "posix"} and func.attr in FILE_CALLS:
                found.append(f"line {node.lineno}: os.{func.attr}")
            elif func.value.id in {"shutil", "pathlib"}:
                found.append(f"line {node.lineno}: {func.value.id}.{func.attr}")
    imported = {"os", "posix", "shutil", "pathlib", "glob"}
    for line, name in imports_of(path):
        module, _, member = name.rpartition(".")
        if module in imported and member in FILE_CALLS | {"Path"}:
            found.append(f"line {line}: from {module} import {member}")
    return found


@each_module
def test_files_are_named_only_where_that_is_the_work(path: Path) -> None:
    if short(path) in FILE_CALLS_ALLOWED or place_of(path) in FILE_CALLS_ALLOWED:
        return

    assert not file_calls(path)


@each_module
def test_no_path_is_resolved_and_then_used(path: Path) -> None:
    if short(path) in RESOLVING_ALLOWED:
        return
    wrong = [
        f"line {node.lineno}: .{node.func.attr}()"
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in {"realpath", "resolve"}
        and isinstance(node.func.value, ast.Name | ast.Attribute)
        and ast.unparse(node.func.value) in {"os.path", "path", "posixpath", "Path", "pathlib.Path"}
    ]

    assert not wrong


@each_module
def test_no_file_is_too_long(path: Path) -> None:
    lines = path.read_bytes().count(b"\n")

    assert lines <= MAX_FILE_LINES or short(path) in LONG_FILES


@each_module
def test_no_function_is_too_long(path: Path) -> None:
    long = [
        f"{name}: {code_lines(function)} lines"
        for name, function in functions_of(path)
        if code_lines(function) > MAX_FUNCTION_LINES
        and f"{short(path)}::{name}" not in LONG_FUNCTIONS
    ]

    assert not long


def test_exceptions_to_the_lengths_are_still_needed() -> None:
    long_files = {
        short(path) for path in MODULES if path.read_bytes().count(b"\n") > MAX_FILE_LINES
    }
    long_functions = {
        f"{short(path)}::{name}"
        for path in MODULES
        for name, function in functions_of(path)
        if code_lines(function) > MAX_FUNCTION_LINES
    }

    assert set(LONG_FILES) <= long_files
    assert set(LONG_FUNCTIONS) <= long_functions
    assert all(reason for reason in [*LONG_FILES.values(), *LONG_FUNCTIONS.values()])


@each_module
def test_a_module_says_what_it_is_for_and_what_it_exports(path: Path) -> None:
    tree = tree_of(path)
    assigned = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }

    assert ast.get_docstring(tree)
    assert path.name in {"__init__.py", "__main__.py"} or "__all__" in assigned


@each_module
def test_what_is_public_has_a_docstring(path: Path) -> None:
    bare = []

    def look(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            if node.name.startswith("_"):
                continue
            if not ast.get_docstring(node) and not is_variant(node):
                bare.append(f"line {node.lineno}: {prefix}{node.name}")
            if isinstance(node, ast.ClassDef):
                look(node.body, f"{node.name}.")

    look(tree_of(path).body, "")

    assert not bare


def is_variant(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    """Tell whether another function describes this one: an overload, a setter."""
    decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
    return any(name.endswith(("overload", "override", ".setter")) for name in decorators)


@each_module
def test_no_module_has_a_vague_name(path: Path) -> None:
    names = [*path.relative_to(PACKAGE).with_suffix("").parts]
    names += [node.name for node in ast.walk(tree_of(path)) if isinstance(node, ast.ClassDef)]
    words = [re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower() for name in names]

    assert not [word for word in words if VAGUE_NAMES.search(word)]


def test_dependencies_are_what_is_imported() -> None:
    declared = {
        re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
        for requirement in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
            "dependencies"
        ]
    }
    imported = {name.split(".")[0] for path in MODULES for _, name in imports_of(path)}
    third_party = imported - set(sys.stdlib_module_names) - {"lamfuse"}

    assert third_party == declared


def test_dependencies_have_their_reasons_in_the_decision() -> None:
    page = (ROOT / "docs" / "decisions" / "0001-dependencies.md").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = project["dependency-groups"]
    entries = [*project["project"]["dependencies"]]
    for group in groups.values():
        entries += [entry for entry in group if isinstance(entry, str)]
    names = {re.split(r"[^\w.-]", entry, maxsplit=1)[0] for entry in entries}

    assert {name for name in names if f"`{name}`" not in page} == set()


def test_no_lock_file_names_a_host() -> None:
    for name in ("requirements.lock", "requirements-build.lock"):
        assert "://" not in (ROOT / name).read_text()
