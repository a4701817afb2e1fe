from __future__ import annotations

import numpy as np

from report.naive_tiles import decode_tile
from vace_ad.report.tiles import FACTOR, TILE, Embedding, embed

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
