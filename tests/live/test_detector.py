"""The real detector behind live operation's protocol."""

from collections import deque

import numpy as np
import pytest

from vace_ad import VACE
from vace_ad.alarms.budget import Budget
from vace_ad.errors import ModelFileError, StateError
from vace_ad.frames import Table
from vace_ad.live.detector import SHOWN, Detectors, LiveModel, ScoreHistory

CHANNELS = ("flow", "level", "power")
TRAIN, N, FAULT = 1200, 1700, (1500, 1540)
STEP = 10 * 10**9
TIME = np.datetime64("2026-01-01", "ns") + np.arange(N) * np.timedelta64(STEP, "ns")
SMALL = {"patch_length": 24, "encoders": 1}


def test_it_holds_what_a_bounded_queue_holds():
    rng = np.random.default_rng(0)
    recent, queue = ScoreHistory(), deque(maxlen=SHOWN)
    assert recent.last is None
    assert len(recent) == 0
    at = 1_767_614_400 * 10**9
    for n in [1, 3, 200, 0, SHOWN - 1, 1, SHOWN + 7, 2]:
        times = list(range(at, at + n))
        scores = rng.normal(size=n).tolist()
        recent.extend(times, scores)
        queue.extend(zip(times, scores, strict=True))
        at += n
        assert list(recent) == list(queue)
        assert len(recent) == len(queue)
        assert recent.last == queue[-1][1]


def test_who_looks_while_rows_come_sees_whole_pairs():
    recent = ScoreHistory()
    recent.extend([1, 2], [0.5, 0.25])
    looking = iter(recent)
    recent.extend(range(3, 3 + SHOWN), [1.0] * SHOWN)
    assert list(looking) == [(1, 0.5), (2, 0.25)]


def rows(seed=0):
    rng = np.random.default_rng(seed)
    waves = np.sin(2 * np.pi * np.arange(N)[:, None] / 24 + np.arange(3))
    values = (waves + 0.1 * rng.normal(size=(N, 3))) * [1, 5, 30] + [0, 9, 99]
    values[slice(*FAULT), 1] += 40
    return values


def fitted(seed=0):
    return VACE(**SMALL).fit(Table(rows(seed)[:TRAIN], CHANNELS, TIME[:TRAIN]))


@pytest.fixture(scope="module")
def detector():
    return fitted()


@pytest.fixture(scope="module")
def model(detector):
    return LiveModel(detector, "a", Budget(1, "week"))


def fed(stream, start, end, chunk=10):
    found = []
    for a in range(start, end, chunk):
        b = min(a + chunk, end)
        found += stream.add(rows()[a:b], TIME[a:b]).changes
    return found


def in_fault(change):
    return FAULT[0] <= change.event.alarm + TRAIN < FAULT[1]


def test_a_fault_opens_an_alarm_and_its_end_resolves_it(model):
    told = [change for change in fed(model.stream(), TRAIN, N) if in_fault(change)]
    assert (told[0].what, told[-1].what) == ("open", "resolve")
    assert len({change.event.id for change in told}) == 1
    event = told[-1].event
    assert event.shares[0][0] == "level"
    assert abs(event.start + TRAIN - FAULT[0]) <= 3
    assert event.start_time == TIME[TRAIN + event.start]
    assert event.severity > 50


@pytest.mark.parametrize("at", [1300, 1520, 1545])
def test_a_state_goes_on_the_same(model, at):
    whole = fed(model.stream(), TRAIN, N)
    stream = model.stream()
    first = fed(stream, TRAIN, at, 10 if at % 10 == 0 else 5)
    again = model.restore(stream.to_bytes())
    later = fed(again, at, N)
    key = [(change.what, change.event.id, change.event.start) for change in whole]
    assert [(change.what, change.event.id, change.event.start) for change in first + later] == key


def test_a_state_of_another_model_is_refused(model):
    data = model.stream().to_bytes()
    other = LiveModel(fitted(seed=1), "b", Budget(1, "week"))
    with pytest.raises(StateError, match="another model"):
        other.restore(data)
    with pytest.raises(StateError):
        model.restore(data[: len(data) // 2])


def test_what_live_operation_shows_of_a_model(model):
    assert model.channels == CHANNELS
    assert model.step == STEP
    stream = model.stream()
    stream.add(rows()[:TRAIN], TIME[:TRAIN])
    latest = stream.latest(300)
    np.testing.assert_array_equal(latest.times, TIME[TRAIN - 300 : TRAIN])
    inside = (latest.values >= latest.lower) & (latest.values <= latest.upper)
    assert (inside.mean(axis=0) > 0.95).all()
    assert ((latest.upper - latest.lower).mean(axis=0) < 10 * latest.values.std(axis=0)).all()
    assert np.nanmax(latest.evidence) < 1.5


def test_models_are_files_that_load_the_same(detector, tmp_path):
    core = Detectors(Budget(1, "week"))
    detector.save(tmp_path / "one.vace")
    loaded = core.load(tmp_path / "one.vace")
    assert loaded.identity == core.load(tmp_path / "one.vace").identity
    fitted(seed=1).save(tmp_path / "two.vace")
    assert core.load(tmp_path / "two.vace").identity != loaded.identity
    stream = LiveModel(detector, "a", Budget(1, "week")).stream()
    fed(stream, TRAIN, 1520)
    again = loaded.restore(stream.to_bytes())  # the model in memory and its file are one
    assert [change.what for change in fed(again, 1520, N) if in_fault(change)][-1] == "resolve"
    with pytest.raises(ModelFileError, match="cannot be read"):
        core.load(tmp_path / "none.vace")


def test_a_fit_leaves_a_whole_file(tmp_path):
    path = tmp_path / "models" / "pump.vace"
    made = Detectors(Budget(1, "week")).fit(rows()[:TRAIN], CHANNELS, TIME[:TRAIN], path)
    assert made.channels == CHANNELS
    assert [each.name for each in path.parent.iterdir()] == ["pump.vace"]
