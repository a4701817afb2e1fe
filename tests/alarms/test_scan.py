from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive_alarms import (
    best_shapes,
    excursion_peaks,
    excursions,
    pareto_height,
    scan,
    tail_law,
)
from vace_ad.alarms.constants import (
    CLEAN_SERIES,
    HIGH_PRICE,
    LOW_PRICE,
    MIDDLE_PRICE,
    PEAKS,
    PRIOR_PEAKS,
    PRIOR_SHAPE,
    SCORE_PRICE,
    SCORE_RATE,
    SET_ASIDE,
)
from vace_ad.alarms.evidence import UNIT, whole
from vace_ad.alarms.scan import (
    KINDS,
    NEVER,
    SHAPES,
    WORDS,
    Limits,
    Scanned,
    Tails,
    describe,
    heights,
    outlying,
    prices,
)

D = 3
LINES = 4 * D + 1
NONE_IDLE = np.zeros(LINES, bool)
LOW = [i for i in range(LINES) if describe(i, D).kind in ("relation", "change")]


def noise(n: int, seed: int) -> np.ndarray:
    """Evidence of normal rows: −log of a uniform share; the score is at its level."""
    nats = whole(np.random.default_rng(seed).exponential(size=(n, LINES)))
    nats[:, -1] = -UNIT
    return nats


@pytest.fixture(scope="module")
def tails() -> Tails:
    return Tails.fit([noise(5000, 0), noise(5000, 1)], NONE_IDLE, D)


# -------------------------------------------------------------------------- lines


def test_every_line_has_a_kind_and_its_channel() -> None:
    assert [describe(line, D).channel for line in range(LINES)] == [0, 1, 2] * 4 + [None]
    assert len({describe(line, D) for line in range(LINES)}) == LINES
    for line in range(LINES):
        kind, channel = describe(line, D)
        assert (channel is None) == (kind == "score")
    assert {describe(line, D).kind for line in range(LINES)} == set(KINDS) == set(WORDS)


def test_each_kind_has_its_price() -> None:
    found = {describe(line, D).kind: price / UNIT for line, price in enumerate(prices(D))}
    assert found == {
        "relation": LOW_PRICE, "change": LOW_PRICE, "jump": HIGH_PRICE, "stuck": MIDDLE_PRICE,
        "score": whole(SCORE_PRICE) / UNIT,
    }  # fmt: skip


NATS = st.lists(st.integers(0, 20 * UNIT), min_size=1, max_size=60)


@given(NATS, st.integers(0, 8 * UNIT), st.integers(0, 50 * UNIT))
def test_heights_are_the_recursion(nats: list[int], price: int, before: int) -> None:
    found = heights(np.array(nats)[:, None], np.array([price]), np.array([before]))
    assert found[:, 0].tolist() == scan(nats, price, before)


def test_heights_go_on_where_they_stood() -> None:
    nats, price = noise(300, 2), prices(D)
    whole_scan = heights(nats, price, np.int64(0))
    last = np.zeros(LINES, np.int64)
    for start in range(0, 300, 7):
        found = heights(nats[start : start + 7], price, last)
        np.testing.assert_array_equal(found, whole_scan[start : start + 7])
        last = found[-1]


# -------------------------------------------------------------------------- tails


def test_levels_are_the_sixteenth_highest_peak_of_all_stretches(tails: Tails) -> None:
    stretches = [noise(5000, 0), noise(5000, 1)]
    for line, price in enumerate(prices(D).tolist()):
        peaks = [p for x in stretches for p in excursion_peaks(scan(x[:, line], price))]
        peaks = sorted(peaks, reverse=True)
        if len(peaks) > PEAKS:
            assert tails.level[line] == peaks[PEAKS]
            assert tails.count[line] == PEAKS
    assert tails.n_rows == 10_000


def test_the_mean_excess_lies_between_that_of_the_line_and_of_its_kind(tails: Tails) -> None:
    stretches = [noise(5000, 0), noise(5000, 1)]
    price = int(prices(D)[0])
    own, share = [], []
    for line in range(D):  # the lines of relations
        peaks = [p for x in stretches for p in excursion_peaks(scan(x[:, line], price))]
        above = [p - tails.level[line] for p in sorted(peaks, reverse=True)[:PEAKS]]
        own.append(sum(above) / PEAKS)
        share.append(own[-1] / tails.level[line])
    kind = sorted(share)[1] * tails.level[:D]
    low, high = np.minimum(own, kind), np.maximum(own, kind)
    assert (low - 2 <= tails.excess[:D]).all()
    assert (tails.excess[:D] <= high + 2).all()


LAW = {"most": PEAKS, "prior_peaks": PRIOR_PEAKS, "unit": UNIT}
KIND = [describe(line, D).kind for line in range(LINES)]


def bursts(n: int, seed: int) -> np.ndarray:
    """Excursions of one row, heavy-tailed, at lines of which some hardly ever rise."""
    rng = np.random.default_rng(seed)
    nats = 7 + rng.exponential(size=(n, LINES)) ** 2
    rare = rng.random((n, LINES)) < np.linspace(0.002, 0.2, LINES)[rng.permutation(LINES)]
    rare[:, 0], rare[:, 1], rare[:, 2] = False, np.arange(n) == 9, np.arange(n) < 3
    return whole(np.where(rare, nats, 0.0))


def peaks_of(nats: np.ndarray) -> list[list[int]]:
    return [excursion_peaks(scan(nats[:, i], price)) for i, price in enumerate(prices(D).tolist())]


@pytest.mark.parametrize("n_stretches", [1, 2, 3])
@pytest.mark.parametrize("idle", [(), (4, 12)])
def test_tails_against_loops(n_stretches: int, idle: tuple[int, ...]) -> None:
    parts = [bursts(150, seed) for seed in range(n_stretches)]
    asleep = np.isin(np.arange(LINES), idle)
    found = Tails.fit([parts[0][:0], *parts], asleep, D)
    stretches = [peaks_of(part) for part in parts]
    peaks = [[top for stretch in stretches for top in stretch[line]] for line in range(LINES)]
    level, excess, count = tail_law(peaks, KIND, asleep, **LAW)
    assert {0, PEAKS} < {max(n - 1, 0) for n in map(len, peaks)} | set(count)
    assert found.level[:-1].tolist() == np.where(asleep, NEVER, level)[:-1].tolist()
    np.testing.assert_allclose(found.excess[:-1], excess[:-1])
    assert found.count[:-1].tolist() == [max(n, 1) for n in count[:-1]]
    shapes = best_shapes(stretches, KIND, asleep, SHAPES.tolist(), PRIOR_SHAPE, LAW)
    assert found.shape[:-1].tolist() == shapes[:-1]
    assert found.n_rows == 150 * n_stretches
    score = [each[-1] for each in (found.level, found.excess, found.count, found.shape)]
    own = NEVER if 12 in idle else UNIT
    assert score == [own, UNIT, SCORE_RATE * found.n_rows, 1.0]


def test_updated_tails_count_the_new_excursions_above_their_levels() -> None:
    tails = Tails.fit([bursts(150, 0)], NONE_IDLE, D)
    new = [bursts(100, 5), bursts(120, 6)]
    found = tails.updated(new, D)
    for line in range(LINES - 1):  # the score has a law of its own
        tops = [top for part in new for top in peaks_of(part)[line] if top > tails.level[line]]
        count = tails.count[line] + len(tops)
        height = tails.count[line] * tails.excess[line] + sum(tops) - len(tops) * tails.level[line]
        assert found.count[line] == count
        assert found.excess[line] == pytest.approx(height / count)
    assert found.n_rows == 150 + 220
    assert (found.excess[-1], found.count[-1]) == (UNIT, SCORE_RATE * 370)


def test_the_limit_of_the_score_goes_with_the_budget_and_follows_no_stream(tails: Tails) -> None:
    """Above h nats there are SCORE_RATE / h excursions a row, in training of any length."""
    limits = Limits(tails, 1e-4)
    height = SCORE_RATE / 1e-4
    assert limits.limit[-1] / UNIT == pytest.approx(height, abs=0.01)
    margin = limits.margin(12, 3 * int(limits.limit[-1]), 10**6)
    assert margin == pytest.approx(math.log(3), abs=0.01)
    limits.learn(12, 10**6, 500)
    limits.set(10**6)
    assert limits.limit[-1] / UNIT == pytest.approx(height, abs=0.01)
    assert not limits.learned[:, -1].any()
    # evidence must at least amount to what the budget asks for
    assert Limits(tails, 1e-2).limit[-1] >= int(UNIT * math.log(1 / 1e-2))


def test_outlying_rows_against_loops() -> None:
    """A burst of its own height in each line: some are rare enough, some are not."""
    rng = np.random.default_rng(3)
    parts = [whole(rng.exponential(size=(n, LINES))) for n in (700, 500)]
    asleep = np.arange(LINES) == 5
    for line in range(LINES):
        height = 60 * line if line in LOW else 8 + 4 * line
        parts[line % 2][30 * line + 20 : 30 * line + 24, line] += height * UNIT
    price = prices(D).tolist()
    found = [[excursions(scan(part[:, i], price[i])) for i in range(LINES)] for part in parts]
    tops = [[one[2] for part in found for one in part[line]] for line in range(LINES)]
    usual = [sorted(each)[:-SET_ASIDE] for each in tops]
    level, excess, count = tail_law(usual, KIND, asleep, **LAW)
    rare = math.log(CLEAN_SERIES * LINES * 1200)
    limit = [
        level[line]
        + int(pareto_height(rare, (count[line] + SET_ASIDE) / 1200, excess[line], PRIOR_SHAPE))
        for line in range(LINES)
    ]
    expected = sorted(
        (first + start, first + at + 1)
        for first, part in zip((0, 700), found, strict=True)
        for line in range(LINES)
        for start, at, top in part[line]
        if top > limit[line] and count[line] > 0 and not asleep[line]
    )
    assert 3 < len(expected) < LINES - 3
    blocks = [np.split(part, [90, 91]) for part in parts]
    stretches = [Scanned(lambda b=b: b, sum(map(len, b)), D) for b in blocks]
    assert outlying(stretches, asleep) == expected


@pytest.mark.parametrize("rate", [1e-3, 1e-2])
def test_white_noise_alarms_about_as_often_as_asked(rate: float) -> None:
    n, low, asked = 30_000, 0, 0.0
    for seed in range(4):
        limits = Limits(Tails.fit([noise(20_000, seed)], NONE_IDLE, D), rate)
        found = heights(noise(n, 100 + seed), prices(D), np.int64(0))
        counts = [
            sum(peak > limit for peak in excursion_peaks(found[:, line].tolist()))
            for line, limit in enumerate(limits.limit.tolist())
        ]
        share = rate * n
        for kind in range(len(KINDS)):
            mine = sum(
                count for line, count in enumerate(counts) if KINDS[kind] == describe(line, D).kind
            )
            assert mine <= 1.3 * share + 3 * math.sqrt(share)
        low += sum(counts[line] for line in LOW)
        asked += 2 * share
    assert 0.2 * asked < low < 1.5 * asked


def test_idle_lines_never_alarm_and_need_no_budget(tails: Tails) -> None:
    idle = NONE_IDLE.copy()
    idle[[1, 4]] = True
    found = Tails.fit([noise(5000, 0)], idle, D)
    assert (found.level == NEVER).tolist() == idle.tolist()
    # lines of the same kind; the score
    alive = np.array([D - 1] * D + [D - 1] * D + [D] * 2 * D + [1])
    np.testing.assert_allclose(found.needed(0.01), np.log(alive / 0.01))
    assert (Limits(found, 0.01).limit[idle] >= NEVER).all()


def test_lines_without_excursions_have_limits_all_the_same() -> None:
    limits = Limits(Tails.fit([np.zeros((500, LINES), np.int64)], NONE_IDLE, D), 1e-3)
    assert (limits.limit > 0).all()
    assert (limits.limit < NEVER).all()


def test_new_normal_rows_that_are_louder_raise_the_limits(tails: Tails) -> None:
    louder = tails.updated([2 * noise(5000, 7)], D)
    assert louder.n_rows == tails.n_rows + 5000
    assert (Limits(louder, 1e-3).limit[LOW] > Limits(tails, 1e-3).limit[LOW]).all()
    quiet = tails.updated([noise(5000, 7) // 8], D)
    assert (Limits(quiet, 1e-3).limit[LOW] <= Limits(tails, 1e-3).limit[LOW]).all()


def test_tails_are_restored(tails: Tails) -> None:
    again = Tails.restored(tails.arrays())
    assert again.n_rows == tails.n_rows
    np.testing.assert_array_equal(Limits(again, 1e-4).limit, Limits(tails, 1e-4).limit)


@pytest.mark.parametrize(
    ("name", "bad"),
    [(name, bad) for name in ("level", "excess", "count", "shape", "n") for bad in (0, -1)]
    + [("excess", np.nan), ("count", np.nan), ("excess", None), ("count", None)],
)
def test_damaged_arrays_are_refused(tails: Tails, name: str, bad: float | None) -> None:
    arrays = {key: array.copy() for key, array in tails.arrays().items()}
    arrays[name] = arrays[name][:-1] if bad is None else np.r_[bad, arrays[name][1:]]
    with pytest.raises(ValueError, match="alarm limits are not positive"):
        Tails.restored(arrays)


# ------------------------------------------------------------------------- limits


def test_a_smaller_budget_asks_for_more(tails: Tails) -> None:
    limits = [Limits(tails, rate).limit for rate in (1e-2, 1e-3, 1e-4, 1e-6)]
    for more, less in zip(limits[1:], limits[:-1], strict=True):
        assert (more > less).all()


@pytest.mark.parametrize("rate", [1e-2, 1e-4])
def test_at_the_limit_the_margin_is_nothing(tails: Tails, rate: float) -> None:
    limits = Limits(tails, rate)
    for line in range(LINES):
        limit = int(limits.limit[line])
        if limit > limits.level[line]:
            assert limits.margin(line, limit, 0) == pytest.approx(0, abs=0.01)
            assert limits.margin(line, limit - UNIT, 0) <= 0.01
        assert limits.margin(line, limit + UNIT, 0) > 0
        tops = [limits.margin(line, top * UNIT, 0) for top in range(0, 300, 10)]
        assert tops == sorted(tops)


def test_evidence_must_amount_to_what_the_budget_asks_for(tails: Tails) -> None:
    tiny = replace(tails, level=np.full(LINES, 1), excess=np.full(LINES, 1.0))
    limits = Limits(tiny, 1e-4)
    assert (limits.limit >= whole(limits.needed) - 1).all()


def test_learning_high_excursions_raises_a_limit_and_no_other(tails: Tails) -> None:
    limits = Limits(tails, 1e-3)
    before, level = limits.limit.copy(), limits.level.copy()
    for n_rows in range(10):
        limits.learn(2, int(limits.limit[2]), n_rows)
    assert limits.limit[2] > before[2]
    np.testing.assert_array_equal(np.delete(limits.limit, 2), np.delete(before, 2))
    np.testing.assert_array_equal(limits.level, level)


def test_limits_fall_with_calm_rows_but_never_below_the_level(tails: Tails) -> None:
    limits = Limits(tails, 1e-3)
    before = limits.limit.copy()
    limits.set(10**9)
    assert (limits.limit <= before).all()
    assert (limits.limit < before).any()
    assert (limits.limit >= limits.level).all()


def test_excursions_count_between_the_level_and_the_limit(tails: Tails) -> None:
    one, other, none = (Limits(tails, 1e-3) for _ in range(3))
    one.learn(0, int(one.limit[0]), 100)
    other.learn(0, 10**9, 100)
    none.learn(0, int(none.level[0]), 100)
    np.testing.assert_array_equal(one.limit, other.limit)
    np.testing.assert_array_equal(none.limit, Limits(tails, 1e-3).limit)
    assert not none.learned.any()


def test_limits_by_hand() -> None:
    """One channel: a line of each kind, all with ten excursions above 4 nats in 1,000 rows."""
    level, excess, shape = 4 * UNIT, 2.0 * UNIT, 0.5
    five = np.ones(5)
    tails = Tails(level * np.ones(5, np.int64), excess * five, 10 * five, shape * five, 1000)
    limits = Limits(tails, 1e-4)
    needed = [math.log(1 / 1e-4)] * 5
    np.testing.assert_allclose(limits.needed, needed)
    heights = [int(pareto_height(nats, 10 / 1000, excess, shape)) for nats in needed]
    assert limits.level.tolist() == [level] * 5
    assert limits.limit.tolist() == [level + height for height in heights]

    limits.set(500)
    calm = [int(pareto_height(nats, 10 / 1500, excess, shape)) for nats in needed]
    calm[4] = heights[4]  # the score's law does not follow the stream
    assert limits.limit.tolist() == [level + height for height in calm]

    limits.learn(3, level + UNIT, 500)
    limits.learn(3, 10**9, 600)  # counts as no higher than the limit
    weight = 10 + PRIOR_PEAKS
    once = pareto_height(needed[3], 11 / 1500, (weight * excess + UNIT) / (weight + 1), shape)
    total = weight * excess + UNIT + int(once)
    twice = pareto_height(needed[3], 12 / 1600, total / (weight + 2), shape)
    assert limits.limit[3] == level + int(twice)
    assert limits.learned[:, 3].tolist() == [2, UNIT + int(once)]

    rarity = -math.log(10 / 1600) + math.log(1 + shape * 3 * UNIT / excess) / shape
    assert limits.margin(0, level + 3 * UNIT, 600) == pytest.approx(rarity - needed[0])
    assert limits.margin(0, UNIT, 600) == pytest.approx(-math.log(10 / 1600) - needed[0])


@pytest.mark.parametrize(("power", "least", "most"), [(1.0, 0.0, 0.09), (3.0, 0.1, 0.9)])
def test_heavy_tails_of_a_kind_are_extrapolated_as_such(
    power: float, least: float, most: float
) -> None:
    """Evidence in bursts whose heights follow another law than the exponential."""
    rng, n = np.random.default_rng(0), 45_000
    nats = np.zeros((n, LINES))
    nats[::50] = 3 + rng.exponential(size=(n // 50, LINES)) ** power
    tails = Tails.fit(np.split(whole(nats), 3), NONE_IDLE, D)
    shape = tails.shape[: 2 * D]
    assert (shape == shape[0])[:D].all()
    assert (least <= shape).all()
    assert (shape <= most).all()


def test_limits_that_do_not_follow_stay(tails: Tails) -> None:
    limits = Limits(tails, 1e-3, follow=False)
    before = limits.limit.copy()
    limits.learn(0, 10**9, 100)
    np.testing.assert_array_equal(limits.limit, before)
