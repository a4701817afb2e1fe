import csv
import io
import json

import numpy as np
import pytest

from made_runs import STEMS, made_row, make_run
from toys import Distance, make_folder
from vace_ad import VACE
from vace_ad.errors import ConfigError, InputError
from vace_ad.metrics import operating
from vace_study import tasks
from vace_study.baselines import Method
from vace_study.catalog import find_series
from vace_study.results import Results
from vace_study.rows import Row
from vace_study.runner import Plan
from vace_study.tables import TABLES

BUDGET = "1 in 1000 rows"


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
    monkeypatch.setattr("vace_study.runner.resolve", lambda name: Method(name, make))
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
