"""VACE as a PyOD detector; rows are samples in order of time.

>>> from vace_ad.compat.pyod import VACEDetector        # doctest: +SKIP
>>> VACEDetector(contamination=0.01).fit(train).predict(test)        # doctest: +SKIP
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from vace_ad.compat import _core
from vace_ad.errors import needs

with needs("pyod", "pyod", "the PyOD adapter"):
    from pyod.models.base import BaseDetector
    from sklearn.utils.validation import check_array, check_is_fitted


class VACEDetector(BaseDetector):  # type: ignore[misc]
    """Follows PyOD's contract: `decision_scores_`, `threshold_` and `labels_` after `fit`.

    `decision_scores_` are the scores of training rows by detectors that did not see them, so that
    `contamination` sets the threshold as it would for new rows.
    """

    def __init__(
        self,
        contamination: float = 0.1,
        preset: str | None = None,
        patch_length: int | None = None,
        random_state: int = 0,
        settings: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(contamination=contamination)
        self.preset = preset
        self.patch_length = patch_length
        self.random_state = random_state
        self.settings = settings

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn normal operation from rows in order of time; `y` is ignored."""
        values = check_array(X, dtype=np.float64, ensure_all_finite="allow-nan")
        self._set_n_classes(y)
        self.detector_ = _core.fit(values, self)
        held_out = self.detector_.calibration_scores_
        # Gaps, and thinning of very long series, leave rows without a held-out score.
        whole = len(held_out) == len(values)
        self.decision_scores_ = held_out if whole else _core.scores(self.detector_, values)
        self._process_decision_scores()
        self.threshold_ = _core.threshold(self.detector_, self.contamination)
        self.labels_ = (self.decision_scores_ > self.threshold_).astype(int)
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Score of each row, high when anomalous."""
        check_is_fitted(self, ["decision_scores_", "threshold_", "labels_"])
        values = check_array(X, dtype=np.float64, ensure_all_finite="allow-nan")
        return _core.scores(self.detector_, values)
