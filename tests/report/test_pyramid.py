from __future__ import annotations

import numpy as np
import pytest

from vace_ad.report.tiles import FACTOR, SCREENFUL, coarse_levels, drawable


@pytest.mark.parametrize("n_rows", [1, SCREENFUL, SCREENFUL + 1, 70_001])
def test_every_bin_has_the_lowest_and_highest_of_its_rows(n_rows: int) -> None:
    rng = np.random.default_rng(n_rows)
    column = rng.normal(size=n_rows)
    column[rng.random(n_rows) < 0.3] = np.nan
    column[: n_rows // 8] = np.nan  # whole bins without a number
    levels = coarse_levels(column)
    assert (len(levels) == 0) == (n_rows <= SCREENFUL)
    for k, level in enumerate(levels, start=1):
        size = FACTOR**k
        assert level.shape == (2, -(-n_rows // size))
        for i in range(0, level.shape[1], 7):
            part = [v for v in column[i * size : (i + 1) * size] if v == v]
            low, high = (min(part), max(part)) if part else (np.nan, np.nan)
            np.testing.assert_array_equal(level[:, i], [low, high])


def test_the_coarsest_level_fits_a_screen() -> None:
    assert coarse_levels(np.zeros(1_000_000))[-1].shape[1] <= SCREENFUL


def test_what_cannot_be_drawn_becomes_a_hole() -> None:
    drawn = drawable(np.array([np.inf, -np.inf, np.nan, 1e308, 2.0]))
    np.testing.assert_array_equal(drawn, [np.nan, np.nan, np.nan, 1e300, 2.0])
