"""VACE as a scikit-learn outlier detector.

>>> import numpy as np
>>> from vace_ad.compat.sklearn import VACEOutlierDetector
>>> rows = np.sin(np.arange(600)[:, None] / [5, 7])
>>> set(VACEOutlierDetector(patch_length=24).fit_predict(rows)) <= {-1, 1}
True
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from vace_ad.compat import _core
from vace_ad.errors import ConfigError, needs

with needs("scikit-learn", "sklearn", "the scikit-learn adapter"):
    from sklearn.base import BaseEstimator, OutlierMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import check_is_fitted, validate_data

# For `check_estimator(…, expected_failed_checks=…)`: a row's score depends on its neighbours in
# time, which the first two take away, and the others count among rows that were learned from.
EXPECTED_FAILED_CHECKS = {
    "check_methods_sample_order_invariance": "rows are a time series, their order is the data",
    "check_methods_subset_invariance": "a row is scored together with the rows around it",
    "check_outliers_fit_predict": "contamination is a share of rows that were not learned from",
    "check_outliers_train": "contamination is a share of rows that were not learned from",
}


class VACEOutlierDetector(OutlierMixin, BaseEstimator):  # type: ignore[misc]
    """Rows are samples in order of time; `predict` gives −1 for anomalies and 1 for the rest.

    `score_samples` is high for normal rows, as scikit-learn has it, and `contamination` is the
    share of rows like those of training beyond the threshold, which is why it is set by training
    rows that were held out: of the training rows themselves there are fewer. For a threshold in
    alarms a week, use `vace_ad.VACE.detect`. `settings` are further settings of `vace_ad.VACE`.
    """

    def __init__(
        self,
        *,
        preset: str | None = None,
        patch_length: int | None = None,
        contamination: float = 0.01,
        random_state: Any = None,
        settings: dict[str, Any] | None = None,
    ) -> None:
        self.preset = preset
        self.patch_length = patch_length
        self.contamination = contamination
        self.random_state = random_state
        self.settings = settings

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn normal operation from rows in order of time."""
        if not 0 < self.contamination <= 0.5:
            raise ConfigError(f"contamination={self.contamination!r}: must be a share in (0, 0.5]")
        values = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan")
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self.detector_ = _core.fit(values, self, seed)
        self.offset_ = -_core.threshold(self.detector_, self.contamination)
        return self

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """The opposite of the anomaly score of each row."""
        check_is_fitted(self)
        values = validate_data(
            self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False
        )
        return -_core.scores(self.detector_, values)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Below 0 for anomalies."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> NDArray[np.int64]:
        """−1 for rows above the threshold, 1 for the others."""
        return np.where(self.decision_function(X) < 0, -1, 1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
