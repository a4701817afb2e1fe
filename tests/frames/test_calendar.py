"""The calendar as context: which channels it adds, what it expects, and what is refused."""

import sys
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from vace_ad import VACE, load
from vace_ad.alarms.budget import Budget
from vace_ad.cli.options import DetectorOptions
from vace_ad.errors import ConfigError, InputError, MissingExtraError, TableReadError, VaceWarning
from vace_ad.frames.calendar import (
    HOLIDAY,
    OF_DAY,
    OF_WEEK,
    Calendar,
    calendar_entries,
    region_holidays,
)
from vace_ad.frames.table import Table
from vace_ad.live.detector import Detectors
from vace_ad.settings import spelt

HOLIDAYS = ["2026-04-06", "2026-05-01", "2026-05-14"]
DAY, DAYS, TRAIN = 24, 44, 35  # rows a day, days


def hours(days: float, start: str = "2026-04-06", zone: str | None = None) -> Table:
    time = np.datetime64(start, "ns") + np.arange(int(days * DAY)) * np.timedelta64(1, "h")
    return Table(np.zeros((len(time), 2)), ("a", "b"), time, zone=zone)


def column(table: Table, name: str) -> np.ndarray:
    return table.values[:, table.names.index(f"calendar: {name}")]


def test_the_channels_are_those_of_a_clock_on_the_wall() -> None:
    calendar, notes = Calendar.fit(HOLIDAYS, [hours(28)])
    assert not notes
    assert calendar.channels == (HOLIDAY, *OF_DAY, *OF_WEEK)
    table = calendar.added(hours(28), 0.5)
    assert table.names[:2] == ("a", "b")
    monday, tuesday = column(table, "Sunday")[:DAY], column(table, "Tuesday")[DAY : 2 * DAY]
    assert monday.all()  # Easter Monday counts as a Sunday
    assert tuesday.all()
    assert column(table, "holiday").sum() == 2 * DAY
    assert column(table, "day sin").argmax() == 6
    assert column(table, "Sunday day sin")[6] == 1
    assert column(table, "Sunday day sin")[DAY + 6] == 0
    assert calendar.added(table, 0.5) is table


@pytest.mark.parametrize(
    ("entries", "zone", "hour"),
    [
        ((), None, 6),
        (("Europe/Berlin",), None, 4),
        ((), "Europe/Berlin", 4),
        (("UTC",), "Asia/Tokyo", 6),
    ],
)
def test_the_hour_is_that_of_the_zone(entries, zone, hour) -> None:
    calendar, _ = Calendar.fit([*HOLIDAYS, *entries], [hours(28, zone=zone)])
    assert column(calendar.added(hours(1), 0.5), "day sin").argmax() == hour


def test_few_weeks_and_no_holiday_in_training_are_said() -> None:
    calendar, notes = Calendar.fit(["2030-01-01"], [hours(9)])
    assert calendar.channels == (HOLIDAY, *OF_DAY)
    weekly, holidays = map(spelt, notes)
    assert "training holds 9 days and a weekly rhythm needs 21" in weekly
    assert "no training row lies on a holiday" in holidays
    calendar, (note,) = Calendar.fit(["UTC"], [hours(2)])
    assert calendar.channels == (HOLIDAY,)
    assert "only its holidays" in note


def test_a_row_of_the_calendar_alone_is_no_row() -> None:
    calendar, _ = Calendar.fit(["UTC"], [hours(28)])
    rows = hours(1)
    rows.values[3] = np.nan
    rows.values[4, 0] = np.nan
    missing = np.isnan(calendar.added(rows, 0.5).values[:, 2:])
    assert missing[3].all()
    assert not missing[4].any()


def test_dates_before_the_rows_are_told() -> None:
    calendar = Calendar(tuple(HOLIDAYS), (HOLIDAY,))
    assert not calendar.outdated(hours(2, "2026-05-14"), 0)
    (words,) = calendar.outdated(hours(3, "2026-05-14"), DAY)
    assert "2026-05-14" in words
    assert "up to date" in words


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        (["2026-13-01"], "'2026-13-01' is not a date"),
        (["Bavaria"], "or a time zone"),
        (["UTC", "Europe/Berlin"], "keep one zone"),
    ],
)
def test_what_is_no_calendar_is_refused(entries, words) -> None:
    with pytest.raises(ConfigError, match=words):
        Calendar.fit(entries, [hours(28)])


def test_a_calendar_needs_times_and_a_fit() -> None:
    with pytest.raises(InputError, match="needs times"):
        VACE(calendar=["UTC"]).fit(np.zeros((500, 2)))
    with pytest.raises(ConfigError, match="fit it again"):
        Calendar(("UTC",))


def test_regions_come_from_the_package(monkeypatch) -> None:
    asked = []

    def country_holidays(country, subdiv, years):
        asked.append((country, subdiv, years))
        if country == "XX":
            raise NotImplementedError("Country XX not available")
        return {f"{year}-05-01": "Labour Day" for year in years}

    monkeypatch.setitem(sys.modules, "holidays", SimpleNamespace(country_holidays=country_holidays))
    region_holidays.cache_clear()
    calendar, notes = Calendar.fit(["DE-BY"], [hours(28)])
    assert not notes
    assert asked[-1] == ("DE", "BY", (2026,))
    table = calendar.added(hours(2, "2027-04-30"), 0.5)
    assert column(table, "holiday").tolist() == [0] * DAY + [1] * DAY
    with pytest.raises(ConfigError, match="'XX' is not a date"):
        Calendar.fit(["XX"], [hours(28)])
    region_holidays.cache_clear()
    monkeypatch.setitem(sys.modules, "holidays", None)
    with pytest.raises(MissingExtraError, match=r"vace-ad\[calendar\]"):
        Calendar.fit(["DE-BY"], [hours(28)])


def test_the_package_knows_bavaria() -> None:
    pytest.importorskip("holidays")
    region_holidays.cache_clear()
    assert np.datetime64("2026-01-06") in region_holidays("DE-BY", (2026,))  # Epiphany
    assert np.datetime64("2026-01-06") not in region_holidays("DE-BE", (2026,))


def test_files_of_holidays(tmp_path) -> None:
    def entries(text: str, name: str = "days.csv") -> tuple[str, ...]:
        (tmp_path / name).write_text(text)
        return calendar_entries(str(tmp_path / name))

    assert calendar_entries("DE-BY, Europe/Berlin") == ("DE-BY", "Europe/Berlin")
    assert entries("date;name\n2026-12-25;Christmas\n\n2026-12-26\n") == (
        "2026-12-25",
        "2026-12-26",
    )
    event = "BEGIN:VEVENT\nDTSTART;VALUE=DATE:20261225\nDTEND;VALUE=DATE:20261227\nEND:VEVENT\n"
    whole = f"BEGIN:VCALENDAR\n{event}END:VCALENDAR\n"
    assert entries(whole, "days.ics") == ("2026-12-25", "2026-12-26")
    for text in ("2026-12-24,2026-12-26\n", "date\nChristmas\n"):
        with pytest.raises(TableReadError, match=r"days.csv, line \d: .* write one date"):
            entries(text)
    with pytest.raises(TableReadError, match="holds no date"):
        entries("date\n")
    with pytest.raises(TableReadError, match="cannot be read"):
        calendar_entries(str(tmp_path / "none.csv"))


def office() -> pl.DataFrame:
    """A building that is used on working days; on one Sunday it is, too."""
    rng = np.random.default_rng(1)
    table = hours(DAYS)
    days = np.arange(DAYS)
    free = (days % 7 > 4) | np.isin(np.datetime64("2026-04-06") + days, np.array(HOLIDAYS, "M8[D]"))
    free[41] = False  # Sunday, 17 May
    noon = ((1 - np.cos(2 * np.pi * np.arange(DAY) / DAY)) / 2) ** 2
    used = np.concatenate([noon * ~one for one in free])
    power = 20 + 40 * used + rng.normal(0, 1, len(used))
    return pl.DataFrame({"time": table.time, "power": power, "water": rng.normal(4, 1, len(used))})


@pytest.fixture(scope="module")
def building() -> tuple[pl.DataFrame, VACE]:
    table = office()
    return table, VACE(calendar=HOLIDAYS).fit(table[: TRAIN * DAY])


def test_a_sunday_that_is_like_a_working_day_alarms_and_a_holiday_does_not(building) -> None:
    table, detector = building
    assert detector.channels_ == ("power", "water")
    found = detector.detect(table, first=TRAIN * DAY)
    days = [one.alarm // DAY for one in found.anomalies]
    assert days == [41]
    assert found.anomalies[0].shares[0][0] == "power"
    without = VACE().fit(table[: TRAIN * DAY]).detect(table, first=TRAIN * DAY)
    assert 41 not in [one.alarm // DAY for one in without.anomalies]


def test_every_door_gives_the_same(building, tmp_path) -> None:
    table, detector = building
    detector.save(tmp_path / "m.vace")
    again = load(tmp_path / "m.vace")
    new = table[TRAIN * DAY :]
    scores = detector.score(new)
    np.testing.assert_array_equal(again.score(iter([new[:50], new[50:]])), scores)
    stream, cells, time = again.stream(), new.drop("time").to_numpy(), new["time"].to_numpy()
    parts = [stream.add(cells[a : a + 60], time[a : a + 60]) for a in range(0, len(new), 60)]
    parts.append(stream.finish())
    np.testing.assert_array_equal(np.concatenate([part.scores for part in parts]), scores)
    opened = [one.event.alarm for part in parts for one in part.changes if one.what == "open"]
    assert opened == [one.alarm for one in detector.detect(new).anomalies]
    assert [name.split()[0] for name in again.expect(new).columns[::4]] == ["power", "water"]


def test_dates_may_be_changed_after_the_fit(building, tmp_path) -> None:
    table, detector = building
    detector.save(tmp_path / "m.vace")
    later = load(tmp_path / "m.vace", calendar=[*HOLIDAYS, "2026-05-17"])
    assert later.model_.digest == detector.model_.digest
    plain = VACE().fit(table[:200]).set_params(calendar=HOLIDAYS)
    with pytest.raises(ConfigError, match="fit it again"):
        plain.detect(table)


def test_irregular_rows_are_said_in_python() -> None:
    rng = np.random.default_rng(0)
    pauses = rng.integers(20, 100, 400).cumsum() * 10**9
    frame = pl.DataFrame({"time": pauses.astype("M8[ns]"), "a": rng.normal(size=400)})
    with pytest.warns(VaceWarning, match=r"the step is irregular: \d+% .* in vace_ad.read"):
        VACE().fit(frame)


def test_the_command_line_and_a_watch_take_it(tmp_path) -> None:
    (tmp_path / "days.csv").write_text("2026-12-25\n")
    options = DetectorOptions(calendar=str(tmp_path / "days.csv"))
    assert options.config().calendar == ("2026-12-25",)
    assert DetectorOptions(calendar="UTC").planned() == {"calendar": ("UTC",)}
    with pytest.raises(ConfigError, match="'Bavaria' is not a date"):
        Detectors(Budget(), settings={"calendar": ["Bavaria"]})
