import numpy as np
from vace_ad.frames.gaps import run_edges, stretches


def test_complete_rows_are_one_stretch_without_a_copy():
    values = np.ones((5, 2))
    (only,) = stretches(values, 2, 3)
    assert only.start == 0
    assert only.values is values


def test_short_gaps_are_interpolated_and_ends_held():
    values = np.array([np.nan, 1, np.nan, np.nan, 4, np.inf])[:, None]
    (only,) = stretches(values, 2, 1)
    np.testing.assert_allclose(only.values[:, 0], [1, 1, 2, 3, 4, 4])


def test_long_gaps_cut_and_short_stretches_are_left_out():
    values = np.arange(12.0)[:, None].repeat(2, axis=1)
    values[4:7, 1] = np.nan
    values[9, 0] = -np.inf
    found = stretches(values, 0, 3)
    assert [(s.start, len(s.values)) for s in found] == [(0, 4)]
    found = stretches(values, 1, 3)
    assert [(s.start, len(s.values)) for s in found] == [(0, 4), (7, 5)]


def test_a_magnitude_that_would_overflow_counts_as_missing():
    values = np.array([1.0, 1e200, 3.0])[:, None]
    (only,) = stretches(values, 1, 1)
    np.testing.assert_allclose(only.values[:, 0], [1, 2, 3])


def test_the_given_table_is_not_changed():
    values = np.array([[1.0], [np.nan], [3.0]])
    stretches(values, 5, 1)
    assert np.isnan(values[1, 0])


def test_run_edges():
    mask = np.array([1, 1, 0, 1], bool)
    np.testing.assert_array_equal(run_edges(mask), [[0, 2], [3, 4]])
    assert run_edges(np.zeros(3, bool)).shape == (0, 2)
