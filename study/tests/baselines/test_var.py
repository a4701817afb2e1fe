"""The reduced-rank autoregression against a direct solution."""

import numpy as np
import pytest

from vace_ad.errors import NotFittedError, TooShortError
from vace_study.baselines import var
from vace_study.baselines.var import ReducedRankVAR


def simulated(rows, seed):
    """Three channels that follow one hidden autoregression, and noise."""
    rng = np.random.default_rng(seed)
    hidden = np.zeros(rows)
    for t in range(2, rows):
        hidden[t] = 1.6 * hidden[t - 1] - 0.8 * hidden[t - 2] + rng.normal()
    return hidden[:, None] * [1.0, -0.5, 2.0] + 0.1 * rng.normal(size=(rows, 3))


def test_full_rank_is_ridge_regression():
    train, table = simulated(500, 0), simulated(200, 1)
    lags = 4
    mean, deviation = train.mean(axis=0), train.std(axis=0)
    z, other = (train - mean) / deviation, (table - mean) / deviation

    def past(x, t):
        return x[t - lags : t].T.ravel()  # channel by channel

    features = np.array([past(z, t) for t in range(lags, len(z))])
    rows = np.vstack([features, np.sqrt(1e-3 * len(z)) * np.eye(features.shape[1])])
    wanted = np.vstack([z[lags:], np.zeros((features.shape[1], 3))])
    coefficients = np.linalg.lstsq(rows, wanted, rcond=None)[0]
    expected = [
        ((other[t] - past(other, t) @ coefficients) ** 2).sum() for t in range(lags, len(other))
    ]
    found = ReducedRankVAR(lags=lags, explained=1.0).fit(train).score(table)
    np.testing.assert_allclose(found[lags:], expected, rtol=1e-7)
    np.testing.assert_array_equal(found[:lags], found[lags])


def test_one_hidden_cause_needs_one_direction():
    detector = ReducedRankVAR().fit(simulated(2_000, 0))
    assert detector.rank_ == 1
    assert np.linalg.matrix_rank(detector.coefficients_) == 1


def test_a_broken_relation_in_time_is_found():
    table = simulated(600, 2)
    table[400:420, 0] = table[400:420, 0][::-1].copy()
    scores = ReducedRankVAR().fit(simulated(2_000, 0)).score(table)
    assert scores[400:420].mean() > 3 * scores[16:400].mean()


def test_batches_change_nothing(monkeypatch):
    train, table = simulated(300, 0), simulated(100, 1)
    whole = ReducedRankVAR().fit(train).score(table)
    monkeypatch.setattr(var, "_BATCH", 7)
    np.testing.assert_allclose(ReducedRankVAR().fit(train).score(table), whole, rtol=1e-8)


def test_what_cannot_be_used_is_refused():
    with pytest.raises(NotFittedError, match="call fit first"):
        ReducedRankVAR().score(np.ones((50, 2)))
    with pytest.raises(TooShortError, match=r"17 rows came.*at least 18"):
        ReducedRankVAR().fit(np.ones((17, 2)))
    detector = ReducedRankVAR().fit(simulated(60, 0))
    with pytest.raises(TooShortError, match=r"16 rows came.*at least 17"):
        detector.score(simulated(16, 0))
