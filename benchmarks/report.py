"""What a report costs: seconds to write it, its size, and how much detail fits.

python benchmarks/report.py
python benchmarks/report.py 1000000x40 200000x12
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from vace_ad.alarms.events import Event
from vace_ad.report import ReportData, write_report

SIZES = ("10000x10", "100000x40", "1000000x10", "1000000x40")


def make(n_rows: int, n_channels: int) -> ReportData:
    rng = np.random.default_rng(0)
    rhythm = np.sin(np.arange(n_rows) / 230)[:, None] * rng.normal(size=n_channels)
    values = rhythm + 0.2 * rng.normal(size=(n_rows, n_channels))
    names = [f"sensor_{i}" for i in range(n_channels)]
    spans = [(start, start + n_rows // 200) for start in range(n_rows // 3, n_rows, n_rows // 7)]
    events = [
        Event(a, b, a, severity=50, probability=1e-4, shares=((names[0], 0.7),)) for a, b in spans
    ]
    time_axis = np.datetime64("2026-01-01", "ns") + np.arange(n_rows) * np.timedelta64(1, "m")
    scores = rng.gamma(2, 1, n_rows)
    return ReportData("benchmark", names, values, scores, 9.0, time=time_axis, events=events)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="*", default=SIZES, help="rows x channels, as 200000x12")
    options = parser.parse_args()
    print("rows,channels,seconds,megabytes,every_row_embedded")
    for size in options.sizes:
        n_rows, n_channels = map(int, size.split("x"))
        data = make(n_rows, n_channels)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "report.html"
            start = time.perf_counter()
            write_report(data, path)
            seconds = time.perf_counter() - start
            whole = b"Every row of the table is in this file" in path.read_bytes()
            print(f"{n_rows},{n_channels},{seconds:.2f},{path.stat().st_size / 1e6:.1f},{whole}")


if __name__ == "__main__":
    main()
