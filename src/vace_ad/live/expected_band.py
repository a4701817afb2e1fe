"""Expected values of every channel as rows arrive, as `VACE.expect` for a table."""

from __future__ import annotations

import numpy as np

from vace_ad.alarms.evidence import Baseline
from vace_ad.alarms.watch import AlarmModel
from vace_ad.live.detector import Rows


class ExpectedBand:
    """Expected values and their interval along a stream; a row with a missing cell cuts it."""

    def __init__(self, model: AlarmModel) -> None:
        self._model, self._cells = model, model.cells.begin()
        self._baseline = Baseline(2 * model.n_channels + 1)  # of cells and of the score

    def add(self, rows: Rows) -> tuple[Rows, Rows, Rows]:
        """Expected, lower and upper of the next rows, (n, n_channels) each; NaN for none."""
        found = np.full((3, *rows.shape), np.nan)
        broken = np.isnan(rows).any(axis=1)
        a = 0
        for b in [*np.flatnonzero(broken).tolist(), len(rows)]:
            if b > a:
                part, none = rows[a:b], np.full(b - a, np.nan)  # scores change no expectation
                judged = self._model.judge(part, self._cells.add(part), none, self._baseline)
                found[:, a:b] = judged[2]
            if b < len(rows):
                self._cells = self._model.cells.begin()
            a = b + 1
        return found[0], found[1], found[2]
