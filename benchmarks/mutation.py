"""Mutation score of the core modules: how many small changes of the code do the tests notice?

    OMP_NUM_THREADS=1 python benchmarks/mutation.py                       # an hour on one core
    python benchmarks/mutation.py --modules alarms.budget --sample 0 --survivors   # every mutant

A mutant is a module with one change: a comparison, an arithmetic or logical operator, a number, a
condition, or a call left out. It is killed when the tests named here for its module fail or take
ten times as long; of them, those that enter the changed function and take less than a second are
run, the quickest first. Annotations, decorators, assertions and error messages are not changed.
Writes mutation.csv, a line a module; lines of modules not chosen stay.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import gc
import json
import math
import os
import random
import resource
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import pytest
from record import RESULTS, ROOT, Line, origin, read, write

# The tests that should notice a change of each module, the quickest first.
TESTS = {
    "alarms.alarm_model": ["alarms/test_alarm_model.py"],
    "alarms.alarm_stream": ["alarms/test_alarm_stream.py"],
    "alarms.budget": ["alarms/test_budget.py"],
    "alarms.events": ["alarms/test_events.py"],
    "alarms.evidence": ["alarms/test_evidence.py"],
    "alarms.scan": ["alarms/test_scan.py"],
    "alarms.suspects": ["alarms/test_suspects.py"],
    "alarms.tracked": ["alarms/test_tracked.py"],
    "alarms.tracker": ["alarms/test_tracker.py"],
    "frames.segments": ["frames/test_segments.py"],
    "frames.time": ["frames/test_time.py", "frames/test_resample.py"],
    "model": ["test_model.py"],
    "signals.cells": ["signals/test_cells.py"],
    "signals.cell_fit": ["signals/test_cells.py", "signals/test_modes.py"],
    "signals.modes": ["signals/test_modes.py"],
    "stream": ["test_stream.py"],
}
SAMPLE = 60
QUICK = 1.0  # processor seconds above which a test is not run: what only it notices survives
QUIET = ("-s", "-p", "no:cacheprovider", "--hypothesis-seed=0", "-qqq", "--no-summary")

SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Break: ast.Continue,
    ast.Continue: ast.Break,
}
LEFT_ALONE = ("annotation", "returns", "decorator_list", "bases")


class Mutant(NamedTuple):
    """One change: a part of the tree, and what takes its place."""

    line: int
    parent: ast.AST
    field: str
    index: int | None  # where the field is a list
    new: ast.AST
    function: int | None  # its first line; None: a module or class body, a default

    @property
    def old(self) -> ast.AST:
        """What is there before."""
        value = getattr(self.parent, self.field)
        return value if self.index is None else value[self.index]

    def apply(self) -> None:
        """Change the tree, in place."""
        if self.index is None:
            setattr(self.parent, self.field, self.new)
        else:
            getattr(self.parent, self.field)[self.index] = self.new

    @property
    def words(self) -> str:
        """The change as a person reads it."""
        if isinstance(self.old, ast.operator | ast.cmpop | ast.boolop):
            names = (type(node).__name__ for node in (self.old, self.new))
            return f"{' -> '.join(names)} in {ast.unparse(self.parent)}"
        return f"{ast.unparse(self.old)} -> {ast.unparse(self.new)}"


def mutants(tree: ast.Module) -> list[Mutant]:
    """Every change of a module, in the order of its lines."""
    return list(_changes(tree, 1, None))


def _changes(parent: ast.AST, line: int, function: int | None) -> Iterator[Mutant]:
    if isinstance(parent, ast.Raise | ast.Assert | ast.Import | ast.ImportFrom | ast.JoinedStr):
        return
    if isinstance(parent, ast.keyword) and parent.arg == "strict":  # zip: guards, never decides
        return
    for field, value in ast.iter_fields(parent):
        if field in LEFT_ALONE:
            continue
        many = isinstance(value, list)
        for index, node in enumerate(value if many else [value]):
            if not isinstance(node, ast.AST):
                continue
            here = getattr(node, "lineno", line)
            for new in _instead(node, parent, field):
                yield Mutant(here, parent, field, index if many else None, new, function)
            inner = function
            if isinstance(parent, ast.FunctionDef) and field == "body":
                inner = _first_line(parent)
            yield from _changes(node, here, inner)


def _instead(node: ast.AST, parent: ast.AST, field: str) -> Iterator[ast.AST]:
    """What may take the place of a node."""
    if type(node) in SWAPS:
        yield SWAPS[type(node)]()
    elif isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.UAdd):
        yield node.operand
    elif isinstance(node, ast.Constant) and (number := _another(node.value)) is not None:
        yield ast.Constant(number)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield ast.Pass()
    if field == "test" and isinstance(parent, ast.If | ast.IfExp | ast.While):
        yield ast.UnaryOp(ast.Not(), node)  # type: ignore[arg-type]


def _another(value: Any) -> bool | int | float | None:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    return (2 * value or 1.0) if isinstance(value, float) else None


class Changed(MetaPathFinder, Loader):
    """Imports one module from a tree instead of its file."""

    def __init__(self, name: str, path: Path, tree: ast.Module) -> None:
        self.name, self.path = name, path
        self.code = compile(ast.fix_missing_locations(tree), str(path), "exec")

    def swap(self, functions: Sequence[FunctionType]) -> None:
        """Give every function of the imported module its changed code."""
        codes = {(code.co_qualname, code.co_firstlineno): code for code in _codes(self.code)}
        for one in functions:
            one.__code__ = codes[one.__code__.co_qualname, one.__code__.co_firstlineno]

    def install(self) -> None:
        """Have everything of this repository imported anew, this module from its tree."""
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None) or ""
            ours = str(ROOT) in file and "site-packages" not in file  # .venv lies in it too
            if ours and name != "__main__":
                del sys.modules[name]
        sys.meta_path.insert(0, self)

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        """This loader, for its module alone."""
        if fullname != self.name:
            return None
        return spec_from_loader(fullname, self, origin=str(self.path))

    def exec_module(self, module: ModuleType) -> None:
        """Run the tree as the module."""
        module.__file__ = str(self.path)
        exec(self.code, module.__dict__)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _codes(inner)


class Once:
    """A pytest plugin: a Hypothesis example that fails is enough, neither made small nor kept."""

    def pytest_sessionstart(self) -> None:
        """Change the profile that the tests will be imported under."""
        from hypothesis import Phase, settings

        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("once", settings.default, phases=phases, database=None)
        settings.load_profile("once")


class Trial(Once):
    """A pytest plugin that hands the collected tests to a function instead of running them.

    They are collected once; each run of them is in a process of its own, where a module may change.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = paths
        self.items: list[pytest.Item] = []
        self.failed = False
        self._entered: set[int] = set()  # functions of the module, by their first lines
        self._by_fixture: dict[str, set[int]] = defaultdict(set)

    def hold(self, use: Callable[[], None]) -> None:
        """Collect the tests and call `use` while pytest waits to run them."""
        self._use = use
        if pytest.main([*QUIET, *self.paths], plugins=[self]):
            raise SystemExit("no tests, or they cannot be imported")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Instead of running the tests."""
        self.items = session.items
        self._use()
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure."""
        self.failed |= report.failed

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
        """Note what a fixture calls: every test that uses it may notice a change there."""
        before, self._entered = self._entered, set()
        try:
            return (yield)
        finally:
            self._by_fixture[fixturedef.argname] |= self._entered
            self._entered |= before

    def passes(self, items: Sequence[pytest.Item]) -> bool:
        """Whether these tests pass; stops at the first that fails."""
        for item, after in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            if self.failed:
                return False
        return True

    def profile(self) -> list[tuple[float, list[int]]]:
        """Processor seconds of each test, and the functions of the module that it enters."""
        found, cached = [], _cached(self.items)
        builtins.entered = lambda line: self._entered.add(line)  # type: ignore[attr-defined]
        for item, after in zip(self.items, [*self.items[1:], None], strict=True):
            for function in cached:
                function.cache_clear()
            self._entered, began = set(), time.process_time()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            found.append((item, time.process_time() - began, self._entered))
        if self.failed:
            raise SystemExit("tests fail without any change")
        return [
            (seconds, sorted(entered.union(*(self._by_fixture[name] for name in _fixtures(item)))))
            for item, seconds, entered in found
        ]


def telling(tree: ast.Module) -> ast.Module:
    """The same module, but each of its functions says when it is entered."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            call = f"__import__('builtins').entered({_first_line(node)})"
            node.body[:0] = ast.parse(call).body
    return tree


def _first_line(function: ast.FunctionDef) -> int:
    return min(one.lineno for one in (function, *function.decorator_list))


def _fixtures(item: pytest.Item) -> Sequence[str]:
    return getattr(item, "fixturenames", ())


def _cached(items: Sequence[pytest.Item]) -> list[Any]:
    """Functions of the tests' own modules that remember their results."""
    modules = {item.getparent(pytest.Module).obj for item in items}
    return [one for each in modules for one in vars(each).values() if hasattr(one, "cache_clear")]


def apart(what: Callable[[], int], seconds: float) -> int | None:
    """The exit status of a function in a process of its own; None after so much processor time."""
    child = os.fork()
    if not child:
        os.setpgid(0, 0)
        used = time.process_time()
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(used + seconds), -1))
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        code = 3
        try:
            code = what()
        finally:
            os._exit(code)
    end = time.monotonic() + 60 + 40 * seconds  # on a busy machine, or asleep for ever
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return None if status == signal.SIGXCPU else status
        time.sleep(0.005)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


class Study:
    """A sample of a module's mutants, 0 for all, against its tests."""

    def __init__(self, module: str, sample: int, seed: int, show: bool) -> None:
        self.module, self.name, self.show = module, f"vace_ad.{module}", show
        self.path = ROOT / "src" / "vace_ad" / f"{module.replace('.', '/')}.py"
        self.source = self.path.read_text()
        self.tests = Trial([str(ROOT / "tests" / test) for test in TESTS[module]])
        self.total = len(mutants(ast.parse(self.source)))
        size = min(sample or self.total, self.total)
        self.chosen = sorted(random.Random(seed).sample(range(self.total), size))
        self.killed = self.late = 0

    def run(self) -> None:
        """Try every mutant of the sample."""
        gc.unfreeze()  # of the module before
        self.functions = [
            one
            for one in gc.get_objects()
            if isinstance(one, FunctionType) and one.__code__.co_filename == str(self.path)
        ]
        if not self.functions:
            raise SystemExit(f"{self.module}: its tests do not import it")
        with TemporaryDirectory() as folder:
            file = Path(folder) / "profile.json"

            def measure() -> int:
                tree = telling(ast.parse(self.source))
                Changed(self.name, self.path, tree).swap(self.functions)
                return 0 * file.write_text(json.dumps(self.tests.profile()))

            if apart(measure, 900) != 0:
                raise SystemExit(f"{self.module}: its tests fail without any change")
            profile = json.loads(file.read_text())
        files = [item.path for item in self.tests.items]
        quick = [i for i, (seconds, _) in enumerate(profile) if seconds <= QUICK]
        order = sorted(quick, key=lambda i: (files.index(files[i]), profile[i][0]))
        gc.freeze()  # pages that no child need copy
        if self._status(ast.parse(self.source), True, order, 600) != 0:
            raise SystemExit(f"{self.module}: its tests fail in another order")
        for number in self.chosen:
            tree = ast.parse(self.source)
            mutant = mutants(tree)[number]
            words = f"{self.module}:{mutant.line}: {mutant.words}"
            mutant.apply()
            tests = [i for i in order if mutant.function in (None, *profile[i][1])]
            limit = 10 * sum(profile[i][0] for i in tests) + 10
            status = self._status(tree, mutant.function is None, tests, limit)
            self.killed += status != 0
            self.late += status is None
            if status == 0 and self.show:
                print(words, f"({len(tests)} tests)", flush=True)

    def _status(
        self, tree: ast.Module, anew: bool, tests: Sequence[int], seconds: float
    ) -> int | None:
        """0 where these tests pass with this tree as the module, imported anew or exchanged."""
        changed = Changed(self.name, self.path, tree)
        items = [self.tests.items[i] for i in tests]

        def run() -> int:
            if not anew:
                changed.swap(self.functions)
                return int(not self.tests.passes(items))
            changed.install()
            nodes = [item.nodeid for item in items]
            return int(pytest.main(["-x", *QUIET, *nodes], plugins=[Once()]))

        return apart(run, seconds)

    def line(self) -> Line:
        """What came of it."""
        began = time.monotonic()
        self.tests.hold(self.run)
        score = self.killed / len(self.chosen)
        print(f"{self.module:20} {self.killed:4} of {len(self.chosen):4} killed, {score:6.1%}")
        return {
            "module": self.name,
            "tests": " ".join(TESTS[self.module]),
            "mutants": self.total,
            "sampled": len(self.chosen),
            "killed": self.killed,
            "of_them_by_time": self.late,
            "score": f"{score:.3f}",
            "seconds": f"{time.monotonic() - began:.0f}",
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the CSV file")
    parser.add_argument("--modules", nargs="*", choices=list(TESTS), default=list(TESTS))
    parser.add_argument("--sample", type=int, default=SAMPLE, help="mutants a module; 0: all")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample")
    parser.add_argument("--survivors", action="store_true", help="print the mutants that survive")
    chosen = parser.parse_args()
    os.chdir(ROOT)
    sys.path.remove(str(Path(__file__).parent))  # where modules have names of the tests' folders
    path = chosen.out / "mutation.csv"
    for module in chosen.modules:
        line = Study(module, chosen.sample, chosen.seed, chosen.survivors).line()
        line |= {"seed": chosen.seed, **origin()}
        others = [one for one in read(path) if one["module"] != line["module"]]
        write(sorted([*others, line], key=lambda one: one["module"]), path)


if __name__ == "__main__":
    main()
