"""Mutation testing of lamfuse/core; scripts/mutate is the way in.

One process imports everything that the tests need but the package, and forks a child for each
mutant, which imports the package with one module changed and runs the tests that reach the changed
line. Exit status 0: every survivor is listed in tests/mutants.toml with its reason, and every entry
there is still a survivor.
"""

import argparse
import ast
import importlib
import importlib.abc
import importlib.util
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType

import coverage
import pytest

from tests.mutation import operators

__all__ = ["main"]

ROOT = Path(__file__).resolve().parent.parent.parent
CORE = ROOT / "lamfuse" / "core"
TESTS = ROOT / "tests" / "core"
ACCEPTED = ROOT / "tests" / "mutants.toml"
HANDMADE = ROOT / "tests" / "mutation" / "handmade.toml"
# What a child loads anew for itself otherwise, each time.
WARM = ("hypothesis", "hypothesis.strategies", "msgspec", "pathspec", "pytest_trio", "trio", "rich")
# A mutant that loops is killed by the clock: this many times the run of all tests, and then some.
PATIENCE = 4.0
PATIENCE_S = 15.0
MANY_TESTS = 60  # from here on whole files are named


@dataclass(frozen=True)
class Mutant:
    """One changed module (named below lamfuse), what makes its code, what may notice."""

    module: str
    name: str
    compile: Callable[[], CodeType]
    tests: tuple[str, ...]
    by_hand: bool = False


@dataclass
class Tally:
    """How the mutants ended."""

    killed: int = 0
    timed_out: int = 0
    survivors: list[Mutant] = field(default_factory=list)


def source_of(module: str) -> Path:
    """Return the file of a module that is named below lamfuse, as core.paths."""
    return ROOT.joinpath("lamfuse", *module.split(".")).with_suffix(".py")


class Reach:
    """Which tests reach which line, from one run of all tests with coverage contexts."""

    def __init__(self) -> None:
        with tempfile.TemporaryDirectory(prefix="mutate-") as scratch:
            self.seconds = self._record(Path(scratch))
            data = coverage.CoverageData(str(Path(scratch) / "data"))
            data.read()
            self.lines = {
                f"core.{path.stem}": data.contexts_by_lineno(str(path))
                for path in CORE.glob("*.py")
            }
        self._loaded: dict[str, frozenset[str]] = {}
        self.files = tuple(str(path.relative_to(ROOT)) for path in sorted(TESTS.rglob("test_*.py")))

    def _record(self, scratch: Path) -> float:
        settings = scratch / "rc"
        settings.write_text(f"[run]\nsource = {CORE}\ndata_file = {scratch}/data\n")
        command = [sys.executable, "-m", "coverage", "run", f"--rcfile={settings}", "-m", "pytest"]
        started = time.monotonic()
        # The tracer in C is the one that knows contexts, on every Python.
        done = subprocess.run(
            [*command, "-q", "-p", "no:cacheprovider", "-p", "tests.mutation.contexts", str(TESTS)],
            cwd=ROOT,
            env=os.environ | {"COVERAGE_CORE": "ctrace"},
            check=False,
        )
        if done.returncode != 0:
            sys.exit("mutate: the tests of the core fail without any mutation")
        return time.monotonic() - started

    def _loaded_by(self, test_file: str) -> frozenset[str]:
        """Return the modules of the core that a test file loads, directly or not."""
        if test_file not in self._loaded:
            found: set[str] = set()
            todo = [ROOT / test_file]
            while todo:
                for path in imported_files(todo.pop()):
                    name = f"core.{path.stem}" if path.parent == CORE else str(path)
                    if name not in found:
                        found.add(name)
                        todo.append(path)
            self._loaded[test_file] = frozenset(found)
        return self._loaded[test_file]

    def tests_for(self, module: str, mutation: operators.Mutation) -> tuple[str, ...]:
        """Return what to run for a mutation, the module's own test file first."""
        own = f"tests/core/test_{module.removeprefix('core.')}"
        if mutation.at_import:
            files = [name for name in self.files if module in self._loaded_by(name)]
            return tuple(sorted(files, key=lambda name: (not name.startswith(own), name)))
        by_line = self.lines[module]
        contexts = {name for line in mutation.lines for name in by_line.get(line, [])}
        nodes = contexts - {""}
        if not nodes and contexts:  # reached only while the tables of the tests were built
            nodes = set(self.files)
        if len(nodes) > MANY_TESTS:
            nodes = {node.partition("::")[0] for node in nodes}
        return tuple(sorted(nodes, key=lambda name: (not name.startswith(own), name)))


def imported_files(path: Path) -> Iterator[Path]:
    """Yield the files of the core and of the tests that a file imports."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            if name.startswith(("lamfuse.core.", "tests.")):
                file = ROOT.joinpath(*name.split(".")).with_suffix(".py")
                if file.is_file():
                    yield file


def generated(module: str, enums: dict[str, list[str]], reach: Reach) -> Iterator[Mutant]:
    """Yield the mutants that the operators make of one module."""
    path = source_of(module)
    text = path.read_bytes()

    def compiler(number: int) -> Callable[[], CodeType]:
        def build() -> CodeType:
            tree = ast.parse(text)
            list(operators.mutations(tree, enums))[number].apply()
            return compile(tree, str(path), "exec", dont_inherit=True)

        return build

    for number, mutation in enumerate(operators.mutations(ast.parse(text), enums)):
        yield Mutant(module, mutation.name, compiler(number), reach.tests_for(module, mutation))


def handmade(every_test: tuple[str, ...]) -> Iterator[Mutant]:
    """Yield the mutants of handmade.toml; one whose place is gone ends the run."""
    for entry in tomllib.loads(HANDMADE.read_text())["mutant"]:
        path = source_of(entry["module"])
        text = path.read_text()
        if text.count(entry["before"]) != 1:
            sys.exit(f"mutate: the place of '{entry['name']}' is not in {path} exactly once")
        changed = text.replace(entry["before"], entry["after"])

        def build(changed: str = changed, path: Path = path) -> CodeType:
            return compile(changed, str(path), "exec", dont_inherit=True)

        tests = tuple(entry.get("tests", every_test))
        yield Mutant(entry["module"], entry["name"], build, tests, by_hand=True)


class _Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Serves the changed code for one module, and leaves all others to the ordinary way."""

    def __init__(self, name: str, path: Path, code: CodeType) -> None:
        self.name = name
        self.path = path
        self.code = code

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Answer for the one module."""
        del path, target
        if fullname != self.name:
            return None
        return importlib.util.spec_from_file_location(fullname, self.path, loader=self)

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave it to the import system."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the changed code."""
        exec(self.code, module.__dict__)


def run_tests(tests: Sequence[str]) -> int:
    """Run tests in this process, stopping at the first failure; return pytest's status."""
    quiet = ["-q", "-x", "--no-header", "--no-summary", "--tb=no", "-p", "no:cacheprovider"]
    # Plugins are loaded already, so their asserts stay as they are.
    quiet += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return int(pytest.main([*quiet, *tests]))


def fork(mutant: Mutant | None, tests: Sequence[str]) -> int:
    """Start a child that runs *tests* on the changed package, and return its pid."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        if mutant is not None:
            name = f"lamfuse.{mutant.module}"
            changed = _Changed(name, source_of(mutant.module), mutant.compile())
            sys.meta_path.insert(0, changed)
        status = run_tests(tests)
    finally:
        os._exit(status)


def wait(pids: dict[int, float]) -> tuple[int, int | None]:
    """Wait until one of the children ends, or its time is up: then its status is None."""
    while True:
        for pid, deadline in pids.items():
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                return pid, os.waitstatus_to_exitcode(status)
            if time.monotonic() > deadline:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                return pid, None
        select.select([], [], [], 0.005)


def run_all(mutants: Sequence[Mutant], limit_s: float, jobs: int) -> Tally:
    """Run every mutant, *jobs* at a time."""
    tally = Tally()
    queue = list(reversed(mutants))
    running: dict[int, Mutant] = {}
    deadlines: dict[int, float] = {}
    done = 0
    while queue or running:
        while queue and len(running) < jobs:
            mutant = queue.pop()
            if not mutant.tests:
                tally.survivors.append(mutant)  # no test reaches it
                done += 1
                continue
            pid = fork(mutant, mutant.tests)
            running[pid] = mutant
            deadlines[pid] = time.monotonic() + limit_s
        if not running:
            break
        pid, status = wait(deadlines)
        mutant = running.pop(pid)
        del deadlines[pid]
        done += 1
        if status is None:
            tally.timed_out += 1
        elif status == pytest.ExitCode.OK:
            tally.survivors.append(mutant)
            print(f"  survived  {mutant.module}  {mutant.name}", flush=True)
        else:
            tally.killed += 1
        if done % 100 == 0:
            print(f"mutate: {done} of {len(mutants)}", flush=True)
    return tally


def accepted() -> dict[tuple[str, str], str]:
    """Return the listed survivors with their reasons."""
    found: dict[tuple[str, str], str] = {}
    for entry in tomllib.loads(ACCEPTED.read_text()).get("accepted", []):
        if not entry["reason"].strip():
            sys.exit(f"mutate: an entry of {entry['module']} has no reason")
        for name in entry["mutants"]:
            found[f"core.{entry['module']}", name] = entry["reason"]
    return found


def report(tally: Tally, ran: Sequence[Mutant], match: str) -> int:
    """Print how it went; return the exit status."""
    ran_modules = {mutant.module for mutant in ran if not mutant.by_hand}
    listed = {key for key in accepted() if key[0] in ran_modules}
    survived = {(mutant.module, mutant.name) for mutant in tally.survivors if not mutant.by_hand}
    unlisted = [
        mutant
        for mutant in tally.survivors
        if mutant.by_hand or (mutant.module, mutant.name) not in listed
    ]
    stale = sorted(key for key in listed - survived if match in key[1])
    for mutant in unlisted:
        print(f"mutate: SURVIVED {mutant.module}: {mutant.name}  (tests: {len(mutant.tests)})")
    for module, name in stale:
        print(f"mutate: STALE entry, killed or gone: {module}: {name}")
    print(
        f"mutate: {len(ran)} mutants, {tally.killed} killed, {tally.timed_out} by the clock,"
        f" {len(tally.survivors) - len(unlisted)} survivors with a reason, {len(unlisted)} without"
    )
    return 1 if unlisted or stale else 0


def read_options(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; `modules` are named below lamfuse afterwards."""
    parser = argparse.ArgumentParser(prog="scripts/mutate", description=__doc__.split("\n")[0])
    names = sorted(f"core.{path.stem}" for path in CORE.glob("*.py") if path.stem != "__init__")
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="of lamfuse/core: paths, ...")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--match", default="", help="only mutants whose name has this in it")
    options = parser.parse_args(arguments)
    options.modules = [f"core.{name.removeprefix('core.')}" for name in options.modules] or names
    unknown = sorted(set(options.modules) - set(names))
    if unknown:
        parser.error(f"not in lamfuse: {', '.join(unknown)}")
    return options


def check_baseline(tests: Sequence[str]) -> None:
    """End the run where tests fail, or are not found, without any mutation: every mutant would."""
    status = os.waitstatus_to_exitcode(os.waitpid(fork(None, tests), 0)[1])
    if status != pytest.ExitCode.OK:
        sys.exit(f"mutate: without any mutation, pytest {' '.join(tests)} ends with {status}")


def main(arguments: Sequence[str]) -> int:
    """Run the mutants of the named modules (default: all of core) and the handmade ones."""
    options = read_options(arguments)
    os.chdir(ROOT)
    os.environ["LAMFUSE_HYPOTHESIS"] = "lamfuse-mutate"
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.dont_write_bytecode = True
    reach = Reach()
    for name in WARM:
        if importlib.util.find_spec(name) is not None:
            importlib.import_module(name)
    trees = [ast.parse(path.read_bytes()) for path in sorted(CORE.glob("*.py"))]
    enums = operators.enum_members(trees)
    mutants = list(handmade(reach.files))
    for tests in {reach.files, *(mutant.tests for mutant in mutants)}:
        check_baseline(tests)
    for module in options.modules:
        mutants += [
            mutant for mutant in generated(module, enums, reach) if options.match in mutant.name
        ]
    print(f"mutate: {len(mutants)} mutants of {', '.join(options.modules)}", flush=True)
    tally = run_all(mutants, PATIENCE_S + PATIENCE * reach.seconds, options.jobs)
    return report(tally, mutants, options.match)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
