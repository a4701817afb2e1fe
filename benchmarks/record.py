"""Where results lie, and CSV files whose lines say which commit and what machine they come from."""

from __future__ import annotations

import csv
import os
import platform
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"
DATA = Path(os.environ.get("VACE_DATA", ROOT.parent / "shared" / "data"))
Line = dict[str, Any]


def origin() -> dict[str, str]:
    """The commit, with a plus sign where the package has other changes, and the machine's kind."""
    dirty = "+" if _git("status", "--short", "--untracked-files=no", "src", "study/src") else ""
    return {"commit": (_git("rev-parse", "--short", "HEAD") or "unknown") + dirty} | machine()


def machine() -> dict[str, str]:
    """What kind of machine this is, without its name."""
    about = Path("/proc/cpuinfo")
    flags = about.read_text() if about.exists() else ""
    vector = next((f" {name.upper()}" for name in ("avx512f", "avx2") if name in flags), "")
    return {"machine": f"{os.cpu_count()} cores {platform.machine()}{vector}"}


def write(lines: Sequence[Line], path: Path, **facts: Any) -> None:
    """A CSV file of these lines, facts and origin on each; missing cells stay empty.

    A line that tells its own origin keeps it.
    """
    facts |= origin()
    names = dict.fromkeys(name for line in lines for name in line if name not in facts)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*names, *facts], restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows({**facts, **line} for line in lines)


def append(lines: Iterable[Line], path: Path) -> None:
    """Add lines that all have the same cells to a CSV file, with their origin."""
    from_here = origin()
    lines = [{**line, **from_here} for line in lines]
    if not lines:
        return
    fresh = not path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, lines[0], lineterminator="\n")
        if fresh:
            writer.writeheader()
        writer.writerows(lines)


def read(path: Path) -> list[dict[str, str]]:
    """The lines of a CSV file; none where there is no file."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _git(*arguments: str) -> str:
    run = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(run, capture_output=True, text=True, check=False).stdout.strip()
