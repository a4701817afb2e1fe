"""Timestamps: text, epochs and time zones to nanoseconds, and times as text.

Times are stored in UTC and shown in the zone of the input.
"""

from __future__ import annotations

import re
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vace_ad.errors import ConfigError

if TYPE_CHECKING:
    import polars as pl

_SAMPLE = 1000
_ODD = 0.2  # share of cells that a format may fail on; callers may be stricter
_DATES = ("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y", "%Y.%m.%d")
_SHORT_YEARS = ("%d.%m.%y", "%m/%d/%y", "%d/%m/%y", "%d-%m-%y")
_CLOCKS = (" %H:%M:%S%.f", " %H:%M", " %I:%M:%S%.f %p", " %I:%M %p", "")
# Months by their first letters, in the languages that exports come in.
_MONTHS = (
    ("jan", "ene", "gen"),
    ("feb", "fév", "fev"),
    ("mar", "mär", "mrz", "maa"),
    ("apr", "avr", "abr"),
    ("may", "mai", "mag", "mei"),
    ("jun", "juin", "giu"),
    ("jul", "juil", "lug"),
    ("aug", "aoû", "aou", "ago"),
    ("sep", "set"),
    ("oct", "okt", "out", "ott"),
    ("nov",),
    ("dec", "dez", "déc", "dic"),
)
_MONTH_NUMBERS = {name: f"{i:02}" for i, names in enumerate(_MONTHS, 1) for name in names}
_WORD = r"(\p{L}{3,9})\.?"
_DAY_FIRST = (
    rf"^(?:\p{{L}}{{2,9}},? +)?(\d{{1,2}})\.?[-/ ]+{_WORD}[-/ ]+(\d{{4}}|\d{{2}})(?:$|[T: ]+(.*)$)"
)
_MONTH_FIRST = rf"^(?:\p{{L}}{{2,9}},? +)?{_WORD} +(\d{{1,2}}),? +(\d{{4}})(?:$|[T: ]+(.*)$)"
_CENTURY = 69  # two digits from here on are of the last century, as POSIX has it

# Days since 1899-12-30, as spreadsheets count: these are 1982 to 2064.
_SERIAL, _SERIAL_EPOCH, _DAY = (30_000, 60_000), 25_569, 86_400 * 10**9
_DATE_NAME = re.compile(r"(?<![^\W_])(date|datum)|stamp", re.IGNORECASE)
_TIME_NAME = re.compile(r"(?<![^\W_])(date|time|datum|zeit|uhrzeit)|stamp", re.IGNORECASE)

_ZONE = re.compile(r"[+-]\d{2}:?(\d{2})?$")
_OFFSET = re.compile(r"([+-])(\d{2}):?(\d{2})?")
_FIXED = re.compile(r"Etc/GMT([+-])(\d{1,2})")

# Counts since 1970 are told apart by size: these are the bounds for years 1973 to 2286.
EPOCHS = ((1e8, 1e10, 10**9), (1e11, 1e13, 10**6), (1e14, 1e16, 10**3), (1e17, 1e19, 1))
_UNITS = {
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "sec": 10**9,
    "m": 60 * 10**9,
    "min": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86_400 * 10**9,
    "w": 604_800 * 10**9,
}


class Stamps(NamedTuple):
    """Parsed times, NaT where a cell is no time."""

    time: NDArray[np.datetime64]  # (n,) nanoseconds; in UTC where the zone is known
    zone: str | None  # the one that the stamps carried or were given
    notes: list[str]


def parse_duration(text: str) -> int:
    """Nanoseconds of a duration such as "10s", "1min", "0.5h" or "1d"."""
    match = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([a-z]+)\s*", text.lower())
    if match is None or match[2] not in _UNITS or float(match[1]) == 0:
        raise ConfigError(
            f"{text!r} is not a duration; write a number and a unit, such as 500ms, 10s, 1min, "
            "6h, 1d or 1w"
        )
    return round(float(match[1]) * _UNITS[match[2]])


def parse_stamps(column: pl.Series, zone: str | None = None, *, count: bool = False) -> Stamps:
    """Turn a column into times; `zone` is the time zone of stamps that do not say.

    Words are tried in the common formats, numbers as counts since 1970 in the unit that fits
    their size, and as plain seconds where none does and `count` allows it.
    """
    import polars as pl

    if zone is not None:
        check_zone(zone)
    if column.dtype == pl.String:
        return _parse_words(column.str.strip_chars(), zone)
    if isinstance(column.dtype, pl.Datetime):
        if column.dtype.time_zone is not None:
            utc = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
            return Stamps(_nanoseconds(utc), zone or column.dtype.time_zone, [])
        return _in_zone(column, zone, [])
    if column.dtype == pl.Date:
        return _in_zone(column.cast(pl.Datetime("ns")), zone, [])
    if column.dtype.is_numeric():
        counts = column.cast(pl.Float64).to_numpy()
        if _are_serial(column.name, counts, asked=count):
            return _parse_serial(counts, zone)
        return _parse_counts(counts, count, zone)
    return Stamps(np.full(len(column), np.datetime64("NaT", "ns")), None, [])


def moment(text: str, zone: str | None = None) -> np.datetime64:
    """Parse one time, in UTC where the zone is known; NaT where the text is not a time."""
    import polars as pl

    found: np.datetime64 = parse_stamps(pl.Series([text]), zone).time[0]
    return found


def _parse_words(words: pl.Series, zone: str | None) -> Stamps:
    import polars as pl

    words = (
        _with_month_numbers(words)
        .str.replace(r"(Z|\s*UTC|\s*GMT)$", "+00:00")
        .str.replace(r"^(\S+)T(\d)", "$1 $2")
        .str.replace(r"(:\d{2}),(\d)", "$1.$2")
        .str.replace(r"\s*([+-]\d{2}(:?\d{2})?)$", "$1")
    )
    sample = words.drop_nulls().head(_SAMPLE)
    offset = any(_ZONE.search(word) and ":" in word for word in sample.head(20).to_list())
    suffix = "%#z" if offset else ""
    good: list[tuple[str, pl.Series]] = []
    short = any(re.match(r"\d{1,2}([-/.])\d{1,2}\1\d{2}(\D|$)", word) for word in sample.head(20))
    for date, clock in product(_SHORT_YEARS if short else _DATES, _CLOCKS):
        pattern = date + clock + (suffix if clock else "")
        if sample.str.to_datetime(pattern, strict=False).null_count() <= _ODD * len(sample):
            good.append((date, words.str.to_datetime(pattern, strict=False, time_unit="ns")))
    if not len(sample) or not good:
        return Stamps(np.full(len(words), np.datetime64("NaT", "ns")), None, [])
    # Day and month can be told apart by what fails to parse, else by which reading is in order.
    date, parsed = min(good, key=lambda one: (one[1].null_count(), not one[1].is_sorted()))
    notes = []
    if len({name for name, times in good if times.null_count() == parsed.null_count()}) > 1:
        order = "day before month" if date.startswith("%d") else "month before day"
        notes.append(f"dates could be read in two ways; taken as {order}")
    if isinstance(parsed.dtype, pl.Datetime) and parsed.dtype.time_zone is not None:
        offsets = words.str.extract(r"([+-]\d{2}:?\d{0,2})$").drop_nulls().unique()
        came = zone_of_offset(offsets[0]) if len(offsets) == 1 else "UTC"
        if len(offsets) > 1 and zone is None:
            notes.append(f"{len(offsets)} different zone offsets; all times turned into UTC")
        return Stamps(_nanoseconds(parsed.dt.replace_time_zone(None)), zone or came, notes)
    return _in_zone(parsed, zone, notes)


def _with_month_numbers(words: pl.Series) -> pl.Series:
    """19-Sep-26 00:00:00, Sep 19, 2026 and the like as 2026-09-19 00:00:00."""
    import polars as pl

    if not words.drop_nulls().head(20).str.contains(r"\p{L}{3}").any():
        return words
    frame = words.alias("words").to_frame()
    one = pl.col("words")
    orders = ((_DAY_FIRST, 1, 2), (_MONTH_FIRST, 2, 1))
    for pattern, day, month in orders:
        name = one.str.extract(pattern, month).str.to_lowercase()
        number = pl.coalesce(
            name.str.head(n).replace_strict(_MONTH_NUMBERS, default=None) for n in (4, 3)
        )
        year = one.str.extract(pattern, 3)
        short = year.cast(pl.Int32, strict=False)
        full = short + pl.when(short < _CENTURY).then(2000).otherwise(1900)
        year = pl.when(year.str.len_chars() == 2).then(full.cast(pl.String)).otherwise(year)
        date = pl.concat_str(
            year, number, one.str.extract(pattern, day).str.zfill(2), separator="-"
        )
        rest = one.str.extract(pattern, 4).fill_null("")
        whole = pl.concat_str(date, rest, separator=" ").str.strip_chars()
        frame = frame.with_columns(pl.coalesce(whole, one).alias("words"))
    return frame["words"].alias(words.name)


def _are_serial(name: str, counts: NDArray[np.float64], *, asked: bool) -> bool:
    """Whether numbers are days as spreadsheets count them.

    They are of that size, mostly in order, in a column that is named after times, or was named as
    the time; whole days only where the name speaks of dates.
    """
    finite = counts[np.isfinite(counts)]
    low, high = _SERIAL
    if not len(finite) or finite.min() < low or finite.max() >= high:
        return False
    if len(finite) > 1 and (np.diff(finite) < 0).mean() > 0.5:
        return False
    fraction = bool((finite != np.floor(finite)).any())
    return bool(_DATE_NAME.search(name) or (fraction and (asked or _TIME_NAME.search(name))))


def _parse_serial(counts: NDArray[np.float64], zone: str | None) -> Stamps:
    """Times of a spreadsheet's day numbers, to the millisecond, as a spreadsheet shows them."""
    import polars as pl

    milliseconds = np.round((counts - _SERIAL_EPOCH) * (_DAY // 10**6))
    known = pl.Series(np.where(np.isfinite(counts), milliseconds, np.nan)).fill_nan(None)
    stamps = known.cast(pl.Int64).cast(pl.Datetime("ms"))
    first = str(stamps.drop_nulls()[0])
    example = f"{counts[np.isfinite(counts)][0]:.10g}"
    note = f"times are a spreadsheet's day numbers: {example} is {first}"
    return _in_zone(stamps.cast(pl.Datetime("ns")), zone, [note])


def _parse_counts(counts: NDArray[np.float64], plain: bool, zone: str | None) -> Stamps:
    finite = counts[np.isfinite(counts)]
    time = np.full(len(counts), np.datetime64("NaT", "ns"))
    known = np.isfinite(counts)
    if not len(finite):
        return Stamps(time, None, [])
    low, high = float(finite.min()), float(finite.max())
    unit = next((unit for a, b, unit in EPOCHS if a <= low and high < b), None)
    if unit is None and not plain:
        return Stamps(time, None, [])
    notes = [] if unit else ["times are numbers; taken as seconds"]
    scaled = np.round(counts[known] * (unit or 10**9))
    if np.abs(scaled).max() >= 2**63:
        return Stamps(time, None, [])
    time[known] = scaled.astype(np.int64).view("datetime64[ns]")
    return Stamps(time, zone or "UTC" if unit else None, notes)


def _in_zone(clock: pl.Series, zone: str | None, notes: list[str]) -> Stamps:
    """Times of a clock in `zone`, in UTC; as they stand where no zone is given.

    The hour that comes twice when summer time ends is told apart by order: from the first stamp
    that does not move on, the later reading holds. Hours that summer time skips become NaT.
    """
    import polars as pl

    if zone is None:
        return Stamps(_nanoseconds(clock), None, notes)
    first, second = (
        _nanoseconds(
            clock.cast(pl.Datetime("ns"))
            .dt.replace_time_zone(zone, ambiguous=side, non_existent="null")
            .dt.convert_time_zone("UTC")
            .dt.replace_time_zone(None)
        )
        for side in ("earliest", "latest")
    )
    twice = first != second  # NaT differs from itself, but is then NaT in both
    later = np.zeros(len(first), dtype=bool)
    for i in np.flatnonzero(twice[1:]) + 1:
        later[i] = twice[i - 1] and (later[i - 1] or first[i] <= first[i - 1])
    return Stamps(np.where(later, second, first), zone, notes)


def _nanoseconds(column: pl.Series) -> NDArray[np.datetime64]:
    return column.to_numpy().astype("datetime64[ns]")


def check_zone(zone: str) -> None:
    """Refuse a name that is not a time zone."""
    import polars as pl

    try:
        pl.Series([0]).cast(pl.Datetime("ns")).dt.replace_time_zone(zone)
    except pl.exceptions.PolarsError as error:
        raise ConfigError(
            f"time zone {zone!r} is not known; use a name such as Europe/Berlin or UTC"
        ) from error


def zone_of_offset(offset: str) -> str:
    """The zone of an offset such as +01:00; "UTC" where it is no whole number of hours."""
    match = _OFFSET.fullmatch(offset)
    if match is None or int(match[3] or 0) or not 0 < int(match[2]) <= 12:
        return "UTC"
    sign = "-" if match[1] == "+" else "+"  # the names count the other way
    return f"Etc/GMT{sign}{int(match[2])}"


def zone_words(zone: str | None) -> str:
    """A zone for display: UTC+01:00 for a fixed offset, else its name."""
    match = _FIXED.fullmatch(zone or "")
    if match is None:
        return zone or ""
    return f"UTC{'+' if match[1] == '-' else '-'}{int(match[2]):02}:00"


def zoned(name: str, time: NDArray[np.datetime64], zone: str | None) -> pl.Series:
    """A column of times: in their zone where it is known, as they stand otherwise."""
    import polars as pl

    column = pl.Series(name, time.astype("datetime64[ns]"))
    if zone is None:
        return column
    return column.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)


def wall_clock(time: NDArray[np.datetime64], zone: str | None) -> NDArray[np.datetime64]:
    """Local times of these UTC times, (n,)."""
    if zone is None or zone == "UTC":
        return time
    local = zoned("time", np.atleast_1d(time), zone).dt.replace_time_zone(None)
    return local.to_numpy().astype("datetime64[ns]").reshape(np.shape(time))


def offset_words(minutes: int) -> str:
    """An offset from UTC in minutes as text, e.g. +01:00."""
    hours, rest = divmod(abs(minutes), 60)
    return f"{'-' if minutes < 0 else '+'}{hours:02}:{rest:02}"


def offsets(time: NDArray[np.datetime64] | None, zone: str | None) -> list[tuple[int, int]]:
    """First row and minutes of each offset of local time from UTC; empty without a zone."""
    if time is None or zone is None or not len(time):
        return []
    ahead = (wall_clock(time, zone) - time).astype("timedelta64[m]").astype(np.int64)
    rows = np.flatnonzero(np.diff(ahead, prepend=ahead[0] + 1))
    return [(int(row), int(ahead[row])) for row in rows]


def local_time(time: np.datetime64, zone: str | None) -> tuple[np.datetime64, str]:
    """Local time and its offset from UTC; the time itself where no zone is known."""
    ahead = offsets(np.array([time]), zone)
    if not ahead:
        return time, ""
    minutes = ahead[0][1]
    return time + np.timedelta64(minutes, "m"), offset_words(minutes)


def time_words(time: np.datetime64, zone: str | None) -> str:
    """A time for display, without seconds or fractions that are zero."""
    local, offset = local_time(time, zone)
    text = str(local.astype("datetime64[ms]")).replace("T", " ")
    return text.removesuffix(".000").removesuffix(":00") + offset
