from __future__ import annotations

import numpy as np
import pytest

from compat.series import QUICK, TRAIN, WRONG, series


@pytest.fixture(autouse=True, scope="module")
def installed() -> None:
    """Imported by the worker that runs these tests, and not by all when they collect."""
    pytest.importorskip("aeon", reason="make test installs aeon", exc_type=ImportError)


def test_aeons_own_checks() -> None:
    from aeon.testing.estimator_checking import check_estimator

    from vace_ad.compat.aeon import VACEAnomalyDetector

    results = check_estimator(VACEAnomalyDetector, raise_exceptions=False, verbose=False)
    failed = {name: result for name, result in results.items() if result != "PASSED"}
    assert failed == {}


def test_it_finds_what_is_wrong() -> None:
    from vace_ad.compat.aeon import VACEAnomalyDetector

    x = series()
    scores = VACEAnomalyDetector(**QUICK).fit(x[:TRAIN], axis=0).predict(x, axis=0)
    assert scores.shape == (1000,)
    assert scores[WRONG].mean() > scores[:TRAIN].max()
    itself = VACEAnomalyDetector(**QUICK).fit_predict(x, axis=0)
    assert WRONG.start - 16 <= int(np.argmax(itself)) < WRONG.stop + 16
