"""Expected values of a table: curves to draw, and the table of `VACE.expect`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.alarm_model import Expected
from vace_ad.alarms.evidence import UNIT
from vace_ad.alarms.suspects import Blame, blame, suspicion, weighed
from vace_ad.frames.idle import idle_rows
from vace_ad.frames.sampling import StepTracker
from vace_ad.frames.segments import missing_cells, run_edges

if TYPE_CHECKING:
    from vace_ad.alarms.learned import Learned
    from vace_ad.frames.table import Table

Array = NDArray[np.float64]

SLAB = 4096  # rows judged at a time


def expected_cells(
    model: Learned, table: Table, channels: Sequence[int], kind: str = "float64"
) -> tuple[Array, Expected]:
    """Nats of some channels' cells, and what they should have been, (n_rows, k) each.

    NaN where a row is incomplete. The baseline goes on across gaps, as that of alarms does.
    """
    n, place = len(table), np.asarray(channels, np.intp)
    found = np.full((4, n, len(place)), np.nan, kind)
    baseline = model.alarm.baseline()
    for start, end in _complete(model, table):
        cells = model.alarm.cells.begin()
        for a in range(start, end, SLAB):
            b = min(a + SLAB, end)
            rows = table.block(a, b)
            none = np.full(len(rows), np.nan)  # scores change no expectation
            nats, _, expected = model.alarm.judge(rows, cells.add(rows), none, baseline)
            now, past = np.split(nats, 2, axis=1)
            found[0, a:b] = (now + past)[:, place] / UNIT
            found[1:, a:b] = [each[:, place] for each in expected]
    return found[0], Expected(*found[1:])


def expected_columns(model: Learned, table: Table, names: Sequence[str]) -> dict[str, Array]:
    """Values, expected values and intervals of the first channels, which have these names."""
    _, expected = expected_cells(model, table, range(len(names)))
    columns: dict[str, Array] = {}
    for i, name in enumerate(names):
        columns[name] = table.values[:, i]
        for words, curve in expected._asdict().items():
            columns[f"{name} {'expected' if words == 'value' else words}"] = curve[:, i]
    return columns


def explain_rows(model: Learned, table: Table, start: int, end: int, period: int) -> Blame:
    """Each channel's share of what happened in rows [start, end)."""
    found = suspicion(table.values, start, end, model.normal, model.drift_range, period)
    nats = expected_cells(model, table[:end], range(len(table.names)))[0][start:]
    known = np.isfinite(nats[:, 0])
    if known.any():
        found = weighed(found, nats[known].mean(axis=0))
    return blame(table.names, np.where(model.watched, found, 0.0))


def _complete(model: Learned, table: Table) -> list[tuple[int, int]]:
    """Rows [start, end) that follow each other and miss nothing."""
    n = len(table)
    whole = np.empty(n, bool)
    for a in range(0, n, SLAB):
        b = min(a + SLAB, n)
        whole[a:b] = ~missing_cells(table.block(a, b)).any(axis=1)
    whole &= ~idle_rows(model.idle, table.block(0, n), table.time, table.zone).any
    edges = np.unique([0, *StepTracker(model.step_rule).add(table.time, n).cuts(), n])
    return [
        (a + low, a + high)
        for a, b in pairwise(edges.tolist())
        for low, high in run_edges(whole[a:b]).tolist()
    ]
