"""The layout of a table: one series, a long table, or the rows of several machines.

A long table has a row for each sensor and time; a keyed one has a row for each machine and time.
Read as one series, both would give meaningless results, so they are recognised and refused. On
request, a long table is pivoted to one column for each sensor.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from vace_ad.errors import ConfigError, InputError
from vace_ad.frames.columns import no_column
from vace_ad.frames.time import no_time
from vace_ad.settings import option

_ENTITY = re.compile(
    r"(^|_)(machine|host|hostname|server|device|asset|pump|turbine|engine|motor|vehicle|site|"
    r"station|plant|node|instance|robot|equipment|entity|maschine|anlage)s?(_?(id|no|nr|name))?$",
    re.IGNORECASE,
)
_VALUE = re.compile(r"(value|val|reading|measurement|wert|messwert|y)$", re.IGNORECASE)

_REPEATS = 0.2  # share of rows whose time came before, from which times come again and again
_UNIQUE = 0.98  # share of (time, key) pairs that come once where a key explains the repeats
_ROWS = 8  # fewer say nothing about a shape
_ENTITY_ROWS = 20  # of each value of a column that is named like a machine


@dataclass(frozen=True)
class Layout:
    """What a table is, where it is not one series."""

    by: tuple[str, ...]  # columns that name the machine
    sensor: str | None = None  # of a long table, as the next
    value: str | None = None
    count: int = 0  # of different machines, or sensors

    def refusal(self) -> str:
        """What came, and the exact option that reads it."""
        fixes = []
        if self.sensor is not None:
            fixes.append(option("long", f"{self.sensor},{self.value}"))
        if self.by:
            fixes.append(option("by", ",".join(self.by)))
        if self.sensor is not None:
            what = (
                f"this is a long table: a row for each time and each of {self.count:,} values of "
                f"{self.sensor!r}"
            )
        else:
            names = " and ".join(map(repr, self.by))
            what = f"the table holds the rows of {self.count:,} series, told apart by {names}"
        return f"{what}; read it with {' and '.join(fixes)}"


def refuse_other_shapes(frame: pl.DataFrame, time: NDArray[np.datetime64] | None) -> None:
    """Refuse a long or keyed table, naming the option that reads it."""
    shape = recognise(frame, time)
    if shape is not None:
        raise InputError(shape.refusal())


def recognise(frame: pl.DataFrame, time: NDArray[np.datetime64] | None) -> Layout | None:
    """The shape of a table without its time column; None where it is one series."""
    if frame.height < _ROWS:
        return None
    names = _candidates(frame)
    keys = None
    if time is not None and names:
        keys = _explain_repeats(frame, time, names) or _explain_order(frame, time, names)
    if keys is None:
        keys = next(((name,) for name in names if _names_machines(frame, name)), None)
    if keys is None:
        return None
    return _shape(frame, keys)


def _candidates(frame: pl.DataFrame) -> list[str]:
    """Columns that may be a key: words, or few whole numbers."""
    found = []
    for name, kind in frame.schema.items():
        column = frame[name]
        if kind.is_numeric():
            if not kind.is_integer() and not _whole(column.head(200)):
                continue
            if not (2 <= column.n_unique() <= max(2, frame.height // 4)) or not _whole(column):
                continue
        elif kind not in (pl.String, pl.Categorical, pl.Enum) or column.n_unique() < 2:
            continue
        found.append(name)
    return sorted(found, key=lambda name: frame.schema[name].is_numeric())  # words first


def _whole(column: pl.Series) -> bool:
    values = column.drop_nulls().to_numpy()
    return bool(len(values)) and bool((values == np.floor(values)).all())


def _explain_repeats(
    frame: pl.DataFrame, time: NDArray[np.datetime64], names: list[str]
) -> tuple[str, ...] | None:
    """The one or two columns that tell apart rows of the same time."""
    stamps = pl.Series("t", time.view(np.int64))
    counts = stamps.value_counts()["count"]
    if 1 - len(counts) / len(stamps) < _REPEATS:
        return None
    # A key takes about as many values as there are rows at one time; a measurement takes more.
    most = 3 * int(counts.max())  # type: ignore[arg-type]
    few = [name for name in names if frame[name].n_unique() <= most]
    for keys in _choices(few):
        pairs = frame.select(*keys).with_columns(stamps.alias("\0time")).n_unique()
        if pairs >= _UNIQUE * frame.height:
            return keys
    return None


def _choices(names: list[str]) -> Iterator[tuple[str, ...]]:
    yield from ((name,) for name in names)
    yield from combinations(names[:6], 2)


def _explain_order(
    frame: pl.DataFrame, time: NDArray[np.datetime64], names: list[str]
) -> tuple[str, ...] | None:
    """A column within whose values time runs forward and evenly, where as a whole it does not."""
    stamps: NDArray[np.int64] = time.view(np.int64)
    pauses = np.diff(stamps)
    back = pauses < 0
    median = float(np.median(pauses))
    off = np.abs(pauses - median) > 0.1 * abs(median)
    if not back.any() and off.mean() <= 0.05:
        return None
    for name in names:
        codes = frame[name].rank("dense").fill_null(0).to_numpy()
        order = np.argsort(codes, kind="stable")
        same = np.diff(codes[order]) == 0
        within = np.diff(stamps[order])[same]  # pauses inside each value's rows
        if not len(within) or (within <= 0).any():
            continue
        step = float(np.median(within))
        even = (np.abs(within - step) <= 0.1 * step).mean() >= 0.95
        changed = codes[1:] != codes[:-1]
        blocks = back.any() and changed[back].all()  # one machine below the other
        woven = even and step >= 1.5 * abs(median) and changed.mean() > 0.3
        if blocks or woven:
            return (name,)
    return None


def _names_machines(frame: pl.DataFrame, name: str) -> bool:
    """Whether a column of words is named like a machine, and each of its values has many rows."""
    if frame.schema[name].is_numeric() or not _ENTITY.search(name):
        return False
    counts = frame[name].drop_nulls().value_counts()["count"]
    return len(counts) >= 2 and float(counts.median() or 0) >= _ENTITY_ROWS  # type: ignore[arg-type]


def _shape(frame: pl.DataFrame, keys: tuple[str, ...]) -> Layout | None:
    """A long table where one column of values is left, else a keyed one."""
    numbers = [
        name
        for name, kind in frame.schema.items()
        if name not in keys and (kind.is_numeric() or kind == pl.Boolean)
    ]
    if not numbers:
        return None
    sensors = [key for key in keys if not _ENTITY.search(key)]
    values = numbers if len(numbers) == 1 else [name for name in numbers if _VALUE.match(name)]
    if len(values) == 1 and sensors:
        # Of two keys, the sensor is the one that is not named like a machine, else the last.
        sensor = sensors[-1]
        by = tuple(key for key in keys if key != sensor)
        return Layout(by, sensor, values[0], frame[sensor].n_unique())
    return Layout(keys, count=frame.select(*keys).n_unique())


MOST_SENSORS = 10_000  # with more, the wrong column was named


def pivot(
    frame: pl.DataFrame,
    time: NDArray[np.datetime64] | None,
    long: str | Sequence[str],
) -> tuple[pl.DataFrame, NDArray[np.datetime64], list[str]]:
    """A column for each value of the sensor column, a row for each time, in order of time.

    `long` names the column of sensors and the column of values. Several values of one sensor at
    one time are averaged, and said.
    """
    sensor, value = _columns(frame, long)
    if time is None:
        raise no_time("a long table")
    if not (frame.schema[value].is_numeric() or frame.schema[value] == pl.Boolean):
        first = frame[value].drop_nulls().first()
        raise InputError(
            f"column {value!r} holds words (such as {first!r}), not values; name the column of "
            f"values in {option('long', f'{sensor},VALUE')}"
        )
    notes = []
    nameless = frame[sensor].null_count()
    if nameless:
        keep = frame[sensor].is_not_null()
        frame, time = frame.filter(keep), time[keep.to_numpy()]
        notes.append(f"{nameless:,} rows left out: they name no {sensor}")
    count = frame[sensor].n_unique()
    if not 0 < count <= MOST_SENSORS:
        raise InputError(
            f"column {sensor!r} has {count:,} different values; as sensors that is "
            f"{'none' if count == 0 else 'too many'}: name another in "
            f"{option('long', 'SENSOR,VALUE')}"
        )
    stamped = frame.select(
        pl.Series("\0time", time),
        pl.col(sensor).cast(pl.String),
        pl.col(value).cast(pl.Float64),
    ).with_columns(pl.col(value).fill_nan(None))
    pairs = stamped.select("\0time", sensor).n_unique()
    if pairs < stamped.height:
        notes.append(f"{stamped.height - pairs:,} values averaged with others of the same time")
    wide = stamped.pivot(
        on=sensor, index="\0time", values=value, aggregate_function="mean", sort_columns=True
    ).sort("\0time", maintain_order=True)
    notes.append(f"long table: {count:,} values of {sensor!r} are channels now")
    return wide.drop("\0time"), wide["\0time"].to_numpy().astype("datetime64[ns]"), notes


def _columns(frame: pl.DataFrame, long: str | Sequence[str]) -> tuple[str, str]:
    parts = [part.strip() for part in long.split(",")] if isinstance(long, str) else list(long)
    if len(parts) != 2:
        raise ConfigError(
            f"{option('long', long)}: name two columns, that of the sensors and that of the "
            f"values: {option('long', 'sensor,value')}"
        )
    for name in parts:
        if name not in frame.columns:
            raise no_column(name, frame.columns)
    return parts[0], parts[1]
