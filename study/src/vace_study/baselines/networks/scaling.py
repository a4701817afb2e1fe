"""Standardisation by given rows, as scikit-learn has it: a constant channel keeps its scale.

TSB-AD's own loaders divide by 1e-8 there instead; that rule stands in `windows`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vace_ad.errors import InputError

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Scale:
    """Mean and standard deviation of each channel, of some rows; applied to any."""

    mean: Array  # (n_channels,)
    deviation: Array  # (n_channels,), 1 where the channel did not vary

    @classmethod
    def of(cls, rows: Array) -> Scale:
        """The scale of these rows."""
        mean, deviation = rows.mean(axis=0), rows.std(axis=0)
        # A constant channel has a deviation of rounding errors, not of 0.
        still = deviation <= 10 * np.finfo(np.float64).eps * np.maximum(np.abs(mean), 1)
        return cls(mean, np.where(still, 1.0, deviation))

    def __call__(self, rows: Array) -> Array:
        """The rows in deviations from the mean."""
        if rows.shape[1] != len(self.mean):
            raise InputError(
                f"a table of {rows.shape[1]} channels came, the fit had {len(self.mean)}; "
                "score the same channels or fit again"
            )
        return np.asarray((rows - self.mean) / self.deviation)
