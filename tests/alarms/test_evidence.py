from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive_alarms import baseline as naive_baseline
from naive_alarms import nats_of_distance
from vace_ad.alarms.constants import (
    BASELINE_BLOCK,
    BASELINE_CLIP,
    BASELINE_HALF_LIFE,
    MOST_NATS,
    TAIL_SHARE,
    WARM_UP,
)
from vace_ad.alarms.evidence import GRID, UNIT, Baseline, Surprise, judge_side_by_side, whole

BLOCKS = BASELINE_HALF_LIFE // BASELINE_BLOCK


def normal_rows(n: int, d: int = 3, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d))


def heavy_rows(n: int, d: int = 3, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_t(3, size=(n, d))


# ------------------------------------------------------------------------ baseline


def test_the_first_block_is_judged_by_the_training() -> None:
    rows = 5 + normal_rows(BASELINE_BLOCK)
    np.testing.assert_array_equal(Baseline(3).add(rows), rows)


def test_a_level_is_followed_by_half_in_a_half_life() -> None:
    baseline = Baseline(1)
    baseline.add(np.zeros((WARM_UP, 1)))
    shift = 0.5 * BASELINE_CLIP  # no row is clipped
    baseline.add(np.full((BASELINE_HALF_LIFE, 1), shift))
    left = shift * 0.5 ** (BLOCKS * BASELINE_BLOCK / BASELINE_HALF_LIFE)
    assert baseline.mean[0] == pytest.approx(shift - left)


def test_the_warm_up_is_a_plain_mean_in_which_the_training_counts_as_some_rows() -> None:
    baseline = Baseline(1)
    baseline.add(np.ones((WARM_UP, 1)))
    assert baseline.mean[0] == pytest.approx(0.5)


def test_rows_of_a_block_share_a_baseline_and_do_not_judge_themselves() -> None:
    rows = np.concatenate([np.full((BASELINE_BLOCK, 1), 2.0), np.zeros((2 * BASELINE_BLOCK, 1))])
    found = Baseline(1).add(rows)[:, 0].reshape(3, BASELINE_BLOCK)
    assert (found == found[:, :1]).all()
    assert found[0, 0] == 2
    assert found[1, 0] < 0  # the block before pulled the mean up
    assert found[1, 0] < found[2, 0] < 0  # and its pull fades


def test_one_wild_row_pulls_no_more_than_the_clip() -> None:
    mild, wild = Baseline(1), Baseline(1)
    rows = np.zeros((BASELINE_BLOCK, 1))
    rows[3] = BASELINE_CLIP
    mild.add(rows)
    rows[3] = 1e9
    wild.add(rows)
    assert wild.mean[0] == mild.mean[0] > 0
    assert wild.variance[0] == mild.variance[0]


def test_the_spread_grows_but_never_counts_as_less_than_the_trainings() -> None:
    calm, loud = Baseline(1), Baseline(1)
    calm.add(0.1 * normal_rows(4 * BASELINE_HALF_LIFE, 1))
    loud.add(3 * normal_rows(4 * BASELINE_HALF_LIFE, 1))
    assert calm.spread[0] == 1 > calm.variance[0]
    assert loud.spread[0] == pytest.approx(3, rel=0.1)


@pytest.mark.parametrize("n", [0, BASELINE_BLOCK, WARM_UP, WARM_UP + BASELINE_BLOCK, 300])
def test_the_baseline_against_loops(n: int) -> None:
    rows, found = 1 + 2 * heavy_rows(n), Baseline(3)
    found.add(rows)
    how = (BASELINE_BLOCK, BASELINE_HALF_LIFE, WARM_UP, WARM_UP, BASELINE_CLIP)
    mean, variance = zip(*(naive_baseline(rows[:, i], *how) for i in range(3)), strict=True)
    np.testing.assert_allclose(found.mean, mean)
    np.testing.assert_allclose(found.variance, variance)
    one = normal_rows(1)
    expected = (one[0] - mean) / np.sqrt(np.maximum(variance, 1))
    np.testing.assert_allclose(found.add(one)[0], expected)


@pytest.mark.parametrize(("level", "follows"), [(0.49, False), (0.51, True), (-0.51, True)])
def test_a_level_two_standard_errors_off_is_followed(level: float, follows: bool) -> None:
    """Of 16 rows, with a spread of 1: the standard error is a quarter."""
    baseline = Baseline(1)
    baseline.resume(baseline.state() | {"full": np.full((BASELINE_BLOCK, 1), level)})
    baseline.follow_level()
    assert baseline.mean.tolist() == [level if follows else 0.0]
    assert baseline.variance.tolist() == [1.0]


def test_without_rows_there_is_no_level_to_follow() -> None:
    baseline = Baseline(2)
    baseline.follow_level()
    assert baseline.mean.tolist() == [0.0, 0.0]


@given(st.lists(st.integers(0, 200), max_size=8))
def test_the_same_bits_in_chunks(cuts: list[int]) -> None:
    rows, baseline = heavy_rows(200), Baseline(3)
    parts = [baseline.add(part) for part in np.split(rows, sorted(cuts))]
    np.testing.assert_array_equal(np.concatenate(parts), Baseline(3).add(rows))


@pytest.mark.parametrize("at", [0, 5, BASELINE_BLOCK, 101])
def test_a_baseline_resumes(at: int) -> None:
    rows, stream, other = heavy_rows(200), Baseline(3), Baseline(3)
    stream.add(rows[:at])
    other.add(rows[50:90])  # is forgotten
    other.resume({name: array.copy() for name, array in stream.state().items()})
    np.testing.assert_array_equal(other.add(rows[at:]), Baseline(3).add(rows)[at:])
    columns = np.array([1])
    stream.add(rows[at:])
    stream.adopt(columns)
    other.adopt(columns)
    np.testing.assert_array_equal(stream.mean, other.mean)


def test_a_state_is_a_copy_of_that_moment() -> None:
    baseline, rows = Baseline(3), heavy_rows(200)
    baseline.add(rows[:100])
    state = baseline.state()
    baseline.add(rows[100:])
    baseline.adopt(np.arange(3))
    baseline.resume(state)
    np.testing.assert_array_equal(baseline.add(rows[100:]), Baseline(3).add(rows)[100:])


def test_a_state_of_another_width_is_refused() -> None:
    with pytest.raises(ValueError, match="another number of channels"):
        Baseline(2).resume(Baseline(3).state())


def test_adopting_takes_the_level_and_spread_of_the_last_rows_of_these_columns() -> None:
    baseline = Baseline(3)
    rows = normal_rows(6 * BASELINE_BLOCK)
    baseline.add(rows)
    before = baseline.mean
    stay = 40 + 2 * normal_rows(2 * BASELINE_BLOCK, seed=1)
    baseline.add(stay)
    slow = baseline.mean
    baseline.adopt(np.array([0, 2]))
    last = stay[BASELINE_BLOCK:]
    np.testing.assert_allclose(baseline.mean[[0, 2]], last.mean(axis=0)[[0, 2]])
    np.testing.assert_allclose(baseline.variance[[0, 2]], last.var(axis=0)[[0, 2]])
    assert baseline.mean[1] == slow[1]
    assert abs(slow[1] - before[1]) < 1  # what was not adopted follows slowly
    assert np.abs(baseline.add(stay)[:, [0, 2]]).max() < 8


# ------------------------------------------------------------------------ surprise


def test_nats_are_whole_numbers() -> None:
    assert whole(1.0) == UNIT
    assert whole(np.array([0.0, 0.25, -2.0])).tolist() == [0, UNIT // 4, -2 * UNIT]
    assert whole(1.0).dtype == np.int64
    found = Surprise.fit([normal_rows(500)]).of(heavy_rows(50))
    assert found.dtype == np.int64
    assert found.sum() == found[::-1].sum() == sum(found.ravel().tolist())


@pytest.mark.parametrize("n", [1, 3, 60, 200, 251, 400])
@pytest.mark.parametrize("made", [normal_rows, heavy_rows])
def test_tables_against_loops(made, n: int) -> None:
    rows = np.column_stack([made(n, 1), made(n, 1, seed=4) ** 3, 3 + made(n, 1), np.ones(n)])
    rows[: n // 2, 0] = 0.0
    found = Surprise.fit([rows[: n // 3], rows[n // 3 :]]).table / UNIT
    for i, column in enumerate(np.abs(rows).T):
        expected = [nats_of_distance(column.tolist(), x, TAIL_SHARE, MOST_NATS) for x in GRID[::3]]
        np.testing.assert_allclose(found[::3, i], expected, atol=1 / UNIT)


def test_distances_are_tabulated_in_fine_steps_where_normal_rows_are() -> None:
    np.testing.assert_allclose(GRID[:121], np.arange(121) / 20)
    assert len(GRID) == 200
    np.testing.assert_allclose(np.diff(np.log(GRID[120:])), math.log(1e4 / 6) / 79)


def test_nats_between_two_points_of_the_table_are_interpolated() -> None:
    table = whole(np.column_stack([np.sqrt(GRID), 2 * np.sqrt(GRID)]))
    points = np.concatenate([GRID, (GRID[1:] + GRID[:-1]) / 2, GRID[:-1] + 0.01, [2e4]])
    found = Surprise(table).of(np.column_stack([points, -points]))
    for i in range(2):
        expected = np.interp(points, GRID, table[:, i])
        assert np.abs(found[:, i] - expected).max() <= 0.5


@pytest.mark.parametrize("made", [normal_rows, heavy_rows])
def test_farther_is_never_less_surprising(made) -> None:
    surprise = Surprise.fit([made(2000, 2), made(1000, 2, seed=1)])
    distances = np.concatenate([np.linspace(0, 12, 5000), np.geomspace(12, 1e6, 2000)])
    found = surprise.of(np.stack([distances, -distances], axis=1))
    assert (np.diff(found, axis=0) >= 0).all()
    assert (found >= 0).all()
    assert found[0].max() < UNIT / 10  # of no distance at all


def test_both_sides_count_alike() -> None:
    surprise, rows = Surprise.fit([heavy_rows(1000)]), heavy_rows(100, seed=5)
    np.testing.assert_array_equal(surprise.of(rows), surprise.of(-rows))


@pytest.mark.parametrize("scale", [0.01, 0.5, 1.0])
def test_never_more_than_a_normal_distribution_gives(scale: float) -> None:
    """Held-out rows that hardly moved do not make a common distance surprising."""
    surprise = Surprise.fit([scale * normal_rows(3000, 1)])
    distances = np.linspace(0, 5.9, 60)
    found = surprise.of(distances[:, None])[:, 0] / UNIT
    most = [-math.log(math.erfc(x / math.sqrt(2))) for x in distances]
    assert (found <= np.array(most) + 0.05).all()


def test_heavy_tails_make_far_rows_less_surprising() -> None:
    far = np.array([[6.0]])
    heavy, light = Surprise.fit([heavy_rows(5000, 1)]), Surprise.fit([normal_rows(5000, 1)])
    assert heavy.of(far)[0, 0] < light.of(far)[0, 0] / 2


def test_no_cell_has_more_than_the_cap() -> None:
    surprise = Surprise.fit([normal_rows(2000)])
    for far in (1e2, 1e6, 1e300, np.inf):
        assert (surprise.of(np.full((1, 3), far)) == MOST_NATS * UNIT).all()


@pytest.mark.parametrize(("made", "scale"), [(normal_rows, 1.0), (heavy_rows, 1.0),
                                             (normal_rows, 4.0)])  # fmt: skip
def test_normal_rows_not_seen_have_about_exponential_nats(made, scale: float) -> None:
    surprise = Surprise.fit([scale * made(20_000, 1)])
    found = surprise.of(scale * made(100_000, 1, seed=1))[:, 0] / UNIT
    assert found.mean() == pytest.approx(1, abs=0.05)
    for nats in (0.5, 1, 2, 3, 5, 7):
        assert (found > nats).mean() == pytest.approx(math.exp(-nats), rel=0.35), nats


def test_columns_have_tables_of_their_own() -> None:
    rows = np.column_stack([normal_rows(5000, 1), 5 * normal_rows(5000, 1, seed=1)])
    found = Surprise.fit([rows]).of(np.array([[5.0, 5.0]]))[0] / UNIT
    assert found[0] > 8
    assert found[1] == pytest.approx(-math.log(math.erfc(1 / math.sqrt(2))), abs=0.1)


@pytest.mark.parametrize("n", [1, 3, 20])
def test_few_held_out_rows_give_finite_nats(n: int) -> None:
    surprise = Surprise.fit([normal_rows(n)])
    found = surprise.of(np.linspace(0, 100, 50)[:, None] * np.ones(3))
    assert (np.diff(found, axis=0) >= 0).all()
    assert found.max() <= MOST_NATS * UNIT


def test_stretches_side_by_side_have_the_bits_of_each_alone() -> None:
    stretches = [heavy_rows(n) for n in (1500, 1499, 40)]
    wanted = [Baseline(each.shape[1]).add(each) for each in stretches]
    judge_side_by_side(stretches)
    for found, alone in zip(stretches, wanted, strict=True):
        np.testing.assert_array_equal(found, alone)
