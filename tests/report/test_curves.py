from __future__ import annotations

import numpy as np
import pytest

from report.naive_tiles import decode_tile
from vace_ad.report.curves import (
    BLOCK,
    FACTOR,
    SCREENFUL,
    TILE,
    Embedding,
    coarse_levels,
    drawable,
    embed,
    encode_tile,
)


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("shape", [(1, 1), (1, BLOCK), (1, 2 * BLOCK + 37), (2, BLOCK + 1)])
def test_a_tile_comes_back_within_half_a_step(bits: int, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(shape[1])
    samples = 1e6 + 40 * rng.normal(size=shape).cumsum(axis=1)
    samples[rng.random(shape) < 0.1] = np.nan
    back = np.array(decode_tile(encode_tile(samples, bits), shape[1], shape[0], bits))
    np.testing.assert_array_equal(np.isnan(back), np.isnan(samples))
    for a in range(0, shape[1], BLOCK):
        part, got = samples[:, a : a + BLOCK], back[:, a : a + BLOCK]
        if not np.isnan(part).all():
            half_step = (np.nanmax(part) - np.nanmin(part)) / (2**bits - 2) / 2
            assert np.nanmax(np.abs(part - got)) <= half_step * (1 + 1e-6) + 1e-9


@pytest.mark.parametrize("bits", [8, 16])
def test_a_spike_does_not_cost_quiet_stretches_their_detail(bits: int) -> None:
    samples = np.sin(np.arange(3 * BLOCK) / 9)[None]
    samples[0, 10] = 1e12
    back = np.array(decode_tile(encode_tile(samples, bits), samples.shape[1], 1, bits))
    assert np.abs(back - samples)[0, BLOCK:].max() < 0.005
    assert back[0, 10] == pytest.approx(1e12)


@pytest.mark.parametrize("value", [0.0, -3.5, 1e300, -1e300])
def test_a_constant_and_an_empty_block_survive(value: float) -> None:
    samples = np.full((1, 2 * BLOCK), np.nan)
    samples[0, :BLOCK] = value
    back = np.array(decode_tile(encode_tile(samples, 8), 2 * BLOCK, 1, 8))
    np.testing.assert_array_equal(back, samples)


@pytest.mark.parametrize("n_rows", [1, SCREENFUL, SCREENFUL + 1, 70_001])
def test_every_bin_has_the_lowest_and_highest_of_its_rows(n_rows: int) -> None:
    rng = np.random.default_rng(n_rows)
    column = rng.normal(size=n_rows)
    column[rng.random(n_rows) < 0.3] = np.nan
    column[: n_rows // 8] = np.nan  # whole bins without a number
    levels = coarse_levels(column)
    assert (len(levels) == 0) == (n_rows <= SCREENFUL)
    for k, level in enumerate(levels, start=1):
        size = FACTOR**k
        assert level.shape == (2, -(-n_rows // size))
        for i in range(0, level.shape[1], 7):
            part = [v for v in column[i * size : (i + 1) * size] if v == v]
            low, high = (min(part), max(part)) if part else (np.nan, np.nan)
            np.testing.assert_array_equal(level[:, i], [low, high])


def test_the_coarsest_level_fits_a_screen() -> None:
    assert coarse_levels(np.zeros(1_000_000))[-1].shape[1] <= SCREENFUL


def test_what_cannot_be_drawn_becomes_a_hole() -> None:
    drawn = drawable(np.array([np.inf, -np.inf, np.nan, 1e308, 2.0]))
    np.testing.assert_array_equal(drawn, [np.nan, np.nan, np.nan, 1e300, 2.0])


RNG = np.random.default_rng(0)
COLUMNS = [RNG.normal(size=5 * TILE + 11) for _ in range(4)]
EVENTS = [(2 * TILE + 5, 2 * TILE + 50)]


def size(embedding: Embedding) -> int:
    return sum(len(tile) for series in embedding.tiles for level in series for tile in level)


def test_with_room_enough_every_row_is_there_in_16_bits() -> None:
    embedding = embed(COLUMNS, EVENTS, 10**8)
    assert embedding.bits == 16
    assert embedding.share_of_rows == 1
    assert embedding.finest_complete == 1
    last = decode_tile(embedding.tiles[3][0][5], 11, 1, 16)[0]
    np.testing.assert_allclose(last, COLUMNS[3][-11:], atol=1e-3)


def test_with_less_room_events_come_first_and_the_limit_holds() -> None:
    whole = size(embed(COLUMNS, EVENTS, 10**8))
    embedding = embed(COLUMNS, EVENTS, whole // 4)
    assert size(embedding) <= whole // 4
    assert embedding.bits == 8
    assert 0 < embedding.share_of_rows < 1
    assert embedding.finest_complete == FACTOR
    assert embedding.has_rows_of(EVENTS, range(4))
    assert not embedding.has_rows_of([(0, 1)], range(4))


def test_scores_and_first_channels_come_before_later_ones() -> None:
    whole = size(embed(COLUMNS, EVENTS, 10**8))
    kept = [all(series[0]) for series in embed(COLUMNS, EVENTS, whole // 4).tiles]
    assert kept == sorted(kept, reverse=True)


def test_without_any_room_the_coarsest_level_is_there() -> None:
    embedding = embed(COLUMNS, EVENTS, 0)
    assert embedding.share_of_rows == 0
    assert embedding.finest_complete == FACTOR ** (len(embedding.tiles[0]) - 1)
