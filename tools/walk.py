"""Count the modules of vace_ad that one command enters, in the order of first entry.

    python tools/walk.py                    # vace detect on a small table, results in a folder
    python tools/walk.py --list             # and name them

A module is entered when one of its functions runs; importing it does not count.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import polars as pl


def table(path: Path, rows: int = 2000) -> None:
    """A small table with a rhythm and a fault."""
    rng = np.random.default_rng(0)
    wave = np.sin(2 * np.pi * np.arange(rows)[:, None] / [24.0, 60.0])
    x = wave @ rng.normal(size=(2, 4)) + 0.1 * rng.normal(size=(rows, 4))
    x[1500:1540, 2] += 5
    time = np.datetime64("2026-01-01", "ns") + np.arange(rows) * np.timedelta64(60, "s")
    columns = {"time": time, **{f"sensor_{i}": x[:, i] for i in range(4)}}
    pl.DataFrame(columns).write_csv(path)


def imported(frame: FrameType | None) -> bool:
    """Whether this runs because a module is being imported."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_globals["__name__"] != "__main__":
            return True
        frame = frame.f_back
    return False


def walk(arguments: list[str]) -> dict[str, int]:
    """The modules that `vace` enters, each with how often it was entered from another one."""
    from typer.testing import CliRunner

    from vace_ad.cli.main import app

    entered: dict[str, int] = {}
    last = ""

    def note(frame: FrameType, event: str, _: Any) -> None:
        nonlocal last
        name = frame.f_globals.get("__name__", "")
        if event != "call" or not name.startswith("vace_ad") or name == last:
            return
        if name in entered or not imported(frame):
            entered[name] = entered.get(name, 0) + 1
            last = name

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        with redirect_stdout(StringIO()):
            result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    if result.exit_code:
        raise SystemExit(result.output)
    return entered


def main() -> None:
    """Print the number of modules."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="name the modules")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        plant = Path(folder) / "plant.csv"
        table(plant)
        entered = walk(["detect", str(plant), "--out", f"{folder}/results"])
    if chosen.list:
        print("\n".join(f"{count:6,} {name}" for name, count in entered.items()))
    print(f"vace detect enters {len(entered)} modules, {sum(entered.values()):,} changes of module")


if __name__ == "__main__":
    main()
