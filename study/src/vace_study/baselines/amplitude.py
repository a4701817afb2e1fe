"""No model at all: the mean squared raw value of the rows of a window.

It shows what published windows alone are worth. With them a network whose outputs a sigmoid keeps
in 0…1 cannot follow values far above 1, and its error is nearly the squared value itself: on such
series this score gives the published values of USAD and OmniAnomaly to three decimals.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from vace_study.baselines.contract import Method
from vace_study.baselines.networks.windows import (
    Rule,
    check_rule,
    place_reconstruction,
    reconstruction_starts,
    scaled,
)


@dataclass
class RawAmplitude:
    """Mean squared value of a window, over rows and channels."""

    window: int = 100
    windows: Rule = "published"

    def fit(self, table: NDArray[np.float64]) -> RawAmplitude:
        """Nothing to learn."""
        check_rule(self.windows)
        return self

    def score(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """Score every row by its window under the rule."""
        values = np.asarray(table, np.float64)
        starts = reconstruction_starts(len(values), self.window, self.windows)
        squared = (scaled(values, self.windows) ** 2).mean(axis=1)  # (n_rows,)
        # A window's own sum, not a difference of running sums: large values would swallow small.
        means = np.lib.stride_tricks.sliding_window_view(squared, self.window).mean(axis=1)
        return place_reconstruction(means[starts], self.window, self.windows)


METHODS = (
    Method("raw-amplitude", lambda seed: RawAmplitude(), asdict(RawAmplitude()), False, "No model"),
)
