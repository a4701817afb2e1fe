"""Print which package imports which, from the import statements themselves.

    python docs/scripts/imports.py

Imports inside functions count: they wait to be quick, not to break a cycle. Those for annotations
alone (under TYPE_CHECKING) do not. Exits with status 1 where there is a cycle.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "vace_ad"
ROOT = "vace_ad"
# Where the public names of the root live.
HOMES = {"VACE": "detector", "load": "detector", "VACEConfig": "config", "VaceError": "errors"}


def graph(package: Path = PACKAGE) -> dict[str, set[str]]:
    """For each package or module directly below the root, those that it imports."""
    found: dict[str, set[str]] = {}
    for path in sorted(package.rglob("*.py")):
        own = path.relative_to(package).parts[0].removesuffix(".py")
        if own == "__init__":
            continue  # its names load on first use
        used = found.setdefault(own, set())
        for module in imported(ast.parse(path.read_text("utf-8"))):
            parts = module.split(".")
            if parts[0] == ROOT and len(parts) > 1 and parts[1] != own:
                used.add(parts[1])
    return found


def imported(tree: ast.Module) -> Iterator[str]:
    """The modules that are imported when a module is loaded, or when its functions run."""
    for node in _nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == ROOT:
            yield from (f"{ROOT}.{HOMES.get(alias.name, alias.name)}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def _nodes(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those for annotations alone."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from _nodes(child)


def drawing(edges: dict[str, set[str]]) -> str:
    """A line for each package, after all that it imports."""
    known = {name: {used for used in uses if used in edges} for name, uses in edges.items()}
    sorter = TopologicalSorter(known)
    sorter.prepare()
    lines = []
    width = max(map(len, known))
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        for name in ready:
            uses = ", ".join(sorted(known[name]))
            lines.append(f"{name:<{width}}  <- {uses}" if uses else name)
        sorter.done(*ready)
    return "\n".join(lines)


def main() -> int:
    """Print the graph, or the cycle."""
    try:
        print(drawing(graph()))
    except CycleError as error:
        print("a cycle:", " -> ".join(error.args[1]), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
