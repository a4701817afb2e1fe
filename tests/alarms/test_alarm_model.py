from __future__ import annotations

import numpy as np

from vace_ad.alarms.alarm_model import FAR, AlarmModel


def test_cells_that_were_learned_while_looking_for_outlying_rows_are_those_of_a_fit() -> None:
    rows = np.random.default_rng(0).normal(size=(600, 3)).cumsum(axis=0) % 7
    watched = np.array([True, True, False])
    parts = [rows[:250], rows[250:]]
    _, learned = AlarmModel.outlying(parts, watched)
    assert learned is not None
    once, anew = AlarmModel.fit(parts, (), watched, learned), AlarmModel.fit(parts, (), watched)
    for name, array in anew.arrays().items():
        np.testing.assert_array_equal(once.arrays()[name], array, err_msg=name)


def test_cells_of_bounded_values_are_not_kept() -> None:
    rows = np.random.default_rng(0).normal(size=(600, 2))
    rows[300, 1] = 3 * FAR
    assert AlarmModel.outlying([rows], np.ones(2, bool))[1] is None
