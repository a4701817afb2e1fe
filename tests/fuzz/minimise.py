"""`python -m fuzz.minimise CORPUS`: the few inputs that reach all the code that a corpus reaches.

CORPUS is what `fuzz.guided` kept, a folder for each target. Of each, the inputs that together run
the most lines of the package are put into tests/fuzz/corpus, small ones first; what the target's
own seeds run is not counted.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import warnings
from pathlib import Path
from types import FrameType
from typing import Any

import vace_ad
from fuzz.runner import CORPUS
from fuzz.target import REFUSED, TAKEN, Target
from fuzz.targets import NAMES, make
from fuzz.worker import attempt

PACKAGE = str(Path(vace_ad.__file__).parent)
LARGEST = 20_000  # bytes of an input
Lines = set[tuple[str, int]]


def reached(target: Target, data: bytes, folder: Path) -> Lines:
    """The lines of the package that an input runs; none for a finding, which is kept elsewhere."""
    lines: Lines = set()

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        lines.add((frame.f_code.co_filename, frame.f_lineno))
        return trace

    threading.settrace(trace)
    sys.settrace(trace)
    try:
        kind, _, _ = attempt(target, data, folder)
    finally:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]
    return lines if kind in (TAKEN, REFUSED) else set()


def smallest(inputs: dict[str, Lines], known: Lines) -> list[str]:
    """Names of inputs, chosen one by one for the lines that each adds; ties in the order given."""
    chosen = []
    known = set(known)
    while inputs:
        best = max(inputs, key=lambda name: len(inputs[name] - known))
        if not inputs[best] - known:
            break
        known |= inputs[best]
        chosen.append(best)
    return chosen


def main() -> None:
    parser = argparse.ArgumentParser(prog="fuzz.minimise", description=__doc__)
    parser.add_argument("corpus", type=Path)
    corpus = parser.parse_args().corpus
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        for name in NAMES:
            paths = sorted((corpus / name).glob("*"), key=lambda path: (path.stat().st_size, path))
            paths = [path for path in paths if path.stat().st_size <= LARGEST]
            if not paths:
                continue
            target, known = make(name), set()
            for data in target.seeds() + [p.read_bytes() for p in (CORPUS / name).glob("*")]:
                known |= reached(target, data, Path(folder))
            inputs = {p.name: reached(target, p.read_bytes(), Path(folder)) for p in paths}
            chosen = smallest(inputs, known)
            (CORPUS / name).mkdir(exist_ok=True)
            for one in chosen:
                (CORPUS / name / f"Reached-{one[:8]}").write_bytes(
                    (corpus / name / one).read_bytes()
                )
            print(f"{name:14}{len(paths):6} inputs, {len(chosen)} chosen", flush=True)


if __name__ == "__main__":
    main()
