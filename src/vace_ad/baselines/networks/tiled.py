"""A detector that scores every row of windows laid side by side, the last one up to the end.

Its rows are standardised by training rows, and the weights of the best epoch are kept.
"""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from vace_ad.baselines.networks.detector import WindowNetwork
from vace_ad.baselines.networks.scaling import Scale
from vace_ad.baselines.networks.windows import (
    Starts,
    place_tiles,
    reconstruction_starts,
    split,
    tile_starts,
)
from vace_ad.errors import ConfigError

Array = NDArray[np.float64]


@dataclass(kw_only=True)
class TiledNetwork(WindowNetwork, ABC):
    """Learns on overlapping windows, scores windows that do not overlap.

    `_errors` gives the score of each row of each window: (b, window).
    """

    keep = "best"
    least_gain = 0.0
    scale_share: ClassVar[float] = 1.0  # of the training rows, from the first, that give the scale

    def score(self, table: Array) -> Array:
        """Score every row by the window it lies in."""
        if self.score_stride != 1:
            raise ConfigError(
                f"score_stride={self.score_stride}: the windows of {type(self).__name__} do not "
                "overlap, so none can be left out; must be 1"
            )
        values = self._checked(table)
        starts = self._score_starts(len(values))
        return place_tiles(self._window_scores(values, starts), len(values))

    def _learn_scale(self, table: Array) -> None:
        self._scale = Scale.of(table[: max(1, split(len(table), self.scale_share))])

    def _scaled(self, table: Array) -> Array:
        return self._scale(table)

    def _starts(self, n_rows: int) -> Starts:
        return reconstruction_starts(n_rows, self.window, "current")  # every window, once

    def _score_starts(self, n_rows: int) -> Starts:
        return tile_starts(n_rows, self.window)
