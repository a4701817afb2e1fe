from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from compat.series import QUICK, TRAIN, WRONG, series
from vace_ad.errors import ConfigError


def make(**settings: Any) -> Any:
    """The detector; imported by the worker that runs these tests, not by all when they collect."""
    from vace_ad.compat.sklearn import VACEOutlierDetector

    return VACEOutlierDetector(**settings)


def test_scikit_learns_own_checks() -> None:
    from sklearn.utils.estimator_checks import check_estimator

    from vace_ad.compat.sklearn import EXPECTED_FAILED_CHECKS

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # checks that skip themselves warn about it
        small = {"encoders": 1, "widths": (8, 8, 8, 8), "engine": "numpy"}
        results = check_estimator(
            make(settings=small),
            expected_failed_checks=EXPECTED_FAILED_CHECKS,
            on_fail=None,
        )
    failed = [(r["check_name"], r["exception"]) for r in results if r["status"] == "failed"]
    assert failed == []
    declared = {r["check_name"] for r in results if r["status"] == "xfail"}
    assert declared == set(EXPECTED_FAILED_CHECKS)


def test_in_a_pipeline_it_finds_what_is_wrong() -> None:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x = series()
    pipeline = make_pipeline(StandardScaler(), make(**QUICK, random_state=0))
    found = pipeline.fit(x[:TRAIN]).predict(x)
    assert (found[WRONG] == -1).mean() > 0.8
    assert (found[:TRAIN] == -1).mean() < 0.01
    assert pipeline.decision_function(x)[WRONG].max() < pipeline.decision_function(x)[:TRAIN].mean()


def test_contamination_is_the_share_of_rows_that_were_not_learned_from() -> None:
    """Of white noise; neighbouring rows share windows, so rows a patch apart are counted."""
    flagged = []
    for seed in range(3):
        x = np.random.default_rng(seed).normal(size=(9000, 4))
        detector = make(patch_length=24, contamination=0.01, random_state=0)
        flagged.append(detector.fit(x[:3000]).predict(x[3000:])[::24] == -1)
    found = np.concatenate(flagged)
    low, high = binom.ppf([0.0005, 0.9995], len(found), 0.01)
    assert low <= found.sum() <= high


def test_seeds_and_clones() -> None:
    from sklearn.base import clone

    x = series()
    detector = make(**QUICK, random_state=3)
    first = detector.fit(x).score_samples(x)
    np.testing.assert_array_equal(clone(detector).fit(x).score_samples(x), first)
    other = clone(detector).set_params(random_state=4).fit(x).score_samples(x)
    assert np.abs(other - first).max() > 0


def test_fewer_rows_than_a_patch_and_missing_values() -> None:
    x = series()
    detector = make(**QUICK).fit(x)
    assert detector.score_samples(x[:3]).shape == (3,)
    x[100:130] = np.nan
    assert np.isfinite(detector.score_samples(x)).all()


def test_bad_input() -> None:
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        make().predict(series())
    with pytest.raises(ValueError, match="n_samples = 5"):
        make().fit(series()[:5])
    with pytest.raises(ConfigError, match=r"contamination=0\.7"):
        make(contamination=0.7).fit(series())
