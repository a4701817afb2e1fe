"""The budget of a large fleet, kept by what all machines show together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from vace_ad.alarms import Budget
from vace_ad.alarms.evidence import UNIT
from vace_ad.alarms.scan import Tails
from vace_ad.app.run import Alarming
from vace_ad.fleet.entities import MachineRow
from vace_ad.fleet.incidents import find_incidents
from vace_ad.fleet.threshold import LEAST, fit_bar, kept_to_budget, own_bar, supported

MINUTE = 60 * 10**9
STRETCHES = 20  # of each machine


def event(height: float, start: int = 0, end: int = 10, kind: str = "anomaly") -> dict[str, object]:
    return {
        "kind": kind,
        "start": start,
        "end": end,
        "start_time": None,
        "end_time": None,
        "ratio": height,
        "height": height if kind == "anomaly" else None,
        "severity": 50.0,
        "shares": {"a": 1.0},
    }


def row(
    i: int,
    peaks: NDArray[np.float64],
    allowed: float,
) -> MachineRow:
    """A machine with an event in every stretch whose peak is above its own threshold."""
    events = [event(x, 100 * k, 100 * k + 10) for k, x in enumerate(peaks.tolist()) if x > 1]
    return MachineRow(
        f"m{i}",
        "ok",
        rows=2000,
        events=tuple(events),
        bar=2.0,
        allowed=allowed,
        peaks=tuple(peaks.tolist()),
    )


def rows_of(peaks: NDArray[np.float64], expected: float) -> list[MachineRow]:
    return [row(i, each, expected / len(peaks)) for i, each in enumerate(peaks)]


def tails() -> Tails:
    level, each = np.full(41, 5 * UNIT), np.ones(41)
    return Tails(level, each * UNIT, 15 * each, 0.04 * each, 2000)


def normal(rng: np.random.Generator, machines: int) -> NDArray[np.float64]:
    return 0.3 + 0.2 * rng.exponential(size=(2, machines, STRETCHES))


def alarms(rows: list[MachineRow]) -> int:
    return sum(len(one.anomalies) for one in kept_to_budget(rows)[0])


def test_a_machine_is_judged_by_what_its_training_can_show() -> None:
    part = Alarming(Budget(0.003, "week"))
    used = supported(part, 2000, MINUTE)
    assert used.budget.rate(MINUTE) == pytest.approx(0.1 / 2000)
    assert own_bar(part.budget, used.budget, MINUTE, tails()) > 1.2
    enough = Alarming(Budget(1, "day"))
    assert supported(enough, 2000, MINUTE) == enough
    assert own_bar(enough.budget, enough.budget, MINUTE, tails()) == 1
    share = Alarming(Budget(0.001, "share"))
    assert supported(share, 2000, None) == share
    assert own_bar(share.budget, share.budget, None, tails()) == 1


@pytest.mark.parametrize("machines", [100, 1000])
@pytest.mark.parametrize("expected", [1.0, 5.0])
def test_the_bar_is_passed_as_often_as_allowed(machines: int, expected: float) -> None:
    passed = 0
    for seed in range(300):
        peaks = np.random.default_rng(seed).exponential(size=(2, machines)) * 0.9
        bar = fit_bar(peaks[0], expected / machines, machines)
        passed += int((peaks[1] > bar.height).sum())  # another run of the same fleet
    assert 0.5 * expected < passed / 300 < 1.4 * expected


@pytest.mark.parametrize("faulty", [0.05, 0.2])
def test_faulty_stretches_hardly_move_the_bar(faulty: float) -> None:
    rng = np.random.default_rng(0)
    peaks = rng.exponential(size=1000)
    clean = fit_bar(peaks, 1 / 1000, 1000).height
    peaks[: int(faulty * 1000)] = rng.uniform(10, 40, int(faulty * 1000))
    assert 0.9 * clean < fit_bar(peaks, 1 / 1000, 1000).height < 1.4 * clean


def test_few_peaks_tell_no_bar() -> None:
    assert fit_bar(np.zeros(100), 0.001, 100).height == np.inf
    alike = np.full((60, STRETCHES), 0.5)
    assert alarms(rows_of(alike, 0.1)) == 0
    odd = alike.copy()
    odd[3, 7] = 1.5
    assert alarms(rows_of(odd, 0.1)) == 1


@pytest.mark.parametrize("together", [0.0, 0.5])
def test_the_budget_is_kept_by_independent_machines_and_by_those_that_move_together(
    together: float,
) -> None:
    found, expected = 0, 3.0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        own = rng.exponential(size=(2, 200, STRETCHES))
        common = rng.exponential(size=(2, 1, STRETCHES))
        scored, _ = 0.3 + 0.4 * ((1 - together) * own + together * common)
        found += alarms(rows_of(scored, expected))
    assert found / 40 < 1.2 * expected
    assert together or found / 40 > 0.3 * expected  # nor is it deaf


def test_weak_events_of_a_large_fleet_are_left_out() -> None:
    scored, _ = normal(np.random.default_rng(3), 200)
    scored[7, 5] = 12.0
    rows = rows_of(scored, 0.1)
    rows[7] = replace(rows[7], events=(*rows[7].events, event(0.0, 3000, 3010, kind="no data")))
    weaker = sum(len(one.anomalies) for one in rows) - 1
    kept, notes = kept_to_budget(rows)
    assert [one.machine for one in kept if one.anomalies] == ["m7"]
    assert [one["kind"] for one in kept[7].events] == ["anomaly", "no data"]
    assert kept[7].severity == 50.0  # what it was before: severity does not depend on the budget
    assert "200 machines have too few training rows" in notes[0]
    assert notes[1] == f"{weaker:,} weaker events are in the results of their machines only"


@pytest.mark.parametrize("hit", [40, 400])
def test_a_fault_that_hits_many_at_once_is_one_incident(hit: int) -> None:
    rng = np.random.default_rng(4)
    scored, _ = normal(rng, 1000)
    scored[:hit, 11] = rng.uniform(6, 9, hit)
    kept, _ = kept_to_budget(rows_of(scored, 0.1))
    incidents = find_incidents(kept)
    assert [len(one.machines) for one in incidents] == [hit]


def test_a_loud_normal_is_how_the_fleet_is() -> None:
    """Peaks above all own thresholds, at all times and in training too, are no alarms."""
    scored, _ = 4 * normal(np.random.default_rng(6), 200)
    rows = rows_of(scored, 0.1)
    assert sum(len(one.anomalies) for one in rows) > 2000
    assert alarms(rows) == 0


def test_enough_training_needs_no_pooling() -> None:
    scored, _ = normal(np.random.default_rng(7), 2 * LEAST)
    rows = [replace(one, bar=1.0) for one in rows_of(scored, 0.1)]
    assert kept_to_budget(rows) == (rows, [])


def test_few_machines_go_by_their_own_bar() -> None:
    def one(i: int, height: float, bar: float = 2.0) -> MachineRow:
        return MachineRow(f"m{i}", "ok", rows=1000, events=(event(height),), bar=bar)

    kept, notes = kept_to_budget([one(0, 1.9), one(1, 2.1), one(2, 1.1, bar=1.0)])
    assert [len(each.events) for each in kept] == [0, 1, 1]
    assert "extrapolated" in notes[0]
