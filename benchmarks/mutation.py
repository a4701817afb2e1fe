"""Mutation score of the core modules: how many small changes of the code do the tests notice?

    OMP_NUM_THREADS=1 python benchmarks/mutation.py                       # an hour on one core
    python benchmarks/mutation.py --modules alarms.budget --sample 0 --survivors   # every mutant

A mutant is a module with one change: a comparison, an arithmetic or logical operator, a number, a
condition, or a call left out. It is killed when the tests named here for its module fail or take
ten times as long. Annotations, decorators, assertions and error messages are not changed. Writes
mutation.csv, a line a module; lines of modules not chosen stay.
"""

from __future__ import annotations

import argparse
import ast
import gc
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import pytest
from record import RESULTS, ROOT, Line, origin, read, write

# The tests that should notice a change of each module, the quickest first.
TESTS = {
    "alarms.budget": ["alarms/test_budget.py"],
    "alarms.evidence": ["alarms/test_evidence.py"],
    "alarms.scan": ["alarms/test_scan.py"],
    "frames.segments": ["frames/test_segments.py"],
    "frames.time": ["frames/test_time.py"],
    "model": ["test_tensor_file.py"],
    "signals.cells": ["signals/test_cells.py"],
    "signals.cell_fit": ["signals/test_cells.py", "signals/test_modes.py"],
    "signals.modes": ["signals/test_modes.py"],
    "stream": ["test_stream.py"],
}
SAMPLE = 60
QUIET = ("-p", "no:cacheprovider", "--hypothesis-seed=0", "-qqq", "--no-summary")

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
    in_function: bool  # not of a module or class body, a default or a constant

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
    return list(_changes(tree, 1, False))


def _changes(parent: ast.AST, line: int, in_function: bool) -> Iterator[Mutant]:
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
                yield Mutant(here, parent, field, index if many else None, new, in_function)
            body = isinstance(parent, ast.FunctionDef) and field == "body"
            yield from _changes(node, here, in_function or body)


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

    def swap(self) -> None:
        """Give every function of the imported module its changed code."""
        codes = {(code.co_qualname, code.co_firstlineno): code for code in _codes(self.code)}
        for one in gc.get_objects():
            if isinstance(one, FunctionType) and one.__code__.co_filename == str(self.path):
                one.__code__ = codes[one.__code__.co_qualname, one.__code__.co_firstlineno]

    def install(self) -> None:
        """Have everything of this repository imported anew, this module from its tree."""
        for name, module in list(sys.modules.items()):
            if str(ROOT) in (getattr(module, "__file__", None) or "") and name != "__main__":
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


def tests_fail(change: Callable[[], None], tests: Sequence[str], seconds: float) -> bool | None:
    """Whether tests fail after a change, in a process of their own; None at a timeout."""
    child = os.fork()
    if not child:
        os.setpgid(0, 0)
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        code = 3
        try:
            change()
            code = int(pytest.main(["-x", *QUIET, *tests]))
        finally:
            os._exit(code)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return status != 0
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def study(module: str, sample: int, seed: int, show: bool) -> Line:
    """The line of a module: a sample of its mutants, 0 for all, against its tests."""
    path = ROOT / "src" / "vace_ad" / f"{module.replace('.', '/')}.py"
    name, tests = f"vace_ad.{module}", [str(ROOT / "tests" / test) for test in TESTS[module]]
    source = path.read_text()
    pytest.main(["--collect-only", *QUIET, *tests])  # imports once what they need
    began = time.monotonic()
    same = Changed(name, path, ast.parse(source))
    if any(tests_fail(way, tests, 600) is not False for way in (same.swap, same.install)):
        raise SystemExit(f"{module}: its tests fail or take ten minutes without any change")
    limit = 5 * (time.monotonic() - began) + 10
    total = len(mutants(ast.parse(source)))
    chosen = sorted(random.Random(seed).sample(range(total), min(sample or total, total)))
    killed = late = 0
    for number in chosen:
        tree = ast.parse(source)
        mutant = mutants(tree)[number]
        words = f"{module}:{mutant.line}: {mutant.words}"
        mutant.apply()
        changed = Changed(name, path, tree)
        failed = tests_fail(changed.swap if mutant.in_function else changed.install, tests, limit)
        killed += failed is not False
        late += failed is None
        if failed is False and show:
            print(words, flush=True)
    score = killed / len(chosen)
    print(f"{module:16} {killed:4} of {len(chosen):4} killed, {score:6.1%}", flush=True)
    return {
        "module": name,
        "tests": " ".join(TESTS[module]),
        "mutants": total,
        "sampled": len(chosen),
        "killed": killed,
        "of_them_by_time": late,
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
        line = study(module, chosen.sample, chosen.seed, chosen.survivors)
        line |= {"seed": chosen.seed, **origin()}
        others = [one for one in read(path) if one["module"] != line["module"]]
        write(sorted([*others, line], key=lambda one: one["module"]), path)


if __name__ == "__main__":
    main()
