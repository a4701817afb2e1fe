from __future__ import annotations

import math

import numpy as np
import pytest

from vace_ad.alarms import alarm_model
from vace_ad.alarms.alarm_model import (
    FAR,
    WIDTH,
    AlarmModel,
    followed_by_baseline,
    line_evidence,
    repeats,
)
from vace_ad.alarms.constants import MOST_NATS, MOST_STUCK_NATS, OUTDATED, SCORE_PRICE, WARM_UP
from vace_ad.alarms.evidence import UNIT, whole
from vace_ad.alarms.scan import NEVER, describe
from vace_ad.signals.cell_fit import learn
from vace_ad.signals.cells import Residuals

KINDS = {"BOOL": np.bool_, "I64": np.int64, "F64": np.float64}


def test_the_model_that_looked_for_outlying_rows_is_that_of_a_fit() -> None:
    rows = np.random.default_rng(0).normal(size=(600, 3)).cumsum(axis=0) % 7
    watched = np.array([True, True, False])
    parts = [rows[:250], rows[250:]]
    _, found = AlarmModel.outlying(parts, watched)
    assert found is not None
    scores = np.random.default_rng(1).exponential(size=600)
    once, anew = found.with_scores(scores), AlarmModel.fit(parts, scores, watched)
    for name, array in anew.arrays().items():
        np.testing.assert_array_equal(once.arrays()[name], array, err_msg=name)


def test_cells_that_are_given_are_not_learned_again() -> None:
    parts = [np.random.default_rng(0).normal(size=(600, 3))]
    learned = learn(parts)
    model = AlarmModel.fit(parts, None, None, learned)
    assert model.cells is learned.model


@pytest.mark.parametrize(("far", "bounded"), [(0.99, False), (1.01, True)])
def test_a_model_of_bounded_values_is_not_kept(far: float, bounded: bool) -> None:
    """Half of the values are ±1: the median is 0, its absolute deviation 1."""
    rows = np.random.default_rng(0).uniform(-1, 1, size=(600, 3))
    rows[:, 1] = np.tile([-1.0, -1.0, 0.0, 1.0, 1.0, 0.0], 100)
    rows[:, 2] = 0.0
    rows[10, 2] = 50.0  # a channel that hardly moves has no robust deviation
    rows[300, 1] = far * FAR / 0.6745
    rows += [0.0, 1e3, 0.0]  # a level is no distance
    found = AlarmModel.outlying([rows], np.ones(3, bool))[1]
    assert (found is None) == bounded


# --------------------------------------------------------------------------- fit


@pytest.fixture(scope="module")
def parts() -> list[np.ndarray]:
    """A continuous channel, one that repeats itself every other row, one that stands still."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(420, 4))
    rows[:, 1] = np.repeat(rows[::2, 1], 2)
    rows[:, 2] = 7.0
    return [rows[:200], rows[200:]]


@pytest.fixture(scope="module")
def scores() -> np.ndarray:
    return np.append(np.random.default_rng(2).gamma(2, size=419), np.nan)


@pytest.fixture(scope="module")
def model(parts, scores) -> AlarmModel:
    return AlarmModel.fit(parts, scores, np.array([True, True, True, False]))


def test_a_repeated_value_counts_by_how_often_training_repeats_it(model: AlarmModel) -> None:
    share = (100 + 110) / (199 + 219)  # no pair reaches from a part into the next
    nats = [MOST_STUCK_NATS, -math.log(share), 0.0, 0.0]  # what never varies or is context: none
    assert model.stuck.tolist() == whole(np.array(nats)).tolist()
    assert model.watched.tolist() == [True, True, True, False]


def test_a_value_that_few_rows_never_repeat_has_few_nats() -> None:
    rows = np.random.default_rng(0).normal(size=(41, 2))
    found = AlarmModel.fit([rows]).stuck / UNIT
    np.testing.assert_allclose(found, math.log(42), atol=1 / UNIT)


def test_lines_of_what_is_not_watched_never_alarm(model: AlarmModel, parts) -> None:
    idle = {line for line in range(17) if model.tails.level[line] == NEVER}
    # channel 2 is constant, so it can only leave its value; nobody watches channel 3
    assert idle == {line for line in range(16) if describe(line, 4).channel in (2, 3)} - {2}
    without = AlarmModel.fit(parts)  # no scores
    assert {i for i in range(17) if without.tails.level[i] == NEVER} == {6, 10, 14, 16}
    nobody = AlarmModel.fit(parts, None, np.zeros(4, bool))
    assert (nobody.tails.level == NEVER).all()


def test_the_first_rows_of_each_part_are_no_evidence(parts, scores, monkeypatch) -> None:
    seen: list[np.ndarray] = []
    scanned = alarm_model.Scanned

    def see(nats, *more):
        seen.extend(nats())
        return scanned(nats, *more)

    monkeypatch.setattr(alarm_model, "Scanned", see)
    AlarmModel.fit(parts, scores)
    lines = np.concatenate(seen)
    assert len(lines) == 420
    quiet = ~lines.any(axis=1)
    first = np.arange(420) % 200 < WARM_UP
    first[400:] = False
    np.testing.assert_array_equal(quiet, first)
    # repeated values: that of each second row
    stuck = lines[:, 4 * 3 + 1] > 0
    np.testing.assert_array_equal(stuck, ~first & (np.arange(420) % 2 == 1))


def test_cells_that_are_given_can_be_given_again(parts) -> None:
    learned = learn(parts)
    for fit in (AlarmModel.fit(parts, learned=learned) for _ in range(2)):
        np.testing.assert_array_equal(fit.surprise.table, AlarmModel.fit(parts).surprise.table)


def test_arrays_have_the_layout_and_are_restored(model: AlarmModel) -> None:
    arrays, layout = model.arrays(), AlarmModel.layout(4)
    assert set(arrays) == set(layout)
    for name, (kind, shape) in layout.items():
        assert arrays[name].dtype == KINDS[kind], name
        assert len(arrays[name].shape) == len(shape), name
        for size, expected in zip(arrays[name].shape, shape, strict=True):
            assert expected in (None, size), name
    again = AlarmModel.restored(arrays)
    for name, array in again.arrays().items():
        np.testing.assert_array_equal(array, arrays[name])


# ------------------------------------------------------------------------- evidence


def test_what_was_expected_is_the_value_less_its_residual(model: AlarmModel, parts) -> None:
    rows = parts[0][:50] + np.array([0.0, 0.0, 3.0, 0.0])
    residuals = model.cells.begin().add(rows)
    baseline = model.baseline()
    assert baseline.mean.tolist() == [0.0] * 8 + np.log1p(model.score_level).tolist()
    baseline.mean, baseline.variance = np.full(9, 0.5), baseline.variance * 4
    nats, score, expected = model.judge(rows[:9], Residuals(*(x[:9] for x in residuals)),
                                        np.full(9, 4.0), baseline)  # fmt: skip
    unit = model.cells.spread * model.cells.scale
    varies = [0, 1, 3]
    value = (rows[:9] - (residuals.now[:9] - 0.5) * unit)[:, varies]
    np.testing.assert_allclose(expected.value[:, varies], value)
    np.testing.assert_allclose(expected.lower[:, varies], value - WIDTH * 2 * unit[varies])
    np.testing.assert_allclose(expected.upper[:, varies], value + WIDTH * 2 * unit[varies])
    for each in expected:
        np.testing.assert_allclose(each[:, 2], 7.0)  # a constant channel: what it always was
    judged = (np.concatenate([residuals.now, residuals.past], axis=1)[:9] - 0.5) / 2
    cells = [0, 1, 3, 4, 5, 7]  # of channels that vary
    np.testing.assert_array_equal(nats[:, cells], model.surprise.of(judged)[:, cells])
    assert nats.any()
    assert not nats[:, 6].any()
    rarest = whole(math.log(model.tails.n_rows + 2))
    assert nats[:, 2].tolist() == [rarest if row != 7 else 0 for row in rows[:9, 2].tolist()]
    times = math.log(4.0) - 0.5  # the baseline is of the log of 1 plus the score
    np.testing.assert_array_equal(score, whole(np.full((9, 1), times)))


@pytest.mark.parametrize(("score", "logs"), [(4.0, math.log(5)), (0.0, 0), (-1.0, 0), (np.nan, 0)])
def test_the_baseline_follows_residuals_and_the_log_of_the_score(score: float, logs: float) -> None:
    now, past = np.array([[3.0, -3.0]]), np.array([[6.0, 1.0]])
    found = followed_by_baseline(Residuals(now, past, now), np.array([score]))
    np.testing.assert_allclose(found, [[3, -3, 6, 1, logs]])
    np.testing.assert_allclose(followed_by_baseline(Residuals(now, past, now)), [[3, -3, 6, 1, 0]])


def test_a_score_counts_by_its_log_over_its_recent_level(model: AlarmModel, parts) -> None:
    none = np.zeros((6, 4))
    baseline = model.baseline()
    baseline.mean = np.append(np.zeros(8), math.log(3.0))  # a level of 3, the 1 included
    scores = np.array([3.0, 6.0, 1e30, 0.0, np.nan, 1e-30])
    _, score, _ = model.judge(none, Residuals(none, none, none), scores, baseline)
    wanted = [0.0, math.log(2), MOST_NATS, 0.0, 0.0, -MOST_NATS]
    np.testing.assert_array_equal(score[:, 0], whole(np.array(wanted)))


def test_cells_of_a_model_that_is_out_of_date_count_for_less(model: AlarmModel, scores) -> None:
    off = np.full((1, 4), 9.0)
    level = 1 + np.nanmedian(scores)
    np.testing.assert_allclose(model.score_level, level - 1)

    def nats(times: float) -> np.ndarray:
        baseline = model.baseline()
        baseline.mean = np.append(np.zeros(8), math.log(times * level))
        found = model.judge(off, Residuals(off, off, off), np.zeros(1), baseline)[0]
        return np.delete(found, [2, 6], axis=1)  # of a constant channel: no matter of the model

    full, least = nats(1.0), math.exp(SCORE_PRICE)
    assert full.any()
    np.testing.assert_array_equal(nats(0.2), full)
    np.testing.assert_array_equal(nats(0.99 * least), full)
    np.testing.assert_allclose(nats(1.2 * least), full / 1.2**OUTDATED, atol=1)
    np.testing.assert_allclose(nats(30 * least), full / OUTDATED, atol=1)


def test_without_a_score_no_model_is_out_of_date(parts) -> None:
    model, off = AlarmModel.fit(parts), np.full((1, 4), 9.0)
    found = [
        model.judge(off, Residuals(off, off, off), np.array([score]), model.baseline())[0]
        for score in (np.nan, 9.0)
    ]
    assert np.isnan(model.score_level).all()
    assert found[0].any()
    np.testing.assert_array_equal(*found)


def test_cells_that_repeat_the_row_before() -> None:
    rows = np.array([[1.0, 2.0], [1.0, 3.0], [0.0, 3.0]])
    assert repeats(rows, None).tolist() == [[False, False], [True, False], [False, True]]
    before = np.array([1.0, 0.0])
    assert repeats(rows, before).tolist() == [[True, False], [True, False], [False, True]]


def test_each_line_has_its_evidence() -> None:
    now, past, stuck, score = [[1, 2]], [[3, 4]], [[5, 6]], [[8]]
    both = np.concatenate([now, past], axis=1)
    lines = line_evidence(both, np.array(stuck), np.array(score))[0].tolist()
    found = {describe(i, 2): nats for i, nats in enumerate(lines)}
    for channel in (0, 1):
        assert found["relation", channel] == now[0][channel]
        assert found["change", channel] == found["jump", channel] == past[0][channel]
        assert found["stuck", channel] == stuck[0][channel]
    assert found["score", None] == 8
