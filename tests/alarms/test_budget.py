from __future__ import annotations

import numpy as np
import pytest

from alarms.processes import PATCH, PROCESSES
from vace_ad.alarms.budget import Budget, score_threshold
from vace_ad.alarms.calibration import Calibration
from vace_ad.errors import ConfigError, InputError
from vace_ad.live.settings import read_budget as budget_of_a_file

MINUTE = 60 * 10**9
ROWS = 10_080  # a week of minutes


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    return Calibration.from_scores(PROCESSES["averaged"](ROWS, np.random.default_rng(0)), PATCH)


def test_a_share_of_normal_rows_is_above_its_threshold(calibration: Calibration) -> None:
    threshold = score_threshold(Budget(0.05, "share"), calibration)
    fresh = PROCESSES["averaged"](100 * ROWS, np.random.default_rng(2026))
    assert 0.025 < (fresh > threshold.value).mean() < 0.1
    assert threshold.words == "about 0.05 of normal rows"
    assert threshold.note is None
    assert not threshold.given


def test_a_share_beyond_what_training_shows_is_extrapolated(calibration: Calibration) -> None:
    few = 0.3 * PATCH / ROWS  # less than a third of an independent row
    assert score_threshold(Budget(1.01 * few, "share"), calibration).note is None
    far = score_threshold(Budget(0.99 * few, "share"), calibration)
    assert "10,080 training rows can show" in str(far.note)
    assert far.value > calibration.tail.quantile(0.05)


def test_a_threshold_is_itself(calibration: Calibration) -> None:
    threshold = score_threshold(Budget(4.5, "threshold"), calibration)
    assert (threshold.value, threshold.words, threshold.given) == (4.5, "scores above 4.5", True)


def test_budgets_in_time_need_a_step() -> None:
    with pytest.raises(InputError, match="without time; give it as step,"):
        Budget(1, "week").rate(None)


@pytest.mark.parametrize(
    ("budget", "rate", "words"),
    [
        (Budget(1, "day"), 1 / 1440, "about one false alarm a day"),
        (Budget(2, "week"), 2 / 10_080, "about 2 false alarms a week"),
        (Budget(0.5, "month"), 0.5 / 43_200, "about 0.5 false alarms a month"),
        (Budget(3, "rows"), 3e-4, "about 3 false alarms in 10,000 rows"),
        (
            Budget(),
            1 / 10_080,
            "about one false alarm a week, or in 10,000 rows without time",
        ),
        (Budget(0.01, "share"), None, "about 0.01 of normal rows"),
        (Budget(-2, "threshold"), None, "scores above -2"),
    ],
)
def test_rates_and_words(budget: Budget, rate: float | None, words: str) -> None:
    assert budget.rate(MINUTE) == (None if rate is None else pytest.approx(rate))
    assert budget.words == words


def test_the_default_is_in_time_where_rows_have_one() -> None:
    assert Budget().at(None) == Budget(1, "rows")
    assert Budget().at(MINUTE) == Budget(1, "week")
    assert Budget(0.5).at(10**9) == Budget(0.5, "week")
    assert Budget().at(60 * MINUTE) == Budget(10, "rows")  # a week has 168 rows of an hour
    assert Budget().rate(60 * MINUTE) == pytest.approx(1 / 1000)
    assert Budget(2, "day").at(None) == Budget(2, "day")
    fewest = 7 * 24 * 3600 * 10**9 // 1000  # the step of a week of a thousand rows
    assert Budget().at(fewest) == Budget(1, "week")
    assert Budget().at(fewest + 10**9) == Budget(10, "rows")


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
    ("amount", "per", "told"),
    [
        (0, "week", "0 alarms a week"),
        (-1, "rows", "-1 alarms a rows"),
        (0, "share", "rate of 0"),
        (1, "share", "rate of 1"),
        (99.9, "share", "rate of 99.9"),
        (1, "year", "a budget per 'year'"),
    ],
)
def test_budgets_out_of_range(amount: float, per: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        Budget(amount, per)  # type: ignore[arg-type]
