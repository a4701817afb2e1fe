from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vace_ad.errors import ConfigError, InputError
from vace_ad.frames.time import (
    TimeReport,
    check_order,
    check_time,
    duration_words,
    order_rows,
    split_time,
)
from vace_ad.frames.timestamps import parse_duration
from vace_ad.settings import spelt

MINUTE = 60 * 10**9


def minutes(n: int, start: str = "2026-01-01T00:00") -> np.ndarray:
    return (np.datetime64(start, "ns") + np.arange(n) * np.timedelta64(1, "m")).astype("M8[ns]")


def table(times: list[str] | np.ndarray, **columns: list[str]) -> pl.DataFrame:
    return pl.DataFrame({"when": times, "a": np.arange(len(times)) * 1.0, **columns})


def read_time(
    frame: pl.DataFrame, column: str | None = None, zone: str | None = None
) -> tuple[pl.DataFrame, np.ndarray, TimeReport]:
    frame, time, found = split_time(frame, column, zone=zone)
    assert time is not None
    report = check_time(time, found.column, found.zone)
    return frame, time, replace(report, notes=(*found.notes, *report.notes))


@pytest.mark.parametrize(
    "words",
    [
        ["2026-01-13 00:05:00", "2026-01-13 00:06:00"],
        ["2026-01-13T00:05", "2026-01-13T00:06"],
        ["2026-01-13T00:05:00.000Z", "2026-01-13T00:06:00.000Z"],
        ["2026-01-13 00:05:00 UTC", "2026-01-13 00:06:00 UTC"],
        ["2026-01-13 01:05:00+01:00", "2026-01-13 01:06:00+0100"],
        ["13.01.2026 00:05", "13.01.2026 00:06"],
        ["13/01/2026 00:05:00", "13/01/2026 00:06:00"],
        ["1/13/2026 12:05:00 AM", "1/13/2026 12:06:00 AM"],
        ["2026/01/13 00:05:00,000", "2026/01/13 00:06:00,000"],
    ],
)
def test_formats(words: list[str]) -> None:
    frame, time, report = read_time(table(words))
    assert time is not None
    assert time.tolist() == minutes(2, "2026-01-13T00:05").tolist()
    assert frame.columns == ["a"]
    assert report.step == MINUTE


@pytest.mark.parametrize("unit", [1, 10**3, 10**6, 10**9])
def test_counts_since_1970_by_their_size(unit: int) -> None:
    seconds = minutes(3).astype("M8[s]").astype(np.int64)
    frame = pl.DataFrame({"a": [1.0, 2.0, 4.0], "timestamp": seconds * unit})
    _, time, report = split_time(frame)
    assert time is not None
    assert time.tolist() == minutes(3).tolist()
    assert report.column == "timestamp"


def test_plain_numbers_are_time_only_when_named() -> None:
    frame = pl.DataFrame({"time": [0.0, 0.5, 1.0], "a": [1.0, 5.0, 2.0]})
    assert split_time(frame)[1] is None
    _, time, report = read_time(frame, "time")
    assert time is not None
    assert report.step == 5 * 10**8
    assert "taken as seconds" in report.notes[0]


def test_date_and_clock_in_two_columns() -> None:
    days, clock = ["13.01.2026", "13.01.2026"], ["00:05:00", "00:06:00"]
    frame, time, report = split_time(table(days, Time=clock))
    assert time is not None
    assert time.tolist() == minutes(2, "2026-01-13T00:05").tolist()
    assert frame.columns == ["a"]
    assert report.column == "when Time"


def test_day_and_month_told_apart_by_order() -> None:
    words = ["01/02/2026", "02/02/2026", "03/02/2026"]
    _, time, report = split_time(table(words))
    assert time is not None
    assert str(time[1])[:10] == "2026-02-02"
    assert report.notes == ("dates could be read in two ways; taken as day before month",)
    _, time, _ = split_time(table(["12/31/2025", "01/01/2026"]))
    assert time is not None
    assert str(time[1])[:10] == "2026-01-01"


def test_typed_columns_and_zones() -> None:
    local = pl.Series("when", minutes(3)).dt.replace_time_zone("Europe/Berlin")
    _, time, report = read_time(pl.DataFrame({"a": [1.0, 2.0, 4.0], "when": local}))
    assert time is not None
    assert time[0] == np.datetime64("2025-12-31T23:00")
    assert report.zone == "Europe/Berlin"
    _, time, report = split_time(table(minutes(3)))
    assert report.zone is None


@pytest.mark.parametrize(
    ("suffix", "zone"), [("+01:00", "Etc/GMT-1"), ("Z", "UTC"), ("-0500", "Etc/GMT+5")]
)
def test_offsets_come_back_as_zones(suffix: str, zone: str) -> None:
    words = [f"2026-01-13 00:05:00{suffix}", f"2026-01-13 00:06:00{suffix}"]
    assert read_time(table(words))[2].zone == zone
    assert read_time(table(words), zone="Asia/Tokyo")[2].zone == "Asia/Tokyo"


def test_zone_changes_become_utc_and_are_said() -> None:
    words = ["2026-10-25 02:30:00+02:00", "2026-10-25 02:00:00+01:00"]
    _, time, report = read_time(table(words))
    assert time is not None
    assert report.step == 30 * MINUTE
    assert report.notes == ("2 different zone offsets; all times turned into UTC",)


def test_end_of_summer_time() -> None:
    clock = ["2026-10-25 01:30", "2026-10-25 02:00", "2026-10-25 02:30"]
    clock += ["2026-10-25 02:00", "2026-10-25 02:30", "2026-10-25 03:00"]
    with pytest.raises(InputError, match=r"summer time; .*time_zone='Europe/Berlin'"):
        read_time(table(clock))
    _, time, report = read_time(table(clock), zone="Europe/Berlin")
    assert time is not None
    assert np.unique(np.diff(time)).tolist() == [30 * MINUTE]
    assert report.zone == "Europe/Berlin"
    with pytest.raises(ConfigError, match="Mars"):
        split_time(table(clock), zone="Mars/Olympus")


def test_time_that_goes_backwards() -> None:
    times = minutes(6)[[0, 1, 4, 3, 2, 5]]
    with pytest.raises(InputError, match=r"goes backwards: .*00:03.* follows .*00:04.*row 3"):
        read_time(table(times))
    values, time, notes = order_rows(np.arange(6.0)[:, None], times)
    assert time.tolist() == minutes(6).tolist()
    assert values[:, 0].tolist() == [0.0, 1.0, 4.0, 3.0, 2.0, 5.0]
    assert notes == ["rows put in order of time (2 steps went backwards)"]
    with pytest.raises(InputError, match="newest row comes first"):
        read_time(table(minutes(6)[::-1]))


def test_rows_without_a_time() -> None:
    words = ["unit", *(f"2026-01-01 00:{i % 60:02}:00" for i in range(50))]
    frame, time, report = split_time(table(words))
    assert time is not None
    assert len(time) == frame.height == 50
    assert report.notes == ("1 of 51 rows left out: they have no time",)
    words[10] = words[20] = "?"
    with pytest.raises(InputError, match="3 of 51 cells are not times, the first in row 0"):
        split_time(table(words), "when")


def test_a_named_column_must_exist_and_hold_times() -> None:
    with pytest.raises(InputError, match="no column is called 'clock'"):
        split_time(table(minutes(3)), "clock")
    with pytest.raises(InputError, match=r"'state' does not hold times .*'on'"):
        split_time(table(minutes(3), state=["on", "off", "on"]), "state")


def test_no_time_column() -> None:
    frame, time, report = split_time(pl.DataFrame({"a": [1.0, 2.0], "state": ["x", "y"]}))
    assert time is None
    assert report.step is None
    assert frame.columns == ["a", "state"]


def test_step_repeats_gaps_and_irregularity() -> None:
    time = minutes(100)
    assert check_time(time).notes == ()
    holes = np.delete(time, np.r_[20:25, 60])
    report = check_time(holes)
    assert report.step == MINUTE
    assert report.irregular == 0
    assert report.notes == ("2 gaps in time, the longest 6 min",)
    with pytest.raises(InputError, match=r"3 rows have the time of the row before.*sort=True"):
        check_time(np.sort(np.r_[time, time[:3]]))
    rng = np.random.default_rng(0)
    jitter = time + (rng.uniform(-0.4, 0.4, 100) * MINUTE).astype("m8[ns]")
    report = check_time(jitter)
    assert report.irregular > 0.5
    assert "resample='1min'" in spelt(report.notes[0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1min", MINUTE), ("10 s", 10**10), ("0.5h", 30 * MINUTE), ("500ms", 5 * 10**8)],
)
def test_durations(text: str, expected: int) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize("text", ["", "min", "5", "0s", "5 fortnights", "-1s"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ConfigError, match="10s"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (5e-6, "5 µs"), (0.0005, "500 µs"), (0.02, "20 ms"), (1.5, "1.5 s"), (60, "1 min"),
        (90, "1 min 30 s"), (2160, "36 min"), (3599.999, "1 h"), (6600, "1 h 50 min"),
        (86_400, "1 day"), (9e4, "1 day 1 h"), (2.5 * 86_400, "2 days 12 h"),
        (1e8, "3 years 62 days"),
    ],
)  # fmt: skip
def test_duration_words(seconds: float, words: str) -> None:
    assert duration_words(seconds * 1e9) == words


def spring(step: int = 15) -> np.ndarray:
    """A clock in Berlin through the night in which summer time begins, without its zone."""
    night = minutes(600, "2026-03-28T22:00")[::step]
    return night[
        (night < np.datetime64("2026-03-29T02:00")) | (night >= np.datetime64("2026-03-29T03:00"))
    ]


def test_the_begin_of_summer_time_is_a_gap_unless_the_zone_is_named() -> None:
    report = check_time(spring())
    assert report.notes[0] == "1 gap in time, the longest 1 h 15 min"
    assert "time_zone='Europe/Berlin'" in spelt(report.notes[1])
    _, time, report = read_time(table(spring()), zone="Europe/Berlin")
    assert report.notes == ()
    assert np.unique(np.diff(time)).tolist() == [15 * MINUTE]


def test_other_gaps_say_nothing_of_zones() -> None:
    time = spring()
    assert len(check_time(np.delete(time, [3, 4])).notes) == 2
    assert len(check_time(minutes(100)[np.r_[0:20, 50:100]]).notes) == 1
    assert len(check_time(time, zone="UTC").notes) == 1


@pytest.mark.parametrize(
    "words",
    [
        ["19-Sep-26 00:00:00", "19-Sep-26 00:01:00"],  # the PI historian's default
        ["19-SEP-2026 00:00:00.000", "19-SEP-2026 00:01:00.000"],
        ["19 September 2026 00:00", "19 September 2026 00:01"],
        ["Sep 19, 2026 12:00:00 AM", "Sep 19, 2026 12:01:00 AM"],
        ["19/Sep/2026:00:00:00 +0000", "19/Sep/2026:00:01:00 +0000"],
        ["Sat, 19 Sep 2026 00:00:00 GMT", "Sat, 19 Sep 2026 00:01:00 GMT"],
        ["19. Sept. 2026 00:00", "19. Sept. 2026 00:01"],
        ["19.09.26 00:00", "19.09.26 00:01"],
    ],
)
def test_dates_with_names_of_months_and_short_years(words: list[str]) -> None:
    _, time, report = read_time(table(words))
    assert time.tolist() == minutes(2, "2026-09-19T00:00").tolist()
    assert report.step == MINUTE


@pytest.mark.parametrize(
    ("name", "month"), [("Mär", 3), ("Mai", 5), ("Okt", 10), ("Dez", 12), ("juil", 7), ("juin", 6)]
)
def test_months_of_other_languages(name: str, month: int) -> None:
    words = [f"02-{name}-26 00:00:00", f"02-{name}-26 00:01:00"]
    _, time, _ = read_time(table(words))
    assert time[0] == np.datetime64(f"2026-{month:02}-02", "ns")


def test_words_that_are_no_months_are_no_times() -> None:
    frame = pl.DataFrame({"state": ["19-Run-26 00:00:00", "20-Run-26 00:00:00"], "a": [1.0, 2.0]})
    assert split_time(frame)[1] is None


def test_a_spreadsheets_day_numbers() -> None:
    days = 46_284 + np.arange(5) * 10 / 1440  # 2026-09-19, every ten minutes
    frame = pl.DataFrame({"Zeit": days, "a": [1.0, 5.0, 2.0, 4.0, 3.0]})
    _, time, report = read_time(frame)
    assert time.tolist() == minutes(50, "2026-09-19T00:00")[::10].tolist()
    assert report.step == 10 * MINUTE
    assert report.notes == ("times are a spreadsheet's day numbers: 46284 is 2026-09-19 00:00:00",)
    _, time, _ = read_time(frame, zone="Europe/Berlin")
    assert time[0] == np.datetime64("2026-09-18T22:00", "ns")
    whole = pl.DataFrame({"Datum": [46_284, 46_285, 46_286], "a": [1.0, 5.0, 2.0]})
    assert read_time(whole)[1][1] == np.datetime64("2026-09-20", "ns")


def test_seconds_of_that_size_are_no_day_numbers() -> None:
    frame = pl.DataFrame({"t": np.arange(40_000.0, 40_010.0), "a": np.arange(10.0) % 3})
    _, time, report = split_time(frame, "t")
    assert time is not None
    assert time[1] - time[0] == np.timedelta64(1, "s")
    assert report.notes == ("times are numbers; taken as seconds",)


@pytest.mark.parametrize("name", ["uptime", "Betriebszeit", "runtime_h"])
def test_a_counter_of_hours_is_no_day_number(name: str) -> None:
    frame = pl.DataFrame({name: 40_000 + np.arange(20) * 0.1, "a": np.arange(20) % 3})
    assert split_time(frame)[1] is None
    assert split_time(frame.rename({name: "Zeit (UTC)"}))[1] is not None


# ------------------------------------------------------------------------ where a rule begins


def stamps(pauses: list[float]) -> np.ndarray:
    """Times with these pauses, in minutes."""
    return minutes(1)[0] + (np.cumsum([0, *pauses]) * MINUTE).astype("m8[ns]")


@pytest.mark.parametrize(
    ("bad", "rows", "left_out"), [(1, 20, True), (2, 200, True), (3, 200, False), (2, 20, False)]
)
def test_few_rows_without_a_time_are_left_out(bad: int, rows: int, left_out: bool) -> None:
    words = [f"2026-01-01 {i // 60:02}:{i % 60:02}:00" for i in range(rows)]
    words[7 : 7 + bad] = ["?"] * bad
    if left_out:
        frame, time, report = split_time(table(words))
        assert time is not None
        assert len(time) == frame.height == rows - bad
        assert report.notes == (f"{bad} of {rows} rows left out: they have no time",)
    else:
        with pytest.raises(InputError, match=f"{bad} of {rows} cells .* first in row 7;"):
            split_time(table(words), "when")


def test_a_column_in_which_every_tenth_cell_is_no_time_is_not_the_time() -> None:
    words = [f"2026-01-01 00:{i:02}:00" for i in range(20)]
    words[3] = words[9] = "?"
    assert split_time(table(words))[1] is None


@pytest.mark.parametrize(
    ("pause", "irregular"), [(1.1, 0), (1.11, 1), (0.9, 0), (0.3, 1), (2.5, 1), (3.1, 0), (4.0, 0)]
)
def test_a_pause_is_irregular_more_than_a_tenth_off_whole_steps(
    pause: float, irregular: int
) -> None:
    report = check_time(stamps([1] * 30 + [pause]))
    assert report.step == MINUTE
    assert report.irregular == pytest.approx(irregular / 31)


def test_a_table_is_irregular_when_more_than_a_twentieth_of_its_pauses_are() -> None:
    assert check_time(stamps([1] * 95 + [1.3] * 5)).notes == ()
    (note,) = check_time(stamps([1] * 94 + [1.3] * 6)).notes
    assert note.startswith("the step is irregular: 6% of rows are off 1 min")


@pytest.mark.parametrize(("pause", "gaps"), [(1.5, 0), (1.6, 1), (2, 1)])
def test_a_gap_of_a_regular_table_is_a_row_that_is_not_there(pause: float, gaps: int) -> None:
    notes = check_time(stamps([1] * 30 + [pause])).notes
    assert len([note for note in notes if "gap in time" in note]) == gaps


@pytest.mark.parametrize(("pause", "gaps"), [(9.5, 0), (10.5, 1)])
def test_a_gap_of_an_irregular_table_is_ten_of_its_steps(pause: float, gaps: int) -> None:
    notes = check_time(stamps([1, 1.4, 1, 0.6, 1] * 6 + [pause])).notes
    assert notes[0].startswith("the step is irregular")
    assert len(notes) == 1 + gaps


@pytest.mark.parametrize(
    ("pause", "words"),
    [(0.11, "5s"), (0.5, "30s"), (7, "5min"), (15, "15min"), (45, "1h"), (600, "10h")],
)
def test_the_resampling_that_is_proposed_is_a_round_step(pause: float, words: str) -> None:
    (note,) = check_time(stamps([pause, 1.4 * pause, pause, 0.6 * pause, pause] * 6)).notes
    assert f"resample='{words}'" in spelt(note)


def test_durations_have_two_units_at_most() -> None:
    words = [duration_words(s * 1e9) for s in (120, 119, 7200, 172_800, 1, 0.999, 1e-3, 9e-4)]
    assert words == ["2 min", "1 min 59 s", "2 h", "2 days", "1 s", "999 ms", "1 ms", "900 µs"]


def test_twelve_columns_are_named() -> None:
    names = [f"c{i}" for i in range(13)]
    frame = pl.DataFrame({name: [1.0] for name in names})
    with pytest.raises(InputError, match=r"c10, c11 and 1 more$"):
        split_time(frame, "clock")
    with pytest.raises(InputError, match=r"c10, c11$"):
        split_time(frame.select(names[:12]), "clock")


@pytest.mark.parametrize(
    ("hours", "times", "summer"), [(0.5, 1, True), (1.5, 3, True), (1.6, 1, False), (1, 4, False)]
)
def test_steps_back_of_about_an_hour_look_like_summer_time(
    hours: float, times: int, summer: bool
) -> None:
    pauses = ([120.0] * 3 + [-60 * hours]) * times
    with pytest.raises(InputError, match="time goes backwards") as error:
        check_order(stamps(pauses), first=100)
    assert ("summer time" in str(error.value)) == summer
    assert "(row 104)" in str(error.value)
    with pytest.raises(InputError, match="; sort the rows"):
        check_order(stamps(pauses), "UTC")


def test_two_rows_the_wrong_way_round_are_no_table_the_wrong_way_round() -> None:
    with pytest.raises(InputError, match="goes backwards"):
        check_order(minutes(2)[::-1])


def test_the_same_time_twice_is_refused_where_order_is_strict() -> None:
    check_order(stamps([1, 0, 1]))
    with pytest.raises(InputError, match=r"1 row has the time .* at .*00:01.*\(row 12\)"):
        check_order(stamps([1, 0, 1]), strict=True, first=10)


def test_one_row_has_no_step() -> None:
    report = check_time(minutes(1), "when", "UTC")
    assert (report.column, report.zone, report.step) == ("when", "UTC", None)
    assert report.notes == ()


@given(st.lists(st.integers(0, 12), min_size=1, max_size=30))
def test_against_a_loop(seconds: list[int]) -> None:
    values = np.random.default_rng(len(seconds)).normal(size=(len(seconds), 2))
    values[::3, 0] = np.nan
    time = np.array(seconds).astype("M8[s]").astype("M8[ns]")
    found, stamps, notes = order_rows(values, time)
    assert stamps.tolist() == np.unique(time).tolist()
    for row, second in zip(found, sorted(set(seconds)), strict=True):
        same = values[np.array(seconds) == second]
        for channel in range(2):
            known = [v for v in same[:, channel] if not np.isnan(v)]
            np.testing.assert_allclose(row[channel], np.mean(known) if known else np.nan)
    assert bool(notes) == (seconds != sorted(set(seconds)))
