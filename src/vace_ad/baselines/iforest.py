"""Isolation forest as TSB-AD runs it: fitted on the very rows it scores.

Scaling a channel changes no split of an isolation tree, so TSB-AD's column-wise z-score is left
out. The published numbers have window 1 and random_state 0 whatever the seed of the study.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from vace_ad.baselines.contract import Method
from vace_ad.baselines.windows import centred, windows

_BATCH = 20_000  # samples scored at a time; wide windows would otherwise be copied whole


@dataclass
class IForest:
    """How few random splits isolate a row, averaged over trees."""

    window: int = 1  # rows a sample spans
    trees: int = 25
    max_features: float = 0.8  # share of the columns that a tree sees
    random_state: int = 0

    def fit(self, table: NDArray[np.float64]) -> IForest:
        """Nothing to learn: the method is fitted on what it scores."""
        return self

    def score(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """Fit on the table's rows and score them."""
        from sklearn.ensemble import IsolationForest

        samples = windows(np.asarray(table, dtype=np.float64), self.window)
        forest = IsolationForest(
            n_estimators=self.trees,
            max_features=self.max_features,
            random_state=self.random_state,
        ).fit(samples)
        starts = range(0, len(samples), _BATCH)
        parts = [-forest.score_samples(samples[start : start + _BATCH]) for start in starts]
        return centred(np.concatenate(parts), self.window)


_PUBLISHED = IForest()
_WINDOWED = IForest(window=100)


def _settings(detector: IForest) -> dict[str, object]:
    return {key: value for key, value in asdict(detector).items() if key != "random_state"}


METHODS = (
    Method("iforest", lambda seed: IForest(), asdict(_PUBLISHED), False, "Traditional"),
    Method(
        "iforest-window",
        lambda seed: IForest(window=100, random_state=seed),
        _settings(_WINDOWED),
        category="Traditional",
    ),
)
