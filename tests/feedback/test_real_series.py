"""A maintenance planted several times in real rows: accepted once, it alarms no more."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from vace_ad import VACE

pytestmark = pytest.mark.data
LENGTH, SIZE = 50, 15


def test_a_planted_maintenance_in_a_real_machine(data_folder) -> None:
    path = next(data_folder.glob("001_Genesis_*.parquet"))
    train = int(path.name.split("_tr_")[1].split("_")[0])
    table = pl.read_parquet(path)
    faulty = np.flatnonzero(table["Label"].to_numpy())
    values = table.drop("Label").to_numpy().astype(np.float64)[: train + 5400]
    spread = values[:train].std(axis=0)
    chosen = np.flatnonzero(spread > 0.01 * np.ptp(values, axis=0))[:3]
    free = [
        row
        for row in range(train + 600, train + 5200, 900)
        if not ((faulty > row - 200) & (faulty < row + 300)).any()
    ]
    shape = np.clip(np.arange(LENGTH) / 3, 0, 1)[:, None]  # (n_rows, 1)
    for row in free:
        values[row : row + LENGTH, chosen] += SIZE * spread[chosen] * shape
    detector = VACE(random_state=0).fit(values[:train])
    rows = values[train:]

    def touched(events) -> np.ndarray:
        starts = np.array(free) - train
        return np.array([any(e.start < a + LENGTH and e.end > a for e in events) for a in starts])

    before = touched(detector.detect(rows).events)
    assert before.sum() >= 3
    first = free[int(np.argmax(before))] - train
    detector.accept((first, first + LENGTH), rows)
    found = detector.detect(rows)
    assert touched(found.accepted).all()  # every one is recognised
    assert (touched(found.events) & before).sum() <= 0.25 * before.sum()
