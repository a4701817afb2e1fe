"""Alarms by the score alone: what it is worth against its own recent level, and how often it rises.

    OMP_NUM_THREADS=1 python benchmarks/score_alarms.py    # five minutes

Of every labelled real series the provisional scores of the test rows are compared with a limit, in
three ways: times the highest held-out training score, as they are, and by the scan of the product:
the sum of log(score / recent level) less a price. For each way the limit is set so that all series
together have as many false alarms as half of a budget of one in 10,000 rows allows.

Then the law of the scan is checked by leaving out each family once: the other families choose
`SCORE_RATE`, the limit goes with it, and the counts are those of the family itself. Writes
score-alarms.csv.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator, Sequence
from functools import reduce
from operator import add
from typing import NamedTuple

import numpy as np
from judging import RATE, Judged, judge
from numpy.typing import NDArray
from record import DATA, RESULTS, Line, write

from alarms import series
from vace_ad import VACE
from vace_ad.alarms.constants import SCORE_PRICE, SCORE_RATE, WARM_UP
from vace_ad.alarms.evidence import UNIT, whole
from vace_ad.alarms.scan import heights
from vace_ad.frames.segments import run_edges
from vace_ad.signals.cells import Residuals

Array = NDArray[np.float64]
HALF = 2  # of the budget: real series raise more false alarms than clean ones
OURS = SCORE_RATE / RATE
LIMITS = sorted([*np.geomspace(0.3, 1000, 60).tolist(), OURS])


class Scored(NamedTuple):
    """A labelled series, and its counts under each limit, three ways."""

    family: str
    counts: dict[str, list[Judged]]


def counts(evidence: Array, labels: NDArray[np.int_], scan: bool) -> list[Judged]:
    """Under each limit.

    An alarm is a run of rows above it; of a scan, from where it rises to where it is highest.
    """
    if not scan:
        return [judge(run_edges(evidence > limit).tolist(), labels) for limit in LIMITS]
    runs = run_edges(evidence > 0).tolist()
    tops = [(start, start + int(evidence[start:end].argmax())) for start, end in runs]
    return [judge([(a, b + 1) for a, b in tops if evidence[b] > limit], labels) for limit in LIMITS]


def scored() -> Iterator[Scored]:
    """All labelled series."""
    for name, family, table, n in series(DATA, []):
        labels = table["Label"].to_numpy().astype(int)[n:]
        if not labels.any():
            continue
        rows = table.drop("Label")
        detector = VACE(random_state=0).fit(rows[:n])
        scores = np.nan_to_num(detector.stream().add(rows[n:]).provisional)
        alarm = detector.model_.alarm
        none = np.zeros((len(scores), alarm.n_channels))
        _, nats, _ = alarm.judge(none, Residuals(none, none, none), scores, alarm.baseline())
        nats[:WARM_UP] = 0
        scan = heights(nats, whole(SCORE_PRICE), np.int64(0))[:, 0] / UNIT
        highest = float(np.nanmax(detector.calibration_scores_))
        ways = {
            "times the highest held-out score": scores / max(highest, 1e-9),
            "the score as it is": scores,
            "scan": scan,
        }
        print(name, flush=True)
        yield Scored(
            family, {way: counts(each, labels, way == "scan") for way, each in ways.items()}
        )


def judged(some: Sequence[Scored], way: str, limit: float) -> Judged:
    """Counts of some series under a limit."""
    return reduce(add, (one.counts[way][LIMITS.index(limit)] for one in some))


def limit_of(some: Sequence[Scored], way: str) -> float:
    """The lowest limit with no more false alarms than the share of the score."""
    for limit in LIMITS:
        found = judged(some, way, limit)
        if found.false_alarms <= found.allowed / HALF:
            return limit
    return LIMITS[-1]


def main() -> None:
    """Score, choose, write."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    warnings.simplefilter("ignore")
    every = list(scored())
    lines: list[Line] = []
    for way in every[0].counts:
        limit = limit_of(every, way)
        lines.append({"what": way, "chosen_on": "all", "limit": f"{limit:.2f}",
                      **judged(every, way, limit).line()})  # fmt: skip
    lines.append({"what": "scan, the product's", "chosen_on": "all", "limit": f"{OURS:.2f}",
                  **judged(every, "scan", OURS).line()})  # fmt: skip
    total = []
    for family in sorted({one.family for one in every}):
        others = [one for one in every if one.family != family]
        limit = limit_of(others, "scan")
        total.append(judged([one for one in every if one.family == family], "scan", limit))
        lines.append({"what": f"scan, {family}", "chosen_on": "other families",
                      "limit": f"{limit:.2f}", **total[-1].line()})  # fmt: skip
    lines.append({"what": "scan, sum of families", "chosen_on": "other families", "limit": "",
                  **reduce(add, total).line()})  # fmt: skip
    write(lines, RESULTS / "score-alarms.csv", seed=0)
    for line in lines:
        print(*line.values())


if __name__ == "__main__":
    main()
