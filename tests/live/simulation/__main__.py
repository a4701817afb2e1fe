"""`python -m live.simulation --minutes 5`: worlds one after the other; a seed replays its world."""

from __future__ import annotations

import argparse
import logging
import runpy
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

from live.simulation.world import World

_RECORD = Path(__file__).parents[3] / "benchmarks" / "record.py"
_BLOCK = 1000
_COLUMNS = (
    "worlds", "rows", "kills", "points", "commits", "power cuts", "disk full", "stalls",
    "clock steps", "rotations", "reloads",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="live.simulation", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument(
        "--first", type=int, help="seed of the first world; by the clock if not told"
    )
    parser.add_argument("--out", type=Path, help="append a line for every 1,000 worlds to this CSV")
    parser.add_argument("--seed", type=int, help="one world alone, with its log")
    chosen = parser.parse_args()
    if chosen.seed is not None:
        logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
        World(chosen.seed).run()
        print(f"world {chosen.seed}: all invariants hold")
        return
    logging.getLogger("vace_ad.live").setLevel(logging.CRITICAL)
    first = int(time.time()) * 1000 if chosen.first is None else chosen.first
    sys.exit(1 if simulate(first, 60 * chosen.minutes, chosen.out) else 0)


def simulate(first: int, seconds: float, out: Path | None = None) -> list[int]:
    """Run worlds for so long; the seeds of those in which an invariant did not hold."""
    end, seed, broken, seen = time.monotonic() + seconds, first, list[int](), Counter[str]()
    block, written = Counter[str](), 0
    while time.monotonic() < end:
        world = World(seed)
        try:
            world.run()
        except Exception as error:
            broken.append(seed)
            print(f"seed {seed}: {type(error).__name__}: {str(error)[:300]}", flush=True)
            if not isinstance(error, AssertionError):
                traceback.print_exc()
        block += world.seen + Counter(
            kills=world.n_deaths, points=world.n_points, commits=world.n_commits, worlds=1,
            rows=sum(map(len, world.truth.values())),
        )  # fmt: skip
        seed += 1
        if block["worlds"] == _BLOCK or time.monotonic() >= end:
            if out is not None:
                append = runpy.run_path(str(_RECORD))["append"]
                append([_line(seed - block["worlds"], block, broken[written:])], out)
            seen, block, written = seen + block, Counter(), len(broken)
    words = ", ".join(f"{n:,} {what}" for what, n in sorted(seen.items()))
    print(f"from seed {first}: {words}; {len(broken)} broken")
    return broken


def _line(first: int, block: Counter[str], broken: list[int]) -> dict[str, object]:
    counts = {name.replace(" ", "_"): block[name] for name in _COLUMNS}
    return {
        "first_seed": first, **counts, "broken": len(broken),
        "broken_seeds": " ".join(map(str, broken)),
    }  # fmt: skip


if __name__ == "__main__":
    main()
