"""What every channel should be while rows come, as `VACE.expect` says of a table."""

from __future__ import annotations

import numpy as np

from vace_ad.alarms.evidence import Baseline
from vace_ad.alarms.watch import WIDTH, AlarmModel
from vace_ad.live.core import Rows


class ExpectedBand:
    """Expected values and their interval along a stream; a row with a missing cell cuts it."""

    def __init__(self, model: AlarmModel) -> None:
        self._model = model
        self._begin()

    def _begin(self) -> None:
        self._cells = self._model.cells.begin()
        self._baseline = Baseline(2 * self._model.n_channels)

    def add(self, rows: Rows) -> tuple[Rows, Rows, Rows]:
        """Expected, lower and upper of the next rows, (n, n_channels) each; NaN for none."""
        expected, reach = np.full_like(rows, np.nan), np.full_like(rows, np.nan)
        broken = np.isnan(rows).any(axis=1)
        a = 0
        for b in [*np.flatnonzero(broken).tolist(), len(rows)]:
            if b > a:
                expected[a:b], reach[a:b] = self._whole(rows[a:b])
            if b < len(rows):
                self._begin()
            a = b + 1
        return expected, expected - reach, expected + reach

    def _whole(self, rows: Rows) -> tuple[Rows, Rows]:
        """Of complete rows; the same arithmetic as `AlarmModel.cells_of`."""
        cells, d = self._model.cells, self._model.n_channels
        found = self._cells.add(rows)
        mean, spread = self._baseline.follow(np.concatenate([found.now, found.past], axis=1))
        unit = cells.spread * cells.scale
        expected: Rows = rows - (found.now - mean[:, :d]) * unit
        reach: Rows = WIDTH * spread[:, :d] * unit
        constant = ~cells.varies
        expected[:, constant], reach[:, constant] = cells.mean[constant], 0.0
        return expected, reach
