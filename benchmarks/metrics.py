"""TSB-AD's measures against ours, side by side: seconds, ratio, largest difference, memory.

    python benchmarks/metrics.py                              # minutes, nearly all of it TSB-AD
    python benchmarks/metrics.py --rows 10000 --events 10 80  # a quick look
    python benchmarks/metrics.py --scale                      # ours alone, up to 10 million rows

Needs TSB-AD==1.5 (pip install --no-deps), unless --scale is given.
"""

from __future__ import annotations

import argparse
import statistics
import time
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from record import RESULTS, write
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from vace_ad.metrics import dqe, evaluate, pate, vus

SEED = 0
WINDOW = 100


def make_case(rows: int, events: int) -> tuple[np.ndarray, np.ndarray]:
    """4 % anomalous rows in equal events; scores as of a windowed detector: smooth and skewed."""
    rng = np.random.default_rng(SEED)
    labels = np.zeros(rows, dtype=np.int64)
    pitch, length = rows // events, max(1, rows // 25 // events)
    for start in np.arange(events) * pitch + rng.integers(0, pitch - length, events):
        labels[start : start + length] = 1
    noise = rng.normal(size=rows) + labels * rng.normal(1, 0.5, size=rows)
    return labels, np.square(np.convolve(noise, np.ones(48) / 48, "same"))


def seconds(function: Callable[[], Any], repeats: int = 1) -> tuple[float, Any]:
    """Median seconds of a call, and what it returned."""
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = function()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken), result


def peak_bytes(function: Callable[[], Any]) -> int:
    tracemalloc.start()
    function()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def time_tsb_ad(labels: np.ndarray, scores: np.ndarray) -> tuple[float, float, dict[str, float]]:
    """Seconds of its VUS, seconds of all its nine, and their values; VUS runs once for both."""
    from TSB_AD.evaluation.basic_metrics import basic_metricor, generate_curve

    grader = basic_metricor()
    vus_seconds, curve = seconds(lambda: generate_curve(labels, scores, WINDOW))
    values = {"VUS-ROC": curve[-2], "VUS-PR": curve[-1]}
    total = vus_seconds
    for name, measure in {
        "AUC-PR": grader.metric_PR,
        "AUC-ROC": grader.metric_ROC,
        "Standard-F1": grader.metric_PointF1,
        "PA-F1": grader.metric_PointF1PA,
        "Event-based-F1": grader.metric_EventF1PA,
        "R-based-F1": grader.metric_RF1,
        "Affiliation-F": grader.metric_Affiliation,
    }.items():
        taken, values[name] = seconds(lambda measure=measure: measure(labels, scores))  # type: ignore[misc]
        total += taken
    return vus_seconds, total, values


def compare(rows: int, events: int) -> list[dict[str, Any]]:
    """One row for VUS, one for all nine."""
    labels, scores = make_case(rows, events)
    with warnings.catch_warnings():  # scikit-learn warns of 0 / 0 in TSB-AD
        warnings.simplefilter("ignore")
        their_vus, their_nine, expected = time_tsb_ad(labels, scores)
    lines = []
    for what, theirs, call in [
        ("VUS", their_vus, lambda: vus(labels, scores, WINDOW)),
        ("all nine", their_nine, lambda: evaluate(labels, scores, WINDOW)),
    ]:
        call()
        ours, result = seconds(call, repeats=7)
        values = {"VUS-ROC": result.vus_roc, "VUS-PR": result.vus_pr} if what == "VUS" else result
        lines.append(
            {
                "what": what,
                "rows": rows,
                "events": events,
                "window": WINDOW,
                "tsb_ad_seconds": round(theirs, 4),
                "seconds": round(ours, 5),
                "ratio": round(theirs / ours, 1),
                "largest_difference": float(
                    f"{max(abs(values[k] - expected[k]) for k in values):.1g}"
                ),
                "peak_bytes_a_row": round(peak_bytes(call) / rows),
            }
        )
    return lines


def scale(rows: int, events: int) -> list[dict[str, Any]]:
    """Ours alone."""
    labels, scores = make_case(rows, events)
    lines = []
    for what, call in [
        ("VUS", lambda: vus(labels, scores, WINDOW)),
        ("all nine", lambda: evaluate(labels, scores, WINDOW)),
        ("PATE", lambda: pate(labels, scores, WINDOW, WINDOW)),
        ("DQE", lambda: dqe(labels, scores, WINDOW)),
    ]:
        taken, _ = seconds(call, repeats=5)
        lines.append(
            {
                "what": what,
                "rows": rows,
                "events": events,
                "window": WINDOW,
                "seconds": round(taken, 5),
                "peak_bytes_a_row": round(peak_bytes(call) / rows),
            }
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--events", type=int, nargs="+", default=[10, 200, 800])
    parser.add_argument("--scale", action="store_true", help="ours alone, growing rows and events")
    parser.add_argument("--out", type=Path, help="CSV (default: results/metrics[-scale].csv)")
    options = parser.parse_args()

    if options.scale:
        cases = [(100_000, events) for events in (10, 200, 800)]
        cases += [(1_000_000, events) for events in (10, 1000, 10_000)]
        cases += [(rows, 100) for rows in (10_000, 100_000, 1_000_000, 10_000_000)]
        lines = [line for case in cases for line in scale(*case)]
    else:
        lines = [line for events in options.events for line in compare(options.rows, events)]
    table = Table(*lines[0], box=SIMPLE)
    for line in lines:
        table.add_row(*(str(value) for value in line.values()))
    console = Console()
    console.width = max(console.width, 120)  # a file has no width to keep to
    console.print(table)
    out = options.out or RESULTS / ("metrics-scale.csv" if options.scale else "metrics.csv")
    write(lines, out, seed=SEED, numpy=np.__version__)
    print(f"written to {out}")


if __name__ == "__main__":
    main()
