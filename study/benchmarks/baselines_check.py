"""The neural baselines beside the published values, series by series.

    python study/benchmarks/baselines_check.py --jobs 1 --minutes 60      # goes on where it stopped

VUS-PR under the protocol tsb-ad. First a few series, then twenty of eight families, with seed 0;
then other seeds, to know how far a seed alone moves a value, other windows and other systems.
Writes baselines-check.csv, and baselines-check-summary.csv: for each method and series the mean and
spread over seeds, the published value, and whether it lies within what seeds explain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import NamedTuple

import numpy as np
from common import Line, done_already, in_processes, options, read, write

from vace_ad.metrics import vus
from vace_study import published
from vace_study.baselines import resolve
from vace_study.catalog import Entry, find_series
from vace_study.protocols import exam
from vace_study.series import load

METHODS = ("usad", "deepant", "omnianomaly")  # published windows
CURRENT = ("usad-current", "deepant-current", "omnianomaly-current", "deepant-fixed")
MORE = ("lstmad", "timesnet")
NO_MODEL = ("raw-amplitude",)  # beside USAD's values: what the windows alone are worth
SLOW = ("dcdetector", "anomaly-transformer")
FIRST = ("001", "007", "017", "059", "065", "002", "057")
TWENTY = (
    *FIRST,
    *("008", "010", "075", "018", "156", "159", "166", "153", "160", "169"),
    *("079", "088", "173"),
)
SEEDS = 5
TOLERANCE = 0.05  # a published value this near counts as met whatever the seeds say


class Case(NamedTuple):
    """One method on one series with one seed."""

    method: str
    entry: Entry
    seed: int

    def __str__(self) -> str:
        return f"{self.method} on {self.entry.name.short}, seed {self.seed}"


def main() -> None:
    chosen = options(__doc__)
    path = chosen.out / "baselines-check.csv"
    entries = {e.name.stem[:3]: e for e in find_series(chosen.data, globs=[chosen.series])}
    done = done_already(path, "method", "series", "seed")
    left = [
        case
        for case in cases(entries)
        if (case.method, case.entry.name.stem, str(case.seed)) not in done
    ]
    in_processes(check, left, path, chosen.jobs, chosen.minutes)
    write(list(summary(read(path))), chosen.out / "baselines-check-summary.csv")


def cases(entries: dict[str, Entry]) -> list[Case]:
    """All of the check, by worth."""
    quick = METHODS[:2]
    stages = [
        (METHODS, FIRST, range(1)),
        (NO_MODEL, tuple(entries), range(1)),
        (quick, TWENTY, range(1)),
        (quick, FIRST, range(1, SEEDS)),
        (CURRENT[:1], FIRST, range(1)),
        (METHODS, TWENTY, range(1)),
        (quick, TWENTY, range(1, SEEDS)),
        (CURRENT, FIRST, range(1)),
        (MORE, FIRST, range(1)),
        (METHODS, FIRST, range(1, SEEDS)),
        (SLOW, FIRST, range(1)),
        (METHODS, TWENTY, range(1, SEEDS)),
        (MORE, TWENTY, range(SEEDS)),
    ]
    found = [
        Case(method, entries[number], seed)
        for methods, numbers, seeds in stages
        for seed in seeds
        for number in numbers
        if number in entries
        for method in methods
    ]
    return list(dict.fromkeys(found))


def check(case: Case) -> list[Line]:
    """One value beside the published one."""
    series, method = load(case.entry.path), resolve(case.method)
    paper = exam(series, "tsb-ad")
    detector = method.make(case.seed)
    started = perf_counter()
    detector.fit(paper.train)
    fitted = perf_counter()
    scores = detector.score(paper.scored)
    scored = perf_counter()
    found = vus(paper.labels, scores, paper.window).vus_pr
    # None of a variant with other windows.
    system = "USAD" if case.method in NO_MODEL else published.COUNTERPARTS.get(case.method, "")
    known = published.per_series().get(system, {}).get(series.name.stem)
    line = {
        "method": case.method,
        "series": series.name.stem,
        "family": series.name.family,
        "seed": case.seed,
        "vus_pr": f"{found:.6f}",
        "published": "" if known is None else f"{known:.6f}",
        "epochs": len(getattr(detector, "history_", ())),
        "fit_seconds": f"{fitted - started:.1f}",
        "score_seconds": f"{scored - fitted:.1f}",
        "config": method.config_hash,
    }
    return [line]


def summary(lines: Sequence[dict[str, str]]) -> Iterator[Line]:
    """Each method and series: our values over seeds beside the published one."""
    groups: dict[tuple[str, str], list[dict[str, str]]] = {}
    for line in lines:
        groups.setdefault((line["method"], line["series"]), []).append(line)
    for (method, series), rows in groups.items():
        values = np.array([float(row["vus_pr"]) for row in rows])
        told: Line = {
            "method": method,
            "series": series,
            "seeds": len(values),
            "mean": f"{values.mean():.4f}",
            "lowest": f"{values.min():.4f}",
            "highest": f"{values.max():.4f}",
            "published": rows[0]["published"],
        }
        if rows[0]["published"]:
            known = float(rows[0]["published"])
            inside = values.min() <= known <= values.max()
            distance = float(np.abs(values - known).min())
            told |= {
                "nearest_distance": f"{distance:.4f}",
                "verdict": "within the seeds"
                if inside
                else ("near" if distance <= TOLERANCE else "apart"),
            }
        yield told


if __name__ == "__main__":
    main()
