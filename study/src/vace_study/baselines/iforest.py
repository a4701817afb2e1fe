"""Isolation forest as TSB-AD runs it: fitted on the very rows it scores.

The published numbers have window 1, random_state 0 whatever the seed of the study, and each row
standardised across its own channels, which erases its amplitude; TSB-AD's code up to release 1.5
does that. Today's code standardises each column instead, which changes no split of a tree and is
therefore left out of `iforest-window`. See docs/errata.md.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from vace_ad.errors import needs
from vace_study.baselines.contract import Method
from vace_study.baselines.windows import centred, windows

_BATCH = 20_000  # samples scored at a time; wide windows would otherwise be copied whole


@dataclass
class IForest:
    """How few random splits isolate a row, averaged over trees."""

    window: int = 1  # rows a sample spans
    across_channels: bool = True  # standardise each sample across its own values
    trees: int = 25
    max_features: float = 0.8  # share of the columns that a tree sees
    random_state: int = 0

    def fit(self, table: NDArray[np.float64]) -> IForest:
        """Nothing to learn: the method is fitted on what it scores."""
        return self

    def score(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """Fit on the table's rows and score them."""
        with needs("scikit-learn", "paper", "the baseline IForest"):
            from sklearn.ensemble import IsolationForest

        samples = windows(np.asarray(table, dtype=np.float64), self.window)
        if self.across_channels and samples.shape[1] > 1:
            samples = _standardised(samples)
        forest = IsolationForest(
            n_estimators=self.trees,
            max_features=self.max_features,
            random_state=self.random_state,
        ).fit(samples)
        starts = range(0, len(samples), _BATCH)
        parts = [-forest.score_samples(samples[start : start + _BATCH]) for start in starts]
        return centred(np.concatenate(parts), self.window)


def _standardised(samples: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each sample with mean 0 and (sample) variance 1; one that does not vary becomes 0."""
    scale = samples.std(axis=1, ddof=1, keepdims=True)
    deviation = samples - samples.mean(axis=1, keepdims=True)
    return np.asarray(deviation / np.where(scale > 0, scale, np.inf))


def _method(name: str, published: IForest, seeded: bool) -> Method:
    settings = asdict(published)
    if seeded:
        settings.pop("random_state")

    def make(seed: int) -> IForest:
        return IForest(**{**asdict(published), **({"random_state": seed} if seeded else {})})

    return Method(name, make, settings, seeded, "Traditional")


METHODS = (
    _method("iforest", IForest(), seeded=False),
    _method("iforest-window", IForest(window=100, across_channels=False), seeded=True),
)
