"""Every finding ever made, tried again: `python -m fuzz.replay CORPUS FOLDER`.

Run by the tests as a child of the runner, so that hangs and growth end it too.
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path

import numpy as np

from fuzz.target import REFUSED, TAKEN
from fuzz.targets import NAMES, make
from fuzz.worker import Beat, attempt, peak, say, tell


def main() -> None:
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    corpus, folder = Path(sys.argv[1]), Path(sys.argv[2])
    beat, counts = Beat(folder), dict.fromkeys((TAKEN, REFUSED, "found"), 0)
    for name in NAMES:
        files = sorted((corpus / name).glob("*"))
        target = make(name) if files else None
        for path in files:
            assert target is not None
            data = path.read_bytes()
            (folder / "input").write_bytes(data)
            beat.set(time.monotonic(), sum(counts.values()))
            what = attempt(target, data, folder, thorough=True)
            beat.set(0.0, sum(counts.values()))
            counts[what[0] if what[0] in counts else "found"] += 1
            tell(target, data, (*what[:2], f"{path.name}: {what[2]}"))
        say(ready=True, base=peak())
    say(counts=counts)
    say(end=True)


if __name__ == "__main__":
    import os

    main()
    sys.stdout.flush()
    os._exit(0)
