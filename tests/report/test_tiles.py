from __future__ import annotations

import numpy as np
import pytest

from report.naive_tiles import decode_tile
from vace_ad.report.tiles import BLOCK, encode_tile


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
