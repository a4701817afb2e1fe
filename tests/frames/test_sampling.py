"""The one rule by which times cut a series."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frames.shapes import times
from vace_ad import VACE
from vace_ad.errors import InputError, VaceWarning
from vace_ad.frames.sampling import WINDOW, StepRule, Steps, StepTracker, with_missing
from vace_ad.frames.table import Table

MINUTE = 60 * 10**9
RULE = StepRule.of([times(400)], max_gap=5)


def judged(time: np.ndarray, rule: StepRule = RULE) -> Steps:
    return StepTracker(rule).add(time, len(time))


def jittered(n: int, share: float, seed: int = 0) -> np.ndarray:
    shift = np.random.default_rng(seed).uniform(-share, share, n) * MINUTE
    return times(n) + shift.astype("m8[ns]")


def test_the_rule_is_what_training_shows() -> None:
    assert StepRule(MINUTE, True, 5, (0.75 * MINUTE, 1.25 * MINUTE)) == RULE
    assert RULE.longest == 6.5 * MINUTE
    irregular = StepRule.of([jittered(400, 0.4)], max_gap=5)
    assert not irregular.regular
    assert irregular.longest == 10 * irregular.step
    assert StepRule.of([None, times(1)], max_gap=5) == StepRule(max_gap=5)


def test_rows_that_are_missing_are_counted_up_to_a_length_and_then_time_jumps() -> None:
    keep = np.setdiff1d(np.arange(200), [20, 50, 51, *range(100, 105), *range(150, 156)])
    steps = judged(times(200)[keep])
    assert {int(row): int(steps.missing[row]) for row in np.flatnonzero(steps.missing)} == {
        20: 1,
        49: 2,
        97: 5,
    }
    assert steps.cuts() == [142]
    assert not steps.off.any()


@pytest.mark.parametrize("seed", range(20))
def test_jitter_passes(seed: int) -> None:
    steps = judged(jittered(400, 0.4, seed))
    assert not steps.jumps.any()
    assert not steps.off.any()


@pytest.mark.parametrize("factor", [0.5, 0.7, 1.5, 2, 3, 6, 20])
def test_another_step_is_told_after_a_few_rows_and_until_it_is_over(factor: float) -> None:
    other = times(1) + (np.arange(100) * factor * MINUTE).astype("m8[ns]")
    tracker = StepTracker(RULE)
    off = tracker.add(other, 100).off
    assert off[WINDOW:].all()
    assert off[5:].all() or factor == 20  # two jumps in time are no step yet
    words = {0.5: "30 s", 0.7: "42 s", 1.5: "1 min 30 s", 6: "6 min", 20: "20 min"}
    assert f"every {words.get(factor, f'{factor} min')}, and" in (tracker.trouble or "")
    own = other[-1] + np.timedelta64(MINUTE, "ns") * np.arange(1, 2 * WINDOW)
    assert not tracker.add(own, len(own)).off[-1]
    assert tracker.trouble is None


@given(
    pauses=st.lists(st.sampled_from([0.5, 0.8, 1, 1, 1, 1.2, 2, 3, 9, 100]), max_size=120),
    sizes=st.lists(st.integers(1, 30), min_size=1),
)
def test_chunks_make_no_difference(pauses: list[float], sizes: list[int]) -> None:
    time = times(1) + (np.cumsum([0.0, *pauses]) * MINUTE).astype("m8[ns]")
    whole, tracker, at, parts = judged(time), StepTracker(RULE), 0, []
    while at < len(time):
        size = sizes[len(parts) % len(sizes)]
        other = StepTracker(RULE)
        other.resume(tracker.state())
        tracker, part = other, time[at : at + size]
        parts.append(tracker.add(part, len(part)))
        at += size
    for name in ("missing", "jumps", "off"):
        joined = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_array_equal(joined, getattr(whole, name))


def test_times_that_do_not_go_forward_are_refused_and_change_nothing() -> None:
    tracker = StepTracker(RULE)
    tracker.add(times(10), 10)
    with pytest.raises(InputError, match=r"goes backwards.*\(row 10\)"):
        tracker.add(times(3), 3)
    with pytest.raises(InputError, match=r"time of the row before.*\(row 10\)"):
        tracker.add(times(11)[9:], 2)
    assert not tracker.add(times(20)[10:], 10).jumps.any()


def test_rows_are_put_in_where_they_are_missing() -> None:
    rows = np.arange(8.0)[:, None]
    steps = judged(times(12)[[0, 1, 2, 4, 5, 8, 9, 10]])
    full, told, real = with_missing(rows, steps)
    assert real is not None
    np.testing.assert_array_equal(full[real], rows)
    np.testing.assert_array_equal(np.flatnonzero(~real), [3, 6, 7])
    assert np.isnan(full[~real]).all()
    assert len(told.off) == len(full) == 11


def test_a_missing_row_is_a_row_without_values() -> None:
    rng = np.random.default_rng(0)
    x = np.sin(np.arange(700)[:, None] / [5, 9]) + 0.1 * rng.normal(size=(700, 2))
    detector = VACE(patch_length=16, encoders=1).fit(Table(x[:400], ("a", "b"), times(700)[:400]))
    gone = np.array([60, 61, 130, 200])
    empty = x[400:].copy()
    empty[gone] = np.nan
    there = np.setdiff1d(np.arange(300), gone)
    time = times(700)[400:]
    without = detector.score(Table(empty[there], ("a", "b"), time[there]))
    np.testing.assert_array_equal(without, detector.score(Table(empty, ("a", "b"), time))[there])


def test_a_table_of_another_step_is_refused_and_a_part_of_it_is_said() -> None:
    x = np.random.default_rng(0).normal(size=(900, 2))
    detector = VACE(patch_length=16, encoders=1).fit(Table(x[:400], ("a", "b"), times(400)))
    slow = times(1000)[::2]
    with pytest.raises(InputError, match=r"every 2 min, and the model was .* every 1 min"):
        detector.score(Table(x[400:], ("a", "b"), slow))
    mixed = np.concatenate([times(200), times(200)[-1] + (slow[1:301] - slow[0])])
    with pytest.warns(VaceWarning, match=r"2\d\d of 500 rows have no score.*every 2 min"):
        scores = detector.score(Table(x[400:], ("a", "b"), mixed))
    assert np.isfinite(scores[:200]).all()
    assert np.isnan(scores[-250:]).all()
