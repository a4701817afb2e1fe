"""Control charts against their textbook recursions, row by row."""

import numpy as np
import pytest

from vace_ad.errors import ConfigError, InputError, NotFittedError, TooShortError
from vace_study.baselines import resolve
from vace_study.baselines.charts import CUSUM, EWMA, METHODS, Shewhart, TrainedPCA

NAMES = [method.name for method in METHODS]


@pytest.fixture
def rows(rng):
    """Training rows of other means and spreads, and a table with a shift of one channel."""
    mix = rng.normal(size=(4, 4))
    train = 5 + 2 * rng.normal(size=(400, 4)) @ mix
    table = 5 + 2 * rng.normal(size=(300, 4)) @ mix
    table[200:220, 1] += 12
    return train, table


def standardised(train, table):
    return (table - train.mean(axis=0)) / train.std(axis=0)


def test_shewhart_is_the_largest_deviation(rows):
    train, table = rows
    expected = [max(abs(x) for x in row) for row in standardised(train, table)]
    np.testing.assert_allclose(Shewhart().fit(train).score(table), expected)


def test_ewma_by_its_recursion(rows):
    train, table = rows
    mean, expected = np.zeros(4), []
    for t, row in enumerate(standardised(train, table), start=1):
        mean = 0.2 * row + 0.8 * mean
        expected.append(np.abs(mean).max() / np.sqrt(0.2 / 1.8 * (1 - 0.8 ** (2 * t))))
    np.testing.assert_allclose(EWMA().fit(train).score(table), expected)


def test_cusum_by_its_recursion(rows):
    train, table = rows
    up = down = np.zeros(4)
    expected = []
    for row in standardised(train, table):
        up, down = np.maximum(0, up + row - 0.5), np.maximum(0, down - row - 0.5)
        expected.append(max(up.max(), down.max()))
    np.testing.assert_allclose(CUSUM().fit(train).score(table), expected, atol=1e-9)


def test_t2_of_all_components_is_the_mahalanobis_distance(rows):
    train, table = rows
    z, basis = standardised(train, table), standardised(train, train)
    inverse = np.linalg.inv(basis.T @ basis / len(basis))
    expected = [row @ inverse @ row for row in z]
    found = TrainedPCA(explained=1.0).fit(train).score(table)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_q_is_the_squared_distance_from_the_kept_components(rows):
    train, table = rows
    detector = TrainedPCA("q", explained=0.7).fit(train)
    basis = standardised(train, train)
    values, vectors = np.linalg.eigh(np.cov(basis.T, bias=True))
    shares = np.cumsum(values[::-1]) / values.sum()
    kept = vectors[:, ::-1][:, : int(np.argmax(shares >= 0.7)) + 1]
    assert detector.components_.shape == kept.shape
    for row, found in zip(standardised(train, table), detector.score(table), strict=True):
        assert found == pytest.approx(((row - kept @ (kept.T @ row)) ** 2).sum())


def test_both_statistics_in_shares_of_their_training_quantile(rows):
    train, table = rows
    scores = {
        name: TrainedPCA(name).fit(train).score(np.vstack([train, table]))
        for name in ("t2", "q", "both")
    }
    limits = {name: np.quantile(scores[name][:400], 0.99) for name in ("t2", "q")}
    expected = np.maximum(scores["t2"] / limits["t2"], scores["q"] / limits["q"])
    np.testing.assert_allclose(scores["both"], expected)


def test_an_unknown_statistic_is_refused(rows):
    with pytest.raises(ConfigError, match="statistic='t3': must be one of t2, q, both"):
        TrainedPCA("t3").fit(rows[0])


def test_only_training_rows_shape_a_score(rows):
    train, table = rows
    for name in NAMES:
        detector = resolve(name).make(0)
        detector.fit(train)
        whole = detector.score(table)
        np.testing.assert_allclose(detector.score(table[:50]), whole[:50], atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_a_shift_is_found(rows, name):
    train, table = rows
    scores = resolve(name).make(0)
    scores.fit(train)
    found = scores.score(table)
    assert found[200:220].mean() > 2 * found[:200].mean()


@pytest.mark.parametrize("name", NAMES)
def test_a_channel_that_never_varied_is_watched_in_its_own_units(name):
    train = np.random.default_rng(1).normal(size=(200, 2))
    train[:, 1] = 3.0
    table = train[:50].copy()
    detector = resolve(name).make(0)
    detector.fit(train)
    quiet = detector.score(table)
    table[40:, 1] = 13.0
    assert np.isfinite(detector.score(table)).all()
    if name != "hotelling-t2":  # which sees only what varied in training
        assert detector.score(table)[40:].min() > quiet.max()


@pytest.mark.parametrize("name", NAMES)
def test_what_cannot_be_used_is_refused(name):
    detector = resolve(name).make(0)
    with pytest.raises(NotFittedError, match="call fit first"):
        detector.score(np.ones((5, 2)))
    with pytest.raises(TooShortError, match="1 training rows"):
        detector.fit(np.ones((1, 2)))
    detector.fit(np.arange(8.0).reshape(4, 2))
    with pytest.raises(InputError, match="3 channels came"):
        detector.score(np.ones((5, 3)))
