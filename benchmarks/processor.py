"""Scores of another processor beside those of tests/golden.json.

    python benchmarks/processor.py --compute > found.json   # there
    python benchmarks/processor.py found.json               # here: writes results/processor.csv

`make arm64` does both, the first on an emulated ARM64. Differences are relative to 1 + |score|, as
the tolerances of the golden test are. Ends with status 1 where one is above its tolerance.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from record import RESULTS, Line, write

import golden

CASES, PRESETS = ("synthetic", "real"), ("default", "shape")  # the paper's presets need torch


def computed() -> None:
    """Scores of every case, each a line of JSON on standard output as soon as it is done."""
    about = {
        "processor": platform.machine(), "python": platform.python_version(),
        "numpy": np.__version__,
    }  # fmt: skip
    for case in CASES:
        for preset in PRESETS:
            scores = golden.computed(case, preset)
            if scores is not None:  # a real series is not everywhere at hand
                print(json.dumps({"case": f"{case} {preset}", "scores": scores, **about}))
                sys.stdout.flush()


def compared(found: Line) -> list[Line]:
    """Every line of a case's scores with its largest difference."""
    case = found["case"]
    kept = json.loads(golden.FILE.read_text())[case]
    return [
        {
            "case": case, "line": name, "rows": len(line),
            "largest_difference": f"{_difference(line, kept[name]):.1e}",
            "tolerance": golden.tolerance(case.split()[1], name),
            **{name: found[name] for name in ("processor", "python", "numpy")},
        }
        for name, line in found["scores"].items()
    ]  # fmt: skip


def _difference(ours: list[float], theirs: list[float]) -> float:
    a, b = np.asarray(ours, float), np.asarray(theirs, float)
    both = np.isnan(a) & np.isnan(b)  # rows without a score in both
    return float(np.max(np.where(both, 0, np.abs(a - b) / (1 + np.abs(b)))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("found", nargs="?", type=Path, help="what --compute printed")
    parser.add_argument("--compute", action="store_true", help="print the scores of this processor")
    given = parser.parse_args()
    if given.compute:
        computed()
        return
    if given.found is None:
        parser.error("name the file that --compute printed")
    cases = map(json.loads, given.found.read_text().splitlines())
    lines = [line for case in cases for line in compared(case)]
    write(lines, RESULTS / "processor.csv")
    beyond = [one for one in lines if not float(one["largest_difference"]) <= one["tolerance"]]
    print(f"{len(lines)} lines of scores, {len(beyond)} beyond their tolerance")
    sys.exit(1 if beyond else 0)


if __name__ == "__main__":
    main()
