"""Rows a second through a watch, by the way in which they come, beside the plain path.

    python benchmarks/engines.py                 # every source that is installed, a few minutes
    python benchmarks/engines.py mqtt opcua      # these alone; the file keeps the other lines
    python benchmarks/engines.py --spark 200     # Spark beside the same work in processes

The same rows of ten channels come as records from memory ("plain"), in the form of each source,
already encoded, or from a server (`brokers.py`); the watch has the z-score detector of the tests,
so that what is timed is the way in, the alignment and the state. `rows_a_core` counts processor
time of the watch, all threads included. Writes engines.csv, and with --spark engines-spark.csv, to
benchmarks/results.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "live"))  # the z-score stream of the tests

import brokers  # noqa: E402
from fakes import FakeCore, FakeModel  # noqa: E402
from record import RESULTS, Line, read, write  # noqa: E402

from vace_ad.live.config import make_config  # noqa: E402
from vace_ad.live.records import Record  # noqa: E402
from vace_ad.live.runner import Watch  # noqa: E402
from vace_ad.live.sources.push import PushSettings, PushSource  # noqa: E402

CHANNELS = tuple(f"c{i}" for i in range(10))
STEP, START, SEED = 10 * 10**9, 1_767_614_400 * 10**9, 0
TOGETHER = 500  # rows of a request
ROWS = {100: 5_000, 10_000: 20_000}  # by entities
NEEDS = {"remote-write": "cramjam", "otlp": "opentelemetry", **brokers.LIBRARIES}
FEWER = {("opcua", 10_000): 1_000}  # entities: a server of 100,000 variables takes too long to make


def rows_of(entities: int) -> list[Record]:
    rng = np.random.default_rng(SEED)
    return [
        Record(
            f"entity-{i % entities:05d}",
            START + i // entities * STEP,
            dict(zip(CHANNELS, rng.normal(size=len(CHANNELS)).tolist(), strict=True)),
        )
        for i in range(ROWS.get(entities, 5_000))
    ]


class Plain(PushSource[PushSettings]):
    """Records as they are."""

    def parse(self, body: list[Record]) -> list[Record]:
        """Nothing is to be done."""
        return body


def json_lines(rows: list[Record]) -> str:
    return "".join(
        json.dumps({"entity": row.entity, "time": row.time, **row.values}) + "\n" for row in rows
    )


def influx(rows: list[Record]) -> str:
    cells = (",".join(f"{name}={value!r}" for name, value in row.values.items()) for row in rows)
    return "".join(
        f"plant,host={row.entity} {cell} {row.time}\n"
        for row, cell in zip(rows, cells, strict=True)
    )


def remote_write(rows: list[Record]) -> bytes:
    from vace_ad.live import remote_write_codec

    return remote_write_codec.encode(
        ({"__name__": name, "instance": row.entity, "job": "b"}, [(row.time // 10**6, value)])
        for row in rows
        for name, value in row.values.items()
    )


def otlp(rows: list[Record]) -> bytes:
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
        ExportMetricsServiceRequest,
    )

    request = ExportMetricsServiceRequest()
    for row in rows:
        one = request.resource_metrics.add()
        one.resource.attributes.add(key="service.name").value.string_value = row.entity
        scope = one.scope_metrics.add()
        for name, value in row.values.items():
            point = scope.metrics.add(name=name).gauge.data_points.add()
            point.time_unix_nano, point.as_double = row.time, value
    return request.SerializeToString()


PUSHED: dict[str, tuple[Callable[[list[Record]], Any], tuple[Any, ...]]] = {
    "http": (lambda rows: json.dumps([{"entity": r.entity, "time": r.time, **r.values}
                                      for r in rows]).encode(), ("application/json",)),
    "remote-write": (remote_write, ()),
    "otlp": (otlp, ("application/x-protobuf",)),
}  # fmt: skip
FILES = {"jsonl": json_lines, "influx": influx}


def configured(folder: Path, source: dict[str, Any]) -> Any:
    FakeModel(CHANNELS, [0.0] * len(CHANNELS), [1.0] * len(CHANNELS)).save(folder / "model.json")
    return make_config(
        {
            "source": source,
            "align": {"step": "10s", "future": "36500d"},
            "model": {"file": str(folder / "model.json")},
            "alarms": {"silence_after": "off"},
            "state": {"path": str(folder / "state")},
            "server": {"address": "127.0.0.1:0"},
        }
    )


def measured(kind: str, entities: int) -> Line:
    """A watch over all rows in one form."""
    rows = rows_of(entities)
    with tempfile.TemporaryDirectory() as name:
        if kind in brokers.WAYS:
            n, seconds, used = sent(kind, rows, entities, Path(name))
        else:
            n, seconds, used = handed(kind, rows, Path(name))
    return {
        "way": kind, "entities": entities, "rows": n, "channels": len(CHANNELS),
        "rows_a_second": round(n / seconds), "rows_a_core": round(n / used),
    }  # fmt: skip


Timed = tuple[int, float, float]  # rows, seconds, processor seconds


def sent(kind: str, rows: list[Record], entities: int, folder: Path) -> Timed:
    """Rows that a server sends."""
    parts = brokers.parts_of(kind, rows, entities)
    with brokers.sending(kind, parts, folder) as (source, send):
        watch = Watch(configured(folder, source), FakeCore())
        watch.start()
        wanted = 0
        for number, part in enumerate(parts):
            if number == 1:
                clock, cpu = time.perf_counter(), time.process_time()
            send(number)
            wanted += len(part) * len(CHANNELS)
            end = time.monotonic() + brokers.SECONDS
            while watch.status.counts["readings"] < wanted and time.monotonic() < end:
                watch.step()
        watch.checkpoint()
        seconds, used = time.perf_counter() - clock, time.process_time() - cpu
        checked(kind, watch, len(rows))
        watch.close()
    return len(rows) - len(parts[0]), seconds, used


def handed(kind: str, rows: list[Record], folder: Path) -> Timed:
    """Rows that are here already, in the form of a source."""
    parts = [rows[a : a + TOGETHER] for a in range(0, len(rows), TOGETHER)]
    path, pushed = folder / "feed" if kind in FILES else None, {"pending": 10**7}
    source: dict[str, Any] = {"kind": "http"} if kind in ("plain", "http") else {"kind": kind}
    if path is not None:
        path.write_text(FILES[kind](rows))
        source |= {"path": str(path), "follow": False}
    elif source["kind"] != "http":
        source |= pushed
    config = configured(folder, source)
    bodies: list[Any] = []
    more: tuple[Any, ...] = ()
    if kind in PUSHED:
        encode, more = PUSHED[kind]
        bodies = [encode(part) for part in parts]
    elif kind == "plain":
        bodies = list(parts)
    plain = Plain(PushSettings(**pushed)) if kind == "plain" else None
    watch = Watch(config, FakeCore(), plain)
    watch.start()
    clock, cpu = time.perf_counter(), time.process_time()
    if path is not None:
        while watch.step():
            pass
    for body in bodies:
        inlet: Any = watch.source
        inlet.push(inlet.parse(body, *more))
        watch.step()
    watch.checkpoint()
    seconds, used = time.perf_counter() - clock, time.process_time() - cpu
    checked(kind, watch, len(rows))
    watch.close()
    return len(rows), seconds, used


def checked(kind: str, watch: Watch, rows: int) -> None:
    """Nothing was lost, doubled or refused."""
    readings = watch.status.counts["readings"]
    if readings != rows * len(CHANNELS):
        raise SystemExit(f"{kind}: {readings:,} readings were taken of {rows * len(CHANNELS):,}")


def lines(ways: Sequence[str]) -> Iterator[Line]:
    for entities in ROWS:
        for kind in ways:
            library = NEEDS.get(kind, "json")
            if lacks := library if find_spec(library) is None else brokers.missing(kind):
                print(f"{kind}: left out, {lacks} is not installed")
                continue
            line = measured(kind, FEWER.get((kind, entities), entities))
            print(line, flush=True)
            yield line


# ------------------------------------------------------------------------- Spark


def one_key(rows: Any) -> int:
    """What Spark does for a key: learn from the first half, find events in the second."""
    from vace_ad import VACE

    half = len(rows) // 2
    table = rows.drop(columns="machine").reset_index(drop=True)
    return len(VACE().fit(table[:half]).detect(table[half:].reset_index(drop=True)).events)


def processor_seconds() -> float:
    """Of this process and of all below it, those that have ended included."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            cells = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        found[int(path.parent.name)] = int(cells[1]), sum(map(int, cells[11:15]))
    tree = {os.getpid()}
    while more := {pid for pid, (parent, _) in found.items() if parent in tree} - tree:
        tree |= more
    return sum(found[pid][1] for pid in tree) / os.sysconf("SC_CLK_TCK")


def spark_lines(keys: int) -> Iterator[Line]:
    sys.path.insert(0, str(ROOT / "tests"))
    import pyspark.sql.functions as sql

    import vace_ad.spark
    from spark.conftest import frame, session

    rows = frame(1000, keys=keys)
    middle = rows["time"].iloc[500]
    parts = [part for _, part in rows.groupby("machine")]

    def timed(way: str, work: Callable[[], int]) -> Line:
        clock, used = time.perf_counter(), processor_seconds()
        events = work()
        line = {"way": way, "keys": keys, "rows": len(rows), "channels": 3, "events": events,
                "seconds": round(time.perf_counter() - clock, 1),
                "processor_seconds": round(processor_seconds() - used, 1)}  # fmt: skip
        print(line, flush=True)
        return line

    def in_processes() -> int:
        with ProcessPoolExecutor(2) as pool:
            return sum(pool.map(one_key, parts))

    def in_spark() -> int:
        models = vace_ad.spark.fit(table.where(sql.col("time") < middle), by="machine", time="time")
        return int(models.detect(table.where(sql.col("time") >= middle)).count())

    yield timed("processes", in_processes)
    spark = session()
    table = spark.createDataFrame(rows)
    table.count()
    yield timed("spark", in_spark)
    spark.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--spark", type=int, metavar="KEYS", help="Spark alone, with so many keys")
    every = ("plain", *FILES, *PUSHED, *brokers.WAYS)
    parser.add_argument("ways", nargs="*", metavar="WAY", help=f"of {', '.join(every)}; or all")
    given = parser.parse_args()
    if wrong := sorted(set(given.ways) - set(every)):
        parser.error(f"no way is called {wrong[0]!r}; there are {', '.join(every)}")
    if given.spark:
        write(list(spark_lines(given.spark)), RESULTS / "engines-spark.csv", seed=SEED)
        return
    path, ways = RESULTS / "engines.csv", given.ways or every
    found: list[Line] = [line for line in read(path) if line["way"] not in ways]
    for line in lines(ways):
        found.append(line)
        write(found, path, seed=SEED)  # what is done is kept


if __name__ == "__main__":
    main()
