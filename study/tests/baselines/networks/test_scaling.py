"""Standardisation by rows that are given."""

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from vace_ad.errors import InputError
from vace_study.baselines.networks.scaling import Scale


def test_it_is_that_of_scikit_learn_also_for_a_constant_channel():
    rng = np.random.default_rng(0)
    train, series = rng.normal(3, 2, (50, 3)), rng.normal(size=(20, 3))
    train[:, 1] = 0.1  # its sum is not exactly 50 times as much
    expected = StandardScaler().fit(train).transform(series)
    np.testing.assert_allclose(Scale.of(train)(series), expected, rtol=1e-12, atol=1e-12)


def test_other_channels_are_refused():
    with pytest.raises(InputError, match="3 channels came, the fit had 2"):
        Scale.of(np.ones((4, 2)))(np.ones((4, 3)))
