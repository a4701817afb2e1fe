"""`python -m live.simulation.week --entities 10000 --days 7`: a week of a fleet on a fake clock.

The real watch (alignment, entities, store, alarms, delivery) with a detector that costs nothing,
stopped and started every day. A line of CSV for every simulated hour: rows, memory, size of the
state, processor time of a row, alarms. Exits with 1 where memory or the state grows after the
first day.
"""

from __future__ import annotations

import argparse
import logging
import os
import runpy
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from live.fakes import FakeCore
from live.feeds import CHANNELS, START, settings
from vace_ad.live.clock import SetClock
from vace_ad.live.config import make_config
from vace_ad.live.delivery import Delivery
from vace_ad.live.records import Record
from vace_ad.live.runner import Watch
from vace_ad.live.sources import Batch, Source

_RECORD = Path(__file__).parents[3] / "benchmarks" / "record.py"
_HOUR, _DAY = 3600 * 10**9, 86_400 * 10**9
_GROWTH = 1.1  # of memory and state, from the second day to the last
_FAULTS = 1e-4  # of rows, at which a fault begins


class Fleet(Source):
    """Every entity sends a row at each step of the clock; a position is a number of steps."""

    def __init__(self, clock: SetClock, entities: int, step: int) -> None:
        super().__init__(self.SETTINGS())
        self._clock, self._names, self._step = clock, [f"e{k}" for k in range(entities)], step
        self.at = 0

    def open(self, position):
        self.at = 0 if position is None else position["at"]

    def read(self, timeout):
        moment = START + self.at * self._step
        self._clock.set(moment)
        rng = np.random.default_rng(self.at // 6)  # a fault lasts until its six steps are over
        faulty = rng.random(len(self._names)) < 6 * _FAULTS
        rows = np.random.default_rng(10**9 + self.at).normal(size=(len(faulty), len(CHANNELS)))
        rows[faulty, 1] += 25
        records = [
            Record(name, moment, dict(zip(CHANNELS, row, strict=True)))
            for name, row in zip(self._names, rows.tolist(), strict=True)
        ]
        self.at += 1
        return Batch(records, {"at": self.at})

    def acknowledge(self, position):
        pass

    def close(self):
        pass


class Taken:
    """A sink that takes everything."""

    repeat, repeat_acknowledged = None, False

    def __init__(self) -> None:
        self.ids: list[str] = []

    def send(self, messages):
        self.ids += [message["id"] for message in messages]

    def close(self):
        pass


def week(entities: int, days: int, step: int, seconds: float):
    """Run it; yields a line for each simulated hour, until the time is over."""
    end, clock, sink = time.monotonic() + seconds, SetClock(START), Taken()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        data = settings(place, align={"step": f"{step // 10**9}s"}, state={"history": "1d"})
        config = make_config(data)
        for day in range(days):
            source = Fleet(clock, entities, step)
            watch = Watch(config, FakeCore(), source, clock)
            watch.deliveries.append(Delivery("taken", sink, watch.store, watch.status, clock))
            watch.start()
            while source.at * step < (day + 1) * _DAY and time.monotonic() < end:
                began, rows = time.process_time(), watch.status.counts["rows"]
                slowest = 0.0
                hour = source.at * step // _HOUR
                while source.at * step // _HOUR == hour:
                    turn = time.process_time()
                    watch.step()
                    slowest = max(slowest, time.process_time() - turn)
                used, rows = time.process_time() - began, watch.status.counts["rows"] - rows
                yield {
                    "entities": entities, "step_seconds": step // 10**9, "day": day,
                    "hour": hour, "rows": rows, "rss_mb": round(_memory(), 1),
                    "state_mb": round(_size(place) / 2**20, 2),
                    "microseconds_a_row": round(1e6 * used / max(1, rows), 1),
                    "slowest_step_seconds": round(slowest, 3), "messages": len(sink.ids),
                    "told_twice": len(sink.ids) - len(set(sink.ids)),
                }  # fmt: skip
            watch.close()
            if time.monotonic() >= end:
                return


def _memory() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 2**20


def _size(folder: Path) -> int:
    return sum(one.stat().st_size for one in folder.glob("watch.state*"))


def grown(lines: list[dict]) -> list[str]:
    """What grew from the second day to the last, in words."""
    found = []
    for name in ("rss_mb", "state_mb"):
        by_day = {}
        for line in lines:
            by_day[line["day"]] = max(by_day.get(line["day"], 0.0), line[name])
        if len(by_day) > 2 and by_day[max(by_day)] > _GROWTH * by_day[1]:
            found.append(f"{name} grew from {by_day[1]} on day 1 to {by_day[max(by_day)]}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="live.simulation.week", description=__doc__)
    parser.add_argument("--entities", type=int, default=10_000)
    parser.add_argument("--days", type=int, default=7)
    parser.add_argument("--step", type=int, default=600, help="seconds between two rows")
    parser.add_argument("--minutes", type=float, default=60.0, help="of real time, at most")
    parser.add_argument("--out", type=Path, help="CSV file to append to")
    chosen = parser.parse_args()
    logging.getLogger("vace_ad.live").setLevel(logging.CRITICAL)
    lines = []
    append = runpy.run_path(str(_RECORD))["append"]
    for line in week(chosen.entities, chosen.days, chosen.step * 10**9, 60 * chosen.minutes):
        lines.append(line)
        if chosen.out is not None:
            append([line], chosen.out)
    problems = grown(lines)
    twice = max((line["told_twice"] for line in lines), default=0)
    print(lines[-1], *problems, f"{twice} messages told twice", sep="\n")
    sys.exit(1 if problems or twice else 0)


if __name__ == "__main__":
    main()
