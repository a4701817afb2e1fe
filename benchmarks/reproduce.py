"""What of the paper's study fits into an hour on two cores: `make reproduce`.

Stages run in order of worth until the time is up; the same command goes on with what is left, and
`--minutes 900` does all of it. Every row is kept in the run folder; tables, and all rows with the
commit and the kind of machine, are written beside this file.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from record import DATA, RESULTS, ROOT, write
from rich.console import Console

from vace_ad.bench import published
from vace_ad.bench.catalog import find_series
from vace_ad.bench.progress import progress_for
from vace_ad.bench.results import Results
from vace_ad.bench.rows import MEASURES, Row
from vace_ad.bench.runner import Engine, Plan, run
from vace_ad.bench.store import read_rows
from vace_ad.bench.tables import TABLES

PROTOCOLS = ("tsb-ad", "test-only")
SHORT = ("MSL", "SMAP", "Genesis", "Daphnet", "GECCO", "SMD")
ECG = ("SVDB", "MITDB")


class Stage(NamedTuple):
    """A part of the study."""

    methods: tuple[str, ...]
    families: tuple[str, ...]
    seeds: int = 3
    protocols: tuple[str, ...] = PROTOCOLS

    def __str__(self) -> str:
        seeds = f"{self.seeds} seed{'s' if self.seeds > 1 else ''}"
        return f"{', '.join(self.methods)} on {', '.join(self.families)}, {seeds}"


STAGES = (
    Stage(("pca", "iforest"), (*SHORT, *ECG)),
    Stage(("vace",), SHORT, seeds=5),
    Stage(("vace",), ECG, seeds=5),
    Stage(("vace-released",), ("MSL", "Genesis")),
    Stage(("vace-released",), ("SMAP",)),
    Stage(("vace-released",), ("Daphnet", "GECCO", "SMD"), seeds=1),
    Stage(("vace-released",), ECG, 1, ("test-only",)),
    Stage(("paano",), ("MSL", "Genesis", "Daphnet", "GECCO"), seeds=1),
    Stage(("paano",), ("SMAP", "SMD"), seeds=1),
    Stage(("paano",), SHORT),
    Stage(("vace-released",), SHORT),
    Stage(("paano", "vace-released"), ECG),
)


def main() -> None:
    options = _options()
    started, console = monotonic(), Console(stderr=True)
    for number, stage in enumerate(STAGES[: options.stages], start=1):
        left = 60 * options.minutes - (monotonic() - started)
        if left <= 0:
            break
        console.print(f"stage {number}: {stage}")
        series = find_series(options.data, families=stage.families)
        plan = Plan(series, stage.methods, stage.protocols, stage.seeds)
        run(plan, options.run, Engine(jobs=options.jobs, stop_after=left), progress_for(console))
    console.print(f"{(monotonic() - started) / 60:.1f} minutes")
    write_results(options.run, options.out)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of TSB-AD-M")
    parser.add_argument("--run", type=Path, default=ROOT / "runs" / "reproduce")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--minutes", type=float, default=58)
    parser.add_argument("--stages", type=int, default=len(STAGES), help="the first so many only")
    parser.add_argument("--jobs", type=int, default=2)
    return parser.parse_args()


def write_results(folder: Path, out: Path) -> None:
    """The tables of the evaluation split, and the rows behind them."""
    rows = sorted(read_rows(folder), key=lambda row: row.key)
    write([_flat(row) for row in rows], out / "reproduce-rows.csv")
    write(_beside(rows), out / "published-baselines.csv")
    for protocol in PROTOCOLS:
        results = Results.load(folder, protocol, "eval")
        for name, of in (("main", results), ("main-common", results.common())):
            _table(TABLES["main"](of), out / f"{name}-{protocol}")
        _table(TABLES["category"](results), out / f"category-{protocol}")


def _table(table, path: Path) -> None:
    path.with_suffix(".csv").write_text(table.to_csv())
    path.with_suffix(".md").write_text(table.to_markdown())


def _flat(row: Row) -> dict[str, object]:
    key = {name: getattr(row, name) for name in ("method", "series", "seed", "protocol", "status")}
    measures = {name: _short(row.measures.get(name)) for name in MEASURES}
    cost = ("fit_seconds", "score_seconds", "peak_memory_mb", "config", "version")
    return {**key, **measures, **{name: _short(getattr(row, name)) for name in cost}}


def _beside(rows: list[Row]) -> list[dict[str, object]]:
    """PCA and IForest of TSB-AD's own result table beside ours, series by series."""
    lines = []
    for row in rows:
        known = published.per_series().get(published.COUNTERPARTS.get(row.method, ""), {})
        if row.protocol == "tsb-ad" and row.method in ("pca", "iforest") and row.series in known:
            ours, theirs = row.measures["VUS-PR"], known[row.series]
            line = {"method": row.method, "series": row.series, "seed": row.seed}
            numbers = {
                "ours": _short(ours),
                "published": theirs,
                "gap": f"{round(ours - theirs, 6) + 0.0:.6f}",
            }
            lines.append({**line, "protocol": row.protocol, **numbers})
    return lines


def _short(value: object) -> object:
    return round(value, 6) if isinstance(value, float) else value


if __name__ == "__main__":
    main()
