"""What each part of the default's evidence is worth, and how sure that is.

    python study/benchmarks/signals.py --minutes 60       # goes on where it stopped

Three seeds, protocol test-only, all series at hand. One fit a series and seed gives the score of
every rule: each signal alone, shape alone (what the paper's normalisation can see), both with other
half-lives of the drift control, with none, and fused by their maximum.
Writes signals.csv, and signals-summary.csv: means over the choosing and the confirming half of the
families, and differences from shape alone and from the default by paired bootstrap over series.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from common import (
    Line,
    by_series,
    difference,
    done_already,
    in_processes,
    options,
    read,
    test_part,
    write,
)
from numpy.typing import NDArray

from vace_ad import VACE
from vace_ad.metrics import vus
from vace_study.catalog import Entry, find_series

SEEDS = 3
HALF_LIVES = (1000, 2000, 8000, 2**31 - 1)  # the last forgets nothing
NEVER = HALF_LIVES[-1]
CHOOSING = ("SMAP", "Genesis", "MITDB")
CONFIRMING = ("MSL", "GECCO", "Daphnet", "SVDB")  # the series of SMD take turns
Scores = NDArray[np.float64]


class Case(NamedTuple):
    """One series with one seed."""

    entry: Entry
    seed: int

    def __str__(self) -> str:
        return f"{self.entry.name.short}, seed {self.seed}"


def main() -> None:
    chosen = options(__doc__)
    path = chosen.out / "signals.csv"
    done = done_already(path, "series", "seed")
    entries = sorted(find_series(chosen.data, globs=[chosen.series]), key=lambda e: -e.size)
    cases = [Case(entry, seed) for seed in range(SEEDS) for entry in entries]
    left = [case for case in cases if (case.entry.name.stem, str(case.seed)) not in done]
    in_processes(study, left, path, chosen.jobs, chosen.minutes)
    write(list(summary(read(path))), chosen.out / "signals-summary.csv")


def study(case: Case) -> list[Line]:
    """Every rule on one series."""
    paper = test_part(case.entry)
    detector = VACE(random_state=case.seed).fit(paper.train)
    signals = detector.signals(paper.scored)
    name = case.entry.name
    head = {"series": name.stem, "family": name.family, "split": case.entry.split}
    lines = []
    for rule, scores in rules(detector, signals, paper.train, paper.scored):
        found = vus(paper.labels, scores, paper.window).vus_pr
        lines.append({**head, "seed": case.seed, "rule": rule, "vus_pr": f"{found:.6f}"})
    return lines


def rules(
    detector: VACE, signals: dict[str, Scores], train: Scores, test: Scores
) -> Iterator[tuple[str, Scores]]:
    """Ways to make one score of the evidence, by name."""
    score = sum(signals.values(), np.zeros(1))
    yield "default", score
    for name in detector.model_.lines:
        yield f"{name} alone", signals[name]
        yield f"without {name}", score - signals[name]
    for half_life in HALF_LIVES:
        other = VACE(random_state=detector.config.random_state, drift_half_life=half_life)
        named = "no drift control" if half_life == NEVER else f"half-life {half_life:,}"
        yield named, other.fit(train).score(test)


def summary(lines: Sequence[dict[str, str]]) -> Iterator[Line]:
    """Each rule in each group of series."""
    names = list(dict.fromkeys(line["rule"] for line in lines))
    for group, series in groups(lines).items():
        means = {
            rule: by_series(
                line for line in lines if line["rule"] == rule and line["series"] in series
            )
            for rule in names
        }
        for rule, found in means.items():
            against = {
                f"{column}_{of.replace(' ', '_')}": value
                for of in ("default",)
                for column, value in difference(found, means[of]).items()
            }
            mean = f"{np.mean(list(found.values())):.4f}"
            yield {"group": group, "series": len(found), "rule": rule, "vus_pr": mean, **against}


def groups(lines: Sequence[dict[str, str]]) -> dict[str, set[str]]:
    """The names of the series of each group: all, both halves, each family, the tuning split."""
    family = {line["series"]: line["family"] for line in lines if line["split"] == "eval"}
    tuning = {line["series"] for line in lines if line["split"] == "tuning"}
    turns = sorted(name for name in family if family[name] == "SMD")
    first, second = set(turns[::2]), set(turns[1::2])
    found = {
        "all of the evaluation split": set(family),
        "choosing half": {n for n in family if family[n] in CHOOSING} | first | tuning,
        "confirming half": {n for n in family if family[n] in CONFIRMING} | second,
        "tuning split": tuning,
    }
    for name in sorted(set(family.values())):
        found[name] = {series for series in family if family[series] == name}
    return {group: names for group, names in found.items() if names}


if __name__ == "__main__":
    main()
