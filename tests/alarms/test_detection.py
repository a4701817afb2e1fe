from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from vace_ad.alarms.refine import REACH

from alarms.plants import KINDS, PATCH, break_sensor, plant
from alarms.toys import Toy
from vace_ad import VACE
from vace_ad.alarms.budget import Budget
from vace_ad.alarms.detection import Found, explain, find_events, leading
from vace_ad.alarms.runs import Rules
from vace_ad.errors import InputError
from vace_ad.frames.table import Table

NAMES = tuple("abcdefghijkl")
TRAIN, N = 4000, 8000
TIME = (np.datetime64("2026-01-01", "ns") + np.arange(N) * np.timedelta64(60 * 10**9, "ns")).astype(
    "datetime64[ns]"
)


def detect(toy: Toy, table: Table, **settings: Any) -> Found:
    return find_events(toy, table, toy.signals(table), **settings)


@pytest.fixture(scope="module")
def values() -> np.ndarray:
    values = plant(N, len(NAMES), np.random.default_rng(3))
    break_sensor(values[:, 2], slice(5000, 5080), "shifted", np.random.default_rng(0))
    break_sensor(values[:, 7], slice(6500, 6580), "shifted", np.random.default_rng(0))
    return values


@pytest.fixture(scope="module")
def toy(values: np.ndarray) -> Toy:
    return Toy(values[:TRAIN], NAMES, 60 * 10**9)


def test_events_with_time_blame_and_words(toy: Toy, values: np.ndarray) -> None:
    found = detect(toy, Table(values, NAMES, TIME), budget=Budget(1, "week"), first=TRAIN)
    assert found.threshold.words == "about one false alarm a week"
    first, second = found.events
    assert (first.shares[0][0], second.shares[0][0]) == ("c", "h")
    assert sum(share for _, share in first.shares) == pytest.approx(1)
    assert first.signal in ("position", "direction")
    assert first.start_time == TIME[first.start]
    assert (first.peak_time, first.alarm_time) == (TIME[first.peak], TIME[first.alarm])
    assert abs(first.start - 5000) <= 4
    assert abs(first.end - 5080) <= 4
    assert first.start <= first.alarm < first.end
    assert first.severity > 50
    assert first.level == "critical"
    assert first.ratio > 1
    assert first.score > found.threshold.value
    assert found.predictions.sum() == first.rows + second.rows
    assert set(found.signals) == {"position", "direction"}
    np.testing.assert_allclose(found.scores, sum(found.signals.values()))


@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_has_its_rows_and_its_channel(kind: str) -> None:
    values = plant(N, len(NAMES), np.random.default_rng(3))
    break_sensor(values[:, 7], slice(6500, 6580), kind, np.random.default_rng(0))
    found = detect(Toy(values[:TRAIN], NAMES, 60 * 10**9), Table(values, NAMES), first=TRAIN)
    (event,) = found.anomalies
    assert event.shares[0][0] == "h"
    assert min(event.end, 6580) - max(event.start, 6500) >= 40


@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_is_found_whatever_it_is(kind: str) -> None:
    values = plant(N, len(NAMES), np.random.default_rng(3))
    break_sensor(values[:, 7], slice(6500, 6580), kind, np.random.default_rng(0))
    found = detect(Toy(values[:TRAIN], NAMES, 60 * 10**9), Table(values, NAMES), first=TRAIN)
    (event,) = found.anomalies
    assert 6500 - PATCH <= event.start < event.end <= 6580 + PATCH
    assert event.level in ("high", "critical")


@pytest.mark.parametrize("per", ["day", "week", "month"])
def test_a_threshold_that_learns_finds_the_same_faults(values: np.ndarray, per: Any) -> None:
    toy = Toy(values[:TRAIN], NAMES, 60 * 10**9, adapt=True)
    found = detect(toy, Table(values, NAMES, TIME), budget=Budget(1, per), first=TRAIN)
    strongest = sorted(found.anomalies, key=lambda event: -event.ratio)
    assert {event.shares[0][0] for event in strongest[:2]} == {"c", "h"}
    assert all(event.level == "low" for event in strongest[2:])  # what chance alone gave
    above = found.scores > found.limits  # an event lies within reach of what gave it away
    assert all(above[e.start - REACH : e.end + REACH].any() for e in found.anomalies)


def test_limits_are_those_of_each_row(toy: Toy, values: np.ndarray) -> None:
    table = Table(values, NAMES)
    found = detect(toy, table, first=TRAIN)
    assert np.isnan(found.limits[:TRAIN]).all()
    np.testing.assert_array_equal(found.limits[TRAIN:], found.threshold.value)
    learning = detect(Toy(values[:TRAIN], NAMES, 60 * 10**9, adapt=True), table, first=TRAIN)
    assert len(np.unique(learning.limits[TRAIN:])) > 10
    assert found.threshold == learning.threshold  # where both began


def test_near_misses_lie_below_the_threshold_strongest_first(values: np.ndarray) -> None:
    toy = Toy(values[:TRAIN], NAMES, 60 * 10**9, adapt=True)
    found = detect(toy, Table(values, NAMES, TIME), first=TRAIN)
    ratios = [event.ratio for event in found.near_misses]
    assert ratios
    assert ratios == sorted(ratios, reverse=True)
    assert all(0.5 <= ratio <= 1 for ratio in ratios)
    for miss in found.near_misses:
        assert (miss.kind, miss.alarm, miss.level) == ("near miss", None, "")
        assert miss.start_time == TIME[miss.start]
        assert (found.scores[miss.start : miss.end] <= found.limits[miss.start : miss.end]).all()
    assert found.predictions.sum() == sum(event.rows for event in found.anomalies)


def test_larger_budgets_have_no_fewer_anomalies(values: np.ndarray) -> None:
    toy = Toy(values[:TRAIN], NAMES, adapt=True)
    found = detect(toy, Table(values, NAMES), first=TRAIN)
    counts = [found.budgets[f"1 in {n} rows"] for n in ("1,000", "10,000", "100,000")]
    assert counts == sorted(counts, reverse=True)
    assert counts[1] == len(found.anomalies)  # the budget itself
    assert counts[2] >= 2
    toy.step = 60 * 10**9
    timed = detect(toy, Table(values, NAMES, TIME), budget=Budget(1, "week"), first=TRAIN)
    assert list(timed.budgets) == ["1 a day", "1 a week", "1 a month"]
    assert timed.budgets["1 a week"] == len(timed.anomalies)
    assert detect(toy, Table(values, NAMES), budget=Budget(4.0, "threshold")).budgets == {}


def test_rows_of_the_training_make_no_events(toy: Toy, values: np.ndarray) -> None:
    table = Table(values, NAMES, TIME)
    assert [e.start >= 6000 for e in detect(toy, table, first=6000).events] == [True]
    assert detect(toy, table, budget=Budget(0, "threshold"), first=N).events == ()


def test_gaps_are_events_and_patches_do_not_cross_them(toy: Toy, values: np.ndarray) -> None:
    keep = np.r_[0:4500, 4700:N]  # two hundred rows are missing
    table = Table(values[keep].copy(), NAMES, TIME[keep])
    table.values[5500:5530, 4] = np.nan
    found = detect(toy, table, first=TRAIN)
    assert [(e.kind, e.start, e.end) for e in found.events if e.kind == "no data"] == [
        ("no data", 4500, 4500),
        ("no data", 5500, 5530),
    ]
    gap, silence = (event for event in found.events if event.kind == "no data")
    assert (gap.start_time, gap.end_time) == (TIME[4499], TIME[4700])
    assert silence.shares == (("e", 1.0),)
    assert len(found.scores) == len(table)
    assert len(found.anomalies) == 2
    before = toy.signals(Table(values[:4500], NAMES))
    np.testing.assert_array_equal(found.signals["position"][:4500], before["position"])


def test_the_step_is_that_of_the_fit_else_the_argument(toy: Toy, values: np.ndarray) -> None:
    budget, table, fitted = Budget(1, "day"), Table(values, NAMES), toy
    toy = replace(toy, step=None)
    for without in (table, Table(values, NAMES, TIME)):
        with pytest.raises(InputError, match="fitted on rows without time; give it as step,"):
            detect(toy, without, budget=budget)
    given = detect(toy, table, budget=budget, step=60 * 10**9).threshold
    assert detect(fitted, table, budget=budget).threshold == given
    assert detect(fitted, table, budget=budget, step=10**9).threshold == given


def test_rules_and_progress(toy: Toy, values: np.ndarray) -> None:
    said: list[str] = []
    found = detect(
        toy,
        Table(values, NAMES),
        rules=Rules(join=N),
        first=TRAIN,
        progress=lambda stage, done, total: said.append(stage),
    )
    assert len(found.events) == 1
    assert set(said) == {"explaining"}


def test_explain_names_channels_and_the_leading_signal(toy: Toy, values: np.ndarray) -> None:
    table = Table(values, NAMES)
    signals = toy.signals(table)
    blame = explain(toy, table, signals, 5000, 5080)
    assert blame.top(1)[0][0] == "c"
    assert blame.shares.sum() == pytest.approx(1)
    assert blame.signal == leading(signals, 5000, 5080)


def test_the_leading_signal_is_the_one_that_rose_most() -> None:
    high, low = np.full(100, 9.0), np.zeros(100)
    low[40:50] = 2
    assert leading({"high": high, "low": low}, 40, 50) == "low"
    low[40:50] = np.nan
    high[40:50] = np.nan
    assert leading({"high": high, "low": low}, 40, 50) is None


def test_times_that_go_backwards_are_refused(toy: Toy, values: np.ndarray) -> None:
    with pytest.raises(InputError, match="goes backwards"):
        detect(toy, Table(values, NAMES, TIME[np.r_[0:100, 50, 101:N]]))


@pytest.mark.parametrize("kind", KINDS)
def test_with_the_real_detector(kind: str) -> None:
    values = plant(N, len(NAMES), np.random.default_rng(3))
    break_sensor(values[:, 2], slice(5000, 5080), "shifted", np.random.default_rng(0))
    break_sensor(values[:, 7], slice(6500, 6580), kind, np.random.default_rng(0))
    table = Table(values, NAMES, TIME)
    detector = VACE(random_state=0, patch_length=PATCH, stride=4, encoders=1)
    detector.fit(Table(values[:TRAIN], NAMES, TIME[:TRAIN]))
    found = detector.detect(table, budget=Budget(1, "day"), first=TRAIN)
    blamed = {
        at: event.shares[0][0]
        for event in found.anomalies
        for at in (5000, 6500)
        if event.start < at + 80 and event.end > at
    }
    assert blamed == {5000: "c", 6500: "h"}
    assert all(event.level == "low" for event in found.anomalies if event.shares[0][0] not in "ch")
    np.testing.assert_allclose(found.scores, detector.score(table), rtol=1e-9)
    assert detector.explain(table, 5000, 5080).top(1)[0][0] == "c"
    assert detector.predict(table).shape == (N,)
