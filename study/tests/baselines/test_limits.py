"""Alarms of charts: limits from training scores, live and in one go."""

import numpy as np
import pytest

from vace_ad.errors import ConfigError
from vace_ad.metrics.backtest import Alarms, operate
from vace_study.baselines import resolve
from vace_study.baselines.charts import METHODS, Shewhart
from vace_study.baselines.limits import GAP, limit_for, merged

NAMES = [*(method.name for method in METHODS), "var-reduced-rank"]


@pytest.fixture(scope="module")
def plant():
    """Training rows; rows with a fault of the second channel from 500 to 540, and their labels."""
    rng = np.random.default_rng(0)
    train, rows = rng.normal(size=(2_000, 3)), rng.normal(size=(1_000, 3))
    rows[500:540, 1] += 8.0
    labels = np.zeros(1_000, int)
    labels[500:540] = 1
    return train, rows, labels


def fitted(name, train):
    detector = resolve(name).make(0)
    detector.fit(train)
    return detector


def test_rows_near_each_other_are_one_alarm():
    rows = np.array([3, 4, 4 + GAP + 1, 4 + 2 * GAP + 3, 300])
    assert [(a.start, a.end, a.alarm) for a in merged(rows)] == [
        (3, 4 + GAP + 2, 3),
        (4 + 2 * GAP + 3, 4 + 2 * GAP + 4, 4 + 2 * GAP + 3),
        (300, 301, 300),
    ]
    assert merged(np.array([], dtype=int)) == []


def test_the_limit_allows_training_rows_what_the_budget_does(rng):
    scores = rng.normal(size=5_000)
    assert limit_for(scores, 1e-4) == scores.max()  # half an alarm is none
    limit = limit_for(scores, 1e-3)
    assert len(merged(np.flatnonzero(scores > limit))) == 5
    lower = np.sort(scores[scores < limit])[-1]  # the next limit lets a sixth through
    assert len(merged(np.flatnonzero(scores > lower))) == 6
    assert limit_for(np.zeros(50), 1e-3) == 0.0  # nothing lies above


def test_an_alarm_that_lasts_counts_again():
    scores = np.zeros(2_000)
    scores[1_000:1_200] = np.arange(1, 201)  # one run, that of five alarms
    assert limit_for(scores, 1e-3) == 200 - 2 * GAP
    assert limit_for(scores, 1e-2) == 0.0


@pytest.mark.parametrize("name", NAMES)
def test_a_fault_is_found_blamed_and_raised_live(plant, name):
    train, rows, labels = plant
    detector = fitted(name, train)
    assert isinstance(detector, Alarms)
    causes = [{"start": 500, "end": 540, "channels": [1]}]
    counted = operate(detector, rows, labels, "1 in 1000 rows", causes=causes)
    assert (counted.found, counted.live, len(counted.delays)) == (1, 1, 1)
    assert counted.delays[0] < 10
    assert counted.blamed[0][0]
    assert counted.false_alarms <= 4  # 0.9 allowed


@pytest.mark.parametrize("name", NAMES)
def test_contributions_are_of_every_row_and_channel(plant, name):
    train, rows, _ = plant
    detector = fitted(name, train)
    parts = detector.contributions(rows[:100])
    assert parts.shape == (100, 3)
    if name in ("hotelling-t2", "pca-q", "var-reduced-rank"):  # sums; the charts by channel, maxima
        np.testing.assert_allclose(parts.sum(axis=1), detector.score(rows[:100]))


def test_rows_in_parts_raise_the_same_alarms(plant):
    train, rows, _ = plant
    stream = fitted("cusum", train).stream(budget="1 in 1000 rows")
    parts = [alarm for i in range(0, 1_000, 90) for alarm in stream.add(rows[i : i + 90]).anomalies]
    whole = fitted("cusum", train).detect(rows, budget="1 in 1000 rows").anomalies
    assert [alarm.alarm for alarm in parts] == [alarm.alarm for alarm in whole]
    assert stream.finish().changes == []


def test_a_budget_without_a_rate_is_refused(plant):
    from vace_ad.alarms.budget import Budget

    detector = Shewhart().fit(plant[0])
    with pytest.raises(ConfigError, match="in rows or time"):
        detector.detect(plant[1], budget=Budget(3.0, "threshold"))
