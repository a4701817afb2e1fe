"""Many channels: `vace detect` of 6,000 × 200, and a fit on 1,000 rows of up to 3,000 channels.

    python benchmarks/wide.py           # about two minutes

Processor seconds include those of all threads and, for the command, of its start.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray
from record import RESULTS, Line, write

from vace_ad import VACE

SEED = 0
TRAIN, TEST = 1_000, 300  # rows of the fit, and of what is scored
RUN = "from vace_ad.cli.main import main; main()"


def rows(n: int, channels: int) -> NDArray[np.float64]:
    """Channels that follow three hidden movements, one of them a random walk, with noise."""
    rng, t = np.random.default_rng(SEED), np.arange(n)
    walk = rng.normal(size=n).cumsum() * 0.02
    hidden = np.stack([np.sin(t / 40), np.cos(t / 140), walk], axis=1)
    return np.asarray(
        hidden @ rng.normal(size=(3, channels)) + 0.3 * rng.normal(size=(n, channels))
    )


def command(n: int, channels: int) -> Line:
    """The whole command, from a CSV file to the report."""
    values = rows(n, channels)
    values[-n // 4 : -n // 4 + 60, 17] += 4
    table = pl.DataFrame({f"c{i}": column for i, column in enumerate(values.T)})
    with tempfile.TemporaryDirectory() as folder:
        table.write_csv(Path(folder) / "wide.csv")
        before, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        arguments = [sys.executable, "-c", RUN, "detect", "wide.csv", "--out", "results"]
        subprocess.run(arguments, cwd=folder, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = time.perf_counter() - wall
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return line("vace detect", n, channels, seconds, cpu)


def library(channels: int) -> list[Line]:
    """A fit, then a score."""
    values, found = rows(TRAIN + TEST, channels), []
    clock = time.perf_counter(), time.process_time()
    detector = VACE(random_state=SEED).fit(values[:TRAIN])
    now = time.perf_counter(), time.process_time()
    found.append(line("fit", TRAIN, channels, now[0] - clock[0], now[1] - clock[1]))
    detector.score(values[TRAIN:])
    clock, now = now, (time.perf_counter(), time.process_time())
    found.append(line("score", TEST, channels, now[0] - clock[0], now[1] - clock[1]))
    return found


def line(what: str, n: int, channels: int, seconds: float, cpu: float) -> Line:
    """A line of the table."""
    made = {"what": what, "rows": n, "channels": channels}
    made |= {"seconds": f"{seconds:.2f}", "cpu_seconds": f"{cpu:.2f}"}
    print(made, flush=True)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--channels", nargs="*", type=int, default=[100, 300, 1_000, 3_000])
    parser.add_argument("--command", nargs=2, type=int, default=[6_000, 200], metavar="N")
    parser.add_argument("--out", type=Path, default=RESULTS / "wide.csv")
    chosen = parser.parse_args()
    lines = [command(*chosen.command)]
    for channels in chosen.channels:
        lines += library(channels)
    write(lines, chosen.out, seed=SEED)


if __name__ == "__main__":
    main()
