"""A detector that scores windows side by side, every row of them.

Rows are standardised by the training rows (a constant channel keeps its scale), training windows
have stride 1, scored ones do not overlap; where rows are left over, one more window ends at the
last row and its tail is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vace_ad.errors import ConfigError
from vace_study.baselines.networks.detector import Array, WindowNetwork
from vace_study.baselines.networks.scaling import Scale
from vace_study.baselines.networks.windows import Rule, Starts, place_tiles, split, tile_starts


@dataclass(kw_only=True)
class TiledNetwork(WindowNetwork):
    """`_errors` of a system gives a score for each row of a window: (b, window)."""

    scale_share: ClassVar[float] = 1.0  # of the training rows, from the first, that give the scale

    windows: Rule = "current"  # of training alone: one window for each place it fits
    learning_rate: float
    epochs: int

    def score(self, table: Array) -> Array:
        """Score every row by the one window that holds it."""
        if self.score_stride != 1:
            raise ConfigError(
                f"score_stride={self.score_stride}: {type(self).__name__} scores windows that do "
                "not overlap, so there is nothing to leave out; use 1"
            )
        values = self._checked(table)
        starts = self._score_starts(len(values))
        return self._place(self._window_scores(values, starts), len(values))

    def _learn_scale(self, table: Array) -> None:
        self._scale = Scale.of(table[: max(1, split(len(table), self.scale_share))])

    def _scaled(self, table: Array) -> Array:
        return self._scale(table)

    def _score_starts(self, n_rows: int) -> Starts:
        return tile_starts(n_rows, self.window)

    def _place(self, scores: Array, n_rows: int) -> Array:
        return place_tiles(scores, n_rows)
