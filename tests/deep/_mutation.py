"""A small mutation runner: changes one operator of one module at a time and runs the module's tests.

Each mutant runs in a forked child whose import system serves the changed source, so nothing on disk is
touched. Texts, docstrings, annotations and error messages are not mutated.
"""

from __future__ import annotations

import ast
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

ROOT = Path(__file__).resolve().parents[2]
TIME_LIMIT = 600
"""Seconds after which a run is ended. No test found such a mutant: it counts as a survivor."""

CPU_LIMIT = 120
"""Seconds of processor time after which a run is ended in the same way, however busy the machine is."""

Verdict = Literal["passed", "failed", "timeout"]
_TESTS_FAILED = frozenset({1, 2, 3, 4})
"""Exit codes of the test runner: a test failed, the collection, an internal error, a broken conftest."""

_COMPARE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_BINARY: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.Mult: ast.Add,
}


@dataclass(frozen=True)
class Mutant:
    """One changed source of one module."""

    module: str
    line: int
    change: str
    source: str


@dataclass
class Report:
    """What became of the mutants; those that ran out of time are among the survivors."""

    total: int = 0
    killed: int = 0
    timeouts: int = 0
    survivors: list[Mutant] = field(default_factory=list)

    @property
    def score(self) -> float:
        """Share of mutants that a test found."""
        return self.killed / self.total if self.total else 0.0


def module_path(module: str) -> Path:
    """Return the source file of a module of the tree."""
    return ROOT / (module.replace(".", "/") + ".py")


def mutant_count(module: str) -> int:
    """Return how many mutants a module has, without making them."""
    return sum(1 for _ in _places(ast.parse(module_path(module).read_text(encoding="utf-8"))))


def mutants(module: str) -> Iterator[Mutant]:
    """Yield every single change of a module's source."""
    source = module_path(module).read_text(encoding="utf-8")
    for number in range(mutant_count(module)):
        tree = ast.parse(source)
        node, change = list(_places(tree))[number]
        line = getattr(node, "lineno", 0)
        _apply(node, change)
        yield Mutant(module, line, change, ast.unparse(ast.fix_missing_locations(tree)))


def _places(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    for node in _walk(tree):
        if isinstance(node, ast.Compare):
            for index, operator in enumerate(node.ops):
                if type(operator) in _COMPARE:
                    yield node, f"compare {index} {type(operator).__name__}"
        else:
            change = _change(node)
            if change:
                yield node, change


def _change(node: ast.AST) -> str:
    """Return what can be changed about a node other than a comparison; empty for nothing."""
    if isinstance(node, ast.BoolOp):
        return f"bool {type(node.op).__name__}"
    if isinstance(node, ast.BinOp):
        return f"binary {type(node.op).__name__}" if type(node.op) in _BINARY else ""
    if isinstance(node, ast.UnaryOp):
        return "drop not" if isinstance(node.op, ast.Not) else ""
    if isinstance(node, ast.Constant):
        return f"constant {node.value!r}" if type(node.value) in {bool, int} else ""
    if isinstance(node, ast.Expr):
        acts = isinstance(node.value, (ast.Call, ast.Yield, ast.YieldFrom))
        return "drop statement" if acts else ""
    kinds: tuple[tuple[type[ast.AST], str], ...] = (
        (ast.IfExp, "swap branches"),
        (ast.If, "never"),
        (ast.AugAssign, "drop addition"),
        (ast.Continue, "continue to break"),
    )
    return next((change for kind, change in kinds if isinstance(node, kind)), "")


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """Walk the code that decides something: no annotations, no class bodies of data, no decorators."""
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list", "keywords"} and not isinstance(node, ast.Call):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield child
                yield from _walk(child)


def _apply(node: ast.AST, change: str) -> None:
    if isinstance(node, ast.Compare):
        index = int(change.split()[1])
        node.ops[index] = _COMPARE[type(node.ops[index])]()
    elif isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    elif isinstance(node, ast.UnaryOp):
        node.op, node.operand = ast.Not(), ast.UnaryOp(ast.Not(), node.operand)
    elif isinstance(node, ast.BinOp):
        node.op = _BINARY[type(node.op)]()
    elif isinstance(node, ast.Constant):
        node.value = (not node.value) if isinstance(node.value, bool) else int(str(node.value)) + 1
    elif isinstance(node, ast.IfExp):
        node.body, node.orelse = node.orelse, node.body
    elif isinstance(node, ast.If):
        node.test = ast.Constant(value=False)
    else:
        _replace(node)


def _replace(node: ast.AST) -> None:
    """Turn a statement into one that does nothing (or `continue` into `break`), in place."""
    if isinstance(node, ast.Expr):
        node.value = ast.Constant(value=None)
    elif isinstance(node, ast.AugAssign):
        node.value = ast.BinOp(node.value, ast.Mult(), ast.Constant(value=0))
    elif isinstance(node, ast.Continue):
        node.__class__ = ast.Break  # type: ignore[assignment]


class _Loader(importlib.machinery.SourceFileLoader):
    """Reads the changed source in place of the file, and never a cache of the unchanged one."""

    def __init__(self, module: str, source: str) -> None:
        super().__init__(module, str(module_path(module)))
        self._source = source.encode()

    def get_data(self, path: str) -> bytes:
        if path != self.path:
            raise FileNotFoundError(path)
        return self._source

    def set_data(self, path: str, data: Any, *, _mode: int = 0o666) -> None:
        """Keep nothing: the compiled mutant must not outlive the child."""


class _Served(importlib.abc.MetaPathFinder):
    def __init__(self, module: str, source: str) -> None:
        self._loader = _Loader(module, source)

    def find_spec(
        self, fullname: str, path: object = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        del path, target
        if fullname != self._loader.name:
            return None
        return importlib.util.spec_from_file_location(fullname, self._loader.path, loader=self._loader)


def verdict(tests: Sequence[str], module: str | None = None, source: str = "") -> Verdict:
    """Run tests in a forked child, with one module's source replaced; a failed test ends the run."""
    child = _start(tests, module, source)
    deadline = time.monotonic() + TIME_LIMIT
    while True:
        found = _ended(child, deadline)
        if found is not None:
            return found
        time.sleep(0.01)


def passes(tests: Sequence[str], module: str | None = None, source: str = "") -> bool:
    """Run tests like `verdict`; return whether all passed.

    Raises:
        TimeoutError: they did not end, so nothing is known.
    """
    found = verdict(tests, module, source)
    if found == "timeout":
        raise TimeoutError(f"{' '.join(tests)} did not end within {TIME_LIMIT} s")
    return found == "passed"


def _start(tests: Sequence[str], module: str | None = None, source: str = "") -> int:
    import pytest  # imported once in the parent, shared by every child

    child = os.fork()
    if child == 0:
        code = 99
        try:
            os.setpgid(0, 0)
            resource.setrlimit(resource.RLIMIT_CPU, (CPU_LIMIT, CPU_LIMIT))
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            os.chdir(ROOT)
            sys.path.insert(0, str(ROOT))
            for name in [n for n in sys.modules if n.split(".")[0] in {"viano_assets", "resources", "tests"}]:
                del sys.modules[name]
            if module is not None:
                sys.meta_path.insert(0, _Served(module, source))
            # A time limit of its own would turn a mutant that hangs into a failed test.
            arguments = ["-x", "-q", "-p", "no:cacheprovider", "--no-header", "-o", "timeout=0", *tests]
            code = int(pytest.main(arguments))
        finally:
            os._exit(code)
    return child


def _ended(child: int, deadline: float) -> Verdict | None:
    """Return what became of a child that has ended or is out of time, else None."""
    done, status = os.waitpid(child, os.WNOHANG)
    if done:
        code = os.waitstatus_to_exitcode(status)
        if code == -signal.SIGXCPU:
            return "timeout"
        if code > 0 and code not in _TESTS_FAILED:
            raise AssertionError(f"the tests did not run: exit code {code}")
        return "passed" if code == 0 else "failed"
    if time.monotonic() < deadline:
        return None
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "timeout"


def sampled(
    plan: Sequence[tuple[str, Sequence[str]]], count: int, seed: int
) -> list[tuple[Mutant, Sequence[str]]]:
    """Return `count` mutants of a plan with their tests, drawn by a fixed seed, in the plan's order."""
    every = [(mutant, tests) for module, tests in plan for mutant in mutants(module)]
    drawn = random.Random(seed).sample(range(len(every)), min(count, len(every)))
    return [every[number] for number in sorted(drawn)]


def run(plan: Sequence[tuple[str, Sequence[str]]]) -> Report:
    """Run every mutant of every module against its tests; survivors are told on standard error."""
    return run_each([(mutant, tests) for module, tests in plan for mutant in mutants(module)], jobs=1)


def run_each(work: Sequence[tuple[Mutant, Sequence[str]]], jobs: int, limit: float = TIME_LIMIT) -> Report:
    """Run mutants against their tests, `jobs` children at a time; survivors are told on standard error."""
    report = Report()
    waiting, running = list(reversed(work)), dict[int, tuple[Mutant, float]]()
    while waiting or running:
        while waiting and len(running) < jobs:
            mutant, tests = waiting.pop()
            running[_start(tests, mutant.module, mutant.source)] = (mutant, time.monotonic() + limit)
        for child, (mutant, deadline) in list(running.items()):
            found = _ended(child, deadline)
            if found is not None:
                del running[child]
                _count(report, mutant, found)
        time.sleep(0.01)
    if report.timeouts:
        sys.stderr.write(f"{report.timeouts} of {report.total} mutants ran out of time\n")
    return report


def _count(report: Report, mutant: Mutant, found: Verdict) -> None:
    report.total += 1
    if found == "failed":
        report.killed += 1
        return
    report.timeouts += found == "timeout"
    report.survivors.append(mutant)
    how = "survived" if found == "passed" else "out of time (not killed)"
    sys.stderr.write(f"{how}: {mutant.module}:{mutant.line} {mutant.change}\n")
