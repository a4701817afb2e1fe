"""Targets in a process of their own: `python -m fuzz.worker TARGET,… SEED SECONDS INPUTS FOLDER`.

The process that started it sees from FOLDER what is being tried since when (`beat`, `input`), and
ends it where that takes too long or too much. Findings and counts go to standard output as JSON,
a line each.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import mmap
import os
import random
import re
import resource
import shutil
import struct
import sys
import time
import traceback
import warnings
from pathlib import Path

import numpy as np

from fuzz.target import REFUSED, TAKEN, Target
from fuzz.targets import make
from vace_ad.errors import VaceError

GROWTH = 2**30  # bytes of memory above those after the seeds
KEPT = 300  # inputs that were taken, as further seeds


class Beat:
    """When the present input began, for another process to see; 0 while there is none."""

    def __init__(self, folder: Path) -> None:
        path = folder / "beat"
        if not path.exists():
            path.write_bytes(bytes(16))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 16)

    def set(self, began: float, count: int) -> None:
        self._map[:] = struct.pack("<dq", began, count)

    def get(self) -> tuple[float, int]:
        began, count = struct.unpack("<dq", self._map[:])
        return float(began), int(count)


def attempt(
    target: Target, data: bytes, folder: Path, *, thorough: bool = False
) -> tuple[str, str, str]:
    """What became of an input: taken, refused or a finding's short name, where, and the words."""
    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    try:
        target.run(data, work, thorough=thorough)
    except VaceError:
        return REFUSED, "", ""
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        steps = traceback.extract_tb(error.__traceback__)
        ours = [step for step in steps if "vace_ad" in Path(step.filename).parts]
        last = (ours or steps)[-1]
        place = f"{Path(last.filename).name}:{last.lineno}"
        return type(error).__name__, place, f"{error}"[:500]
    return TAKEN, "", ""


def peak() -> int:
    """The most memory that this process ever had, bytes.

    The system's own count, where there is no /proc, begins with that of the parent process.
    """
    with contextlib.suppress(OSError, TypeError):
        found = re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
        return int(found[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def say(**line: object) -> None:
    print(json.dumps(line), flush=True)


def work(name: str, seed: int, seconds: float, inputs: int, folder: Path) -> None:
    beat, target = Beat(folder), make(name)
    pool = target.seeds()
    for data in pool:
        tell(target, data, attempt(target, data, folder))
    base, rng = peak(), random.Random(seed)
    counts = dict.fromkeys((TAKEN, REFUSED, "found"), 0)
    seen: set[tuple[str, str]] = set()
    say(ready=True, base=base)
    began, most = time.monotonic(), len(pool) + KEPT
    while time.monotonic() - began < seconds and sum(counts.values()) < inputs:
        data = rng.choice(pool)
        for _ in range(rng.choice((1, 1, 2, 4))):
            data = target.damage(data, rng)
        (folder / "input").write_bytes(data)
        beat.set(time.monotonic(), sum(counts.values()))
        kind, place, words = attempt(target, data, folder)
        beat.set(0.0, sum(counts.values()))
        if peak() > base + GROWTH:
            kind, place, words, base = "Growth", "", f"{(peak() - base) >> 20} MB more", peak()
        if kind in (TAKEN, REFUSED):
            counts[kind] += 1
            if kind == TAKEN and len(data) < 30_000:  # damage on damage goes deeper
                if len(pool) < most:
                    pool.append(data)
                else:
                    pool[rng.randrange(most - KEPT, most)] = data
            continue
        counts["found"] += 1
        if (kind, place) not in seen:
            seen.add((kind, place))
            tell(target, data, (kind, place, words))
    say(counts=counts)


def tell(target: Target, data: bytes, what: tuple[str, str, str]) -> None:
    """Report a finding."""
    kind, place, words = what
    if kind not in (TAKEN, REFUSED):
        name = f"{kind}-{hashlib.sha256(data).hexdigest()[:8]}"
        text = base64.b64encode(data).decode()
        say(found=kind, target=target.name, place=place, words=words, name=name, data=text)


def main() -> None:
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    os.environ["RUST_BACKTRACE"] = "0"
    names, seed, seconds, inputs, folder = sys.argv[1:]
    for name in names.split(","):
        work(name, int(seed), float(seconds), int(inputs), Path(folder))
    say(end=True)


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # threads of a service do not hold up the end
