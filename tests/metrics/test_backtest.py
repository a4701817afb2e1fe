"""A detector with alarms, run over labelled rows."""

import json

import numpy as np
import pytest

from vace_ad import VACE
from vace_ad.alarms.budget import Budget
from vace_ad.errors import InputError
from vace_ad.metrics import operating
from vace_ad.metrics.backtest import blame, operate, positioned, read_causes

BUDGET = "1 in 1000 rows"


@pytest.fixture(scope="module")
def plant():
    """A fitted detector, test rows and labels; one fault of 20 rows from row 500 on."""
    rng = np.random.default_rng(0)
    values = np.sin(np.arange(1_400)[:, None] / [7, 8, 9]) + 0.1 * rng.normal(size=(1_400, 3))
    labels = np.zeros(1_400, dtype=np.int64)
    labels[1_100:1_120] = 1
    values[1_100:1_120] += 2.0
    detector = VACE(random_state=0, engine="numpy", patch_length=24).fit(values[:600])
    return detector, values[600:], labels[600:]


def test_counts_events_and_live_alarms_at_the_budget(plant):
    detector, rows, labels = plant
    found = operate(detector, rows, labels, BUDGET)
    events = detector.detect(rows, budget=BUDGET).anomalies
    opened = [change.event.alarm for change in live(detector, rows) if change.what == "open"]
    ranges = [(event.start, event.end) for event in events]
    assert found == operating(labels, ranges, rate=1e-3, opened=opened)
    assert (found.found, len(found.delays)) == (1, 1)
    assert found.delays[0] < 24


def live(detector, rows, budget=BUDGET):
    """What a live stream says, fed two rows at a time."""
    stream = detector.stream(budget=budget)
    return [
        change for a in range(0, len(rows), 2) for change in stream.add(rows[a : a + 2]).changes
    ]


def test_an_alarm_knows_no_later_row(plant):
    detector, rows, _ = plant
    first = detector.detect(rows, budget=BUDGET).anomalies[0].alarm
    changed = rows.copy()
    changed[first + 1 :] = rows[0]
    for table in (changed, rows[: first + 1]):
        assert detector.detect(table, budget=BUDGET).anomalies[0].alarm == first


def test_a_threshold_is_met_live_by_provisional_scores(plant):
    detector, rows, labels = plant
    budget = Budget(0.01, "share")
    found = operate(detector, rows, labels, budget)
    ranges = [(event.start, event.end) for event in detector.detect(rows, budget=budget).anomalies]
    opened = [c.event.alarm for c in live(detector, rows, budget) if c.what == "open"]
    assert found == operating(labels, ranges, rate=None, opened=opened)
    assert found.delays


def test_blame_by_name_and_by_position(plant):
    detector, rows, labels = plant
    rows = rows.copy()
    rows[500:520, [0, 2]] -= 2.0  # the fault is that of the middle channel now
    stretch = {"start": 1_100, "end": 1_120}
    causes = [
        {**stretch, "channels": [1]},
        {**stretch, "channels": [detector.channels_[1]]},
        {**stretch, "channels": [0]},
        {**stretch, "channels": []},  # nothing to judge
        {"start": 10, "end": 20, "channels": [1]},  # in the training part
    ]
    hits = blame(detector, rows, causes, first=600)
    assert hits[:2] == [(True, True, True)] * 2
    assert hits[2][0] is False
    assert len(hits) == 3
    assert operate(detector, rows, labels, BUDGET, causes=causes, first=600).blamed == tuple(hits)
    assert positioned([{"channels": ["b", 0]}], ["a", "b"]) == [{"channels": [1, 0]}]


def test_a_detector_of_whole_series_has_no_live_alarms(plant):
    _, rows, labels = plant
    detector = VACE(normalisation="zscore", engine="numpy", patch_length=24, shape="always")
    found = operate(detector.fit(rows[:300]), rows[300:], labels[300:], BUDGET)
    assert (found.live, found.delays) == (0, ())
    assert found.events == 1


def test_reads_causes_of_a_file_or_a_folder(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps({"one": [{"start": 1, "end": 2}]}))
    (tmp_path / "b.json").write_text(json.dumps({"two": [{"start": 3, "end": 4}]}))
    assert set(read_causes(tmp_path)) == {"one", "two"}
    assert set(read_causes(tmp_path / "a.json")) == {"one"}
    with pytest.raises(InputError, match="no root causes"):
        read_causes(tmp_path / "missing.json")
