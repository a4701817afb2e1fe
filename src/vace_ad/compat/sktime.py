"""VACE as a sktime detector: anomalous rows, and a score for every row."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from vace_ad.compat import _core
from vace_ad.errors import needs

with needs("sktime", "sktime", "the sktime adapter"):
    import pandas as pd
    from sktime.detection.base import BaseDetector


class VACEDetector(BaseDetector):  # type: ignore[misc]
    """Learns from normal rows. `predict` gives the rows of events, `transform_scores` the scores.

    `budget` is how many false alarms are accepted, such as "1 in 1000 rows".

    >>> from vace_ad.compat.sktime import VACEDetector        # doctest: +SKIP
    >>> VACEDetector().fit(train).predict(test)        # doctest: +SKIP
    """

    _tags: ClassVar[dict[str, Any]] = {
        "authors": "vace-ad",
        "maintainers": "vace-ad",
        "task": "anomaly_detection",
        "learning_type": "unsupervised",
        "capability:multivariate": True,
        "capability:missing_values": True,
        "capability:random_state": True,
        "property:randomness": "derandomized",
        "X_inner_mtype": "pd.DataFrame",
        "fit_is_empty": False,
    }

    def __init__(
        self,
        preset: str | None = None,
        patch_length: int | None = None,
        random_state: int = 0,
        budget: str | None = None,
        settings: dict[str, Any] | None = None,
    ) -> None:
        self.preset = preset
        self.patch_length = patch_length
        self.random_state = random_state
        self.budget = budget
        self.settings = settings
        super().__init__()

    def _fit(self, X: Any, y: Any = None) -> Self:
        self.detector_ = _core.fit(_core.columns(X), self)
        return self

    def _predict(self, X: Any) -> pd.Series:
        return pd.Series(_core.alarms(self.detector_, _core.columns(X), self.budget), dtype="int64")

    def _predict_scores(self, X: Any) -> pd.Series:
        values = _core.columns(X)
        found = _core.alarms(self.detector_, values, self.budget)
        return pd.Series(_core.scores(self.detector_, values)[found], name="scores")

    def _transform_scores(self, X: Any) -> pd.DataFrame:
        found = _core.scores(self.detector_, _core.columns(X))
        return pd.DataFrame({"scores": found}, index=getattr(X, "index", None))

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Settings under which sktime's own tests are quick."""
        settings = {"encoders": 1, "widths": (8, 8, 8, 8), "engine": "numpy"}
        quick = {"patch_length": 8, "settings": settings}
        return [quick, {**quick, "budget": "1 in 100 rows", "random_state": 1}]
