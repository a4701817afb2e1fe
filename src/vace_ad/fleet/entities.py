"""The machines of a fleet: which there are, each one's rows in files of its own, and its result.

Where paths name the machines, their files are used as they are. Else every file is read once,
piece by piece, and its rows are sorted into a file for each machine; a fleet is never in memory
whole.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import polars as pl

from vace_ad.alarms.events import NO_DATA
from vace_ad.app.loading import read_frame
from vace_ad.atomic import write_text
from vace_ad.errors import InputError
from vace_ad.frames.read_options import ReadOptions, names_of
from vace_ad.frames.sources import (
    BY_FILE,
    TableSource,
    by_file,
    find_sources,
    refuse_no_key,
    with_keys,
)

JOINT = " / "  # between the keys of one machine
NAMED = 3  # sensors and components of a machine
Status = Literal["ok", "borrowed", "short", "failed"]
_INDEX = "machines.json"
_PIECE = 4_000_000  # cells of a Parquet file that are sorted at a time


@dataclass(frozen=True)
class Machine:
    """One machine and where its rows are."""

    name: str
    parts: tuple[tuple[str, str], ...]  # (file to read, file that the rows came from)
    rows: int | None = None  # where they were counted
    sorted: bool = False  # parts are ours: typed, with the keys left out
    keys: tuple[str, ...] = ()  # the values of the columns that name it
    frame: pl.DataFrame | None = field(default=None, repr=False, compare=False)  # its rows, if here


@dataclass(frozen=True)
class MachineRow:
    """The result of one machine, a row of the results file."""

    machine: str  # its keys, joined by " / "
    status: Status  # borrowed: with the shared model; short: too few rows for a model of its own
    folder: str | None = None  # of its own results, inside the run's
    error: str | None = None
    rows: int = 0
    channels: int = 0
    threshold: float | None = None
    zone: str | None = None
    events: tuple[dict[str, Any], ...] = ()  # app.results.event_record, and the height of each
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    bar: float = 1.0  # evidence over its limit that its part of the budget asks for
    allowed: float = 0.0  # events that its part of the budget allows in its rows
    until: str | None = None  # the time of its last row
    patience: int | None = None  # nanoseconds without rows after which there is no data
    peaks: tuple[float, ...] = ()  # the highest evidence over its limit of stretches of its rows

    @property
    def key(self) -> str:
        """The machine, under which the row is stored."""
        return self.machine

    @property
    def anomalies(self) -> list[dict[str, Any]]:
        """The anomalies among the events."""
        return [event for event in self.events if event["kind"] == "anomaly"]

    @property
    def worst(self) -> dict[str, Any]:
        """The most severe anomaly; empty where there is none."""
        return max(self.anomalies, key=lambda event: event["severity"] or 0.0, default={})

    @property
    def severity(self) -> float:
        """Of its worst event; -1 where there is none."""
        return (self.worst["severity"] or 0.0) if self.worst else -1.0

    @property
    def sensors(self) -> list[str]:
        """The channels that its worst event blames, highest first."""
        return list(self.worst.get("shares", ()))[:NAMED]

    @property
    def components(self) -> list[str]:
        """The components that its worst event blames, highest first."""
        return list(self.worst.get("components", ()))[:NAMED]

    @property
    def vanished_since(self) -> str | None:
        """When the machine sent its last row; None where it goes on to the end."""
        last = self.events[-1] if self.events else None
        if last is None or last["kind"] != NO_DATA or last["start"] != self.rows or not self.rows:
            return None
        return str(last["start_time"])

    @property
    def since(self) -> str:
        """Start of the worst event, as time or row; the last time of a machine without new data."""
        if not self.worst:
            return self.vanished_since or ""
        return str(self.worst["start_time"] or self.worst["start"])

    def to_json(self) -> str:
        """One line of JSON, without its end."""
        return json.dumps(asdict(self), allow_nan=False)

    @classmethod
    def from_json(cls, line: str | bytes) -> MachineRow:
        """Read a row from its line."""
        fields: dict[str, Any] = json.loads(line)
        for name in ("events", "notes", "peaks"):
            fields[name] = tuple(fields[name])
        return cls(**fields)


def find_entities(
    places: str | Path | Sequence[str | Path], how: ReadOptions, folder: Path
) -> tuple[list[Machine], list[str]]:
    """The machines behind the given paths, in order of name, and notes.

    Rows that have to be sorted go to `folder`; sorted once, they are found there again.
    """
    by = names_of(how.by) or []
    sources = find_sources(places)
    if by == [BY_FILE] and not all(BY_FILE in dict(one.keys) for one in sources):
        sources = by_file(sources)
    if all(set(by) <= {name for name, _ in one.keys} for one in sources):
        return _named_by_paths(sources, by), []
    print_of = _fingerprint(sources, how)
    known = _read_index(folder, print_of)
    if known is not None:
        return known
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    entities, notes = _sort_rows(sources, how, by, folder)
    refuse_no_key([one.rows or 0 for one in entities], by)
    content = {"print": print_of, "notes": notes, "machines": [asdict(one) for one in entities]}
    write_text(folder / _INDEX, json.dumps(content))
    return entities, notes


def machines_in(frame: pl.DataFrame, by: Sequence[str]) -> list[Machine]:
    """The machines of a table in memory, in order of name."""
    frame, _ = with_keys(frame, by)
    parts = frame.partition_by(by, as_dict=True, include_key=False)
    refuse_no_key([part.height for part in parts.values()], by)
    return [
        Machine(JOINT.join(keys), (), parts[keys].height, keys=keys, frame=parts[keys])
        for keys in sorted(parts)
    ]


def folder_name(machine: str) -> str:
    """A name for a machine's files: its own where that is safe, else with a checksum."""
    plain = re.sub(r"[^\w\-.]+", "_", machine, flags=re.ASCII)[:60].strip("._")
    if plain == machine and not plain.lower().startswith("shared"):
        return plain
    return f"{plain}-{hashlib.sha256(machine.encode(errors='replace')).hexdigest()[:8]}"


def _named_by_paths(sources: Sequence[TableSource], by: Sequence[str]) -> list[Machine]:
    files: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    for one in sources:
        keys = tuple(dict(one.keys)[key] for key in by)
        files.setdefault(keys, []).append((one.place, one.place))
    found = [Machine(JOINT.join(keys), tuple(parts), keys=keys) for keys, parts in files.items()]
    return sorted(found, key=lambda one: one.name)


def _fingerprint(sources: Sequence[TableSource], how: ReadOptions) -> str:
    """Changes with the files and with how they are read."""
    facts: list[Any] = [repr(how)]
    for one in sources:
        path = Path(one.place)
        stat = path.stat() if path.is_file() else None
        facts.append([one.place, one.keys, stat and (stat.st_size, stat.st_mtime_ns)])
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _read_index(folder: Path, print_of: str) -> tuple[list[Machine], list[str]] | None:
    path = folder / _INDEX
    if not path.is_file():
        return None
    content = json.loads(path.read_text())
    if content["print"] != print_of:
        return None
    entities = [
        Machine(
            **{
                **one,
                "parts": tuple(tuple(part) for part in one["parts"]),
                "keys": tuple(one["keys"]),
            }
        )
        for one in content["machines"]
    ]
    return entities, content["notes"]


def _sort_rows(
    sources: Sequence[TableSource], how: ReadOptions, by: Sequence[str], folder: Path
) -> tuple[list[Machine], list[str]]:
    parts: dict[str, list[tuple[str, str]]] = {}
    counts: dict[str, int] = {}
    named: dict[str, tuple[str, ...]] = {}
    notes: dict[str, None] = {}
    for source in sources:
        for piece, said in _pieces(source, how):
            frame, more = with_keys(piece, by)
            notes |= dict.fromkeys([*said, *more])
            groups = frame.partition_by(by, as_dict=True, include_key=False)
            # Before many thousand files are written for a column that is not a key.
            refuse_no_key([group.height for group in groups.values()], by)
            for keys, group in groups.items():
                name = JOINT.join(map(str, keys))
                named[name] = tuple(map(str, keys))
                place = folder / folder_name(name) / f"{len(parts.get(name, ())):06}.parquet"
                place.parent.mkdir(exist_ok=True)
                group.write_parquet(place, compression="lz4", statistics=False)
                parts.setdefault(name, []).append((str(place), source.place))
                counts[name] = counts.get(name, 0) + group.height
    if not parts:
        raise InputError("no machine has any row; check the table")
    entities = [
        Machine(n, tuple(parts[n]), counts[n], sorted=True, keys=named[n]) for n in sorted(parts)
    ]
    return entities, list(notes)


def _pieces(source: TableSource, how: ReadOptions) -> Iterator[tuple[pl.DataFrame, Sequence[str]]]:
    """A source's rows: Parquet some row groups at a time, anything else in one piece."""
    path = Path(source.place)
    if path.suffix in (".parquet", ".pq") and path.is_file():
        lazy = pl.scan_parquet(path, hive_partitioning=False)
        try:
            total = lazy.select(pl.len()).collect().item()
            width = len(lazy.collect_schema())
        except pl.exceptions.PolarsError:
            total = 0  # damaged: the common reader says how
        step = max(1, _PIECE // max(1, width if total else 1))
        if total > step:
            added = [pl.lit(value).alias(name) for name, value in source.keys]
            for start in range(0, total, step):
                yield lazy.slice(start, step).collect().with_columns(added), ()
            return
    frame, report = read_frame([source], how)
    yield frame, report.notes
