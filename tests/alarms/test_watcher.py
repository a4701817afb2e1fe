from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import lfilter

from vace_ad.alarms.calibration import Calibration
from vace_ad.alarms.runs import Rules, runs_above
from vace_ad.alarms.watcher import INFLATED, WITHIN, Fixed, Judged, Sample, Start, Watcher

SPACING = 13  # no divisor of anything that the watcher counts in
RATE = 1e-3
JOIN = Rules(join=SPACING)


def exponential(n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.exponential(size=n)


def remembering(n: int, rng: np.random.Generator) -> np.ndarray:
    """AR(1): neighbours hang together over about a dozen rows."""
    return np.asarray(lfilter([np.sqrt(1 - 0.8**2)], [1, -0.8], rng.normal(size=n + 200)))[200:]


PROCESSES = {"iid": exponential, "ar1": remembering}


def watcher(name: str = "iid", seed: int = 0, rate: float = RATE, n: int = 5000) -> Watcher:
    """As `Alarming` makes it, from held-out scores of the same process."""
    held_out = PROCESSES[name](n, np.random.default_rng(1000 + seed))
    calibration = Calibration.from_scores(held_out, SPACING)
    limit = calibration.threshold_for(rate * n, JOIN)
    sample = Sample(held_out, limit)
    return Watcher(Start.of(sample, sample, rate, SPACING))


def lively(n: int = 4000) -> np.ndarray:
    """Scores with rows that have none, peaks and a level that moves."""
    rng = np.random.default_rng(7)
    scores = rng.exponential(size=n) + np.linspace(0, 2, n)
    scores[rng.integers(0, n, 40)] = np.nan
    scores[1500:1560] = np.nan
    scores[2000:2010] += 30
    return scores


def same(a: Judged, b: Judged) -> None:
    np.testing.assert_array_equal(a.ratio, b.ratio)
    np.testing.assert_array_equal(a.limit, b.limit)


WHOLE = watcher().add(lively())


@settings(deadline=None, max_examples=15)
@given(st.lists(st.integers(0, 700), min_size=1, max_size=12))
def test_chunks_of_any_size_judge_the_same(sizes: list[int]) -> None:
    one, scores = watcher(), lively()
    cuts = np.minimum(np.cumsum(sizes), len(scores))
    parts = [one.add(part) for part in np.split(scores, cuts)]
    same(Judged(*(np.concatenate(each) for each in zip(*parts, strict=True))), WHOLE)


def test_row_by_row_judges_the_same() -> None:
    one = watcher()
    parts = [one.add(row[None]) for row in lively()[:1200]]
    found = Judged(*(np.concatenate(each) for each in zip(*parts, strict=True)))
    same(found, Judged(WHOLE.ratio[:1200], WHOLE.limit[:1200]))


@pytest.mark.parametrize("at", [0, 1, 31, 500, 1530, 2005, 3999])
def test_a_state_goes_on_the_same(at: int) -> None:
    one, two, scores = watcher(), watcher(), lively()
    one.add(scores[:at])
    state = {name: array.copy() for name, array in one.state().items()}
    one.add(np.full(500, 99.0))  # what the first one sees later is not the second one's
    two.resume(state)
    same(two.add(scores[at:]), Judged(WHOLE.ratio[at:], WHOLE.limit[at:]))


@pytest.mark.parametrize("at", [1, 100, 1999, 2500])
def test_later_scores_change_nothing_before(at: int) -> None:
    scores = lively()
    scores[at:] = 1e3 * np.random.default_rng(1).normal(size=len(scores) - at)
    found = watcher().add(scores)
    same(Judged(found.ratio[:at], found.limit[:at]), Judged(WHOLE.ratio[:at], WHOLE.limit[:at]))
    assert not np.array_equal(found.ratio[at:], WHOLE.ratio[at:])


@pytest.mark.parametrize("name", PROCESSES)
def test_alarms_on_clean_scores_keep_to_the_budget(name: str) -> None:
    n, counted = 60_000, 0
    for seed in range(4):
        scores = PROCESSES[name](n, np.random.default_rng(seed))
        counted += len(runs_above(watcher(name, seed).add(scores).ratio, 1.0, JOIN))
    assert 1 / 3 <= counted / (4 * n * RATE) <= 3


@pytest.mark.parametrize("shift", [3.0, -0.5])
def test_a_shift_of_the_whole_level_is_absorbed(shift: float) -> None:
    """Alarms come while it is new; then the budget holds again."""
    n = 40_000
    scores = exponential(n, np.random.default_rng(3))
    scores[5000:] += shift
    judged = watcher().add(scores)
    late = judged.ratio[15_000:]
    assert len(runs_above(late, 1.0, JOIN)) <= 3 * RATE * len(late)
    moved = judged.limit[-1] - judged.limit[4999]
    assert np.sign(moved) == np.sign(shift)


def test_the_ratio_is_one_at_the_limit() -> None:
    scores = lively()
    above = scores > WHOLE.limit
    np.testing.assert_array_equal(above, WHOLE.ratio > 1)
    np.testing.assert_array_equal(np.isnan(WHOLE.ratio), np.isnan(scores))
    assert above[2000:2010].all()


def test_a_few_huge_peaks_do_not_raise_the_threshold_without_bound() -> None:
    clean = exponential(20_000, np.random.default_rng(5))
    limits = []
    for height in (0.0, 1e3, 1e9):
        scores = clean.copy()
        scores[2000:18_000:2000] += height
        limits.append(watcher().add(scores).limit)
    plain, high, huge = limits
    np.testing.assert_allclose(high, huge, rtol=1e-6)  # how high no longer matters
    assert (high <= 1.5 * plain.max()).all()
    scores = clean.copy()
    scores[2000:18_000:2000] += 1e3
    assert (watcher().add(scores).ratio[2000:18_000:2000] > 1).all()


@pytest.mark.parametrize(
    "length",
    [
        50,
        pytest.param(
            150,
            marks=pytest.mark.xfail(
                strict=True, reason="more than a tenth of the window: the spread grows with it"
            ),
        ),
    ],
)
def test_a_fault_does_not_hide_the_next_one(length: int) -> None:
    scores = exponential(2000, np.random.default_rng(2))
    scores[1200 : 1200 + length] += 100
    scores[1600:1620] += 100
    ratio = watcher().add(scores).ratio
    assert ratio[1600:1620].min() > 0.5 * ratio[1200:1220].min()


def test_the_threshold_stays_within_bounds_of_the_first() -> None:
    """Even where every block has a huge peak."""
    start = Start(middle=0.0, spread=1.0, threshold=4.0, rate=RATE, spacing=SPACING)
    for scores in (np.tile(np.r_[np.zeros(SPACING - 1), 1e6], 3000), np.zeros(30_000)):
        one = Watcher(start)
        one.add(scores)
        threshold = one.state()["numbers"][2]
        assert WITHIN[0] * 4.0 <= threshold <= WITHIN[1] * 4.0


def test_what_is_kept_does_not_grow() -> None:
    one = watcher()
    one.add(exponential(60_000, np.random.default_rng(0)))
    size = sum(array.nbytes for array in one.state().values())
    one.add(exponential(32_000, np.random.default_rng(1)))  # as far from the last look as before
    assert sum(array.nbytes for array in one.state().values()) == size


def test_no_rows_and_no_scores() -> None:
    one = watcher()
    assert one.add(np.empty(0)).ratio.shape == (0,)
    first = one.add(np.full(2000, np.nan))
    assert np.isnan(first.ratio).all()
    assert len(np.unique(first.limit)) == 1  # nothing was learned from nothing
    same(one.add(np.ones(5)), watcher().add(np.ones(5)))


def test_a_start_asks_for_more_where_training_does() -> None:
    held_out = exponential(5000, np.random.default_rng(0))
    samples = [Sample(held_out, limit) for limit in (3.0, 9.0, 30.0)]
    thresholds = [Start.of(each, each, RATE, SPACING).threshold for each in samples]
    assert thresholds == sorted(thresholds)
    sample = Sample(np.r_[held_out, np.nan], 9.0)
    start = Start.of(sample, sample, RATE, SPACING)
    assert start.middle == pytest.approx(np.log(2), abs=0.05)
    assert start.spread == pytest.approx(np.log(5), abs=0.1)
    flat = Sample(np.ones(50), 1.0)
    assert Start.of(flat, flat, RATE, SPACING).spread > 0


def test_held_out_scores_are_believed_as_far_as_the_finished_detector_agrees() -> None:
    """The first limit falls from where they differ twofold, and not for ever."""
    scores = exponential(5000, np.random.default_rng(0))
    held_out = Sample(scores, 9.0)

    def limit(factor: float) -> float:
        start = Start.of(held_out, Sample(scores / factor, 9.0 / factor), RATE, SPACING)
        return float(Watcher(start).add(np.zeros(1)).limit[0])

    assert limit(1.0) == limit(1.5) == limit(INFLATED[0]) > limit(4.0) > limit(INFLATED[1])
    assert limit(INFLATED[1]) == pytest.approx(limit(1e6))
    assert limit(1e6) > 0.4 * limit(1.0)


def test_provisional_scores_have_a_start_of_their_own() -> None:
    """Three times as high and twice as wide: their limit lies accordingly."""
    final = exponential(4000, np.random.default_rng(0))
    middle = np.median(final)
    provisional = 3 * middle + 2 * (final - middle)
    start = Start(middle=1.0, spread=0.5, threshold=4.0, rate=RATE, spacing=SPACING)
    live = start.scaled(final, provisional)
    assert (live.middle, live.spread) == (pytest.approx(3.0), pytest.approx(1.0))
    assert live.threshold == start.threshold


def test_fixed_is_a_threshold_and_nothing_else() -> None:
    scores = np.array([0.0, 3.9, 4.0, 4.1, np.nan, 400.0])
    for limit in (4.0, 0.0, -2.0):
        one = Fixed(limit)
        judged = one.add(scores)
        np.testing.assert_array_equal(judged.ratio > 1, scores > limit)
        np.testing.assert_array_equal(judged.limit, limit)
        assert np.isnan(judged.ratio[4])
        assert one.state() == {}
        one.resume({})
        same(one.add(scores), judged)  # it has learned nothing
