"""Newer models on a schedule: trained on recent rows, taken where they are not worse."""

import time

import numpy as np
import pytest

from live.fakes import FakeCore, FakeModel
from live.feeds import CHANNELS, START, STEP, config, feed, write
from vace_ad import VACE, load
from vace_ad.alarms.budget import Budget
from vace_ad.app.retraining import Versions
from vace_ad.errors import ConfigError, TooShortError
from vace_ad.frames import Table
from vace_ad.live.config import make_config
from vace_ad.live.detector import Detectors
from vace_ad.live.models import recent_rows
from vace_ad.live.runner import Watch

FAULT = (100, 120, 1)


class Core(FakeCore):
    """Remembers what it was asked to train on, and answers as it was told."""

    def __init__(self, answer):
        self.answer, self.asked = answer, []

    def retrain(self, model, rows, time, path, faults, doubtful):
        self.asked.append((rows, time, faults, doubtful))
        if isinstance(self.answer, Exception):
            raise self.answer
        if self.answer is not None:
            self.answer.save(path)
        return self.answer, "what it was worth"


def newer():
    return FakeModel(CHANNELS, [0.1] * 3, [1.2] * 3)


def learning(tmp_path, **retrain):
    given = {"model": {"learn": "10min"}, "source": {"follow": False}, "retrain": retrain}
    made = config(tmp_path)  # writes a model file, which is not used here
    plain = {"kind": "jsonl", "path": str(tmp_path / "feed.jsonl"), "follow": False}
    return make_config(
        {
            "source": plain,
            "align": {"step": "10s"},
            "model": given["model"],
            "alarms": {"resolve_after": "2min", "silence_after": "off", "group": "0s"},
            "state": {"path": str(made.state.path), "checkpoint": "50ms", "snapshot_rows": 16},
            "retrain": retrain,
        }
    )


def watched(made, core):
    """A watch that has worked off its feed, and every training that was due then."""
    watch = Watch(made, core)
    watch.start()
    while watch.step():
        pass
    watch._tick()
    end = time.monotonic() + 10
    while watch.models._fits:
        assert time.monotonic() < end
        watch._learn()
    watch.checkpoint()
    return watch


def test_a_newer_model_takes_over_and_survives_a_restart(tmp_path) -> None:
    write(tmp_path, feed(n_rows=300, entities=("p1",), faults=(FAULT,)))
    core = Core(newer())
    made = learning(tmp_path, every="20min", over="30min")
    watch = watched(made, core)
    entity = watch.registry.get("p1")
    ((rows, times, faults, doubtful),) = core.asked
    assert len(rows) == 181  # thirty minutes, and not only those since the last snapshot
    assert times[-1].astype(np.int64) == START + 299 * STEP
    assert not faults
    assert [(a - START) // STEP for a, _ in doubtful] == [100]  # it ends within these rows
    assert entity.model is core.answer
    assert entity.model_words == "what it was worth"
    assert entity.trained == entity.seen  # the next one is due after the same time
    watch.close()
    write(tmp_path, feed(n_rows=310, entities=("p1",), faults=((302, 310, 2),))[300:], "a")
    again = watched(made, Core(None))
    entity = again.registry.get("p1")
    assert entity.model.identity == core.answer.identity
    assert entity.model_words == "what it was worth"
    assert again.status.counts["damaged"] == 0
    assert again.status.counts["alarms_opened"] == 1
    again.close()


def test_doubtful_rows_are_not_trained_on_and_faults_are_known(tmp_path) -> None:
    write(tmp_path, feed(n_rows=200, entities=("p1",), faults=((90, 110, 1), (150, 160, 2))))
    core = Core(None)
    watch = watched(learning(tmp_path, every="40min", over="1h"), core)
    store = watch.store
    alarms = {one["onset"]: one["alarm"] for one in store.alarms()}
    store.mark(alarms[max(alarms)], "fault", "now")
    entity = watch.registry.get("p1")
    hour = 3600 * 10**9
    _, _, faults, doubtful = recent_rows(entity, store, hour)
    assert [(a - START) // STEP for a, _ in faults] == [150]
    assert [(a - START) // STEP for a, _ in doubtful] == [90]
    store.mark(alarms[min(alarms)], "normal", "now")
    assert not recent_rows(entity, store, hour).doubtful
    watch.close()


@pytest.mark.parametrize("answer", [None, TooShortError("too few rows")])
def test_the_present_model_stays_where_the_newer_one_is_no_use(tmp_path, answer) -> None:
    write(tmp_path, feed(n_rows=300, entities=("p1",), faults=()))
    watch = watched(learning(tmp_path, every="20min"), Core(answer))
    entity = watch.registry.get("p1")
    assert entity.model.channels == CHANNELS
    assert entity.model_words == (
        "what it was worth" if answer is None
        else "a newer model could not be trained: too few rows"
    )  # fmt: skip
    assert entity.trained == entity.seen  # it is tried again after the same time
    watch.close()


def test_rows_are_not_kept_without_a_schedule(tmp_path) -> None:
    write(tmp_path, feed(n_rows=300, entities=("p1",), faults=()))
    watch = watched(learning(tmp_path), Core(None))
    assert len(watch.store.journal("p1")) < 60
    watch.close()


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        ({"retrain": {"every": "7d"}}, "model.file is one for all"),
        ({"retrain": {"over": "7d"}}, "retrain.over needs retrain.every"),
    ],
)
def test_settings_that_do_not_go_together(tmp_path, sections, words) -> None:
    with pytest.raises(ConfigError, match=words):
        config(tmp_path, **sections)


def test_the_real_detector_takes_a_model_that_is_not_worse(tmp_path) -> None:
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=1_600)
    values = hidden[:, None] * [1, 2] + 0.2 * rng.normal(size=(1_600, 2))
    values[800:] += 3  # another level since
    times = np.datetime64("2026-01-01", "ns") + np.arange(1_600) * np.timedelta64(1, "m")
    file = tmp_path / "p1.vace"
    VACE().fit(Table(values[:600], ("a", "b"), times[:600])).save(file)
    before = load(file).model_.digest
    detectors = Detectors(Budget.of("1 in 200 rows"))
    present = detectors.load(file)
    span = (int(times[1_000].astype(np.int64)), int(times[1_100].astype(np.int64)))
    model, words = detectors.retrain(present, values[800:], times[800:], file, [], [span])
    assert model is not None
    assert words.startswith("model version 2: 0 false alarms, before ")
    assert model.identity != present.identity
    versions = Versions(file)
    assert [one.number for one in versions.every] == [1, 2]
    versions.back()
    assert load(file).model_.digest == before
