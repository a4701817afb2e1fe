"""For a plant engineer: a pump unit with off times, two products, weather, set points, maintenance.

Tells the detector what the plant is like, measures it against the faults that are known, and keeps
the model. Off times, weather and maintenance do not alarm; a set-point change may, at the edge of
the limit. Run it with:

    python examples/operated_plant.py
"""

import tempfile
import warnings
from pathlib import Path

from vace_ad import VACE, load
from vace_ad.demo.operated import CONTEXT, OFF, simulate_operated
from vace_ad.errors import VaceWarning
from vace_ad.frames.spans import as_spans, rows_of
from vace_ad.metrics import forewarning


def main(folder: Path) -> None:
    """Fit, keep, load, detect, measure."""
    warnings.simplefilter("ignore", VaceWarning)  # few rows between two stops have no score
    plant = simulate_operated(seed=0)
    table = plant.frame()

    detector = VACE(off=OFF, context=CONTEXT, maintenance=plant.maintenance)
    detector.fit(table[: plant.train_rows])
    detector.save(folder / "pump.vace")

    found = load(folder / "pump.vace").detect(table, first=plant.train_rows)
    print(found)
    for note in found.notes:
        print("note:", note)
    for kind in ("off", "maintenance"):
        own = [one for one in found.idle if one.kind == kind]
        print(f"{kind}: {len(own)} stretches that were not judged")

    past = as_spans([(plant.time[fault.start], plant.time[fault.end]) for fault in plant.faults])
    alarms = [(one.start, one.end, one.alarm) for one in found.anomalies]
    counted = forewarning(plant.time, rows_of(past, plant.time, None), alarms)
    print(f"{counted.found} of {len(counted.faults)} faults found, "
          f"{counted.false_alarms} false alarms, "
          f"known {counted.median_seconds / 3600:.0f} hours before they ended")  # fmt: skip
    for fault in plant.faults:
        first = next(one for one in found.anomalies if one.end > fault.start)
        print(f"{fault.kind}: first suspect {first.shares[0][0]}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        main(Path(place))
