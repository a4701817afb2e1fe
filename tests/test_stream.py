"""Scoring in chunks against scoring the whole table: the same bits, whatever the chunks."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vace_ad.frames.gaps import stretches
from vace_ad.method import amplitude, trajectory
from vace_ad.method.chunks import ChunkSignals

from vace_ad import VACE
from vace_ad.engine.patches import fill_skipped, patch_means_to_points
from vace_ad.errors import ConfigError, VaceWarning
from vace_ad.signals.rows import GapFiller, RowBuffer, WindowMeans

SMALL = {"patch_length": 24, "widths": (8, 8, 8, 8), "channel_expansion": 2, "encoders": 2}


def make_rows(n: int, n_channels: int = 3, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    waves = np.sin(np.arange(n)[:, None] / rng.uniform(3, 9, n_channels))
    rows = waves + 0.1 * rng.normal(size=(n, n_channels))
    rows[n // 2 :] += 0.5  # something for drift to get used to
    return rows


def with_gaps(rows: np.ndarray, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    rows = rows.copy()
    for length in (1, 2, 5, 6, 7, 30):
        for _ in range(2):
            start = rng.integers(0, len(rows) - length)
            rows[start : start + length, rng.integers(rows.shape[1])] = np.nan
    rows[rng.integers(0, len(rows), 3), 0] = 1e200
    return rows


def fitted(**settings) -> VACE:
    return VACE(**{**SMALL, "stride": 4, "fit_stride": 4, **settings}).fit(make_rows(500, seed=9))


def in_chunks(detector: VACE, rows: np.ndarray, cuts) -> np.ndarray:
    learned = (detector.shape_, detector.amplitude_, detector.engine, detector.scale_)
    scorer = ChunkSignals(*learned, block=trajectory.BLOCK)
    done = [scorer.add(part) for part in np.split(rows, cuts)]
    return np.concatenate([*done, scorer.finish()], axis=1)


def whole(detector: VACE, rows: np.ndarray) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VaceWarning)  # rows without a score
        return np.stack(list(detector.signals(rows).values()))


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks so small that a short series has several."""
    monkeypatch.setattr(trajectory, "BLOCK", 16)
    monkeypatch.setattr(amplitude, "BLOCK", 64)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"amplitude": False},
        {"direction": False},
        {"velocity": "forward"},
        {"stride": 1},
        {"stride": 12, "fit_stride": 12},
        {"direction": False, "stride": 40},
        {"position": "memory"},
    ],
)
@pytest.mark.parametrize("gaps", [False, True])
def test_chunks_give_the_bits_of_the_whole(settings, gaps):
    detector = fitted(**settings)
    rows = make_rows(1500)
    rows = with_gaps(rows) if gaps else rows
    wanted = whole(detector, rows)
    assert np.isnan(wanted).any() == gaps
    for cuts in ([], [1], range(1, 1500), range(7, 1500, 7), range(333, 1500, 333), [700, 700]):
        found = in_chunks(detector, rows, list(cuts))
        assert np.array_equal(found, wanted, equal_nan=True)


def test_blocks_of_the_usual_size():
    detector = fitted(stride=1, fit_stride=1)
    rows = make_rows(2600)
    assert np.array_equal(in_chunks(detector, rows, range(100, 2600, 100)), whole(detector, rows))


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("n", [0, 1, 23, 24, 25, 47, 48, 60])
def test_short_series(n):
    detector = fitted()
    found = in_chunks(detector, make_rows(1000)[:n], list(range(1, n)))
    assert found.shape == (6, n)
    if n < 24:
        assert np.isnan(found).all()
    else:
        assert np.array_equal(found, whole(detector, make_rows(1000)[:n]))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 7), st.lists(st.integers(0, 80), max_size=6))
def test_gaps_are_filled_as_in_a_whole_table(seed, max_gap, cuts):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(80, 3))
    rows[rng.random((80, 3)) < rng.choice([0.02, 0.3, 0.8])] = np.nan
    filler = GapFiller(max_gap, 3)
    parts = [filler.add(part) for part in np.split(rows, sorted(cuts))]
    found = np.concatenate([*parts, filler.finish()])
    assert len(found) == len(rows)
    wanted = np.full_like(rows, np.nan)
    for stretch in stretches(rows, max_gap, 1):
        wanted[stretch.rows] = stretch.values
    complete = ~np.isnan(found).any(axis=1)
    assert np.array_equal(complete, ~np.isnan(wanted).any(axis=1))
    assert np.array_equal(found[complete], wanted[complete])


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 30), st.integers(1, 9), st.integers(0, 60), st.lists(st.integers(0, 40)))
def test_window_means_are_those_of_a_whole_stretch(window, stride, more, cuts):
    rng = np.random.default_rng(window * stride)
    n_windows = more + 1
    n_rows = n_windows + window - 1
    values = rng.normal(size=(2, (n_windows - 1) // stride + 1))
    means = WindowMeans(window, stride, 2)
    parts = np.split(values, sorted(min(cut, values.shape[1]) for cut in cuts), axis=1)
    done = [means.add(part) for part in parts if part.shape[1]]
    found = np.concatenate([*done, means.finish(n_rows)], axis=1)
    wanted = [
        patch_means_to_points(fill_skipped(line, stride, n_windows), window) for line in values
    ]
    assert np.array_equal(found, np.stack(wanted))


def test_a_buffer_may_skip_rows_to_come():
    buffer = RowBuffer()
    buffer.add(np.arange(3.0))
    buffer.drop(5)
    buffer.add(np.arange(3.0, 4.0))
    buffer.add(np.arange(4.0, 8.0))
    assert buffer.first(9).tolist() == [5, 6, 7]


@pytest.mark.parametrize("preset", ["paper", "released"])
def test_scales_of_the_whole_series_are_refused(preset):
    settings = {**SMALL, "iterations": 1, "pretext_offset": 24}
    detector = VACE(preset=preset, **settings).fit(make_rows(300))
    with pytest.raises(ConfigError, match="in chunks"):
        in_chunks(detector, make_rows(100), [])
