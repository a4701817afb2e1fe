"""What a fit and a live row cost, against another source tree, side by side in one run.

    git worktree add ../v0.2.0 4f8d7c1
    python benchmarks/cost.py --old ../v0.2.0/src     # two minutes

Each tree in a process of its own with one thread, in turns; the quickest round of a fit and of each
live row counts, in processor time, because other work on the machine only adds. Writes cost.csv.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from record import RESULTS, ROOT, Line, write

SEED = 0
WORK = """
import json, sys, time
import numpy as np
from vace_ad import VACE
seed, rows, channels, live, history = map(int, sys.argv[1:])
rng = np.random.default_rng(seed)

def table(n, d):  # channels that mix four slow movements, with noise
    slow = rng.normal(size=(n, 4))
    for t in range(1, n):
        slow[t] += 0.95 * slow[t - 1]
    return slow @ rng.normal(size=(4, d)) + rng.normal(size=(n, d))

def seconds(work, *given):
    began = time.process_time()
    work(*given)
    return time.process_time() - began

wide, long = table(history + 1300, live), table(rows, channels)
model = VACE(random_state=seed).fit(wide[:history])
for _ in sys.stdin:
    stream = model.stream()
    each = [seconds(stream.add, row) for row in wide[history:]]
    print(json.dumps([seconds(VACE(random_state=seed).fit, long), each[300:]]), flush=True)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--old", type=Path, required=True, help="src of the other checkout")
    for name, size in (("rows", 100_000), ("channels", 25), ("live", 38), ("history", 2_000)):
        parser.add_argument(f"--{name}", type=int, default=size)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    sizes = [options.rows, options.channels, options.live, options.history]
    old, new = measured([options.old, ROOT / "src"], sizes, options.rounds)
    fit = {"what": "fit", "rows": options.rows, "channels": options.channels}
    row = {"what": "live row", "rows": options.history, "channels": options.live}
    lines = [
        line(fit, "least", old[0], new[0]),
        line(row, "p50", *(float(np.median(each[1])) for each in (old, new))),
        line(row, "p99", *(float(np.quantile(each[1], 0.99)) for each in (old, new))),
    ]
    write(lines, options.out / "cost.csv", rounds=options.rounds, seed=SEED)


def measured(sources: list[Path], sizes: list[int], rounds: int) -> list[tuple[float, list[float]]]:
    """Seconds of the quickest fit, and of each live row at its quickest, of each tree."""
    command = [sys.executable, "-c", WORK, *map(str, [SEED, *sizes])]
    workers = [
        subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for source in sources
    ]
    found = [[ask(worker) for worker in workers] for _ in range(rounds)]
    for worker in workers:
        worker.communicate()
    return [
        (min(fit for fit, _ in each), np.min([rows for _, rows in each], axis=0).tolist())
        for each in zip(*found, strict=True)
    ]


def ask(worker: subprocess.Popen[str]) -> tuple[float, list[float]]:
    """One round of a worker."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write("\n")
    worker.stdin.flush()
    fit, rows = json.loads(worker.stdout.readline())
    return fit, rows


def line(about: Line, which: str, old: float, new: float) -> Line:
    """Milliseconds of both trees, and how many times as much the new one takes."""
    taken = {"old_ms": f"{1e3 * old:.3f}", "new_ms": f"{1e3 * new:.3f}"}
    found = {**about, "which": which, **taken, "ratio": f"{new / old:.2f}"}
    print(found, flush=True)
    return found


if __name__ == "__main__":
    main()
