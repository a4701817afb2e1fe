"""The time of a table: its column, its order, its step; rows sorted or resampled by it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vace_ad.errors import InputError
from vace_ad.frames.columns import no_column
from vace_ad.frames.timestamps import Stamps, parse_stamps
from vace_ad.settings import option

if TYPE_CHECKING:
    import polars as pl


_TRIED = 50  # columns of words that are tried as times, those with a time's name first
_TIME_NAME = re.compile(r"time|date|stamp|epoch|zeit|datum|uhr|^ts$|^t$", re.IGNORECASE)
_CLOCK_ONLY = r"^\s*\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?\s*$"

# Stamps off a whole number of steps by more than this share of a step are irregular ...
_JITTER = 0.1
# ... and a table is when more than this share of its stamps are.
_IRREGULAR = 0.05
_HOUR = 3600e9
_SPANS = ((31_557_600, "year"), (86_400, "day"), (3_600, "h"), (60, "min"), (1, "s"))  # seconds
_MANY = ("day", "year")  # units with a plural
_BELOW_A_MINUTE = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


@dataclass(frozen=True)
class TimeReport:
    """What was found out about the time of a table."""

    column: str | None  # the column it came from
    zone: str | None  # the one they came in, where it is known; times are kept in UTC then
    step: int | None  # median nanoseconds from row to row
    irregular: float = 0.0  # share of rows that are off the step
    notes: tuple[str, ...] = ()


def split_time(
    frame: pl.DataFrame, column: str | None = None, *, zone: str | None = None
) -> tuple[pl.DataFrame, NDArray[np.datetime64] | None, TimeReport]:
    """Take the time column out of a table; its order and step are checked later.

    Without `column`, the first column that reads as times is it. Rows without a time are left
    out.
    """
    import polars as pl

    name, stamps, used = _find(frame, column, zone)
    if name is None or stamps is None:
        return frame, None, TimeReport(None, None, None)
    time, notes = stamps.time, list(stamps.notes)
    frame = frame.drop(used)
    missing = np.isnat(time)
    if missing.any():
        if missing.mean() > 0.01 and missing.sum() > 1:
            row = int(np.flatnonzero(missing)[0])
            raise InputError(
                f"column {name!r}: {missing.sum():,} of {len(time):,} cells are not times, the "
                f"first in row {row}; correct them, or name another column with "
                f"{option('time_column')}"
            )
        notes.append(f"{missing.sum():,} of {len(time):,} rows left out: they have no time")
        frame, time = frame.filter(pl.Series(~missing)), time[~missing]
    return frame, time, TimeReport(name, stamps.zone, None, notes=tuple(notes))


def no_time(who: str) -> InputError:
    """The error that something needs times, and the table has none."""
    return InputError(
        f"{who} needs a time column, and none was found; name it with {option('time_column')}"
    )


def check_time(
    time: NDArray[np.datetime64], column: str | None = None, zone: str | None = None
) -> TimeReport:
    """Find the step of a table's times, with notes on irregular steps and gaps.

    Unsorted and duplicate times are refused.
    """
    check_order(time, zone, strict=True)
    pauses = np.diff(time).astype("timedelta64[ns]").astype(np.int64)  # (n - 1,)
    if not len(pauses):
        return TimeReport(column, zone, None)
    step, off, regular = off_step(pauses)
    irregular = float(off.mean())
    said = irregular_note(pauses)
    holes = pauses[(pauses > 1.5 * step) & (regular | (pauses > 10 * step))]
    if len(holes):
        longest = duration_words(float(holes.max()))
        said.append(f"{len(holes):,} gap{'s' * (len(holes) > 1)} in time, the longest {longest}")
    if zone is None and (np.abs(holes - step - _HOUR) <= _JITTER * step).any():
        said.append(
            "a gap of one hour may be the clock that was put forward; then name the time zone, "
            f"for example {option('time_zone', 'Europe/Berlin')}"
        )
    return TimeReport(column, zone, round(step), irregular, tuple(said))


def irregular_note(pauses: NDArray[np.int64]) -> list[str]:
    """A note that the step is irregular and how to resample; empty for a regular step."""
    step, off, regular = off_step(pauses)
    if regular:
        return []
    return [
        f"the step is irregular: {off.mean():.0%} of rows are off {duration_words(step)}; "
        f"resampling evens it out, for example {option('resample', _round_step(step))}"
    ]


def off_step(
    pauses: NDArray[np.int64], step: float | None = None
) -> tuple[float, NDArray[np.bool_], bool]:
    """The median step, which pauses are not a multiple of it, and whether they are few enough."""
    step = float(np.median(pauses)) if step is None else step
    off = np.abs(pauses - np.maximum(1, np.round(pauses / step)) * step) > _JITTER * step
    return step, off, float(off.mean()) <= _IRREGULAR


def check_order(
    time: NDArray[np.datetime64], zone: str | None = None, *, strict: bool = False, first: int = 0
) -> None:
    """Refuse times that go backwards; `strict` refuses rows of the same time too.

    `first` is the number of the first row.
    """
    pauses = np.diff(time).astype("timedelta64[ns]").astype(np.int64)
    if (pauses < 0).any():
        raise InputError(_backwards(time, pauses, zone, first))
    if strict and (pauses == 0).any():
        raise InputError(_twice(time, pauses, first))


def duration_words(nanoseconds: float) -> str:
    """A duration in its two largest units: "1 min 30 s", "1 h 50 min", "21 days 6 h"."""
    seconds = nanoseconds / 1e9
    if seconds < 60:
        size, unit = next(one for one in _BELOW_A_MINUTE if seconds >= one[0] or one[1] == "µs")
        return f"{seconds / size:.3g} {unit}"
    for (size, name), (small, small_name) in pairwise(_SPANS):
        whole, rest = divmod(round(seconds / small), round(size / small))
        if whole:
            both = ((whole, name), (rest, small_name))
            return " ".join(f"{n} {unit}{'s' * (n > 1 and unit in _MANY)}" for n, unit in both if n)
    raise AssertionError(f"{seconds} s is a minute or more")


def _round_step(step: float) -> str:
    """The round duration nearest to a step, as `--resample` takes it."""
    units = (("ms", 1e6), ("s", 1e9), ("min", 60e9), ("h", 3600e9), ("d", 86_400e9))
    rounds = [(f"{n}{unit}", n * size) for unit, size in units for n in (1, 2, 5, 10, 15, 30)]
    return min(rounds, key=lambda one: abs(np.log(one[1] / step)))[0]


def _find(
    frame: pl.DataFrame, column: str | None, zone: str | None
) -> tuple[str | None, Stamps | None, list[str]]:
    """The time column's name, its times, and the columns they were made of."""
    if column is not None:
        if column not in frame.columns:
            raise no_column(column, frame.columns)
        stamps = parse_stamps(frame[column], zone, count=True)
        if np.isnat(stamps.time).all():
            first = frame[column].drop_nulls().first()
            raise InputError(
                f"column {column!r} does not hold times (its first value is {first!r}); "
                "use a format such as 2026-03-01 12:00:00, or name another column"
            )
        return _with_clock(frame, column, stamps, zone)
    for name in _candidates(frame):
        stamps = parse_stamps(frame[name].head(1000), zone)
        if np.isnat(stamps.time).mean() <= 0.05:
            return _with_clock(frame, name, parse_stamps(frame[name], zone), zone)
    return None, None, []


def _candidates(frame: pl.DataFrame) -> list[str]:
    """Columns that may be the time: typed ones first, then words, then counts with a time name."""
    import polars as pl

    typed = [name for name, kind in frame.schema.items() if kind.is_temporal()]
    words = [name for name, kind in frame.schema.items() if kind == pl.String]
    words = [name for name in words if _may_be_time(frame[name])]
    words = sorted(words, key=lambda name: not _TIME_NAME.search(name))[:_TRIED]
    counts = [
        name for name, kind in frame.schema.items() if kind.is_numeric() and _TIME_NAME.search(name)
    ]
    return typed + words + counts


def _may_be_time(words: pl.Series) -> bool:
    """Whether the first words of a column have the digits of a date; trying formats is slow."""
    few = words.head(1000).drop_nulls().head(20)
    return any(sum(sign.isdigit() for sign in word[:80]) >= 3 for word in few)


def _with_clock(
    frame: pl.DataFrame, name: str, stamps: Stamps, zone: str | None
) -> tuple[str, Stamps, list[str]]:
    """Add the clock of a second column where the first holds dates only."""
    import polars as pl

    days = stamps.time.astype("datetime64[D]")
    known = ~np.isnat(stamps.time)
    if frame.schema[name] == pl.String and (days[known] == stamps.time[known]).all():
        for other, kind in frame.schema.items():
            if kind == pl.String and frame[other].head(1000).str.contains(_CLOCK_ONLY).all():
                both = frame.select(pl.concat_str(name, other, separator=" ")).to_series()
                return f"{name} {other}", parse_stamps(both, zone), [name, other]
    return name, stamps, [name]


def _backwards(
    time: NDArray[np.datetime64], pauses: NDArray[np.int64], zone: str | None, first: int
) -> str:
    back = np.flatnonzero(pauses < 0)
    if len(back) == len(pauses) > 1:
        return f"the newest row comes first; put the oldest first, or pass {option('sort', True)}"
    row = int(back[0])
    message = f"time goes backwards: {_words(time[row + 1])} follows {_words(time[row])}"
    message += f" (row {first + row + 1})"
    hours = -pauses[row] / 3600e9
    if zone is None and len(back) <= 3 and 0.5 <= hours <= 1.5:
        return (
            f"{message}, which looks like the end of summer time; name the time zone of the "
            f"timestamps, for example {option('time_zone', 'Europe/Berlin')}"
        )
    return f"{message}; sort the rows, or pass {option('sort', True)}"


def _twice(time: NDArray[np.datetime64], pauses: NDArray[np.int64], first: int) -> str:
    row, count = int(np.flatnonzero(pauses == 0)[0]), int((pauses == 0).sum())
    return (
        f"{count:,} row{'s have' if count > 1 else ' has'} the time of the row before, the first "
        f"at {_words(time[row])} (row {first + row + 1}); {option('sort', True)} averages rows of "
        "the same time"
    )


def _words(time: np.datetime64) -> str:
    return str(time.astype("datetime64[ms]")).replace("T", " ")


# Larger results come from a wrong step or a single wrong time.
_MOST_CELLS = 200_000_000
_FEW_ROWS, _GROWTH = 1_000_000, 20  # so many rows are fine; of more, at most so many times as many


def resample(
    values: NDArray[np.float64], time: NDArray[np.datetime64], every: int
) -> tuple[NDArray[np.float64], NDArray[np.datetime64]]:
    """Average the rows of each span of `every` nanoseconds.

    Spans begin at whole multiples of `every`, and a span's time is its beginning. Missing values
    do not enter the mean; a span without any row is a row of NaN, so that silence stays visible.
    """
    stamps = time.astype("datetime64[ns]").view(np.int64)  # (n,)
    pauses = np.diff(stamps)
    step = float(np.median(pauses[pauses > 0])) if (pauses > 0).any() else float(every)
    if every < 0.75 * step:
        raise InputError(
            f"resampling to {duration_words(every)} would invent rows: the table's step is "
            f"{duration_words(step)}; give at least that"
        )
    first = int(stamps[0]) // every
    n_spans = int(stamps[-1]) // every - first + 1  # Python's numbers: this may not overflow
    if n_spans * values.shape[1] > _MOST_CELLS or n_spans > max(_FEW_ROWS, _GROWTH * len(stamps)):
        raise InputError(
            f"resampling to {duration_words(every)} makes {n_spans:,} rows of {len(stamps):,}; "
            "give a longer span, or look for a wrong time"
        )
    span = stamps // every - first  # (n,), never decreasing
    starts = np.flatnonzero(np.diff(span, prepend=-1))  # first row of each span that has rows
    means = np.full((n_spans, values.shape[1]), np.nan)
    means[span[starts]] = _means(values, starts)
    edges = (first + np.arange(n_spans)) * every
    return means, edges.view("datetime64[ns]")


def order_rows(
    values: NDArray[np.float64], time: NDArray[np.datetime64]
) -> tuple[NDArray[np.float64], NDArray[np.datetime64], list[str]]:
    """Sort rows by time and average those of the same time; also return notes.

    Missing values do not enter the mean.
    """
    notes = []
    back = int((np.diff(time) < np.timedelta64(0)).sum())
    if back:
        order = np.argsort(time, kind="stable")
        values, time = values[order], time[order]
        notes.append(f"rows put in order of time ({back:,} steps went backwards)")
    first = np.ones(len(time), dtype=bool)
    first[1:] = time[1:] != time[:-1]
    if not first.all():
        starts = np.flatnonzero(first)
        values = _means(values, starts)
        time = time[starts]
        notes.append(f"{int((~first).sum()):,} rows averaged with rows of the same time")
    return values, time, notes


def _means(values: NDArray[np.float64], starts: NDArray[np.intp]) -> NDArray[np.float64]:
    """Means of the rows from each start to the next, (n_starts, D); NaN where all are missing."""
    known = ~np.isnan(values)
    counts = np.add.reduceat(known, starts, axis=0, dtype=np.int64)
    sums = np.add.reduceat(np.where(known, values, 0.0), starts, axis=0)
    return np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)
