from __future__ import annotations

import numpy as np
import pytest

from vace_ad.alarms.pattern import Pattern, drift_distance
from vace_ad.alarms.pattern_tracker import FASTER, LEAST_SLACK, SLACK, START, TOLERANCE, Follower
from vace_ad.alarms.suspects import DriftRange
from vace_ad.signals.baseline_model import Normal


@pytest.fixture(scope="module")
def learned():
    rows = np.random.default_rng(0).normal(size=(800, 3))
    return Normal.fit([rows])[0], DriftRange.fit([rows])


def naive_fits(profile, length, rows, middle, unit):
    """Whether a pattern that begins at the first row still fits at each, by trying all paths."""
    points = len(profile)
    slack = max(LEAST_SLACK, SLACK * length)
    paths, answer = None, []
    for elapsed, row in enumerate(rows):
        allowed = unit + TOLERANCE * np.abs(profile)
        fits = {p for p in range(points) if (np.abs(row - middle - profile[p]) <= allowed[p]).all()}
        if paths is None:
            gone = (np.abs(row - middle) >= START * unit).any()
            paths = {p for p in fits if p <= FASTER and gone}
        else:
            reach = {p + k for p in paths for k in range(FASTER + 1)}
            in_time = {p for p in reach if abs(p * length / points - elapsed) <= slack}
            paths = fits & in_time
        answer.append(bool(paths))
        if not paths:
            break
    return answer


@pytest.mark.parametrize("seed", range(20))
def test_a_row_fits_where_some_path_through_the_profile_does(learned, seed: int) -> None:
    normal, drift_range = learned
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 40))
    profile = np.cumsum(rng.normal(size=(n, 2)), axis=0) + np.array([12.0, -9.0])
    speed = np.arange(0, n, rng.uniform(0.6, 1.7)).astype(int)
    rows = profile[speed] + rng.normal(size=(len(speed), 2)) * 1.5 + normal.mean[[0, 2]]
    pattern = Pattern("x", n, ("a", "c"), profile)
    follower = Follower(pattern, ("a", "b", "c"), normal, drift_range)
    unit = drift_distance(normal, drift_range, normal.mean)[[0, 2]]
    wanted = naive_fits(profile, n, rows, normal.mean[[0, 2]], unit)
    found = []
    for k, row in enumerate(rows):
        found.append(follower.step(row, k) is not None)
        if not found[-1]:
            break
    assert found == wanted
