"""Rows that come one by one: how long each takes, by channels and rows a call, after any history.

    OMP_NUM_THREADS=1 python benchmarks/stream.py     # two minutes

Processor time on one core, so that neighbours on the machine do not count.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from record import RESULTS, Line, write

from vace_ad import VACE

SEED = 0
TRAIN = 2_000


def curves(n_rows: int, n_channels: int) -> np.ndarray:
    """Channels with a common rhythm and noise, so that patches count too."""
    rng = np.random.default_rng(SEED)
    phase = 2 * np.pi * np.arange(n_rows)[:, None] / 90 + rng.uniform(0, 6, n_channels)
    return np.sin(phase) + 0.2 * rng.normal(size=(n_rows, n_channels))


def latency(n_channels: int, chunk: int, calls: int, history: int = 0) -> Line:
    """Milliseconds of processor time a row and a call."""
    table = curves(TRAIN + history + (calls + 20) * chunk, n_channels)
    stream = VACE(random_state=SEED).fit(table[:TRAIN]).stream()
    at = TRAIN
    if history:
        stream.add(table[at : at + history])
        at += history
    taken = []
    for _ in range(calls + 20):
        rows = table[at : at + chunk]
        began = time.process_time()
        stream.add(rows)
        taken.append(time.process_time() - began)
        at += chunk
    milliseconds = 1e3 * np.array(taken[20:])  # the first calls of an engine are slower
    return {
        "channels": n_channels,
        "rows_a_call": chunk,
        "history": history,
        "p50_ms_a_call": f"{np.median(milliseconds):.3f}",
        "p99_ms_a_call": f"{np.quantile(milliseconds, 0.99):.3f}",
        "mean_ms_a_row": f"{milliseconds.mean() / chunk:.4f}",
        "state_kB": f"{len(stream.to_bytes()) / 1e3:.0f}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the CSV file")
    parser.add_argument("--calls", type=int, default=1_000)
    chosen = parser.parse_args()
    lines = []
    for n_channels in (2, 38, 200):
        for chunk in (1, 10, 1_000):
            lines.append(latency(n_channels, chunk, max(20, chosen.calls // chunk)))
            print(lines[-1], flush=True)
    for history in (10_000, 100_000):
        lines.append(latency(38, 1, chosen.calls, history))
        print(lines[-1], flush=True)
    write(lines, chosen.out / "stream.csv", seed=SEED)


if __name__ == "__main__":
    main()
