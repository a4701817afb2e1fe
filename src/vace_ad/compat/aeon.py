"""VACE as an aeon anomaly detector, learning from a normal series or from the series itself.

>>> from vace_ad.compat.aeon import VACEAnomalyDetector        # doctest: +SKIP
>>> VACEAnomalyDetector().fit(train, axis=0).predict(test, axis=0)        # doctest: +SKIP
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from vace_ad.compat import _core
from vace_ad.errors import needs

with needs("aeon", "aeon", "the aeon adapter"):
    from aeon.anomaly_detection.series.base import BaseSeriesAnomalyDetector


class VACEAnomalyDetector(BaseSeriesAnomalyDetector):  # type: ignore[misc]
    """Gives a score for each time point, high when anomalous."""

    _tags: ClassVar[dict[str, Any]] = {
        "anomaly_output_type": "anomaly_scores",
        "learning_type:semi_supervised": True,
        "learning_type:unsupervised": True,
        "capability:univariate": True,
        "capability:multivariate": True,
        "capability:missing_values": True,
        "fit_is_empty": False,
    }

    def __init__(
        self,
        preset: str | None = None,
        patch_length: int | None = None,
        random_state: int = 0,
        settings: dict[str, Any] | None = None,
    ) -> None:
        self.preset = preset
        self.patch_length = patch_length
        self.random_state = random_state
        self.settings = settings
        super().__init__(axis=0)

    def _fit(self, X: NDArray[np.float64], y: Any = None) -> Self:
        self.detector_ = _core.fit(np.asarray(X, dtype=np.float64), self)
        return self

    def _predict(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return _core.scores(self.detector_, np.asarray(X, dtype=np.float64))

    def _fit_predict(self, X: NDArray[np.float64], y: Any = None) -> NDArray[np.float64]:
        self._fit(X, y)
        return self._predict(X)

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> dict[str, Any]:
        """Settings under which aeon's own tests are quick."""
        settings = {"encoders": 1, "widths": (8, 8, 8, 8), "engine": "numpy"}
        return {"patch_length": 8, "settings": settings}
