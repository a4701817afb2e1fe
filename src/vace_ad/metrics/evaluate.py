"""TSB-AD's nine measures in one call."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from vace_ad.metrics import _check
from vace_ad.metrics._order import Levels, grid_levels, sort_scores
from vace_ad.metrics.affiliation import affiliation_f
from vace_ad.metrics.events import find_events
from vace_ad.metrics.points import auc_pr, auc_roc, best_f1, event_f1, f1, pa_f1, point_curve
from vace_ad.metrics.ranges import range_f1
from vace_ad.metrics.vus import curves_by_window, volumes

THRESHOLDS = 250  # of VUS in TSB-AD


def evaluate(
    labels: ArrayLike,
    scores: ArrayLike,
    window: int = 100,
    predictions: ArrayLike | None = None,
) -> dict[str, float]:
    """Compute TSB-AD's nine measures, each equal to TSB-AD 1.5 within rounding.

    - AUC-PR, AUC-ROC: single rows, all thresholds
    - VUS-PR, VUS-ROC: events widened by up to ``window // 2`` rows, see :func:`vus`
    - Standard-F1: single rows, at the best of all scores as threshold
    - PA-F1: one predicted row makes its whole event predicted
    - Event-based-F1: recall of events, precision of rows
    - R-based-F1: range-based precision and recall
    - Affiliation-F: distance between predictions and events, relative to random predictions

    The last five need predictions. Without them, each measure uses its own best threshold:
    Standard-F1 of all scores, the others of 100 values evenly spaced from the smallest to the
    largest score. Such values serve to compare detectors; they are not reached in use.

    Parameters
    ----------
    labels
        0/1 for each row, 1 = anomalous; both must occur.
    scores
        A finite score for each row, high = anomalous.
    window
        The largest window of VUS, in rows; TSB-AD takes it from :func:`sliding_window`.
    predictions
        0/1 for each row, from a threshold of your own.

    Returns
    -------
    dict
        The nine by TSB-AD's names. Affiliation-F is NaN where nothing is ever predicted, which
        happens with constant scores.

    Examples
    --------
    >>> from vace_ad.metrics import evaluate
    >>> result = evaluate([0, 0, 1, 1, 0, 0, 0, 0], [1, 2, 3, 8, 9, 4, 3, 2], window=4)
    >>> for name, value in result.items():
    ...     print(f"{name:15}{value:.3f}")
    AUC-PR         0.450
    AUC-ROC        0.708
    VUS-PR         0.659
    VUS-ROC        0.834
    Standard-F1    0.571
    PA-F1          0.800
    Event-based-F1 0.667
    R-based-F1     0.571
    Affiliation-F  0.871
    """
    anomalous, values = _check.labels_and_scores(labels, scores)
    window = _check.at_least(window, 0, "window")
    order = sort_scores(values)
    if predictions is None:
        levels = grid_levels(values, order)
    else:
        predicted = _check.binary(predictions, "predictions")
        _check.same_length(anomalous, predicted, "predictions")
        levels = Levels(predicted.astype(np.intp), 1)  # one threshold, passed or not

    events = find_events(anomalous)
    curve = point_curve(anomalous, order)
    volume_roc, volume_pr = volumes(curves_by_window(anomalous, order, events, window, THRESHOLDS))
    return {
        "AUC-PR": auc_pr(curve),
        "AUC-ROC": auc_roc(curve),
        "VUS-PR": volume_pr,
        "VUS-ROC": volume_roc,
        "Standard-F1": best_f1(curve) if predictions is None else f1(anomalous, levels),
        "PA-F1": pa_f1(anomalous, events, levels),
        "Event-based-F1": event_f1(anomalous, events, levels),
        "R-based-F1": range_f1(anomalous, events, levels),
        "Affiliation-F": affiliation_f(anomalous, events, levels),
    }
