"""What `detect` takes: budgets in words, paths and iterators."""

import numpy as np
import polars as pl
import pytest

from test_detector import SMALL, waves
from vace_ad import VACE, Budget
from vace_ad.errors import ConfigError


@pytest.fixture(scope="module")
def fitted():
    return VACE(**SMALL).fit(waves(800))


@pytest.mark.parametrize(
    ("words", "budget"),
    [
        ("1 per week", Budget(1, "week")),
        ("2 alarms a day", Budget(2, "day")),
        ("0.5 per month", Budget(0.5, "month")),
        ("1 in 1000 rows", Budget(10, "rows")),
    ],
)
def test_budgets_in_words(words, budget):
    assert Budget.of(words) == budget


def test_words_that_are_no_budget(fitted):
    with pytest.raises(ConfigError, match="1 per week"):
        fitted.detect(waves(300), budget="often")
    with pytest.raises(ConfigError, match="both came"):
        fitted.detect(waves(300), budget="1 per week", alarms_per_week=1)


def test_paths_and_iterators_give_the_events_of_the_table(fitted, tmp_path):
    rows = waves(600, seed=1)
    rows[300:340, 1] += 5
    table = pl.DataFrame(rows, schema=list(fitted.channels_))
    table.write_parquet(tmp_path / "t.parquet")
    wanted = fitted.detect(table, budget="1 in 10000 rows")
    assert wanted.anomalies
    for data in (tmp_path / "t.parquet", iter([table[:250], table[250:]])):
        found = fitted.detect(data, budget="1 in 10000 rows")
        assert found.anomalies == wanted.anomalies
        np.testing.assert_array_equal(found.scores, wanted.scores)
