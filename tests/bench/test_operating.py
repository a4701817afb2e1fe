import csv
import io
import json

import numpy as np
import pytest

from bench.made_runs import STEMS, made_row, make_run
from bench.toys import Distance, make_folder, make_table
from vace_ad import VACE
from vace_ad.baselines import Method
from vace_ad.bench import tasks
from vace_ad.bench.catalog import find_series
from vace_ad.bench.operating import blame, live_alarms, operate, positioned, read_causes
from vace_ad.bench.results import Results
from vace_ad.bench.rows import Row
from vace_ad.bench.runner import Plan
from vace_ad.bench.tables import TABLES
from vace_ad.errors import ConfigError, InputError
from vace_ad.metrics import operating

BUDGET = "1 in 1000 rows"


@pytest.fixture(scope="module")
def plant():
    """A fitted detector, test rows and labels; one fault of 20 rows from row 500 on."""
    table = make_table(1_400, 3, 1_100)
    values = table.drop("Label").to_numpy()
    detector = VACE(random_state=0, engine="numpy", patch_length=24).fit(values[:600])
    return detector, values[600:], table["Label"].to_numpy()[600:]


def test_counts_events_and_live_alarms_at_the_budget(plant):
    detector, rows, labels = plant
    found = operate(detector, rows, labels, BUDGET)
    events = [(event.start, event.end) for event in detector.detect(rows, budget=BUDGET).anomalies]
    opened = live_alarms(detector, rows, BUDGET)
    assert found == operating(labels, events, rate=1e-3, opened=opened)
    assert (found.found, len(found.delays)) == (1, 1)
    assert found.delays[0] < 24


def test_a_live_alarm_knows_no_later_row(plant):
    detector, rows, _ = plant
    first = live_alarms(detector, rows, BUDGET)[0]
    changed = rows.copy()
    changed[first + 1 :] = rows[0]
    assert live_alarms(detector, changed, BUDGET)[0] == first
    assert live_alarms(detector, rows[: first + 1], BUDGET) == [first]


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


def vace(seed):
    return VACE(random_state=seed, engine="numpy", patch_length=16)


@pytest.mark.parametrize(("make", "counted"), [(vace, True), (Distance, False)])
def test_a_task_counts_alarms_where_the_method_has_some(tmp_path, monkeypatch, make, counted):
    folder = make_folder(tmp_path / "data")
    causes = {"001_Genesis_id_1_Sensor_tr_100_1st_150": [
        {"start": 150, "end": 170, "channels": ["c1"]}
    ]}  # fmt: skip
    (tmp_path / "causes.json").write_text(json.dumps(causes))
    monkeypatch.setattr(tasks, "resolve", lambda name: Method(name, make))
    monkeypatch.setattr("vace_ad.bench.runner.resolve", lambda name: Method(name, make))
    plan = Plan(
        find_series(folder, "all", ["Genesis"], []),
        ["vace"],
        ("tsb-ad", "test-only"),
        budget=BUDGET,
        causes=str(tmp_path / "causes.json"),
    )
    rows = [result.row for task in plan.tasks() for result in tasks.compute(task)]
    assert [row.status for row in rows] == ["ok", "ok"], rows[0].error
    assert rows[0].operating == rows[1].operating
    assert bool(rows[0].operating) == counted
    if counted:
        assert rows[0].operating["budget"] == BUDGET
        assert rows[0].operating["allowed"] == pytest.approx(0.16)
        assert len(rows[0].operating["blamed"]) == 1
    assert Row.from_json(rows[0].to_json()).operating == json.loads(json.dumps(rows[0].operating))


def test_a_budget_of_time_is_refused():
    with pytest.raises(ConfigError, match="1 in 10000 rows"):
        Plan([], ["vace"], budget="1 per week").tasks()


def made(stem, seed, start):
    labels = np.zeros(1_000, int)
    labels[500:520] = 1
    counted = operating(labels, [(start, start + 20), (900, 910)], rate=1e-3, opened=[start + 5])
    return made_row("vace", stem, seed, operating={"budget": BUDGET, **counted.to_plain()})


def test_the_table_adds_counts_up_by_family(tmp_path):
    rows = [made(stem, seed, 500 + 2 * i) for i, stem in enumerate(STEMS) for seed in (0, 1)]
    rows += [made_row("pca", stem) for stem in STEMS]
    table = TABLES["operating"](Results.load(make_run(tmp_path, rows)))
    lines = list(csv.DictReader(io.StringIO(table.to_csv())))
    assert [line["family"] for line in lines] == ["GECCO", "MSL", "Genesis", "all"]
    assert (lines[-1]["series"], lines[-1]["seeds"]) == (str(len(STEMS)), "2")
    assert (lines[-1]["found"], lines[-1]["false_alarms"]) == (str(2 * len(STEMS)),) * 2
    assert float(lines[-1]["allowed"]) == pytest.approx(2.0 * len(STEMS))
    expected = np.median([5 + 2 * i for i in range(len(STEMS))])
    assert float(lines[-1]["delay_median"]) == pytest.approx(expected)
    assert any("without alarms: pca" in note for note in table.notes)


def test_a_run_without_alarms_says_how_to_get_them(tmp_path):
    run = make_run(tmp_path, [made_row("pca", stem) for stem in STEMS])
    with pytest.raises(InputError, match="--budget"):
        TABLES["operating"](Results.load(run))
