"""A plant as it is operated: alarms from expected changes, faults found, the first suspect.

python benchmarks/operated.py      # a minute a seed

With the settings of the plant (off, context, maintenance), and without being told anything.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from record import RESULTS, write

from vace_ad import VACE
from vace_ad.demo.operated import CONTEXT, OFF, Operated, simulate_operated
from vace_ad.detection import Detection
from vace_ad.errors import VaceWarning

SEEDS = 5


def judged(plant: Operated, found: Detection) -> dict[str, object]:
    """What events were worth against the truth."""
    anomalies = found.anomalies
    hours, right = [], 0
    for fault in plant.faults:
        own = [one for one in anomalies if one.start < fault.end and fault.start < one.end]
        if own:
            right += own[0].shares[0][0] == fault.sensor
            known = own[0].start if own[0].alarm is None else own[0].alarm
            hours.append((fault.end - known) / 12)
    others = [
        one
        for one in anomalies
        if not any(one.start < fault.end and fault.start < one.end for fault in plant.faults)
    ]
    return {
        "faults": len(plant.faults),
        "found": len(hours),
        "first_suspect_right": right,
        "forewarning_hours_median": f"{np.median(hours):.1f}" if hours else "",
        "alarms_from_expected_changes": len(others),
        "told_apart": sum(one.kind == "conditions" for one in found.events),
        "without_data": sum(one.kind == "no data" for one in found.events),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the CSV file")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", VaceWarning)
    lines = []
    for seed in range(chosen.seeds):
        plant = simulate_operated(seed)
        table = plant.frame()
        told = {"off": OFF, "context": CONTEXT, "maintenance": plant.maintenance}
        for words, settings in (("nothing", {}), ("off, context, maintenance", told)):
            detector = VACE(**settings).fit(table[: plant.train_rows])
            found = detector.detect(table, first=plant.train_rows)
            lines.append({"seed": seed, "told": words, **judged(plant, found)})
            print(lines[-1], flush=True)
    write(lines, chosen.out / "operated.csv")


if __name__ == "__main__":
    main()
