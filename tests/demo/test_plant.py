from itertools import pairwise

import numpy as np
import pytest
from scipy.signal import lfilter

from vace_ad.demo import simulate
from vace_ad.demo.plant import _lag


def test_the_same_seed_is_the_same_plant():
    first, again, other = simulate(seed=3), simulate(seed=3), simulate(seed=4)
    np.testing.assert_array_equal(first.values, again.values)
    assert first.faults == again.faults
    assert first.faults != other.faults


@pytest.mark.parametrize("seed", range(5))
def test_six_kinds_of_faults_after_training_and_apart(seed):
    plant = simulate(seed=seed)
    assert len({fault.kind for fault in plant.faults}) == 6
    assert plant.labels[: plant.train_rows].sum() == 0
    ordered = sorted(plant.faults, key=lambda fault: fault.start)
    for before, after in pairwise(ordered):
        assert before.end < after.start
    assert ordered[-1].end <= len(plant.values)


def test_sensors_hang_together():
    plant = simulate()
    normal = plant.values[: plant.train_rows]
    correlation = np.corrcoef(normal.T)
    column = {name: i for i, name in enumerate(plant.names)}
    assert correlation[column["pump_speed"], column["pump_current"]] > 0.95
    assert correlation[column["flow"], column["pressure_in"]] < -0.8
    assert np.isfinite(plant.values).all()


def test_training_must_leave_days():
    with pytest.raises(ValueError, match="train_days=30"):
        simulate(days=30, train_days=30)


def test_a_lag_is_scipys_filter(rng):
    x, keep = rng.normal(size=500), np.exp(-1 / 6)
    expected, _ = lfilter([1 - keep], [1, -keep], x, zi=[keep * x[0]])
    np.testing.assert_allclose(_lag(x, 6), expected, rtol=1e-12)
