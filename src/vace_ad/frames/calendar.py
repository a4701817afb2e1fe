"""The calendar as context: time of day, day of the week and holidays explain the other channels.

A holiday counts as a Sunday, and is also a channel of its own: where training holds no holiday,
events on one are reported as conditions outside training. Times are local times.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property, lru_cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vace_ad.errors import ConfigError, InputError, TableReadError, needs
from vace_ad.frames.spans import read_spans
from vace_ad.frames.timestamps import check_zone, time_words, wall_clock
from vace_ad.settings import option

if TYPE_CHECKING:
    from vace_ad.frames.table import Table

Array = NDArray[np.float64]
Times = NDArray[np.datetime64]

_WAVES = ("day sin", "day cos", "half day sin", "half day cos")
_DAYS = ("Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")  # Monday: none
_PREFIX = "calendar: "
HOLIDAY = f"{_PREFIX}holiday"
OF_DAY = tuple(f"{_PREFIX}{wave}" for wave in _WAVES)
OF_WEEK = (
    *(f"{_PREFIX}{day}" for day in _DAYS),
    *(f"{_PREFIX}{day} {wave}" for day, wave in product(_DAYS[-2:], _WAVES)),
)
LEAST_DAYS, LEAST_WEEKS = 3, 3  # in training: each fold of a fit holds one
_REGION = re.compile(r"([A-Z]{2})(?:-([A-Za-z0-9]{1,8}))?")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_DAY = np.timedelta64(1, "D")


@dataclass(frozen=True)
class Calendar:
    """The channels that a model takes from the time of its rows."""

    entries: tuple[str, ...] = ()  # dates, regions and a time zone, as the setting has them
    channels: tuple[str, ...] = ()  # that training could learn
    trained: str | None = None  # time zone of the training rows

    def __post_init__(self) -> None:
        if self.entries and not self.channels:
            raise ConfigError(
                f"{option('calendar')} was not given when the model was fitted; fit it again"
            )

    @classmethod
    def fit(cls, entries: Sequence[str], tables: Sequence[Table]) -> tuple[Calendar, list[str]]:
        """The calendar that these training tables support, and notes on what they do not."""
        entries = tuple(entries)
        check_entries(entries)
        if not entries:
            return cls(), []
        whole = cls(entries, (HOLIDAY, *OF_DAY, *OF_WEEK), tables[0].zone)
        clocks = [whole.clock(table) for table in tables]
        days = np.unique(np.concatenate([clock.astype("datetime64[D]") for clock in clocks]))
        channels, notes = [HOLIDAY], []
        if len(days) >= LEAST_DAYS:
            channels += OF_DAY
        if len(days) >= 7 * LEAST_WEEKS:
            channels += OF_WEEK
        else:
            used = "its time of day and holidays" if len(days) >= LEAST_DAYS else "its holidays"
            notes.append(
                f"{option('calendar')}: training holds {len(days)} days and a weekly rhythm needs "
                f"{7 * LEAST_WEEKS}, so only {used} are used; train on more weeks"
            )
        if whole.names_holidays and not whole.is_holiday(days).any():
            notes.append(
                f"{option('calendar')}: no training row lies on a holiday, so holidays are "
                "expected to be like Sundays, and alarms on them are counted apart from faults"
            )
        return replace(whole, channels=tuple(channels)), notes

    @property
    def zone(self) -> str | None:
        """The zone of local time: the one named, or that of the training rows."""
        return next((one for one in self.entries if _is_zone(one)), self.trained)

    @property
    def names_holidays(self) -> bool:
        """Whether dates or regions were given."""
        return any(not _is_zone(one) for one in self.entries)

    @cached_property
    def _dates(self) -> Times:
        found = [one for one in self.entries if _DATE.fullmatch(one)]
        return np.array(sorted(found), "datetime64[D]")

    def clock(self, table: Table) -> Times:
        """The local times of a table, (n,); as they are where no zone is known."""
        if table.time is None:
            raise InputError(
                f"{option('calendar')} needs times, and these rows have none; give them a time "
                "column"
            )
        return wall_clock(table.time, self.zone or table.zone)

    def is_holiday(self, days: Times) -> NDArray[np.bool_]:
        """Which of these days (n,) are holidays."""
        found = np.isin(days, self._dates)
        years = {int(str(year)) for year in np.unique(days.astype("datetime64[Y]"))}
        for region in (one for one in self.entries if _REGION.fullmatch(one)):
            found |= np.isin(days, region_holidays(region, tuple(sorted(years))))
        return np.asarray(found)

    def added(self, table: Table, most_missing: float) -> Table:
        """The table with the calendar's channels behind its own.

        They are missing in rows that lack more than this share of their own channels, so that a
        row without measurements stays without values.
        """
        if not self.channels or table.names[-len(self.channels) :] == self.channels:
            return table
        clock = self.clock(table)
        days = clock.astype("datetime64[D]")
        holiday = self.is_holiday(days)
        weekday = (days.astype(np.int64) + 3) % 7  # 1970-01-01 was a Thursday; 0 is Monday
        weekday = np.where(holiday, 6, weekday)
        turn = 2 * np.pi * ((clock - days) / _DAY)  # of the day
        waves = np.stack([np.sin(turn), np.cos(turn), np.sin(2 * turn), np.cos(2 * turn)], axis=1)
        of_day = (weekday[:, None] == np.arange(1, 7)).astype(float)  # (n, 6)
        free = [of_day[:, i : i + 1] * waves for i in (4, 5)]
        every = np.concatenate([holiday[:, None], waves, of_day, *free], axis=1)
        columns = every[:, : len(self.channels)]
        gone = np.isnan(table.block(0, len(table))).mean(axis=1) > most_missing
        columns[gone] = np.nan
        values = np.concatenate([table.values, columns.astype(table.values.dtype)], axis=1)
        return replace(table, values=values, names=(*table.names, *self.channels))

    def outdated(self, table: Table, first: int) -> list[str]:
        """A note where all dates lie before the rows from `first` on."""
        if not len(self._dates) or first >= len(table) or len(self._dates) < len(self.entries) - 1:
            return []
        day = self.clock(table[first : first + 1])[0].astype("datetime64[D]")
        if self._dates[-1] >= day:
            return []
        when = time_words(self._dates[-1].astype("datetime64[ns]"), None)
        return [f"the last holiday of the calendar was {when}, before these rows: is the calendar "
                "up to date?"]  # fmt: skip


def is_calendar(channel: str) -> bool:
    """Whether a channel of a model comes from the calendar."""
    return channel in (HOLIDAY, *OF_DAY, *OF_WEEK)


def _is_zone(entry: str) -> bool:
    return not _DATE.fullmatch(entry) and not _REGION.fullmatch(entry)


def check_entries(entries: Sequence[str]) -> None:
    """Refuse entries that are not a date, region or time zone."""
    zones = [one for one in entries if _is_zone(one)]
    for one in entries:
        try:
            if _DATE.fullmatch(one):
                date.fromisoformat(one)
            elif _REGION.fullmatch(one):
                region_holidays(one, (2026,))
            else:
                check_zone(one)
        except (ConfigError, InputError, ValueError) as error:
            raise ConfigError(
                f"{option('calendar')}: {one!r} is not a date (2026-12-25), a region with known "
                "holidays (DE, DE-BY, US-CA) or a time zone (Europe/Berlin)"
            ) from error
    if len(zones) > 1:
        raise ConfigError(f"{option('calendar')}: {zones[0]!r} and {zones[1]!r}; keep one zone")


@lru_cache(maxsize=64)
def region_holidays(region: str, years: tuple[int, ...]) -> Times:
    """The public holidays of a region in these years, by the package `holidays`."""
    with needs("holidays", "calendar", f"the calendar {region!r}"):
        import holidays
    found = _REGION.fullmatch(region)
    assert found is not None
    country, part = found.groups()
    try:
        days = holidays.country_holidays(country, subdiv=part, years=years)
    except NotImplementedError as error:
        raise ConfigError(str(error)) from error
    return np.array(sorted(str(day) for day in days), "datetime64[D]")


def calendar_entries(text: str) -> tuple[str, ...]:
    """The setting from a command line or a file: entries with commas, or the path of a file.

    The file has one date in each line, with or without a name behind it, or is iCalendar.
    """
    path = Path(text)
    if not path.suffix and not path.is_file():
        return tuple(one.strip() for one in text.split(",") if one.strip())
    try:
        lines = path.read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise TableReadError(f"{path} cannot be read: {error}") from error
    if path.suffix.lower() == ".ics":
        spans = [[one.astype("datetime64[D]") for one in span.times()] for span in read_spans(path)]
        days = [str(day) for a, b in spans for day in np.arange(a, max(b, a + 1))]
        return tuple(dict.fromkeys(days))
    found = []
    for number, line in enumerate(lines, start=1):
        day, _, name = (part.strip() for part in line.replace(";", ",").partition(","))
        if _DATE.fullmatch(day) and not _DATE.match(name):
            found.append(day)
        elif line.strip() and (number > 1 or _DATE.match(day)):
            raise TableReadError(
                f"{path}, line {number}: {line!r} came; write one date in each line: "
                "2026-12-25,Christmas"
            )
    if not found:
        raise TableReadError(f"{path} holds no date; write one in each line: 2026-12-25,Christmas")
    return tuple(found)
