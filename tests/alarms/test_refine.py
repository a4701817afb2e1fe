from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from vace_ad import VACE
from vace_ad.alarms.blame import Wander
from vace_ad.alarms.phase import same_phase
from vace_ad.alarms.refine import (
    BEHIND,
    REACH,
    core,
    loudest_stretch,
    row_evidence,
    sharpen,
)
from vace_ad.config import VACEConfig
from vace_ad.signals.normal import Normal

N = 3000


class Learnt(NamedTuple):
    """What row evidence asks of a model."""

    config: VACEConfig
    normal: Normal
    wander: Wander
    period: int = 0


HIGH = np.full(N, 2.0)  # above the threshold all through


def noise(seed: int = 0, channels: int = 6, n: int = N) -> np.ndarray:
    """Noisy channels of their own levels and scales."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, channels)) * rng.uniform(0.5, 5, channels) + rng.uniform(
        -20, 20, channels
    )


def learnt(values: np.ndarray) -> Learnt:
    config = VACEConfig(patch_length=24)
    return Learnt(config, Normal.fit([values])[0], Wander.fit([values]))


def runs(*pairs: tuple[int, int]) -> np.ndarray:
    return np.array(pairs, dtype=np.intp).reshape(-1, 2)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("early", "late"), [(0, 0), (23, 23), (-10, 30), (30, -5)])
def test_a_level_fault_in_one_channel_has_its_rows(seed: int, early: int, late: int) -> None:
    """Wherever the rows above the threshold begin and end, within reach."""
    values = noise(seed)
    model, channel = learnt(values[:1500]), seed % 6
    values[2000:2060, channel] += 10 * values[:1500, channel].std()
    found = sharpen(values, runs((2000 - early, 2060 + late)), HIGH, 0, model)  # type: ignore[arg-type]
    assert abs(found[0, 0] - 2000) <= 2
    assert abs(found[0, 1] - 2060) <= 2


def test_neighbours_do_not_overlap() -> None:
    values = noise()
    model = learnt(values[:1500])
    for start in (2000, 2040, 2085):
        values[start : start + 25, 1] += 12 * values[:1500, 1].std()
    given = runs((1995, 2030), (2035, 2070), (2080, 2115))
    found = sharpen(values, given, HIGH, 0, model)  # type: ignore[arg-type]
    assert (found[:, 0] < found[:, 1]).all()
    assert (found[1:, 0] >= found[:-1, 1]).all()
    # The third is held against rows that hold the first two, so its edges are less sharp.
    assert np.abs(found[:2] - runs((2000, 2025), (2040, 2065))).max() <= 2
    assert given.tolist() == [[1995, 2030], [2035, 2070], [2080, 2115]]  # left as it was


def test_no_event_begins_before_the_first_row_or_out_of_reach() -> None:
    values = noise()
    model = learnt(values[:1500])
    values[1955:2300, 2] += 10 * values[:1500, 2].std()
    ratio = np.where((np.arange(N) >= 2000) & (np.arange(N) < 2100), 2.0, 0.1)
    (found,) = sharpen(values, runs((2000, 2100)), ratio, 1990, model)  # type: ignore[arg-type]
    assert found.tolist() == [1990, 2100 + BEHIND]
    (found,) = sharpen(values, runs((2000, 2100)), ratio, 0, model)  # type: ignore[arg-type]
    assert found.tolist() == [1955, 2100 + BEHIND]
    (found,) = sharpen(values, runs((2100, 2200)), np.roll(ratio, 100), 0, model)  # type: ignore[arg-type]
    assert found[0] >= 2100 - REACH
    (found,) = sharpen(values, runs((N - 5, N)), HIGH, 0, model)  # type: ignore[arg-type]
    assert 0 <= found[0] < found[1] <= N


def test_without_a_past_training_stands_in() -> None:
    values = noise()
    model = learnt(values[500:])
    values[10:40, 3] += 12 * values[500:, 3].std()
    (found,) = sharpen(values, runs((5, 50)), HIGH, 0, model)  # type: ignore[arg-type]
    assert np.abs(found - (10, 40)).max() <= 2


def test_missing_cells_say_nothing() -> None:
    values = noise()
    model = learnt(values[:1500])
    values[2000:2040, 1] += 12 * values[:1500, 1].std()
    values[1990:2050, 4] = np.nan
    values[2010:2015, 1] = np.nan
    (found,) = sharpen(values, runs((1990, 2050)), HIGH, 0, model)  # type: ignore[arg-type]
    assert np.abs(found - (2000, 2040)).max() <= 2
    evidence = row_evidence(values, 1950, 2090, 1990, model)  # type: ignore[arg-type]
    assert np.isfinite(evidence).all()


def test_evidence_looks_at_no_row_after_it() -> None:
    values = noise()
    model = learnt(values[:1500])
    values[2000:2020, 0] += 50
    before = row_evidence(values, 1990, 2020, 2000, model)  # type: ignore[arg-type]
    values[2020:] = 1e6
    np.testing.assert_array_equal(
        before,
        row_evidence(values, 1990, 2020, 2000, model),  # type: ignore[arg-type]
    )


def slow_core(evidence: np.ndarray) -> tuple[float, tuple[int, int]]:
    """The most variance that one stretch of a higher level explains, by trying them all."""
    n, best = len(evidence), (0.0, (0, len(evidence)))
    for start in range(n):
        for end in range(start + 1, n + 1):
            inside, rest = evidence[start:end], np.r_[evidence[:start], evidence[end:]]
            if len(rest) and inside.mean() > rest.mean():
                left = ((inside - inside.mean()) ** 2).sum() + ((rest - rest.mean()) ** 2).sum()
                explained = ((evidence - evidence.mean()) ** 2).sum() - left
                best = max(best, (explained, (start, end)))
    return best


@pytest.mark.parametrize("seed", range(10))
def test_the_core_explains_more_than_any_other_stretch(seed: int) -> None:
    evidence = np.maximum(np.random.default_rng(seed).normal(size=40), 0)
    _, wanted = slow_core(evidence)
    assert core(evidence) == wanted
    found = loudest_stretch(evidence)
    assert found is not None
    assert found[0] <= wanted[0] < wanted[1] <= found[1]


def test_the_core_of_many_rows_and_of_few() -> None:
    evidence = np.zeros(5000)  # more than lengths that are tried
    evidence[2000:2400] = 1.0
    start, end = core(evidence)
    assert abs(start - 2000) + abs(end - 2400) <= 5
    assert loudest_stretch(evidence) == (2000, 2400)
    assert core(np.ones(1)) == (0, 1)
    assert loudest_stretch(np.ones(7)) == (0, 7)  # none stands out: all


def test_an_event_lasts_until_it_has_faded_and_a_spike_is_no_more_than_itself() -> None:
    faint = 0.02 * np.random.default_rng(0).random(200)
    fading = faint.copy()
    fading[60:110] += 1.0
    fading[110:140] += 0.3  # a quarter of the height before the core is not the fault yet
    fading[40:60] += 0.2
    assert loudest_stretch(fading) == (60, 140)
    spike = faint.copy()
    spike[60:62] = 2.0
    assert loudest_stretch(spike) == (60, 62)  # though nine in ten rows have less


def test_no_evidence_is_no_stretch() -> None:
    assert loudest_stretch(np.zeros(20)) is None
    assert loudest_stretch(np.r_[np.zeros(9), 3.0, np.zeros(9)]) == (9, 10)


def test_a_run_without_evidence_stays_as_it_was() -> None:
    values = np.zeros((N, 2))
    found = sharpen(values, runs((2000, 2030)), HIGH, 0, learnt(noise(channels=2)))  # type: ignore[arg-type]
    assert found.tolist() == [[2000, 2030]]


@pytest.fixture(scope="module")
def detector() -> VACE:
    return VACE(patch_length=24).fit(noise(channels=4)[:2000])


@pytest.mark.parametrize("row", [2300, 2511, 2800])
def test_a_single_bad_reading_is_its_row(detector: VACE, row: int) -> None:
    values = noise(channels=4)
    values[row, 2] += 40 * values[:2000, 2].std()
    found = detector.detect(values, first=2000)
    strongest = max(found.anomalies, key=lambda event: event.ratio)
    assert strongest.start <= row < strongest.end
    assert strongest.rows <= 3
    assert strongest.shares[0][0] == detector.channels_[2]


def test_a_rhythm_is_held_against_its_own_phase() -> None:
    """A shift of a channel that swings more widely is told from its swings."""
    rng = np.random.default_rng(5)
    period, rows = 96, np.arange(N)
    values = np.stack([10 * np.sin(2 * np.pi * rows / period), np.cos(rows / 7)], axis=1)
    values += 0.1 * rng.normal(size=values.shape)
    start, end = 2300, 2400
    values[start:end, 0] += 8
    known = learnt(values[:1500])._replace(period=period)
    found = sharpen(values, runs((start - 60, end + 60)), HIGH, 0, known)[0]
    assert start <= found[0] < found[1] <= end


def test_what_a_phase_was_before() -> None:
    rows = np.arange(50)
    past = np.stack([rows % 10, -(rows % 10)], axis=1).astype(float)
    at = np.arange(30, 75)
    np.testing.assert_array_equal(same_phase(past, at, 10)[:, 0], at % 10)
    past[40:45] += 100  # one bad period does not count
    np.testing.assert_array_equal(same_phase(past, at, 10)[:, 0], at % 10)


def above(*pairs: tuple[int, int], rest: float = 0.1) -> np.ndarray:
    """Evidence over threshold that is high in some rows."""
    ratio = np.full(N, rest)
    for start, end in pairs:
        ratio[start:end] = 2.0
    return ratio


def test_an_event_lasts_while_the_score_has_not_fallen() -> None:
    """A fault that a score gets used to ends where its rows come back, not where the alarm ends."""
    values = noise()
    model = learnt(values[:1500])
    values[2000:2300, 2] += 10 * values[:1500, 2].std()
    ratio = above((1995, 2060))
    (found,) = sharpen(values, runs((1995, 2060)), ratio, 0, model)  # type: ignore[arg-type]
    assert found.tolist() == [2000, 2060 + BEHIND]
    ratio[2060:2320] = 0.8
    (found,) = sharpen(values, runs((1995, 2060)), ratio, 0, model)  # type: ignore[arg-type]
    assert np.abs(found - (2000, 2300)).max() <= 2
    ratio[:1995] = ratio[2060:] = 0.8  # what is usual is not what is left of an alarm
    (found,) = sharpen(values, runs((1995, 2060)), ratio, 0, model)  # type: ignore[arg-type]
    assert found.tolist() == [2000, 2060 + BEHIND]


def test_a_stuck_channel_has_its_rows_but_not_one_that_often_rests() -> None:
    values = noise()
    values[:, 4] = np.repeat(values[::60, 4], 60)  # moves every 60 rows
    model = learnt(values[:1500])
    values[2000:2070, 3] = values[2000, 3]
    given, ratio = runs((1980, 2090)), above((1980, 2090))
    (found,) = sharpen(values, given, ratio, 0, model)  # type: ignore[arg-type]
    assert np.abs(found - (2000, 2070)).max() <= 2
    values = noise()
    values[:, 4] = np.repeat(values[::60, 4], 60)
    before = row_evidence(values, 1950, 2100, 1980, model, 2090)  # type: ignore[arg-type]
    values[2000:2070, 4] = values[2000, 4]
    after = row_evidence(values, 1950, 2100, 1980, model, 2090)  # type: ignore[arg-type]
    assert after[50:120].mean() < before[50:120].mean() + 0.1


def test_a_value_low_for_a_channel_that_only_peaks_is_evidence() -> None:
    """Ranges have two sides: as far down as others go up is far."""
    values = noise(channels=3)
    rng = np.random.default_rng(1)
    values[:, 1] = 0.1 * rng.normal(size=N) + 5.0 * (rng.random(N) < 0.2)
    model = learnt(values[:1500])
    values[2000:2050, 1] = -2.5 + 0.1 * rng.normal(size=50)
    (found,) = sharpen(values, runs((1985, 2065)), above((1985, 2065)), 0, model)  # type: ignore[arg-type]
    assert np.abs(found - (2000, 2050)).max() <= 2


def test_a_fault_that_shows_in_no_level_keeps_its_run() -> None:
    """Evidence far from the strongest rows is that of something else."""
    values = noise()
    model = learnt(values[:1500])
    values[1957:1960, 2] += 9 * values[:1500, 2].std()
    ratio = above((2000, 2120), rest=0.1)
    ratio[2000:2040] = 1.1
    given = runs((2000, 2120))
    assert sharpen(values, given, ratio, 0, model).tolist() == given.tolist()  # type: ignore[arg-type]
