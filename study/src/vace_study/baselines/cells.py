"""The cell model alone: what the alarms of vace-ad rest on, without scan, limits or other evidence.

A row's score is the largest share that a channel has in the row's distance from normal, given the
other channels and the recent past (`vace_ad.signals.cells`); `cells-ewma` charts its exponentially
weighted mean, as an EWMA chart does with single values.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from vace_ad.errors import NotFittedError, TooShortError, needs
from vace_ad.signals.cell_fit import FOLDS, learn
from vace_study.baselines.contract import Method
from vace_study.baselines.limits import LimitAlarms

Array = NDArray[np.float64]


@dataclass
class Cells(LimitAlarms):
    """The largest share of a channel, averaged over the past."""

    weight: float = 1.0  # of the newest row; 1 averages nothing

    def fit(self, table: Array) -> Cells:
        """The joint distribution of rows and their recent past."""
        if len(table) < 2 * FOLDS:
            raise TooShortError(
                f"got {len(table)} training rows; {FOLDS} folds need at least {2 * FOLDS}"
            )
        self.model_ = learn([table]).model
        self.training_scores_ = self.score(table)
        return self

    def score(self, table: Array) -> Array:
        """The share of the worst channel, row by row."""
        return np.asarray(self.contributions(table).max(axis=1))

    def contributions(self, table: Array) -> Array:
        """The share of each channel; none of one that did not vary in training."""
        if not hasattr(self, "model_"):
            raise NotFittedError("the model has no training rows yet; call fit first")
        shares = np.where(self.model_.varies, self.model_.begin().add(table).share, 0.0)
        if self.weight == 1:
            return shares
        with needs("scipy", "paper", "the average over the past"):
            from scipy.signal import lfilter

        return np.asarray(lfilter([self.weight], [1.0, self.weight - 1.0], shares, axis=0))


# Of the model, which changes with the alarms: 2 has modes, and single spikes leave no trace.
_VERSION = 2


def _method(name: str, **settings: float) -> Method:
    told = {"model": "cells", **asdict(Cells(**settings))}
    return Method(name, lambda seed: Cells(**settings), told, False, "Linear", _VERSION)


METHODS = (_method("cells"), _method("cells-ewma", weight=0.2))
