"""What `detect` takes: budgets in words, paths and iterators."""

import numpy as np
import polars as pl
import pytest

from test_detector import SMALL, waves
from vace_ad import VACE, Budget
from vace_ad.errors import ChannelMismatchError, ConfigError, InputError, VaceWarning


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


def mixed(n: int = 900) -> pl.DataFrame:
    """Two channels, a text, a row number, a label and a time."""
    rng = np.random.default_rng(3)
    start = np.datetime64("2026-01-01T00:00", "ns")
    return pl.DataFrame(
        {
            "time": start + np.arange(n) * np.timedelta64(1, "m"),
            "flow": np.sin(np.arange(n) / 7) + 0.1 * rng.normal(size=n),
            "mode": ["auto", "manual", "auto"] * (n // 3),
            "row": np.arange(n),
            "level": np.cos(np.arange(n) / 9) + 0.1 * rng.normal(size=n),
            "label": (np.arange(n) > 800).astype(int),
        }
    )


@pytest.mark.parametrize("kind", ["polars", "pandas"])
def test_columns_that_cannot_be_channels_are_left_out(kind: str) -> None:
    """As on the command line, and said once: at the fit."""
    table = mixed() if kind == "polars" else mixed().to_pandas()
    with pytest.warns(VaceWarning) as said:
        detector = VACE(random_state=0).fit(table[:600])
    told = " ".join(str(warning.message) for warning in said)
    for words in ("'mode' is text", "'row' is a row counter", "'label' is a label"):
        assert words in told
    assert detector.channels_ == ("flow", "level")
    plain = VACE(random_state=0).fit(mixed()[:600].select("time", "flow", "level"))
    rest = mixed()[600:].select("time", "flow", "level")
    np.testing.assert_array_equal(detector.score(table[600:]), plain.score(rest))
    found = detector.detect(table[600:])
    assert found.to_frame().shape[0] == len(found.events)


def test_another_column_of_numbers_is_still_refused() -> None:
    table = mixed().select("time", "flow", "level")
    detector = VACE(random_state=0).fit(table[:600])
    rng = np.random.default_rng(0)
    with pytest.raises(ChannelMismatchError, match="pressure"):
        detector.score(table.with_columns(pressure=pl.Series(rng.normal(size=900))))


def test_rows_out_of_order_are_sorted_on_request() -> None:
    table = mixed().select("time", "flow", "level")
    order = np.random.default_rng(0).permutation(300)
    shuffled = table[600:][order]
    detector = VACE(random_state=0).fit(table[:600])
    with pytest.raises(InputError, match="sort=True"):
        detector.score(shuffled)
    scores = detector.score(table[600:])
    np.testing.assert_array_equal(detector.score(shuffled, sort=True), scores[order])
    twice = pl.concat([shuffled, shuffled])
    np.testing.assert_allclose(detector.score(twice, sort=True), np.tile(scores[order], 2))
    np.testing.assert_array_equal(detector.detect(shuffled, sort=True).scores, scores)
    mixed_up = table[:600][np.random.default_rng(1).permutation(600)]
    again = VACE(random_state=0).fit(mixed_up, sort=True)
    np.testing.assert_array_equal(again.score(table[600:]), scores)
    with pytest.raises(InputError, match="no time"):
        detector.score(table[600:].drop("time"), sort=True)
