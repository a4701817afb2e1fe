from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from alarms.processes import PATCH, PROCESSES
from vace_ad.alarms.budget import Budget, choose_threshold
from vace_ad.alarms.calibration import Calibration
from vace_ad.alarms.runs import Rules, runs_above
from vace_ad.errors import ConfigError, InputError
from vace_ad.live.settings import read_budget as budget_of_a_file

MINUTE = 60 * 10**9
WEEK = 7 * 24 * 60  # rows of a minute
RULES = Rules(join=48)


@cache
def fresh(name: str) -> np.ndarray:
    """Two years of normal scores that no calibration saw: enough to count rare alarms."""
    return PROCESSES[name](100 * WEEK, np.random.default_rng(2026))


def kept(name: str, budget: Budget, weeks: int, rules: Rules, seeds: int) -> float:
    """Alarms counted over alarms asked for, mean over calibrations of some weeks."""
    rate = budget.rate(MINUTE)
    assert rate is not None
    counted = 0
    for seed in range(seeds):
        scores = PROCESSES[name](weeks * WEEK, np.random.default_rng(seed))
        calibration = Calibration.from_scores(scores, PATCH)
        threshold = choose_threshold(budget, calibration, rules, MINUTE).value
        counted += len(runs_above(fresh(name), threshold, rules))
    return counted / (seeds * rate * len(fresh(name)))


@pytest.mark.parametrize("name", PROCESSES)
@pytest.mark.parametrize(
    ("budget", "weeks"),
    [
        (Budget(1, "day"), 1),
        (Budget(1, "week"), 2),
        (Budget(1, "month"), 4),
        (Budget(2, "rows"), 3),
    ],
)
def test_alarms_counted_stay_within_a_factor_of_two(name: str, budget: Budget, weeks: int) -> None:
    assert 0.5 <= kept(name, budget, weeks, RULES, seeds=40) <= 2


@pytest.mark.parametrize("rules", [Rules(), Rules(join=200), Rules(join=10, cooldown=500)])
def test_the_budget_counts_events_under_the_rules(rules: Rules) -> None:
    assert 0.5 <= kept("rough", Budget(3, "week"), 2, rules, seeds=30) <= 2


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    return Calibration.from_scores(PROCESSES["averaged"](WEEK, np.random.default_rng(0)), PATCH)


def test_words_and_cautions(calibration: Calibration) -> None:
    weekly = choose_threshold(Budget(1, "week"), calibration, RULES, MINUTE)
    assert weekly.words == "about one false alarm a week"
    assert weekly.note is None
    yearly = choose_threshold(Budget(1 / 12, "month"), calibration, RULES, MINUTE)
    assert yearly.value > weekly.value
    assert "extrapolated" in str(yearly.note)
    often = choose_threshold(Budget(1000, "day"), calibration, RULES, MINUTE)
    assert often.value < weekly.value
    assert "rarely make more" in str(often.note)
    assert choose_threshold(Budget(), calibration, RULES).words == (
        "about one false alarm in 10,000 rows"
    )


def test_shares_and_plain_thresholds(calibration: Calibration) -> None:
    threshold = choose_threshold(Budget(0.05, "share"), calibration, RULES).value
    assert 0.025 < (fresh("averaged") > threshold).mean() < 0.1
    assert choose_threshold(Budget(4.5, "threshold"), calibration, RULES).value == 4.5


def test_budgets_in_time_need_a_step(calibration: Calibration) -> None:
    with pytest.raises(InputError, match="without time; give it as step,"):
        choose_threshold(Budget(1, "week"), calibration, RULES)


def test_the_default_is_in_time_where_rows_have_one() -> None:
    assert Budget().at(None) == Budget(1, "rows")
    assert Budget().at(MINUTE) == Budget(1, "week")
    assert Budget(0.5).at(10**9) == Budget(0.5, "week")
    assert Budget().at(60 * MINUTE) == Budget(10, "rows")  # a week has 168 rows of an hour
    assert Budget().rate(60 * MINUTE) == pytest.approx(1 / 1000)
    assert Budget(2, "day").at(None) == Budget(2, "day")


@pytest.mark.parametrize("words", ["1 per week", "1/week", "1 a week", "one alarm a week"])
def test_words_for_a_week(words: str) -> None:
    assert Budget.of(words) == Budget(1, "week")
    assert budget_of_a_file(words) == Budget(1, "week")


@pytest.mark.parametrize("words", ["2 in 10000 rows", "2 / 10,000 rows", "1 in 5000 rows"])
def test_words_for_rows(words: str) -> None:
    assert Budget.of(words) == Budget(2, "rows")
    assert budget_of_a_file(words) == Budget(2, "rows")


@pytest.mark.parametrize("words", ["", "often", "1", "1 per year", "-1 a week", "1 in 0 rows"])
def test_what_is_no_budget_is_refused_with_what_is(words: str) -> None:
    with pytest.raises(ConfigError, match="1 per week"):
        Budget.of(words)
    with pytest.raises(ValueError, match="1 per week"):
        budget_of_a_file(words)


@pytest.mark.parametrize(
    ("amount", "per"), [(0, "week"), (-1, "rows"), (0, "share"), (1, "share"), (99.9, "share")]
)
def test_budgets_out_of_range(amount: float, per: str) -> None:
    with pytest.raises(ConfigError):
        Budget(amount, per)  # type: ignore[arg-type]
