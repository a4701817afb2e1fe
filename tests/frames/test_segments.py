import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vace_ad.errors import ConfigError
from vace_ad.frames.segments import (
    Rules,
    Segments,
    interpolate,
    missing_cells,
    run_edges,
    runs_above,
)


def slow(scores: list[float], threshold: float, rules: Rules) -> list[tuple[int, int]]:
    """Row by row, as one would explain it."""
    events: list[list[int]] = []
    for row, score in enumerate(scores):
        if score > threshold:
            if events and row - events[-1][1] <= rules.join:
                events[-1][1] = row + 1
            else:
                events.append([row, row + 1])
    long_enough = [(a, b) for a, b in events if b - a >= rules.min_length]
    kept: list[tuple[int, int]] = []
    for start, end in long_enough:
        if not kept or start >= kept[-1][1] + rules.cooldown:
            kept.append((start, end))
    return kept


@given(
    st.lists(st.sampled_from([0.0, 1.0, 2.0, float("nan")]), max_size=80),
    st.integers(0, 6),
    st.integers(1, 6),
    st.integers(0, 10),
)
def test_against_the_row_by_row_definition(
    scores: list[float], join: int, min_length: int, cooldown: int
) -> None:
    rules = Rules(join, min_length, cooldown)
    found = runs_above(np.array(scores, dtype=np.float64), 0.5, rules)
    assert [tuple(run) for run in found.tolist()] == slow(scores, 0.5, rules)


@pytest.mark.parametrize("wrong", [{"join": -1}, {"min_length": 0}, {"cooldown": -5}])
def test_rules_out_of_range(wrong: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Rules(**wrong)


def complete_stretches(pieces, least):
    """The rows of pieces that follow each other, joined, where there are at least so many."""
    stretches = [[]]
    for piece in pieces:
        if piece.rows is None:
            stretches.append([])
        else:
            stretches[-1].append(piece.rows)
    joined = [np.concatenate(parts) for parts in stretches if parts]
    return [rows for rows in joined if len(rows) >= least]


def pieces(values, max_gap, cuts=(), *, max_missing=0.5, rebuild=None):
    segments = Segments(values.shape[1], max_gap, max_missing, rebuild)
    return [*segments.add(values, cuts), *segments.finish()]


def stretches(values, max_gap, least):
    return complete_stretches(pieces(values, max_gap), least)


def with_start(found):
    """(first row, rows) of each complete piece."""
    at, out = 0, []
    for piece in found:
        if piece.rows is not None:
            out.append((at, piece.n))
        at += piece.n
    return out


def test_complete_rows_are_one_piece_without_a_copy():
    values = np.ones((5, 2))
    (only,) = pieces(values, 2)
    assert np.shares_memory(only.rows, values)
    assert only.n == 5


def test_short_gaps_are_interpolated_and_ends_held():
    values = np.array([np.nan, 1, np.nan, np.nan, 4, np.inf])[:, None]
    (only,) = stretches(values, 2, 1)
    np.testing.assert_allclose(only[:, 0], [1, 1, 2, 3, 4, 4])


def test_long_gaps_cut_and_short_stretches_are_left_out():
    values = np.arange(12.0)[:, None].repeat(2, axis=1)
    values[4:7, 1] = np.nan
    values[9, 0] = -np.inf
    assert with_start(pieces(values, 0)) == [(0, 4), (7, 2), (10, 2)]
    assert [len(s) for s in stretches(values, 0, 3)] == [4]
    assert with_start(pieces(values, 1)) == [(0, 4), (7, 5)]
    assert [len(s) for s in stretches(values, 1, 5)] == [5]


def test_a_magnitude_that_would_overflow_counts_as_missing():
    values = np.array([1.0, 1e200, 3.0])[:, None]
    (only,) = stretches(values, 1, 1)
    np.testing.assert_allclose(only[:, 0], [1, 2, 3])


def test_the_given_table_is_not_changed():
    values = np.array([[1.0], [np.nan], [3.0]])
    stretches(values, 5, 1)
    assert np.isnan(values[1, 0])


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", ">f4", "i8", "?"])
def test_missing_cells_of_every_type(dtype):
    values = np.array([[0, 1], [1, 0]]).astype(dtype)
    assert not missing_cells(values).any()
    if np.dtype(dtype).kind == "f":
        values[0, 0], values[1, 1] = np.inf, np.nan
        assert missing_cells(values).tolist() == [[True, False], [False, True]]
    if dtype == "f8":
        values[0, 1], values[1, 0] = 1.01e100, -1e100
        assert missing_cells(values).tolist() == [[True, True], [False, True]]


def test_long_gaps_of_few_channels_are_rebuilt_with_the_rows_number():
    seen = []

    def rebuild(rows, first):
        seen.append((first, len(rows)))
        return np.where(np.isnan(rows), 7.0, rows)

    values = np.zeros((30, 4))
    values[5:15, 1] = np.nan
    values[20:24] = np.nan  # all of them: nothing to rebuild from
    found = pieces(values, 2, rebuild=rebuild)
    assert with_start(found) == [(0, 20), (24, 6)]
    assert (found[0].rows[5:15, 1] == 7).all()
    assert seen == [(0, 20)]
    assert with_start(pieces(values, 2, rebuild=rebuild, max_missing=0.2)) == [
        (0, 5),
        (15, 5),
        (24, 6),
    ]
    assert with_start(pieces(values, 2, rebuild=rebuild, max_missing=1.0)) == [(0, 20), (24, 6)]


def test_cuts_end_a_stretch_and_nothing_is_interpolated_across():
    values = np.arange(10.0)[:, None].copy()
    values[4:6] = np.nan
    found = pieces(values, 3, cuts=[5])
    assert [piece.n for piece in found] == [5, 0, 5]
    np.testing.assert_allclose(found[0].rows[:, 0], [0, 1, 2, 3, 3])
    np.testing.assert_allclose(found[2].rows[:, 0], [6, 6, 7, 8, 9])


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(0, 7),
    st.lists(st.integers(0, 80), max_size=6),
    st.booleans(),
)
def test_pieces_are_the_same_whatever_the_chunks(seed, max_gap, cuts, rebuilds):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(80, 3))
    rows[rng.random((80, 3)) < rng.choice([0.02, 0.3, 0.8])] = np.nan
    jumps = sorted(set(rng.integers(1, 80, rng.integers(3)).tolist()))

    def rebuild(rows, first):
        number = first + np.arange(len(rows))[:, None]
        return np.where(np.isnan(rows), number, rows)

    def flat(found):
        """Every row, NaN where it has no score, and the rows before which something was cut."""
        parts = [p.rows if p.rows is not None else np.full((p.n, 3), np.nan) for p in found]
        edges = np.cumsum([0] + [p.n for p in found])
        return np.concatenate(parts), [e for e, p in zip(edges, found, strict=False) if p.n == 0]

    def make():
        return Segments(3, max_gap, 0.5, rebuild if rebuilds else None)

    whole = make()
    wanted = flat([*whole.add(rows, jumps), *whole.finish()])
    segments, found, at = make(), [], 0
    for part in np.split(rows, sorted(cuts)):
        again = make()
        again.resume(segments.state())
        segments = again
        inside = [jump - at for jump in jumps if at <= jump < at + len(part)]
        found += segments.add(part, inside)
        at += len(part)
        assert segments.n_held <= max_gap
    found += segments.finish()
    assert np.array_equal(flat(found)[0], wanted[0], equal_nan=True)
    assert flat(found)[1] == wanted[1]
    if not rebuilds and not jumps:
        filled = rows.copy()
        for channel in range(3):
            interpolate(filled[:, channel], np.isnan(rows[:, channel]), max_gap)
        filled[np.isnan(filled).any(axis=1)] = np.nan
        assert np.array_equal(wanted[0], filled, equal_nan=True)


def test_run_edges():
    mask = np.array([1, 1, 0, 1], bool)
    np.testing.assert_array_equal(run_edges(mask), [[0, 2], [3, 4]])
    assert run_edges(np.zeros(3, bool)).shape == (0, 2)


def test_as_many_missing_channels_as_allowed_are_rebuilt():
    values = np.zeros((10, 4))
    values[3:8, :2] = np.nan
    found = pieces(values, 1, rebuild=lambda rows, _: np.nan_to_num(rows, nan=7.0))
    assert with_start(found) == [(0, 10)]
    values[3:8, :3] = np.nan
    assert with_start(pieces(values, 1, rebuild=lambda rows, _: rows)) == [(0, 3), (8, 2)]


def test_a_channel_that_was_never_there_is_left_as_it_is():
    column = np.full(4, np.nan)
    interpolate(column, np.isnan(column), 9)
    assert np.isnan(column).all()


def test_rows_that_are_off_have_no_score_and_end_a_stretch():
    seen = []

    def rebuild(rows, first):
        seen.append((first, len(rows)))
        return np.nan_to_num(rows, nan=7.0)

    values = np.arange(40.0).reshape(20, 2)
    values[[4, 8], 0] = np.nan  # a short gap before the off rows, and one right after them
    values[14:19, 1] = np.nan  # a long one
    off = np.zeros(20, bool)
    off[5:8] = True
    segments = Segments(2, 2, 0.5, rebuild)
    found = [*segments.add(values, off=off), *segments.finish()]
    assert [(piece.rows is None, piece.n) for piece in found if piece.n] == [
        (False, 5),
        (True, 3),
        (False, 12),
    ]
    parts = [piece.rows for piece in found if piece.rows is not None]
    assert parts[0][4, 0] == 6  # the value before it, not one between both sides
    assert parts[1][0, 0] == 18
    assert seen == [(8, 12)]
    segments = Segments(2, 2, 0.5, None)
    ends = segments.add(values[:10], off=np.arange(10) >= 7)
    assert [(piece.rows is None, piece.n) for piece in ends if piece.n] == [(False, 7), (True, 3)]


@given(st.integers(0, 10**6), st.integers(0, 5))
def test_rows_that_wait_are_those_held_when_rows_come_one_by_one(seed, max_gap):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(40, 2))
    rows[rng.random((40, 2)) < 0.4] = np.nan
    off = rng.random(40) < 0.1
    cuts = sorted(set(rng.integers(10, 40, 2).tolist()))
    first, singly = (Segments(2, max_gap, 0.5, None) for _ in range(2))
    for segments in (first, singly):
        segments.add(rows[:10], off=off[:10])
    found = first.waiting(rows[10:], [cut - 10 for cut in cuts], off[10:])
    held = []
    for i in range(10, 40):
        singly.add(rows[i : i + 1], [0] if i in cuts else [], off[i : i + 1])
        held.append(singly.n_held)
    assert (np.zeros(30) if found is None else found).tolist() == held


def test_nothing_waits_where_no_cell_is_missing():
    segments = Segments(2, 3, 0.5, None)
    assert segments.waiting(np.ones((4, 2)), [], np.zeros(4, bool)) is None
