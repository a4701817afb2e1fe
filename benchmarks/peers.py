"""What a user would pick instead, on the same table: seconds to fit and to score, and memory.

    python benchmarks/peers.py            # fit on 100,000 rows, score 1,000,000 × 25
    python benchmarks/peers.py --quick    # a small table, to see that it works

Each runs in a process of its own: our default on a table without and with a rhythm, PyOD's ECOD,
HBOS, IForest and PCA, and k-means on windows. The peers see single rows, k-means windows of 32.
Accuracy beside the time is the mean VUS-PR of the committed main table, where it has the method.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from record import RESULTS, Line, write

from vace_ad import VACE
from vace_study.memory import peak_mb

SEED = 0
CHANNELS, WINDOW = 25, 32
SIZES = {False: (100_000, 1_000_000), True: (2_000, 4_000)}  # rows to fit and to score, by `quick`
PYOD = {"ecod": "ECOD", "hbos": "HBOS", "iforest": "IForest", "pca": "PCA"}
PEERS = ("vace", "vace, with a rhythm", *PYOD, "kmeans on windows")


def table(n_rows: int, rhythm: bool) -> np.ndarray:
    """Channels that wander together, float32 (n_rows, CHANNELS); with waves of 90 rows."""
    rng = np.random.default_rng(SEED)
    rows = np.empty((n_rows, CHANNELS), np.float32)
    last = np.zeros(CHANNELS)
    mixing = rng.normal(size=(CHANNELS, CHANNELS)) / np.sqrt(CHANNELS)
    for start in range(0, n_rows, 10_000):
        noise = rng.normal(size=(min(10_000, n_rows - start), CHANNELS)) @ mixing
        for i, row in enumerate(noise):
            last = 0.9 * last + row
            rows[start + i] = last
    if rhythm:
        rows += 5 * np.sin(2 * np.pi * np.arange(n_rows)[:, None] / 90 + np.arange(CHANNELS))
    return rows


class WindowKMeans:
    """Distance of each window of rows to the nearest of 20 centres."""

    def fit(self, rows: np.ndarray) -> WindowKMeans:
        """Learn the centres."""
        from sklearn.cluster import MiniBatchKMeans

        self._means = MiniBatchKMeans(20, random_state=SEED, n_init=1).fit(self._windows(rows))
        return self

    def decision_function(self, rows: np.ndarray) -> np.ndarray:
        """The distance of each window, (n_rows − WINDOW + 1,)."""
        block = 100_000
        parts = [rows[a : a + block + WINDOW - 1] for a in range(0, len(rows) - WINDOW + 1, block)]
        return np.concatenate([self._means.transform(self._windows(p)).min(axis=1) for p in parts])

    @staticmethod
    def _windows(rows: np.ndarray) -> np.ndarray:
        view = np.lib.stride_tricks.sliding_window_view(rows, WINDOW, axis=0)
        return view.reshape(len(view), -1)


def scorer(name: str, rows: np.ndarray) -> Callable[[np.ndarray], Any]:
    """Fit a peer; what scores with it."""
    if name.startswith("vace"):
        return VACE(random_state=SEED).fit(rows).score
    if name in PYOD:
        kind = getattr(importlib.import_module(f"pyod.models.{name}"), PYOD[name])
        return kind().fit(rows).decision_function
    return WindowKMeans().fit(rows).decision_function


def run(name: str, quick: bool) -> Line:
    """One peer, in this process."""
    n_fit, n_score = SIZES[quick]
    rows = table(n_score, rhythm="rhythm" in name)
    scorer(name, rows[:1_000])  # imports and engines are no part of what is compared
    before = peak_mb() or 0.0
    clocks = [(time.perf_counter(), time.process_time())]
    score = scorer(name, rows[:n_fit])
    clocks.append((time.perf_counter(), time.process_time()))
    found = score(rows)
    clocks.append((time.perf_counter(), time.process_time()))
    assert np.isfinite(found).all()
    (w0, c0), (w1, c1), (w2, c2) = clocks
    return {
        "method": name,
        "fit_rows": n_fit,
        "rows": n_score,
        "channels": CHANNELS,
        "fit_seconds": f"{w1 - w0:.2f}",
        "score_seconds": f"{w2 - w1:.2f}",
        "fit_cpu": f"{c1 - c0:.2f}",
        "score_cpu": f"{c2 - c1:.2f}",
        "table_mb": f"{rows.nbytes / 1e6:.0f}",
        "memory_above_table_mb": f"{(peak_mb() or 0.0) - before:.0f}",
    }


def accuracy() -> dict[str, str]:
    """Mean VUS-PR of our runs in the committed main table, test rows alone."""
    with (RESULTS / "main-test-only.csv").open() as file:
        return {
            line["method"]: line["VUS-PR"]
            for line in csv.DictReader(file)
            if line["source"] == "ours"
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small table")
    parser.add_argument("--peers", nargs="*", default=PEERS, help="these alone")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the CSV file")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one:
        print(json.dumps(run(chosen.one, chosen.quick)))
        return
    known, lines = accuracy(), []
    for name in chosen.peers:
        command = [sys.executable, __file__, "--one", name, *(["--quick"] * chosen.quick)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(done.stderr)
        line = json.loads(done.stdout.splitlines()[-1])
        lines.append({**line, "VUS-PR": known.get(name.partition(",")[0], "")})
        print(lines[-1], flush=True)
    write(lines, chosen.out / "peers.csv", seed=SEED)


if __name__ == "__main__":
    main()
