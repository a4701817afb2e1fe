"""The two window rules against loops that spell them out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vace_ad.errors import ConfigError, TooShortError
from vace_study.baselines.networks import windows


def rows_of(table, starts, length):
    return [table[start : start + length].tolist() for start in starts]


def published_by_loop(table, window):
    """One window for every row; those that would run over the end are all the last one."""
    found = []
    for i in range(len(table)):
        if i < len(table) - window:
            found.append([table[i + j].tolist() for j in range(window)])
        else:
            found.append([table[len(table) - window + j].tolist() for j in range(window)])
    return found


sizes = st.tuples(st.integers(1, 7), st.integers(0, 20), st.integers(1, 4))


@given(sizes)
def test_reconstruction_windows(size):
    window, more, _ = size
    table = np.random.default_rng(0).normal(size=(window + more, 2))
    published = windows.reconstruction_starts(len(table), window, "published")
    assert rows_of(table, published, window) == published_by_loop(table, window)
    current = windows.reconstruction_starts(len(table), window, "current")
    expected = [
        table[i : i + window].tolist() for i in range(len(table)) if i + window <= len(table)
    ]
    assert rows_of(table, current, window) == expected


@given(sizes)
def test_forecast_windows_and_their_rows(size):
    window, more, horizon = size
    n = window + horizon + more
    starts = windows.forecast_starts(n, window, horizon)
    assert starts.tolist() == [i for i in range(n) if i + window + horizon <= n]
    scores = np.arange(1.0, len(starts) + 1)
    placed = windows.place_forecast(scores, window, horizon)
    by_loop = [scores[0]] * n
    for i, score in zip(starts, scores, strict=True):
        by_loop[i + window + horizon - 1] = score
    assert placed.tolist() == by_loop


@given(sizes)
def test_reconstruction_scores_and_their_rows(size):
    window, more, _ = size
    n = window + more
    first = np.arange(float(n))
    assert windows.place_reconstruction(first, window, "published").tolist() == first.tolist()
    scores = np.arange(float(more + 1))
    front = -(-(window - 1) // 2)  # ceil
    by_loop = [scores[0]] * front + list(scores) + [scores[-1]] * ((window - 1) // 2)
    assert windows.place_reconstruction(scores, window, "current").tolist() == by_loop


@given(sizes)
def test_scores_of_the_last_row_under_both_rules(size):
    window, more, _ = size
    n = window + more
    for rule in ("published", "current"):
        starts = windows.reconstruction_starts(n, window, rule)
        scores = starts + window - 1.0  # the score of a window is the number of its last row
        expected = np.maximum(np.arange(n), window - 1)
        np.testing.assert_array_equal(windows.place_last_row(scores, window, n), expected)


@given(sizes)
def test_tiles_cover_every_row_once(size):
    window, more, _ = size
    n = window + more
    starts = windows.tile_starts(n, window)
    values = starts[:, None] + np.arange(window) + 0.0  # the value of a row is its number
    np.testing.assert_array_equal(windows.place_tiles(values, n), np.arange(n))
    assert starts[-1] + window == n


def test_published_windows_are_raw_and_current_ones_standardised_by_their_own_table(rng):
    table = 50 + 7 * rng.normal(size=(30, 3))
    table[:, 1] = 4.0
    assert windows.scaled(table, "published") is table
    scaled = windows.scaled(table, "current")
    for channel in (0, 2):
        column = table[:, channel]
        mean = sum(column) / 30
        deviation = (sum((x - mean) ** 2 for x in column) / 30) ** 0.5
        np.testing.assert_allclose(scaled[:, channel], [(x - mean) / deviation for x in column])
    np.testing.assert_array_equal(scaled[:, 1], 0)
    assert windows.moments(table)[1][1] == 1e-8


def test_thinned_windows_are_evenly_spaced():
    starts = np.arange(100)
    assert windows.thinned(starts, None) is starts
    assert windows.thinned(starts, 100) is starts
    assert windows.thinned(starts, 4).tolist() == [0, 33, 66, 99]
    with pytest.raises(ConfigError, match="max_train_windows=0"):
        windows.thinned(starts, 0)


@pytest.mark.parametrize("stride", [1, 2, 3, 50])
def test_a_stride_keeps_the_ends_and_draws_straight_lines(stride):
    places = windows.strided(11, stride)
    assert places[0] == 0
    assert places[-1] == 10
    assert set(range(0, 11, stride)) <= set(places.tolist())
    line = 3.0 + 2.0 * np.arange(11)
    np.testing.assert_allclose(windows.interpolated(places, line[places], 11), line)


def test_what_cannot_be_is_refused():
    with pytest.raises(TooShortError, match="4 rows came, this method needs at least 5"):
        windows.reconstruction_starts(4, 5, "published")
    with pytest.raises(TooShortError, match="at least 6"):
        windows.forecast_starts(5, 5, 1)
    with pytest.raises(TooShortError, match="at least 5"):
        windows.tile_starts(4, 5)
    with pytest.raises(ConfigError, match="score_stride=0"):
        windows.strided(5, 0)
    with pytest.raises(ConfigError, match="windows='old'"):
        windows.check_rule("old")
