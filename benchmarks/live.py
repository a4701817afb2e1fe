"""Live operation: rows a second, row to alert, checkpoints, memory and restart, by entities.

    python benchmarks/live.py --core zscore          # what live operation itself costs
    python benchmarks/live.py --core vace --entities 1 100

The feed comes from memory: each entity has ten channels, and one entity in fifty has a fault.
First as fast as possible, then at one row every ten seconds an entity, timed from the arrival of
a row to the delivery of its alarm.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "live"))  # the z-score stream of the tests

from fakes import FakeCore, FakeModel  # noqa: E402
from record import RESULTS, write  # noqa: E402

from vace_ad.live.config import make_config  # noqa: E402
from vace_ad.live.records import Record  # noqa: E402
from vace_ad.live.runner import Watch  # noqa: E402
from vace_ad.live.sources import Batch  # noqa: E402

CHANNELS = tuple(f"c{i}" for i in range(10))
STEP = 10 * 10**9
START = 1_767_614_400 * 10**9
DROPS = ("late", "twice", "future", "bad", "outbox_dropped", "refused", "unknown_channel")
FAULTS = 50  # one entity in so many has one


class Feed:
    """A source from memory: rounds of one row for each entity, at a pace or at full speed."""

    FIELDS: dict[str, Any] = {}  # noqa: RUF012
    live, eager, problem = True, False, None

    def __init__(self, entities: int, rounds: int, seconds: float | None, first: int = 0) -> None:
        self._names = [f"entity-{i:05d}" for i in range(entities)]
        self._rounds, self._seconds = range(first, first + rounds), seconds
        self._rng = np.random.default_rng(first)
        self._at = 0  # rows given out
        self.ended: float | None = None

    def open(self, position: Any) -> None:
        """Start the clock."""
        self._started = time.monotonic()

    def read(self, timeout: float) -> Batch | None:
        """What is due."""
        total = len(self._names) * len(self._rounds)
        due = total
        if self._seconds is not None:  # of a round
            passed = time.monotonic() - self._started
            due = min(total, int(passed / self._seconds * len(self._names)))
        n = min(due - self._at, 2000)
        if n <= 0:
            if self._at >= total:
                self.ended = self.ended or time.monotonic()
            time.sleep(0.005)
            return None
        records = [self._record(i) for i in range(self._at, self._at + n)]
        self._at += n
        return Batch(records, self._at)

    def _record(self, i: int) -> Record:
        turn, entity = divmod(i, len(self._names))
        values = self._rng.normal(size=len(CHANNELS))
        number = self._rounds[turn]
        if entity % FAULTS == number % FAULTS and len(self._names) >= FAULTS:
            values[number % len(CHANNELS)] += 30
        elif len(self._names) < FAULTS and number % 40 == 20:
            values[0] += 30
        cells = dict(zip(CHANNELS, values.tolist(), strict=True))
        return Record(self._names[entity], START + number * STEP, cells)

    def acknowledge(self, position: Any) -> None:
        """Nothing is kept here."""

    def close(self) -> None:
        """Nothing is open."""


class Times:
    """Every duration, not only its bucket."""

    def __init__(self) -> None:
        self.all: list[float] = []
        self.counts = [0]
        self.sum = 0.0

    def observe(self, seconds: float) -> None:
        """Note a duration."""
        self.all.append(seconds)
        self.sum += seconds


def config(folder: Path, core: str) -> Any:
    return make_config(
        {
            "source": {"kind": "jsonl", "path": "unused"},
            "align": {"step": "10s", "future": "1000d"},
            "model": {"file": str(folder / f"model.{core}")},
            "alarms": {"resolve_after": "1min", "silence_after": "off"},
            "state": {"path": str(folder / "state")},
            "sink": [{"kind": "prometheus"}],
        }
    )


def make_core(core: str, folder: Path) -> Any:
    """The core, and a model in the folder."""
    path = folder / f"model.{core}"
    if core == "zscore":
        FakeModel(CHANNELS, [0.0] * len(CHANNELS), [1.0] * len(CHANNELS)).save(path)
        return FakeCore()
    from vace_ad.alarms import Budget
    from vace_ad.live.glue import VaceCore

    made = VaceCore(Budget(1, "week"))
    if not path.exists():
        rng = np.random.default_rng(0)
        times = (START - np.arange(5000, 0, -1) * STEP).astype("datetime64[ns]")
        made.fit(rng.normal(size=(5000, len(CHANNELS))), CHANNELS, times, path)
    return made


def run(watch: Watch, feed: Feed) -> tuple[float, float]:
    """Seconds on the clock and of processor time until a feed is worked off and kept."""
    started, used = time.monotonic(), time.process_time()
    while feed.ended is None:
        watch.step()
    watch.checkpoint()
    return time.monotonic() - started, time.process_time() - used


def megabytes() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(entities: int, core_name: str, seconds: float) -> dict[str, Any]:
    """One number of entities: full speed, then the pace of a plant, then a restart."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        core = make_core(core_name, folder)
        before = megabytes()
        rounds = max(3, min(2000, 20_000 // entities))
        feed = Feed(entities, rounds, None)
        watch = Watch(config(folder, core_name), core, feed)
        watch.start()
        full, used = run(watch, feed)
        line: dict[str, Any] = {"core": core_name, "entities": entities}
        line["rows_per_second"] = round(entities * rounds / full)
        line["processor_us_per_row"] = round(1e6 * used / (entities * rounds))
        line["kb_per_entity"] = round(1024 * (megabytes() - before) / entities, 1)
        watch.close()

        pace = Feed(entities, max(1, round(seconds / 10)) if entities > 50 else 60,
                    10.0 if entities > 50 else seconds / 60, rounds)  # fmt: skip
        started = time.monotonic()
        watch = Watch(config(folder, core_name), core, pace)
        watch.status.alert_seconds = alerts = Times()  # type: ignore[assignment]
        watch.status.checkpoint_seconds = commits = Times()  # type: ignore[assignment]
        watch.start()
        line["restart_seconds"] = round(time.monotonic() - started, 2)
        spent, used = run(watch, pace)
        watch.close()
        line |= {
            "pace_rows_per_second": round(pace._at / spent),
            "processor_share": round(used / spent, 2),
            "alerts": len(alerts.all),
            "alert_p50_ms": _quantile(alerts.all, 0.5),
            "alert_p99_ms": _quantile(alerts.all, 0.99),
            "checkpoint_p50_ms": _quantile(commits.all, 0.5),
            "checkpoint_p99_ms": _quantile(commits.all, 0.99),
        }
        size = sum(path.stat().st_size for path in folder.glob("state*"))
        line["state_kb_per_entity"] = round(size / 1024 / entities, 1)
    return line


def soak(entities: int, core_name: str, minutes: float) -> dict[str, Any]:
    """Full speed for a while: memory after a tenth of it and at the end, and what was dropped."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        core = make_core(core_name, folder)
        feed = Feed(entities, 10**9, None)
        watch = Watch(config(folder, core_name), core, feed)
        watch.start()
        started, early = time.monotonic(), 0.0
        while (passed := time.monotonic() - started) < 60 * minutes:
            watch.step()
            if not early and passed > 6 * minutes:
                early = megabytes()
        late = megabytes()
        counts = watch.status.counts
        watch.close()
        dropped = {key: counts[key] for key in DROPS}
        size = sum(path.stat().st_size for path in folder.glob("state*"))
    return {
        "core": core_name, "entities": entities, "minutes": minutes, "rows": counts["rows"],
        "mb_early": round(early, 1), "mb_late": round(late, 1), "state_mb": round(size / 2**20, 1),
        "alarms": counts["alarms_opened"], "sent": counts["sent"], **dropped,
    }  # fmt: skip


def _quantile(values: Sequence[float], q: float) -> float | str:
    return round(1000 * float(np.quantile(values, q)), 1) if values else ""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--entities", type=int, nargs="+", default=[1, 100, 10_000])
    parser.add_argument("--core", choices=["zscore", "vace"], default="zscore")
    parser.add_argument("--seconds", type=float, default=30, help="of the run at a plant's pace")
    parser.add_argument("--soak", type=float, help="only: full speed for so many minutes")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    lines = []
    if options.soak is not None:
        lines = [soak(options.entities[0], options.core, options.soak)]
        print(lines[-1])
        write(lines, options.out / f"live-soak-{options.core}.csv")
        return
    for entities in options.entities:
        lines.append(measure(entities, options.core, options.seconds))
        print(lines[-1], flush=True)
    write(lines, options.out / f"live-{options.core}.csv")


if __name__ == "__main__":
    main()
