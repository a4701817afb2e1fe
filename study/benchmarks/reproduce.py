"""The paper's study in stages by worth: `make reproduce`.

    python study/benchmarks/reproduce.py                   # an hour of it; the same again goes on
    python study/benchmarks/reproduce.py --list            # the stages, and what is left of each
    python study/benchmarks/reproduce.py --methods vace    # of these methods alone
    python study/benchmarks/reproduce.py --minutes 6000    # all of it
    python study/benchmarks/reproduce.py --again --methods vace --series 075 077  # these anew

A run starts from the committed rows (`results/reproduce-rows.csv`), so a fresh checkout goes on
where others stopped. Rows of a method whose settings or code version have changed since are left
out, those of the run folder too, where a copy of them stays. At the end rows, tables and figures
are written anew (`study_tables.py`).
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from common import DATA, RESULTS, ROOT, Line, origin, read, write
from rich.console import Console
from study_tables import FIGURES_FOLDER, ROWS, draw_figures, write_tables

from vace_study.baselines import expand, resolve
from vace_study.catalog import find_series
from vace_study.progress import progress_for
from vace_study.protocols import exam
from vace_study.rows import Key, Row
from vace_study.rows_csv import rows_of, to_line
from vace_study.runner import Engine, Plan, run
from vace_study.series import load
from vace_study.store import Store, read_rows
from vace_study.tasks import facts

BOTH = ("tsb-ad", "test-only")
PAPER = ("test-only",)  # the paper's own tables
MIDDLE = ("Genesis", "Daphnet", "GECCO")
SHORT = ("MSL", "SMAP", *MIDDLE, "SMD")
ECG = ("LTDB", "SVDB", "MITDB")
# Short series of three families, which every system has; numbers as in the benchmark's names.
CORE = ("001", "002", "010", "012", "013", "016", "017", "156", "159", "166")
STUDIES = ("002", "010", "012", "013", "016", "017")  # short, of MSL
SMD = ("059", "065", "075", "078")  # of few training rows
TUNING = ("004", "011", "149", "164", "082", "028")  # the last two are electrocardiograms

CHARTS = (
    "shewhart", "ewma", "cusum", "hotelling-t2", "pca-q", "t2-and-q", "var-reduced-rank", "cells",
    "cells-ewma",
)  # fmt: skip
LIGHT = ("usad", "deepant", "omnianomaly", "timesnet")
CHECKED = ("xlstmad-quick", "anomaly-transformer-quick")
CAPPED = (
    "lstmad", "kan-ad", "dcdetector-quick", "xlstmad-f-quick", "kan-ad-reconstruction-quick",
    "xlstmad-r-quick", "crossad-quick", "catch-quick",
)  # fmt: skip
UNCAPPED = (
    "xlstmad", "anomaly-transformer", "dcdetector", "kan-ad-reconstruction", "xlstmad-f",
    "xlstmad-r", "crossad", "catch-small",
)  # fmt: skip


class Stage(NamedTuple):
    """A part of the study."""

    methods: tuple[str, ...]
    where: tuple[str, ...]  # families, or numbers of series
    seeds: int = 1
    protocols: tuple[str, ...] = BOTH

    def __str__(self) -> str:
        seeds = f"{self.seeds} seed{'s' if self.seeds > 1 else ''}"
        return f"{', '.join(self.methods)} on {', '.join(self.where)}, {seeds}"

    def plan(self, data: Path, only: Sequence[str], numbers: Sequence[str]) -> Plan | None:
        """What it asks for of these methods and series; None where that is nothing."""
        methods = [name for name in expand(self.methods) if not only or name in only]
        series = [
            entry
            for entry in find_series(data)  # a folder need not hold all of the benchmark
            if {entry.name.family, number := entry.name.stem[:3]} & {*self.where}
            and (not numbers or number in numbers)
        ]
        if not methods or not series:
            return None
        return Plan(series, methods, self.protocols, self.seeds, largest_first=False)


STAGES = (
    Stage(("pca", "iforest"), (*SHORT, *ECG)),
    Stage(CHARTS, (*SHORT, *ECG)),
    Stage(("vace",), (*SHORT, *ECG)),
    Stage(("vace",), SHORT, seeds=5),
    Stage(LIGHT, CORE),
    Stage((*CHECKED, *CAPPED), CORE),
    Stage(("vace-released",), ("MSL", "SMAP", "Genesis")),
    Stage(("ablation",), STUDIES, 3, PAPER),
    Stage(("sensitivity",), TUNING[:4], 1, PAPER),
    Stage(("vace-no-channel-encoder",), ("MSL",), 3, PAPER),
    Stage(("axonad",), ("MSL", *CORE)),
    Stage(("ablation",), ("MSL", *MIDDLE), 1, PAPER),  # more series before more seeds
    Stage(("ablation",), ("SMAP",), 1, PAPER),
    Stage(("vace-released",), ("MSL", "SMAP"), seeds=5),
    Stage(("ablation",), ("SMD",), 1, PAPER),
    Stage(("ablation",), ("MSL", *MIDDLE), 3, PAPER),
    Stage(("sensitivity",), TUNING, 1, PAPER),
    Stage(LIGHT, ("MSL", "SMAP", "Genesis", "SMD")),
    Stage(LIGHT[:3], MIDDLE),
    Stage(CHECKED, ("MSL", *SMD)),
    Stage(("paano",), SHORT),
    Stage(("vace",), (*SHORT, *ECG), seeds=10),
    Stage(("vace-released",), ("MSL", "SMAP", "Genesis"), seeds=3),
    Stage(("vace-released",), (*MIDDLE, "SMD")),
    Stage(("vace-released",), ECG, 1, PAPER),
    Stage(CHECKED, ("SMAP",)),
    Stage(("xlstmad",), ("001",)),
    Stage(("anomaly-transformer",), ("156",)),
    Stage(("vace-released",), ("MSL", "Genesis"), seeds=10),
    Stage(CHECKED, ("SMD", *MIDDLE)),
    Stage(UNCAPPED[:2], CORE),
    Stage(("lstmad",), ("MSL", "SMAP")),
    Stage(("sensitivity",), TUNING[:4], 3, PAPER),
    Stage(("vace-released",), ("SMAP", *MIDDLE), seeds=10),
    Stage(CAPPED, ("MSL", "SMAP")),
    Stage(("ablation",), ("SMAP", "SMD"), 3, PAPER),
    Stage((*LIGHT, *CAPPED), (*MIDDLE, "SMD")),
    Stage(UNCAPPED, CORE),
    Stage(("paano", "vace-released"), SHORT, seeds=3),
    Stage((*LIGHT, "paano", "vace-released"), ECG),
)


def main() -> None:
    options = _options()
    console = Console(stderr=True)
    if options.again:
        forget(options.rows, options.run, options.methods, options.series)
    adopt(options.rows, options.run)
    if options.list:
        return tell(options, console)
    started = monotonic()
    for number, stage in enumerate(STAGES, start=1):
        left = 60 * options.minutes - (monotonic() - started)
        if left <= 0:
            break
        plan = stage.plan(options.data, options.methods, options.series)
        if plan is not None and (not options.stages or number in options.stages):
            console.print(f"stage {number}: {stage}")
            engine = Engine(jobs=options.jobs, threads=options.threads, stop_after=left)
            run(plan, options.run, engine, progress_for(console))
    console.print(f"{(monotonic() - started) / 60:.1f} minutes")
    commit(options.run, options.rows, options.data)
    write_tables(options.rows, options.out)
    draw_figures(options.rows, options.figures)
    return None


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA, help="folder of TSB-AD-M")
    parser.add_argument("--run", type=Path, default=ROOT / "runs" / "reproduce")
    parser.add_argument("--rows", type=Path, default=RESULTS / ROWS, help="the committed rows")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the tables")
    parser.add_argument("--figures", type=Path, default=FIGURES_FOLDER)
    parser.add_argument("--minutes", type=float, default=58, help="start no task later")
    parser.add_argument("--stages", type=int, nargs="*", help="these alone, by number")
    parser.add_argument("--methods", nargs="*", default=(), help="these alone")
    parser.add_argument("--series", nargs="*", default=(), help="these alone, by number")
    parser.add_argument(
        "--again", action="store_true", help="drop the rows of --methods on --series first"
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--threads", type=int, help="of each job; None shares the cores")
    parser.add_argument("--list", action="store_true", help="say what is left, and run nothing")
    options = parser.parse_args()
    if options.again and not options.methods:
        parser.error("--again needs --methods, and may have --series: the rows to compute anew")
    return options


def forget(path: Path, folder: Path, methods: Sequence[str], numbers: Sequence[str]) -> None:
    """Drop rows from the committed file and the run folder, where a copy of the latter stays.

    For rows whose code has changed in a way that concerns these series alone: where it concerns
    others too, raise the method's version.
    """

    def named(method: str, series: str) -> bool:
        return method in expand(methods) and (not numbers or series[:3] in numbers)

    lines = read(path)
    write([line for line in lines if not named(line["method"], line["series"])], path)
    _put_aside(folder / "rows.jsonl", lambda row: not named(row.method, row.series))


def adopt(path: Path, folder: Path) -> None:
    """Put committed rows of methods as they are now into the run folder, where it lacks them."""
    _put_aside(folder / "rows.jsonl", _is_current)
    with Store(folder) as store:
        rows = rows_of(read(path), path)
        store.append([row for row in rows if _is_current(row) and row.key not in store.rows])


def _put_aside(path: Path, wanted: Callable[[Row], bool]) -> None:
    """Keep only these rows in a run's file, and a copy of all beside it."""
    rows = read_rows(path.parent) if path.is_file() else []
    kept = [row for row in rows if wanted(row)]
    if len(kept) < len(rows):
        shutil.copy(path, path.with_name(f"rows-before-{origin()['commit']}.jsonl"))
        part = path.with_suffix(".part")
        part.write_text("".join(f"{row.to_json()}\n" for row in kept))
        part.replace(path)


def _counted(rows: Sequence[Row], data: Path) -> list[Row]:
    """The rows, with the facts of their series that older files do not tell."""
    unknown = {(row.series, row.protocol) for row in rows if row.evaluated_rows is None}
    paths = {entry.name.stem: entry.path for entry in find_series(data)} if unknown else {}
    found = {}
    for stem, protocol in sorted(unknown):
        if stem in paths:
            series = load(paths[stem])
            found[stem, protocol] = facts(series, exam(series, protocol))
    return [
        replace(row, **{k: v for k, v in told.items() if k != "notes"})
        if (told := found.get((row.series, row.protocol))) and row.evaluated_rows is None
        else row
        for row in rows
    ]


def _is_current(row: Row) -> bool:
    """Whether a row is of its method's present settings and code version."""
    return row.config == resolve(row.method).config_hash


def commit(folder: Path, path: Path, data: Path) -> None:
    """Write the run's rows; those that were committed before keep the commit they came from."""
    before = {
        Key(line["method"], line["series"], int(line["seed"]), line["protocol"]): line
        for line in read(path)
    }
    lines = []
    for row in sorted(_counted(read_rows(folder), data), key=lambda row: row.key):
        line = to_line(row)
        old = before.get(row.key)
        if old and all(old[name] == str(line[name]) for name in ("status", *_same(line))):
            line |= {name: old[name] for name in origin()}
        lines.append(line)
    write(lines, path)


def _same(line: Line) -> tuple[str, ...]:
    """What must be equal for a row to be the one committed before."""
    return ("VUS-PR", "score_seconds") if line["status"] == "ok" else ()


def tell(options: argparse.Namespace, console: Console) -> None:
    """How many rows of each stage are there."""
    done = {row.key for row in read_rows(options.run)}
    for number, stage in enumerate(STAGES, start=1):
        plan = stage.plan(options.data, options.methods, options.series)
        if plan is not None:
            keys = [key for task in plan.tasks() for key in task.keys]
            there = sum(key in done for key in keys)
            console.print(f"{number:3d}  {there:4d} of {len(keys):4d} rows  {stage}")


if __name__ == "__main__":
    main()
