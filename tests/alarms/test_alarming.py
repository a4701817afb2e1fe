from __future__ import annotations

import numpy as np
import pytest

from alarms.plants import PATCH, plant
from alarms.toys import Toy
from vace_ad.alarms.alarming import NEAR, NEAR_MISSES, Alarming, near_misses
from vace_ad.alarms.budget import Budget
from vace_ad.alarms.events import NEAR_MISS
from vace_ad.alarms.runs import Rules, runs_above
from vace_ad.alarms.watcher import Fixed, Watcher
from vace_ad.errors import InputError

NAMES = tuple("abcdef")
MINUTE = 60 * 10**9


@pytest.fixture(scope="module")
def toy() -> Toy:
    return Toy(plant(3000, len(NAMES), np.random.default_rng(0)), NAMES, adapt=True)


def test_the_default_budget_and_rules(toy: Toy) -> None:
    alarming = Alarming.of(toy, None, None, None)
    assert alarming.rate == 1e-4
    assert alarming.rules == Rules(join=PATCH // 2)
    assert isinstance(alarming.watcher(), Watcher)
    still = Toy(toy.train, NAMES, adapt=False)
    assert isinstance(Alarming.of(still, None, None, None).watcher(), Fixed)


@pytest.mark.parametrize("budget", [Budget(4.0, "threshold"), Budget(0.01, "share")])
def test_a_threshold_that_a_person_set_stays(toy: Toy, budget: Budget) -> None:
    alarming = Alarming.of(toy, budget, None, None)
    assert alarming.rate is None
    judge = alarming.watcher()
    assert isinstance(judge, Fixed)
    assert judge.add(np.zeros(1)).limit[0] == alarming.threshold.value
    assert alarming.other_budgets(np.ones(10)) == {}


def test_the_step_is_given_or_the_models(toy: Toy) -> None:
    with pytest.raises(InputError, match="without time"):
        Alarming.of(toy, Budget(1, "day"), None, None)
    given = Alarming.of(toy, Budget(1, "day"), None, MINUTE)
    assert given.rate == pytest.approx(1 / 1440)
    own = Toy(toy.train, NAMES, step=MINUTE, adapt=True)
    assert Alarming.of(own, Budget(1, "day"), None, None).rate == given.rate


def test_an_event_is_as_strong_as_its_run(toy: Toy) -> None:
    alarming = Alarming.of(toy, None, None, None)
    scores, ratio = np.arange(50.0), np.zeros(50)
    ratio[20:30] = [1.1, 1.2, np.nan, 1.5, 2.0, 1.9, 1.2, 1.1, 1.1, 1.1]
    event = alarming.event(scores, ratio, (20, 30), (22, 27))
    assert (event.start, event.end, event.peak, event.alarm) == (22, 27, 24, 22)
    assert (event.score, event.ratio) == (24.0, 2.0)
    assert event.probability == pytest.approx(1e-4 * (1e-4 * PATCH))
    assert event.severity > 50
    inside = alarming.event(scores, ratio, (20, 30), (15, 20))
    assert (inside.peak, inside.alarm) == (19, 20)  # known later than the fault began
    miss = alarming.event(scores, ratio, (20, 30), (20, 30), NEAR_MISS)
    assert (miss.alarm, miss.level) == (None, "")


def test_near_misses_are_the_strongest_stretches_below() -> None:
    ratio = np.full(1000, 0.1)
    ratio[100:110] = 2.0  # an event
    ratio[112] = 0.99  # its shoulder
    ratio[300:305] = [0.5, 0.8, 0.9, 0.85, 0.6]
    ratio[600], ratio[800], ratio[900] = 0.6, 0.7, NEAR - 0.01
    runs = runs_above(ratio, 1.0, Rules())
    found = near_misses(ratio, runs, 10)
    assert found.tolist() == [[301, 304], [800, 801], [600, 601]]


def test_at_most_a_few_near_misses_apart_from_each_other() -> None:
    ratio = np.random.default_rng(0).uniform(0, 1, 2000)
    found = near_misses(ratio, np.empty((0, 2), np.intp), 20)
    assert len(found) == NEAR_MISSES
    peaks = [ratio[start:end].max() for start, end in found.tolist()]
    assert peaks == sorted(peaks, reverse=True)
    ordered = np.sort(found, axis=0)
    assert (ordered[1:, 0] - ordered[:-1, 1] >= 20).all()


def test_nothing_near_is_no_near_miss() -> None:
    none = np.empty((0, 2), np.intp)
    for ratio in (np.empty(0), np.full(20, np.nan), np.full(20, 0.2)):
        assert near_misses(ratio, none, 5).shape == (0, 2)
    ratio = np.array([np.nan, 0.9, np.nan, 0.7])
    kept = ratio.copy()
    assert near_misses(ratio, none, 0).tolist() == [[1, 2], [3, 4]]
    np.testing.assert_array_equal(ratio, kept)  # left as it was


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("adapt", [True, False])
def test_larger_budgets_have_no_fewer_anomalies(toy: Toy, seed: int, adapt: bool) -> None:
    model = Toy(toy.train, NAMES, adapt=adapt)
    alarming = Alarming.of(model, None, None, None)
    scores = np.random.default_rng(seed).choice(model.calibration_scores, 4000)
    scores[1000], scores[2000], scores[3000] = np.array([1.2, 2.0, 9.0]) * alarming.threshold.value
    ratio = alarming.watcher().add(scores).ratio
    budgets = alarming.other_budgets(ratio)
    counts = [budgets[f"1 in {n} rows"] for n in ("1,000", "10,000", "100,000")]
    assert counts == sorted(counts, reverse=True)
    assert counts[1] == len(runs_above(ratio, 1.0, alarming.rules)) >= 1


def test_budgets_in_words_of_time(toy: Toy) -> None:
    alarming = Alarming.of(toy, Budget(1, "week"), None, MINUTE)
    ratio = np.full(5000, 0.2)
    ratio[1000], ratio[2000], ratio[3000] = 0.95, 1.1, 5.0
    found = alarming.other_budgets(ratio)
    assert list(found) == ["1 a day", "1 a week", "1 a month"]
    assert found["1 a week"] == 2
    assert found["1 a day"] >= 2 >= found["1 a month"] >= 1
