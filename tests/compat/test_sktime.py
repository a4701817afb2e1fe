from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from compat.series import QUICK, TRAIN, WRONG, series


@pytest.fixture(autouse=True, scope="module")
def installed() -> None:
    """Imported by the worker that runs these tests, and not by all when they collect."""
    pytest.importorskip("sktime", reason="make test installs sktime", exc_type=ImportError)


@pytest.mark.filterwarnings("default")  # sktime's own code warns
def test_sktimes_own_checks() -> None:
    from sktime.utils.estimator_checks import check_estimator

    from vace_ad.compat.sktime import VACEDetector

    results = check_estimator(VACEDetector, raise_exceptions=False, verbose=False)
    failed = {name: result for name, result in results.items() if result != "PASSED"}
    assert failed == {}
    assert len(results) > 50


def test_it_finds_what_is_wrong() -> None:
    from vace_ad.compat.sktime import VACEDetector

    times = pd.date_range("2026-01-01", periods=1000, freq="min")
    x = pd.DataFrame(series(), index=times)
    detector = VACEDetector(**QUICK, budget="1 in 1000 rows").fit(x[:TRAIN])
    rows = detector.predict(x)["ilocs"].to_numpy()
    wrong = np.arange(WRONG.start, WRONG.stop)
    assert np.isin(wrong, rows).mean() > 0.8
    scores = detector.transform_scores(x)
    assert scores.index.equals(times)
    assert scores["scores"].iloc[WRONG].mean() > scores["scores"].iloc[:TRAIN].max()
    dense = detector.transform(x)["labels"].to_numpy()
    assert np.flatnonzero(dense).tolist() == rows.tolist()
    of_rows = detector.predict_scores(x).to_numpy().ravel()
    assert of_rows.tolist() == scores["scores"].to_numpy()[rows].tolist()


def test_one_series_is_a_table_of_one_channel() -> None:
    from vace_ad.compat.sktime import VACEDetector

    x = pd.Series(series()[:, 0])
    detector = VACEDetector(**QUICK).fit(x[:TRAIN])
    assert len(detector.transform_scores(x)) == 1000
    assert detector.detector_.channels_ == detector.fit(x.to_frame()[:TRAIN]).detector_.channels_
