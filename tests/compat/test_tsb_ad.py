from __future__ import annotations

import numpy as np

from compat.series import TRAIN, WRONG, series
from vace_ad.compat.tsb_ad import (
    CUSTOM_AD_HP,
    CustomAD,
    run_Custom_AD_Semisupervised,
    run_Custom_AD_Unsupervised,
)

HP = {"patch_length": 16, "encoders": 1}


def test_the_functions_that_the_benchmark_calls() -> None:
    x = series()
    scores = run_Custom_AD_Semisupervised(x[:TRAIN], x, **HP)
    assert scores.shape == (1000,)
    assert np.isfinite(scores).all()
    assert scores[WRONG].mean() > scores[:TRAIN].max()
    alone = run_Custom_AD_Unsupervised(x, **HP)
    assert WRONG.start - 16 <= int(np.argmax(alone)) < WRONG.stop + 16
    one_channel = run_Custom_AD_Semisupervised(x[:TRAIN, 1], x[:, 1], **HP)
    assert one_channel.shape == (1000,)


def test_the_class_contract() -> None:
    x = series()
    detector = CustomAD(HP).fit(x[:TRAIN])
    assert detector.decision_scores_.shape == (TRAIN,)
    assert detector.decision_function(x) is detector.decision_scores_
    assert all(isinstance(values, list) for values in CUSTOM_AD_HP.values())


def test_scores_go_through_the_benchmarks_evaluation() -> None:
    from vace_ad.metrics import evaluate

    x, labels = series(), np.zeros(1000, dtype=int)
    labels[WRONG] = 1
    scores = run_Custom_AD_Semisupervised(x[:TRAIN], x, **HP)
    assert evaluate(labels, scores, window=16)["VUS-PR"] > 0.9
