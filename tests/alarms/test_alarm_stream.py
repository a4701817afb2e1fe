from __future__ import annotations

from copy import copy

import numpy as np
import pytest

from alarms.feeds import line_of
from vace_ad.alarms.alarm_model import AlarmModel, line_evidence
from vace_ad.alarms.alarm_stream import AlarmStream, updated
from vace_ad.alarms.constants import MOST_NATS, WARM_UP
from vace_ad.alarms.evidence import UNIT
from vace_ad.alarms.pattern import OWN

D = 3
RATE = 1e-4
NOW, PAST, STUCK = slice(0, D), slice(D, 2 * D), slice(3 * D, 4 * D)
SCORE = 4 * D


def rows_of(n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, D)) + rng.normal(size=(n, 1))
    rows[:, 2] = np.round(rows[:, 2])  # repeats its value now and then
    return rows


NONE = np.full(300, np.nan)  # rows without a score


def scores_of(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).gamma(2, size=n)


@pytest.fixture(scope="module")
def model() -> AlarmModel:
    return AlarmModel.fit([rows_of(500, 0)], scores_of(500, 0))


def by_hand(model: AlarmModel, rows: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """The evidence of all lines of a stretch, from its parts."""
    residuals = model.cells.begin().add(rows)
    nats, score, _ = model.judge(rows, residuals, scores, model.baseline())
    for each in (nats, score):
        each[:WARM_UP] = 0
    same = np.zeros(rows.shape, bool)
    for t in range(1, len(rows)):
        same[t] = rows[t] == rows[t - 1]
    return line_evidence(nats, same * model.stuck, score)


def seen_by_the_tracker(stream: AlarmStream, monkeypatch) -> list[np.ndarray]:
    """What `add` gives the tracker, as it comes."""
    seen: list[np.ndarray] = []
    add = stream.tracker.add
    monkeypatch.setattr(stream.tracker, "add", lambda lines, shares: seen.append(lines) or
                        add(lines, shares))  # fmt: skip
    return seen


def test_evidence_begins_after_the_warm_up_but_for_repeated_values(model, monkeypatch) -> None:
    rows, scores = rows_of(200, 1), scores_of(200, 1)
    wanted = by_hand(model, rows, scores)
    assert not wanted[:WARM_UP, : 3 * D].any()
    assert wanted[:WARM_UP, STUCK].any()
    stream = AlarmStream(model, RATE)
    np.testing.assert_array_equal(stream.lines_of(rows), by_hand(model, rows, NONE[:200]))
    for cuts in ([], [10, WARM_UP, WARM_UP + 1]):
        stream = AlarmStream(model, RATE)
        seen = seen_by_the_tracker(stream, monkeypatch)
        found = [stream.add(*each) for each in
                 zip(np.split(rows, cuts), np.split(scores, cuts), strict=True)]  # fmt: skip
        np.testing.assert_array_equal(np.concatenate(seen), wanted)
        surprise = np.concatenate([one.surprise for one in found])
        cells = np.concatenate([wanted[:, : 2 * D], wanted[:, STUCK]], axis=1)
        np.testing.assert_array_equal(surprise, cells.max(axis=1) / UNIT)


def test_without_scores_the_score_says_nothing(model, monkeypatch) -> None:
    rows = rows_of(150, 1)
    stream = AlarmStream(model, RATE)
    seen = seen_by_the_tracker(stream, monkeypatch)
    stream.add(rows)
    np.testing.assert_array_equal(seen[0], by_hand(model, rows, NONE[:150]))


def test_no_rows_say_nothing(model) -> None:
    stream = AlarmStream(model, RATE)
    found = stream.add(rows_of(0, 1))
    assert found.notices == []
    assert len(found.ratio) == len(found.surprise) == len(found.expected.value) == 0
    assert stream.tracker.n_rows == 0


def test_channels_that_are_not_watched_are_no_surprise() -> None:
    rows = rows_of(500, 0)
    watched = np.array([True, False, True])
    stream = AlarmStream(AlarmModel.fit([rows], None, watched), RATE)
    off = rows_of(120, 1)
    off[100, 1] += 1e4
    plain = AlarmStream(AlarmModel.fit([rows]), RATE).add(off).surprise
    assert plain[100] == plain.max() == MOST_NATS
    lines = AlarmStream(stream.model, RATE).lines_of(off)
    cells = lines[100, [0, 2, D, D + 2]]
    assert stream.add(off).surprise[100] == cells.max() / UNIT


def test_tolerated_rows_need_more_evidence_and_accepted_channels_more_still(
    model, monkeypatch
) -> None:
    rows, scores = rows_of(120, 1), scores_of(120, 1)
    wanted = by_hand(model, rows, scores)
    tolerated = np.ones(120)
    tolerated[80:90] = 2.0
    stream = AlarmStream(model, RATE)
    stream.accepted[1] = True
    seen = seen_by_the_tracker(stream, monkeypatch)
    stream.add(rows, scores, tolerated)
    divisor = np.ones((120, 4 * D + 1))
    divisor[80:90] = 2.0
    for channel in (1, D + 1, 2 * D + 1, 3 * D + 1, SCORE):
        divisor[80:90, channel] = 2 * OWN
    lowered = (wanted / divisor).astype(np.int64)
    lowered[:, SCORE] = np.minimum(lowered[:, SCORE], wanted[:, SCORE])  # may be below 0
    np.testing.assert_array_equal(seen[0], lowered)


def test_a_cut_warms_up_anew_and_repeats_nothing(model, monkeypatch) -> None:
    rows, scores = rows_of(300, 1), scores_of(300, 1)
    rows[150] = rows[149]
    stream = AlarmStream(model, RATE)
    stream.add(rows[:150], scores[:150])
    stream._quiet[:] = True
    stream.skip(7)
    assert not stream._quiet.any()
    assert stream.tracker.n_rows == 157
    seen = seen_by_the_tracker(stream, monkeypatch)
    stream.add(rows[150:], scores[150:])
    assert not seen[0][:WARM_UP, [*range(3 * D), SCORE]].any()
    assert seen[0][WARM_UP:, :D].any(axis=1).all()
    assert not seen[0][0].any()  # the row before the cut does not count as repeated
    assert seen[0][1:WARM_UP, STUCK].any()


@pytest.mark.parametrize(
    ("kind", "columns"),
    [("relation", {1, D + 1}), ("change", {1, D + 1}), ("jump", {1, D + 1}), ("stuck", set()),
     ("score", {2 * D})],
)  # fmt: skip
def test_what_lasts_becomes_the_baseline_of_its_cells(model, kind: str, columns: set[int]) -> None:
    """The mean of the last full block of 16 rows and the 4 after it."""
    rows, scores = rows_of(WARM_UP + 20, 1), scores_of(WARM_UP + 20, 1)
    stream = AlarmStream(model, RATE)
    before = copy(stream._baseline)
    residuals = stream._cells.add(rows)
    stream.tracker.lasted = [line_of(kind, 1, D)]
    stream._adopt(copy(before), residuals, scores)
    assert stream.tracker.lasted == []
    every = np.column_stack([residuals.now, residuals.past, np.log1p(scores)])
    before.add(every)
    for column in range(2 * D + 1):
        adopted = every[-20:, column].mean() if column in columns else before.mean[column]
        assert stream._baseline.mean[column] == pytest.approx(adopted)
    assert stream._quiet.tolist() == [False, kind == "stuck", False]


def test_a_level_that_lasts_is_adopted_as_of_the_row_at_which_it_lasted(model) -> None:
    rows, scores = rows_of(300, 1), scores_of(300, 1)
    rows[150:, 0] += 12
    whole, singly = (AlarmStream(model, RATE, longest=60) for _ in range(2))
    judged = whole.add(rows, scores)
    assert any(one.event.lasting for one in judged.notices)
    assert whole.tracker.lasted == []
    assert whole._baseline.mean[0] > 3  # residuals of the new level are expected
    ratios = [singly.add(rows[t : t + 1], scores[t : t + 1]).ratio[0] for t in range(300)]
    np.testing.assert_array_equal(ratios, judged.ratio)
    np.testing.assert_array_equal(singly._baseline.mean, whole._baseline.mean)


def test_a_standstill_that_became_normal_is_quiet_until_the_channel_moves(model) -> None:
    stream = AlarmStream(model, RATE)
    stream._quiet = np.array([True, False, True])
    same = np.array([[1, 1, 1], [1, 1, 0], [0, 1, 1], [1, 0, 1]], bool)
    quiet = np.array([[1, 0, 1], [1, 0, 0], [0, 0, 0], [0, 0, 0]], bool)
    np.testing.assert_array_equal(stream._stuck(same), model.stuck * (same & ~quiet))


def constant_and(*moved: tuple[int, int, float]) -> tuple[AlarmModel, np.ndarray]:
    """A model whose last channel was constant, and rows in which it takes other values."""
    train, rows = (np.append(rows_of(500, seed), np.full((500, 1), 7.0), axis=1) for seed in (0, 1))
    for start, end, value in moved:
        rows[start:end, D] = value
    return AlarmModel.fit([train]), rows


@pytest.mark.parametrize("size", [500, 7, 1])
def test_a_constant_channel_that_leaves_its_value_alarms_while_it_does(size: int) -> None:
    model, rows = constant_and((200, 260, 7.5), (300, 301, 7.0 + 1e-7))
    stream, notices = AlarmStream(model, RATE), []
    for at in range(0, len(rows), size):
        notices += stream.add(rows[at : at + size]).notices
    assert [one.what for one in notices if one.what != "update"] == ["open", "resolve"]
    event = notices[-1].event
    assert event.rows == (200, 260)
    assert event.alarm <= 202
    assert [line % (D + 1) for line in event.lines] == [D]
    assert event.suspicion(5).argmax() == D


def test_another_value_of_a_constant_channel_becomes_normal_and_so_does_its_own_again() -> None:
    model, rows = constant_and((200, 400, 9.0), (430, 500, 8.0))
    stream = AlarmStream(model, RATE, longest=50)
    notices = stream.add(rows).notices + stream.tracker.finish()
    ended = [one.event for one in notices if one.what == "resolve"]
    assert [event.rows[0] for event in ended] == [200, 430]
    assert ended[0].rows[1] == 250
    assert ended[0].lasting


def test_a_restart_forgets_events_and_may_take_the_level_as_normal(model) -> None:
    rows = rows_of(300, 1)
    rows[200:, 0] += 30
    for new_level in (False, True):
        stream = AlarmStream(model, RATE)
        stream.tracker.rest = 5
        stream.add(rows)
        assert stream.tracker.events
        before = stream._baseline.mean[0]
        stream.restart(new_level)
        assert (stream.tracker.events, stream.tracker.n_rows, stream.tracker.rest) == ([], 300, 5)
        assert (stream._baseline.mean[0] != before) == new_level


@pytest.mark.parametrize("at", [0, 1, 40, 150])
def test_a_stream_resumes(model, at: int) -> None:
    rows, scores = rows_of(260, 1), scores_of(260, 1)
    rows[140:170, 1] += 8
    stream, other = AlarmStream(model, RATE), AlarmStream(model, RATE)
    stream.add(rows[:at], scores[:at])
    other.add(rows[50:90])  # is forgotten
    state = {name: array.copy() for name, array in stream.state().items()}
    other.resume(state, stream.tracker.description())
    found, whole = other.add(rows[at:], scores[at:]), AlarmStream(model, RATE).add(rows, scores)
    np.testing.assert_array_equal(found.ratio, whole.ratio[at:])
    np.testing.assert_array_equal(found.surprise, whole.surprise[at:])
    np.testing.assert_array_equal(found.expected.upper, whole.expected.upper[at:])


@pytest.mark.parametrize("name", ["last", "quiet"])
def test_a_state_of_other_channels_is_refused(model, name: str) -> None:
    stream = AlarmStream(model, RATE)
    state = stream.state()
    state[name] = state[name][..., :-1]
    with pytest.raises(ValueError, match="last row has the shape"):
        stream.resume(state, [])


def test_an_update_learns_from_all_parts(model) -> None:
    parts = [2 * rows_of(200, 5), rows_of(0, 6), 2 * rows_of(150, 7)]
    found = updated(model, parts)
    lines = [AlarmStream(model, RATE).lines_of(parts[0])]
    stream = AlarmStream(model, RATE)
    stream._baseline = _after(model, parts[0])
    lines.append(stream.lines_of(parts[2]))
    wanted = model.tails.updated(lines, D)
    for name, array in wanted.arrays().items():
        np.testing.assert_array_equal(found.tails.arrays()[name], array)
    assert found.cells is model.cells
    assert updated(model, []) is model
    assert updated(model, [rows_of(0, 1)]) is model


def _after(model: AlarmModel, rows: np.ndarray):
    """The baseline after some rows."""
    baseline = model.baseline()
    model.judge(rows, model.cells.begin().add(rows), NONE[: len(rows)], baseline)
    return baseline
