"""Live operation: rows a second, row to alert, checkpoints, memory and restart, by entities.

    python benchmarks/live.py --core zscore          # what live operation itself costs
    python benchmarks/live.py --core vace --entities 1 100
    python benchmarks/live.py --core vace --entities 10000 --processes 2

The feed comes from memory: each entity has ten channels of noise. First a backlog, until every
stream has scores; then single rows as fast as possible; then one row every ten seconds an entity,
one in twenty of them with a fault; then a restart. An alert is timed from the moment when the
record that closes its row is due to its delivery: time in which the watch is behind counts.
`waiting_share` tells how much of that time the watch had work, and other programs had the core.
Several processes have their share of the entities each, at the same time.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "live"))  # the z-score stream of the tests

from fakes import FakeCore, FakeModel  # noqa: E402
from record import RESULTS, write  # noqa: E402

from vace_ad.live.config import make_config  # noqa: E402
from vace_ad.live.records import Record, read_time  # noqa: E402
from vace_ad.live.runner import Watch  # noqa: E402
from vace_ad.live.settings import Settings  # noqa: E402
from vace_ad.live.sinks import Sink  # noqa: E402
from vace_ad.live.sources import Batch, Source  # noqa: E402

CHANNELS = tuple(f"c{i}" for i in range(10))
STEP = 10 * 10**9
START = 1_767_614_400 * 10**9
DROPS = (
    "late",
    "twice",
    "replayed",
    "future",
    "bad",
    "outbox_dropped",
    "refused",
    "unknown_channel",
)
_FILLED = 1100  # rows after which no window of a stream grows any more
LEAD = 4  # rounds from a fault to the record that opens its alarm
FAULTS = 20  # one entity in so many has one


class Feed(Source[Settings]):
    """A source from memory: rounds of one row for each entity, at a pace or at full speed."""

    def __init__(
        self, entities: int, rounds: int, seconds: float | None, first: int = 0,
        backlog: bool = False, faults: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(Settings())
        self._faults = faults  # from this round on
        self._backlog = backlog  # all rounds of one entity after the other
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
        return self.read_at_most(2000)

    def read_at_most(self, most: int, timeout: float = 0.0) -> Batch | None:
        """What is due, up to so many rows."""
        total = len(self._names) * len(self._rounds)
        due = total
        if self._seconds is not None:  # of a round
            passed = time.monotonic() - self._started
            due = min(total, int(passed / self._seconds * len(self._names)))
        n = min(due - self._at, most, 2000)
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
        if self._backlog:
            entity, turn = divmod(i, len(self._rounds))
        values = self._rng.normal(size=len(CHANNELS))
        number = self._rounds[turn]
        if self._faults is not None and self._at_fault(entity, number - self._faults):
            values[entity % len(CHANNELS)] += 30
        cells = dict(zip(CHANNELS, values.tolist(), strict=True))
        return Record(self._names[entity], START + number * STEP, cells)

    def _at_fault(self, entity: int, n: int) -> bool:
        """Whether an entity is at fault `n` rounds after faults began."""
        if len(self._names) < FAULTS:
            return n % 30 == 10
        if len(self._rounds) > 1000:  # a soak: faults come and go
            return (n + 7 * entity) % 400 >= 396
        return entity % FAULTS == 0 and n >= entity // FAULTS % 3  # to the end

    def due(self, entity: str, time: str) -> float:
        """When the record was due that closed an entity's row: the one after it."""
        number = (read_time(time) - START) // STEP + 1
        before = (number - self._rounds[0]) * len(self._names) + int(entity.rpartition("-")[2])
        return self._started + (before + 1) / len(self._names) * (self._seconds or 0.0)

    def acknowledge(self, position: Any) -> None:
        """Nothing is kept here."""

    def close(self) -> None:
        """Nothing is open."""


class Alerts(Sink[Settings]):
    """A sink that notes how long an alarm took."""

    def __init__(self, feed: Feed) -> None:
        super().__init__(Settings())
        self._feed = feed
        self.all: list[float] = []  # seconds

    def send(self, messages: Sequence[Any]) -> None:
        """Note the openings."""
        now = time.monotonic()
        for one in messages:
            if one["what"] == "open":
                self.all.append(now - self._feed.due(one["entity"], one["time"]))

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
    from vace_ad.live.detector import Detectors

    made = Detectors(Budget(1, "week"))
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


def queued_seconds() -> float:
    """How long the main thread has waited for a core that others had; 0 where it is not told."""
    path = Path("/proc/self/schedstat")
    return int(path.read_text().split()[1]) / 1e9 if path.exists() else 0.0


def megabytes() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(entities: int, core_name: str, seconds: float) -> dict[str, Any]:
    """One number of entities: a backlog, full speed, the pace of a plant, a restart."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        core = make_core(core_name, folder)
        before = megabytes()
        line: dict[str, Any] = {"core": core_name, "entities": entities}
        warm = (
            LEAD
            if core_name == "zscore"
            else core.load(folder / "model.vace")._detector.model_.reach + 8
        )
        rounds = max(1, min(2000, 10_000 // entities))
        faults = warm + rounds - LEAD
        feed = Feed(entities, warm, None, backlog=True, faults=faults)
        watch = Watch(config(folder, core_name), core, feed)
        watch.start()
        full, used = run(watch, feed)
        line["backlog_rows_per_second"] = round(entities * warm / full)
        watch.source = feed = Feed(entities, rounds, None, warm, faults=faults)
        feed.read = partial(feed.read_at_most, entities)  # never two rows of an entity at once
        feed.open(None)
        full, used = run(watch, feed)
        line["rows_per_second"] = round(entities * rounds / full)
        line["processor_us_per_row"] = round(1e6 * used / (entities * rounds))
        line["kb_per_entity"] = round(1024 * (megabytes() - before) / entities, 1)
        line |= paced(watch, entities, seconds, warm + rounds, faults)
        watch.close()
        started = time.monotonic()
        watch = Watch(config(folder, core_name), core, Feed(entities, 1, None))
        watch.start()
        line["restart_seconds"] = round(time.monotonic() - started, 2)
        some, started = list(watch.known)[:500], time.process_time()
        for one in some:
            watch.registry.get(one)
        line["load_ms_per_entity"] = round(1e3 * (time.process_time() - started) / len(some), 2)
        watch.close()
        size = sum(path.stat().st_size for path in folder.glob("state*"))
        line["state_kb_per_entity"] = round(size / 1024 / entities, 1)
    return line


def paced(watch: Watch, entities: int, seconds: float, first: int, faults: int) -> dict[str, Any]:
    """One row every ten seconds an entity, or sixty rows in all where there are few."""
    many = entities > 50
    rounds, each = (max(1, round(seconds / 10)), 10.0) if many else (60, seconds / 60)
    watch.source = feed = Feed(entities, rounds, each, first, faults=faults)
    watch.deliveries[0].sink = alerts = Alerts(feed)
    watch.status.checkpoint_seconds = commits = Times()  # type: ignore[assignment]
    feed.open(None)
    waited = queued_seconds()
    spent, used = run(watch, feed)
    waited = queued_seconds() - waited
    return {
        "pace_rows_per_second": round(feed._at / spent),
        "processor_share": round(used / spent, 2),
        "waiting_share": round(waited / spent, 2),
        "alerts": len(alerts.all),
        "alert_p50_ms": _quantile(alerts.all, 0.5),
        "alert_p99_ms": _quantile(alerts.all, 0.99),
        "checkpoint_p50_ms": _quantile(commits.all, 0.5),
        "checkpoint_p99_ms": _quantile(commits.all, 0.99),
    }


def together(entities: int, core: str, seconds: float, processes: int) -> dict[str, Any]:
    """Several processes with a share of the entities each: sums, and the worst of them."""
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        jobs = [
            pool.submit(measure, entities // processes, core, seconds) for _ in range(processes)
        ]
        lines = [job.result() for job in jobs]
    summed = ("entities", "alerts", *(key for key in lines[0] if key.endswith("rows_per_second")))
    worst = {
        key: max((line[key] for line in lines if line[key] != ""), default="") for key in lines[0]
    }
    return worst | {key: sum(line[key] for line in lines) for key in summed}


def soak(entities: int, core_name: str, minutes: float) -> dict[str, Any]:
    """Full speed for a while: memory after a tenth of it and at the end, and what was dropped.

    Before that, every window of the streams is filled: what grows afterwards would go on growing.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        core = make_core(core_name, folder)
        feed = Feed(entities, _FILLED, None, backlog=True)
        watch = Watch(config(folder, core_name), core, feed)
        watch.start()
        run(watch, feed)
        watch.source = feed = Feed(entities, 10**9, None, _FILLED, faults=_FILLED)
        feed.open(None)
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
    parser.add_argument("--processes", type=int, default=1, help="that share the entities")
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
    several = "" if options.processes == 1 else f"-{options.processes}"
    for entities in options.entities:
        found = (
            measure(entities, options.core, options.seconds)
            if options.processes == 1
            else together(entities, options.core, options.seconds, options.processes)
        )
        lines.append({"processes": options.processes, **found})
        print(lines[-1], flush=True)
        write(lines, options.out / f"live-{options.core}{several}.csv")


if __name__ == "__main__":
    main()
