"""One sensor missing throughout: how much of the score is left, and whether alarms keep quiet.

python benchmarks/dead_sensor.py      # minutes; needs the SMD series
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from record import DATA, RESULTS, write

from alarms import MOST_ROWS, SEED, series
from vace_ad import VACE
from vace_ad.errors import VaceWarning
from vace_ad.metrics import sliding_window, vus
from vace_ad.metrics.backtest import operate

CHANNELS = (0, 12, 24)  # that are missing, one at a time


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the CSV file")
    parser.add_argument("--family", default="SMD")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", VaceWarning)
    lines = []
    for name, _, whole, train in series(chosen.data, [chosen.family]):
        table, label = whole.drop("Label"), whole["Label"].to_numpy()[train:].astype(int)
        rows = table.to_numpy().astype(float)
        detector = VACE(random_state=SEED).fit(rows[:train])
        window = sliding_window(rows[train:, 0])
        for channel in (None, *CHANNELS):
            test = rows[train:].copy()
            if channel is not None:
                test[:, channel] = np.nan
            score = detector.score(test)
            counted = operate(detector, test, label)
            lines.append(
                {
                    "series": name,
                    "missing": "" if channel is None else channel,
                    "vus_pr": f"{vus(label, score, window).vus_pr:.4f}",
                    "found": counted.found,
                    "false_alarms": counted.false_alarms,
                    "allowed": f"{counted.allowed:.1f}",
                }
            )
            print(lines[-1], flush=True)
    for channel in ("", *CHANNELS):
        own = [line for line in lines if line["missing"] == channel]
        mean = np.mean([float(line["vus_pr"]) for line in own])
        false = sum(line["false_alarms"] for line in own)
        print(f"missing {channel!s:>2}: VUS-PR {mean:.4f}, {false} false alarms")
    write(lines, chosen.out / "dead-sensor.csv", seed=SEED, most_rows=MOST_ROWS)


if __name__ == "__main__":
    main()
