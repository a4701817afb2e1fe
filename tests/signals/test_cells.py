from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive_alarms import (
    best_shrinkage,
    bounded_stream,
    cells,
    conditioned,
    correlations,
    features,
    shrunk,
)
from vace_ad.signals.cell_fit import FOLDS, SHRINKAGES, _evaluated, _Spectrum, learn
from vace_ad.signals.cells import (
    CONFIRM,
    FARTHEST,
    HALF_LIVES,
    MOST_INNOVATION,
    WIDE,
    CellModel,
    Residuals,
)


def plant(n: int, d: int, seed: int = 0) -> np.ndarray:
    """Channels that mix a few slow movements, with noise, scale and level of their own."""
    rng = np.random.default_rng(seed)
    slow = np.zeros((n, 3))
    for t in range(1, n):
        slow[t] = 0.9 * slow[t - 1] + rng.normal(size=3)
    x = slow @ rng.normal(size=(3, d)) + 0.5 * rng.normal(size=(n, d))
    return x * rng.uniform(0.1, 50, d) + rng.uniform(-100, 100, d)


def in_chunks(model: CellModel, rows: np.ndarray, cuts: list[int]) -> Residuals:
    stream = model.begin()
    parts = [stream.add(part) for part in np.split(rows, cuts)]
    return Residuals(*(np.concatenate(each) for each in zip(*parts, strict=True)))


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return plant(400, 4)


@pytest.fixture(scope="module")
def model(rows: np.ndarray) -> CellModel:
    return learn([rows[:300]]).model


@pytest.mark.parametrize("d", [1, 2, 4])
def test_residuals_are_those_of_a_conditioned_normal_distribution(d: int) -> None:
    rows = plant(360, d, seed=d)
    train, test = rows[:300], rows[300:]
    mean, scale = train.mean(axis=0), train.std(axis=0)
    z = features((train - mean) / scale, HALF_LIVES)
    center, spread = z.mean(axis=0), z.std(axis=0)
    shrinkage = best_shrinkage((z - center) / spread, SHRINKAGES, FOLDS)
    covariance = shrunk(correlations((z - center) / spread), shrinkage)
    standard = (features((test - mean) / scale, HALF_LIVES) - center) / spread
    now, past, share = cells(standard[:20], covariance, d)
    found = learn([train]).model.begin().add(test[:20])
    np.testing.assert_allclose(found.now, now, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found.past, past, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found.share, share, rtol=1e-6, atol=1e-8)


def test_held_out_folds_are_judged_by_models_that_did_not_see_them() -> None:
    rows = plant(300, 2, seed=9)
    z = features((rows - rows.mean(axis=0)) / rows.std(axis=0), HALF_LIVES)
    z = (z - z.mean(axis=0)) / z.std(axis=0)
    shrinkage = best_shrinkage(z, SHRINKAGES, FOLDS)
    found = learn([rows]).held_out
    assert [part.shape for part in found] == [(100, 4)] * 3
    covariance = shrunk(correlations(np.concatenate([z[:100], z[200:]])), shrinkage)
    now, past, _ = cells(z[100:110], covariance, 2)
    np.testing.assert_allclose(found[1][:10], np.hstack([now, past]), rtol=1e-6, atol=1e-8)


def test_folds_lie_across_stretches_and_averages_do_not() -> None:
    rows = plant(300, 2, seed=9)
    parts = [rows[:90], rows[90:]]
    z = [features((x - rows.mean(axis=0)) / rows.std(axis=0), HALF_LIVES) for x in parts]
    z = np.concatenate(z)
    z = (z - z.mean(axis=0)) / z.std(axis=0)
    found = learn(parts).held_out
    assert [part.shape for part in found] == [(100, 4)] * 3
    covariance = shrunk(correlations(z[100:]), best_shrinkage(z, SHRINKAGES, FOLDS))
    now, past, _ = cells(z[:100], covariance, 2)
    np.testing.assert_allclose(found[0], np.hstack([now, past]), rtol=1e-6, atol=1e-8)


def test_likelihoods_are_those_of_rows_one_by_one() -> None:
    rng = np.random.default_rng(2)
    learned, rows = rng.normal(size=(50, 4)), rng.normal(size=(20, 4)) * (1, 2, 3, 4)
    correlations = np.corrcoef(learned.T)
    spectrum = _Spectrum(correlations)
    found = spectrum.likelihoods(rows.T @ rows, 20)
    for shrinkage, likelihood in zip(SHRINKAGES, found, strict=True):
        matrix = (1 - shrinkage) * correlations + shrinkage * np.eye(4)
        wanted = sum(-np.log(np.linalg.det(matrix)) - x @ np.linalg.inv(matrix) @ x for x in rows)
        assert likelihood == pytest.approx(wanted)
        np.testing.assert_allclose(spectrum.inverse(shrinkage), np.linalg.inv(matrix))


def test_residuals_have_deviation_one_and_an_off_channel_stands_out() -> None:
    rows = plant(4000, 4, seed=3)
    model = learn([rows[:3000]]).model
    off = rows[3000:].copy()
    normal = model.begin().add(off)
    np.testing.assert_allclose(normal.now.std(axis=0), 1, atol=0.1)
    np.testing.assert_allclose(normal.past.std(axis=0), 1, atol=0.1)
    np.testing.assert_allclose(normal.share.mean(axis=0), 1 + len(HALF_LIVES), rtol=0.25)
    off[500, 2] += 10 * model.spread[2] * model.scale[2]
    found = model.begin().add(off)
    assert found.now[500, 2] - normal.now[500, 2] == pytest.approx(10)
    assert found.share[500].argmax() == 2
    assert np.abs(found.past[500]).argmax() == 2


def test_a_fault_does_not_spoil_the_rows_after_it() -> None:
    """A value enters the averages no farther than its forecast's error allows."""
    rows = plant(4000, 4, seed=3)
    model = learn([rows[:3000]]).model
    normal, off = model.begin().add(rows[3000:]), rows[3000:].copy()
    off[500, 2] += 1000 * model.error[2] * model.scale[2]
    found = model.begin().add(off)
    assert np.abs(found.past[500]).max() > 100
    assert np.abs(found.past[501:] - normal.past[501:]).max() < 2 * MOST_INNOVATION
    np.testing.assert_array_equal(found.past[:500], normal.past[:500])


@given(st.sets(st.integers(1, 99), max_size=6))
def test_the_same_bits_in_chunks(model: CellModel, rows: np.ndarray, cuts: set[int]) -> None:
    whole = in_chunks(model, rows[300:], [])
    for one, other in zip(in_chunks(model, rows[300:], sorted(cuts)), whole, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_same_bits_row_by_row(model: CellModel, rows: np.ndarray) -> None:
    whole = in_chunks(model, rows[300:], [])
    for one, other in zip(in_chunks(model, rows[300:], list(range(1, 100))), whole, strict=True):
        np.testing.assert_array_equal(one, other)


def test_no_rows_change_nothing(model: CellModel, rows: np.ndarray) -> None:
    found = in_chunks(model, rows[300:], [50, 50])
    np.testing.assert_array_equal(found.now, in_chunks(model, rows[300:], []).now)


def test_a_cut_begins_anew(model: CellModel, rows: np.ndarray) -> None:
    stream = model.begin()
    stream.add(rows[300:350])
    stream.cut()
    found = stream.add(rows[350:])
    np.testing.assert_array_equal(found.now, model.begin().add(rows[350:]).now)
    assert not np.array_equal(found.now, model.begin().add(rows[300:]).now[50:])


@pytest.mark.parametrize("at", [0, 1, 37])
def test_a_state_resumes(model: CellModel, rows: np.ndarray, at: int) -> None:
    stream, other = model.begin(), model.begin()
    if at:
        stream.add(rows[300 : 300 + at])
    other.add(rows[:50])  # is forgotten
    other.resume({name: array.copy() for name, array in stream.state().items()})
    for one, same in zip(stream.add(rows[340:]), other.add(rows[340:]), strict=True):
        np.testing.assert_array_equal(one, same)


def test_a_state_of_other_channels_is_refused(model: CellModel, rows: np.ndarray) -> None:
    narrow = learn([rows[:300, :3]]).model.begin()
    narrow.add(rows[:10, :3])
    with pytest.raises(ValueError, match=r"shape \(3,\)"):
        model.begin().resume(narrow.state())


def test_a_constant_channel_counts_for_nothing_until_it_moves(rows: np.ndarray) -> None:
    with_constant = np.column_stack([rows, np.full(len(rows), 1e6)])
    model = learn([with_constant[:300]]).model
    assert model.varies.tolist() == [True] * 4 + [False]
    assert model.partner[4] == 4
    assert 4 not in model.partner[:4]
    assert model.scale[4] == 1
    (shrinkage,) = {a for a in SHRINKAGES if np.isclose(model.spread[4], np.sqrt(a))}
    assert shrinkage in SHRINKAGES  # of its own it has no variance but that
    found = model.begin().add(with_constant[300:])
    np.testing.assert_allclose(found.now[:, 4], 0, atol=1e-9)
    without = learn([rows[:300]]).model.begin().add(rows[300:])
    np.testing.assert_allclose(found.now[:, :4], without.now, rtol=1e-6, atol=1e-8)


def test_noise_is_shrunk_most_and_a_long_exact_relation_least() -> None:
    """A channel that does not vary has no variance but what the shrinkage gives it."""
    rng = np.random.default_rng(3)
    exact = np.tile(rng.normal(size=(4000, 1)), 3) + 1e-3 * rng.normal(size=(4000, 3))
    for rows, shrinkage in ((rng.normal(size=(30, 20)), 0.3), (exact, 0.0003)):
        model = learn([np.column_stack([rows, np.ones(len(rows))])]).model
        assert model.spread[-1] ** 2 == pytest.approx(shrinkage)


def test_more_channels_than_rows_are_finite() -> None:
    rows = plant(90, 60, seed=2)
    found = learn([rows[:40]]).model.begin().add(rows[40:])
    for each in found:
        assert np.isfinite(each).all()
    assert (found.share >= 0).all()


def test_wide_tables_stand_row_by_row() -> None:
    rows = np.random.default_rng(0).normal(size=(60, WIDE + 1))
    model = learn([rows]).model
    assert model.n_averages == 0
    found = model.begin().add(rows)
    np.testing.assert_array_equal(found.now[30:], model.begin().add(rows[30:]).now)
    np.testing.assert_allclose(found.share, found.now**2)
    stream = model.begin()
    stream.resume(model.begin().state())
    np.testing.assert_array_equal(stream.add(rows).now, found.now)
    assert learn([rows[:, :WIDE:40]]).model.n_averages == len(HALF_LIVES)


def test_one_channel_is_judged_by_its_level_and_its_past() -> None:
    rows = plant(600, 1, seed=4)
    model = learn([rows]).model
    found = model.begin().add(rows)
    assert model.partner.tolist() == [0]
    scaled = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    np.testing.assert_allclose(found.now, scaled, atol=1e-9)  # no other channel tells anything
    assert found.past.std() == pytest.approx(1, abs=0.05)
    repeats = np.corrcoef(found.past[1:, 0], found.past[:-1, 0])[0, 1]
    assert abs(repeats) < abs(np.corrcoef(scaled[1:, 0], scaled[:-1, 0])[0, 1]) / 2


def test_stretches_do_not_reach_into_each_other(rows: np.ndarray) -> None:
    whole, parts = learn([rows]).model, learn([rows[:200], rows[200:], rows[:0]]).model
    np.testing.assert_array_equal(whole.mean, parts.mean)
    assert not np.array_equal(whole.matrix, parts.matrix)


def test_a_step_of_the_context_enters_the_past_as_it_is() -> None:
    rng = np.random.default_rng(8)
    n, cut = 4000, 3000
    level = np.repeat(rng.choice([0.0, 1.0], n // 200), 200)
    level[cut : cut + 100], level[cut + 100 : cut + 200] = 0.0, 3.0  # a step that is far
    follows = np.empty(n)
    last = 0.0
    for i, value in enumerate(level):
        last = 0.9 * last + 0.1 * value
        follows[i] = last
    rows = np.column_stack([level, follows]) + rng.normal(0, 0.01, (n, 2))
    after = slice(cut + 105, cut + 125)

    def residual(context) -> float:
        found = learn([rows[:cut]], context).model.begin().add(rows[cut - 200 :])
        return float(np.abs(found.now[200:][after.start - cut : after.stop - cut, 1]).mean())

    assert residual(np.array([True, False])) < 0.5 * residual(None)


def test_a_spike_leaves_no_trace_and_a_level_that_stays_does() -> None:
    rng = np.random.default_rng(9)
    rows = np.zeros((3000, 2))
    for t in range(1, len(rows)):
        rows[t] = 0.95 * rows[t - 1] + rng.normal(size=2)
    model = learn([rows[:2000]]).model

    def echo(length: int) -> float:
        """How far off the row after a fault of so many rows is, in deviations, on average."""
        found = []
        for start in range(2100, 2900, 100):
            faulty = rows[start - 60 : start + length + 1].copy()
            faulty[60 : 60 + length, 1] += 60.0
            found.append(abs(model.begin().add(faulty).past[-1, 1]))
        return float(np.mean(found))

    assert max(echo(length) for length in range(1, CONFIRM + 1)) < 2.5
    assert echo(CONFIRM + 1) > 4


@pytest.mark.parametrize(
    ("length", "size"), [(1, 1e2), (CONFIRM, 1e9), (CONFIRM + 1, 1e2), (9, 1e9)]
)
def test_what_enters_the_past_against_a_loop(model: CellModel, rows, length: int, size) -> None:
    some = rows[300:380].copy()
    some[30 : 30 + length, 1] += size
    some[33, 2] -= size  # where a fault of another channel may go on
    some[60:62, 1] += size
    x = model.columns(some)
    wanted = bounded_stream(x, model, HALF_LIVES, MOST_INNOVATION, CONFIRM, FARTHEST)
    for cuts in ([], [31, 32, 61]):
        found = in_chunks(model, some, cuts)
        d = model.n_channels
        own = wanted[:, : -2 * d].reshape(len(some), -1, d)
        np.testing.assert_allclose(found.now, own[:, 0], rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(found.past, wanted[:, -2 * d : -d], rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(found.share, (own**2).sum(axis=1), rtol=1e-6, atol=1e-6)


def test_values_count_up_to_a_thousand_deviations(model: CellModel, rows) -> None:
    off = np.tile([999.0, 1001.0, -1001.0, 1e9], (2, 1))
    x = model.columns(model.mean + off * model.scale)
    np.testing.assert_allclose(x, [[999, 1000, -1000, 1000]] * 2)


@pytest.mark.parametrize("bounded", [[True] * 3, [True, False, True]])
@pytest.mark.parametrize("units", [(1.0, 1.0, 1.0), (0.1, 1.0, 10.0), (5.0, 0.2, 1.0)])
def test_deviations_innovations_and_partners_by_conditioning(bounded, units) -> None:
    """Three channels and a column beside them, with one average of the past each."""
    rng = np.random.default_rng(4)
    root = rng.normal(size=(8, 8)) * np.array([*units, 1.0] * 2)[:, None]
    covariance = root @ root.T + np.diag(np.square([*units, 1.0] * 2))
    matrix, now, error, partner = _evaluated(np.linalg.inv(covariance), 4, np.array(bounded))
    own = [i for i in range(3) if bounded[i]]
    ahead = conditioned(covariance, own)  # given the past, and what is not bounded now
    wanted = np.ones(3)
    wanted[own] = np.sqrt(np.diag(ahead))
    np.testing.assert_allclose(error, wanted)
    past = [i for i in range(8) if i not in own]
    z = rng.normal(size=8)
    weights = np.linalg.solve(covariance[np.ix_(past, past)], covariance[np.ix_(past, own)])
    innovation = np.zeros(3)
    innovation[own] = (z[own] - z[past] @ weights) / wanted[own]
    np.testing.assert_allclose((z @ matrix)[-3:], innovation)
    for i in range(3):
        mine = [i, 4 + i]
        others = [k for k in range(8) if k not in mine]
        given = covariance[np.ix_([i], [i])] - covariance[np.ix_([i], others)] @ np.linalg.solve(
            covariance[np.ix_(others, others)], covariance[np.ix_(others, [i])]
        )
        assert now[i] == pytest.approx(np.sqrt(given[0, 0]))
        partial = [0.0] * 3
        for k in {0, 1, 2} - {i}:
            pair = conditioned(covariance, [i, k])
            partial[k] = abs(pair[0, 1]) / np.sqrt(pair[0, 0] * pair[1, 1])
        assert partner[i] == int(np.argmax(partial))


def test_deviations_are_those_of_training_residuals() -> None:
    rows = plant(3000, 3, seed=5)
    rows[:, 2] = 8.0
    model = learn([rows]).model
    np.testing.assert_allclose(model.mean, rows.mean(axis=0))
    np.testing.assert_allclose(model.scale, [*rows[:, :2].std(axis=0), 1.0])
    assert model.varies.tolist() == [True, True, False]
    assert model.partner.tolist() == [1, 0, 2]  # a constant channel goes with none
    found = model.begin().add(rows)
    np.testing.assert_allclose(found.now[:, :2].std(axis=0), 1, atol=0.05)
    innovations = found.past[:, :2].std(axis=0)
    np.testing.assert_allclose(innovations, 1, atol=0.05)


@pytest.mark.parametrize(("deviation", "varies"), [(0.9995e-9, False), (1.0005e-9, True)])
def test_a_channel_varies_by_more_than_a_billionth_of_its_size(
    deviation: float, varies: bool
) -> None:
    """Of its mean, and a thousandth of its largest value: 1.001 of a level of one."""
    rows = plant(300, 2)
    rows[:, 1] = 1 + 1.001 * deviation * np.tile([1.0, -1.0], 150)
    found = learn([rows]).model.varies[1]
    assert found == varies


def test_arrays_have_the_layout_and_are_restored(model: CellModel, rows: np.ndarray) -> None:
    arrays, layout = model.arrays(), CellModel.layout(4)
    assert set(arrays) == set(layout)
    kinds = {"BOOL": np.bool_, "I64": np.int64, "F64": np.float64}
    for name, (kind, shape) in layout.items():
        assert arrays[name].dtype == kinds[kind], name
        for size, expected in zip(arrays[name].shape, shape, strict=True):
            assert expected in (None, size), name
    again = CellModel.restored(arrays).begin().add(rows)
    np.testing.assert_array_equal(again.now, model.begin().add(rows).now)
    assert CellModel.layout(WIDE)["offset"] == ("F64", (7 * WIDE,))
    assert CellModel.layout(WIDE + 1)["offset"] == ("F64", (3 * (WIDE + 1),))


@pytest.mark.parametrize(
    ("name", "bad", "words"),
    [
        ("matrix", lambda x: x[:-1], "matrix has 19 rows"),
        ("partner", lambda x: x - 10, "channels that are not there"),
        ("partner", lambda x: np.r_[4, x[1:]], "channels that are not there"),
        ("partner", lambda x: np.r_[-1, x[1:]], "channels that are not there"),
    ],
)
def test_damaged_arrays_are_refused(model: CellModel, name: str, bad, words: str) -> None:
    arrays = model.arrays()
    with pytest.raises(ValueError, match=words):
        CellModel.restored(arrays | {name: bad(arrays[name])})
