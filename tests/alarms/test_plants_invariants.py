"""What must hold on any plant: time, other faults and loudness change what they should, no more."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from alarms.feeds import Run, Toy, run_feed
from alarms.plants import coupled
from vace_ad import VACE
from vace_ad.alarms.budget import Budget
from vace_ad.alarms.events import Event
from vace_ad.demo import simulate

TRAIN, N, D = 3000, 2500, 6
AT = {"shift": (900, 960), "spike": (1500, 1502), "stuck": (2000, 2060)}
CHANNEL = {"shift": 2, "spike": 4, "stuck": 1}
SEEDS = pytest.mark.parametrize("seed", range(2))


class Made:
    """A random plant, what was learned of its beginning, and its other rows with faults."""

    def __init__(self, seed: int) -> None:
        values = coupled(TRAIN + 500 + N, D, seed)
        self.toy = Toy(values[:TRAIN])
        self.before, self.rows = values[TRAIN : TRAIN + 500], values[TRAIN + 500 :]
        self.unit = self.toy.alarm.cells.spread * self.toy.alarm.cells.scale

    def broken(self, *kinds: str, loud: float = 1.0) -> np.ndarray:
        rows = self.rows.copy()
        for kind in kinds:
            (start, end), channel = AT[kind], CHANNEL[kind]
            if kind == "stuck":
                rows[start:end, channel] = rows[start, channel]
            else:
                size = loud * {"shift": 5, "spike": 12}[kind]
                rows[start:end, channel] += size * self.unit[channel]
        return rows

    @cache  # noqa: B019 - two plants, kept for the whole module anyway
    def run(self, *kinds: str, loud: float = 1.0) -> Run:
        return run_feed(self.toy, self.broken(*kinds, loud=loud))


@cache
def made(seed: int) -> Made:
    return Made(seed)


def event_at(run: Run, kind: str, later: int = 0) -> Event:
    """The only event that meets a fault."""
    start, end = AT[kind]
    (event,) = (e for e in run.events if e.start < end + later and e.end > start + later)
    return event


@SEEDS
def test_clean_rows_before_do_not_move_events(seed: int) -> None:
    plant = made(seed)
    after = run_feed(plant.toy, np.concatenate([plant.before, plant.broken(*AT)]))
    for kind in AT:
        event, same = event_at(plant.run(*AT), kind), event_at(after, kind, 500)
        assert abs(same.start - 500 - event.start) <= 4
        assert abs(same.end - 500 - event.end) <= 4
        assert abs(same.alarm - 500 - event.alarm) <= 2


@SEEDS
@pytest.mark.parametrize("kind", AT)
def test_a_fault_far_away_does_not_move_another_event(seed: int, kind: str) -> None:
    alone, among = event_at(made(seed).run(kind), kind), event_at(made(seed).run(*AT), kind)
    assert abs(among.start - alone.start) <= 1
    assert among.shares[0][0] == alone.shares[0][0] == made(seed).toy.channels[CHANNEL[kind]]


@SEEDS
def test_what_comes_later_changes_nothing_before(seed: int) -> None:
    plant = made(seed)
    first = run_feed(plant.toy, plant.broken("shift")[:1400])
    assert first.events == plant.run(*AT).events[:1]


@SEEDS
@pytest.mark.parametrize("kind", ["shift", "spike"])
def test_a_louder_fault_is_never_less_of_an_event(seed: int, kind: str) -> None:
    found = [event_at(made(seed).run(kind, loud=loud), kind) for loud in (1.0, 1.5, 4.0)]
    ratios = [event.ratio for event in found]
    alarms = [event.alarm for event in found]
    assert ratios == pytest.approx(sorted(ratios), rel=1e-9)
    assert alarms == sorted(alarms, reverse=True)  # nor is it seen later
    assert [event.severity for event in found] == sorted(event.severity for event in found)


@SEEDS
def test_units_of_channels_do_not_matter(seed: int) -> None:
    plant = made(seed)
    scale, level = np.array([1e-3, 1.0, 50.0, 7.0, 1e4, 0.2]), np.arange(D) * 100.0
    other = Toy(plant.toy.train * scale + level)
    same = run_feed(other, plant.broken(*AT) * scale + level).events
    found = plant.run(*AT).events
    assert [event.alarm for event in same] == [event.alarm for event in found]
    assert [event.start for event in same] == [event.start for event in found]


@SEEDS
def test_normal_rows_make_no_event(seed: int) -> None:
    run = made(seed).run()
    assert run.changes == []
    assert len(run.surprise) == N


@SEEDS
def test_a_larger_budget_has_no_fewer_events(seed: int) -> None:
    toy, rows = made(seed).toy, made(seed).broken(*AT)
    counts = [len(run_feed(toy, rows, budget=Budget(n, "rows")).events) for n in (0.01, 1, 100)]
    assert counts[0] <= counts[1] <= counts[2]
    assert counts[1] == len(AT)


@pytest.mark.parametrize("seed", range(12))
def test_all_six_faults_of_the_demo_are_found_with_their_sensors(seed: int) -> None:
    plant = simulate(seed=seed)
    n = plant.train_rows
    if seed == 1:  # as a user would
        frame = plant.frame()
        found = VACE(random_state=seed).fit(frame[:n]).detect(frame, first=n).anomalies
        events = [(e.start - n, e.end - n, [name for name, _ in e.shares]) for e in found]
        names = plant.names
    else:  # by cells alone, which is faster
        toy = Toy(plant.values[:n])
        names = toy.channels
        found = run_feed(toy, plant.values[n:], budget=Budget(5, "rows")).events
        events = [(e.start, e.end, [name for name, _ in e.shares]) for e in found]
    for fault in plant.faults:
        a, b, sensor = fault.start - n, fault.end - n, names[plant.names.index(fault.sensor)]
        suspects = [who for start, end, who in events if start < b and end > a]
        assert suspects, f"{fault.kind} is missed"
        assert any(sensor in who[:3] for who in suspects), f"{fault.kind}: {suspects}"
    assert len(events) <= 6 + 3  # a budget of one false alarm a week, in 18 days
