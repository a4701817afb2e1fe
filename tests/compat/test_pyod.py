from __future__ import annotations

import numpy as np
import pytest

from compat.series import QUICK, TRAIN, WRONG, series


@pytest.fixture(autouse=True, scope="module")
def installed() -> None:
    """Imported by the worker that runs these tests, and not by all when they collect."""
    pytest.importorskip("pyod", reason="make test installs PyOD", exc_type=ImportError)


@pytest.fixture(scope="module")
def fitted():
    from vace_ad.compat.pyod import VACEDetector

    return VACEDetector(contamination=0.02, **QUICK).fit(series()[:TRAIN])


def test_what_fit_must_leave(fitted) -> None:
    assert fitted.decision_scores_.shape == (TRAIN,)
    assert fitted.labels_.sum() == pytest.approx(0.02 * TRAIN, abs=1)
    assert fitted.threshold_ == pytest.approx(np.percentile(fitted.decision_scores_, 98))


def test_scores_labels_probabilities(fitted) -> None:
    x = series()
    scores = fitted.decision_function(x)
    assert scores.shape == (1000,)
    assert scores[WRONG].mean() > scores[:TRAIN].max()
    labels = fitted.predict(x)
    assert labels[WRONG].mean() > 0.8
    assert labels[:TRAIN].mean() < 0.1
    for method in ("linear", "unify"):
        chances = fitted.predict_proba(x, method=method)
        assert chances.shape == (1000, 2)
        assert chances.min() >= 0
        assert chances.max() <= 1
    confident = fitted.predict(x, return_confidence=True)
    assert len(confident) == 2


def test_fit_predict_and_clone(fitted) -> None:
    from sklearn.base import clone

    assert clone(fitted).get_params() == fitted.get_params()
    assert fitted.predict(series()[:5]).shape == (5,)
    with pytest.raises(ValueError, match="contamination"):
        type(fitted)(contamination=0.9)
