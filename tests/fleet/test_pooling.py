"""The budget of a large fleet, kept by what all machines show together."""

from __future__ import annotations

import numpy as np
import pytest

from vace_ad.alarms import Budget
from vace_ad.app.run import Alarming
from vace_ad.fleet.pooling import LEAST, fit_bar, kept_to_budget, own_bar, supported
from vace_ad.fleet.rows import MachineRow

MINUTE = 60 * 10**9


def event(ratio: float, start: int = 0, end: int = 10, kind: str = "anomaly") -> dict[str, object]:
    return {
        "kind": kind,
        "start": start,
        "end": end,
        "start_time": None,
        "end_time": None,
        "ratio": ratio,
        "severity": 50.0,
        "shares": {"a": 1.0},
    }


def row(i: int, *events: dict[str, object], bar: float = 2.0, missed: float = 0.0) -> MachineRow:
    return MachineRow(
        f"m{i}", "ok", rows=1000, events=events, bar=bar, allowed=0.001, missed=missed
    )


def test_a_machine_is_judged_by_what_its_training_can_show() -> None:
    part = Alarming(Budget(0.003, "week"))
    used = supported(part, 2000, MINUTE)
    assert used.budget.rate(MINUTE) == pytest.approx(0.1 / 2000)
    assert own_bar(part.budget, used.budget, MINUTE, 96) > 1.5
    enough = Alarming(Budget(1, "day"))
    assert supported(enough, 2000, MINUTE) == enough
    assert own_bar(enough.budget, enough.budget, MINUTE, 96) == 1
    share = Alarming(Budget(0.001, "share"))
    assert supported(share, 2000, None) == share
    assert own_bar(share.budget, share.budget, None, 96) == 1


@pytest.mark.parametrize("machines", [100, 1000])
@pytest.mark.parametrize("expected", [1.0, 5.0])
def test_the_bar_is_passed_as_often_as_allowed(machines: int, expected: float) -> None:
    passed = 0
    for seed in range(300):
        peaks = np.random.default_rng(seed).exponential(size=(2, machines)) * 0.9
        bar, _ = fit_bar(peaks[0], expected / machines)
        passed += int((peaks[1] > bar).sum())  # another run of the same fleet
    assert 0.5 * expected < passed / 300 < 1.4 * expected


@pytest.mark.parametrize("faulty", [0.05, 0.2])
def test_faulty_machines_hardly_move_the_bar(faulty: float) -> None:
    rng = np.random.default_rng(0)
    peaks = rng.exponential(size=1000)
    clean, _ = fit_bar(peaks, 1 / 1000)
    peaks[: int(faulty * 1000)] = rng.uniform(10, 40, int(faulty * 1000))
    assert 0.9 * clean < fit_bar(peaks, 1 / 1000)[0] < 1.4 * clean


def test_few_peaks_tell_no_bar() -> None:
    assert fit_bar(np.zeros(100), 0.001) == (1.0, 1.0)


def test_weak_events_of_a_large_fleet_are_left_out() -> None:
    rng = np.random.default_rng(3)
    ratios = 1 + rng.exponential(size=200)
    rows = [row(i, event(r, 20 * i, 20 * i + 10)) for i, r in enumerate(ratios)]
    rows[7] = row(7, event(40.0, 140, 150), event(0.0, 300, 310, kind="no data"))
    kept, notes = kept_to_budget(rows)
    assert [one.machine for one in kept if one.anomalies] == ["m7"]
    assert [one["kind"] for one in kept[7].events] == ["anomaly", "no data"]
    assert 80 < kept[7].severity < 100
    assert "200 machines have too few training rows" in notes[0]
    assert notes[1] == "199 weaker events are in the results of their machines only"


def test_events_at_all_times_are_no_incident() -> None:
    rng = np.random.default_rng(5)
    starts = rng.integers(0, 1000, 400)
    ratios = 1 + 3 * rng.exponential(size=400)
    rows = [
        row(i, event(r, int(at), int(at) + 300))
        for i, (r, at) in enumerate(zip(ratios, starts, strict=True))
    ]
    kept, _ = kept_to_budget(rows)
    assert sum(bool(one.anomalies) for one in kept) <= 3


def test_a_common_event_does_not_raise_the_bar() -> None:
    rng = np.random.default_rng(4)
    rows = [row(i, missed=float(m)) for i, m in enumerate(rng.uniform(0.5, 1, 200))]
    for i in range(120):
        rows[i] = row(i, event(8.0 + i / 100, 500, 600), missed=rows[i].missed)
    kept, _ = kept_to_budget(rows)
    assert sum(bool(one.anomalies) for one in kept) == 120


def test_enough_training_needs_no_pooling() -> None:
    rows = [row(i, event(1.1), bar=1.0) for i in range(2 * LEAST)]
    assert kept_to_budget(rows) == (rows, [])


def test_few_machines_go_by_their_own_bar() -> None:
    rows = [row(0, event(1.9)), row(1, event(2.1)), row(2, event(1.1), bar=1.0)]
    kept, notes = kept_to_budget(rows)
    assert [len(one.events) for one in kept] == [0, 1, 1]
    assert "extrapolated" in notes[0]
