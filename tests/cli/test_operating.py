"""`vace evaluate` with operating measures: from predictions, and from a model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from cli.test_evaluate import run, run_json
from vace_ad import VACE
from vace_ad.errors import InputError
from vace_ad.metrics import evaluate, operating
from vace_ad.metrics.backtest import operate

TRAIN, ROWS = 900, 1_700
FAULTS = ((1_200, 1_230), (1_500, 1_540))


@pytest.fixture(scope="module")
def plant(tmp_path_factory) -> Path:
    """A folder with a labelled table, labels apart, a model and root causes."""
    rng = np.random.default_rng(0)
    values = np.sin(np.arange(ROWS)[:, None] / [5, 7, 9]) + 0.1 * rng.normal(size=(ROWS, 3))
    label = np.zeros(ROWS, int)
    for start, end in FAULTS:
        values[start:end, 1] += 3.0
        label[start:end] = 1
    table = pl.DataFrame(values, schema=["flow", "heat", "load"])
    folder = tmp_path_factory.mktemp("plant")
    VACE(random_state=0, engine="numpy", patch_length=32).fit(table[:TRAIN]).save(
        folder / "plant.vace"
    )
    rest, faults = table[TRAIN:], pl.DataFrame({"fault": label[TRAIN:]})
    rest.hstack(faults).write_csv(folder / "plant.csv")
    rest.write_csv(folder / "bare.csv")
    faults.write_csv(folder / "faults.csv")
    causes = [
        {"start": start - TRAIN, "end": end - TRAIN, "channels": ["heat"]} for start, end in FAULTS
    ]
    (folder / "causes.json").write_text(json.dumps({"plant": causes, "other": []}))
    return folder


def test_predictions_are_judged_beside_the_threshold_free_measures(tmp_path: Path) -> None:
    label = np.zeros(2_000, int)
    label[500:520] = 1
    alarm = np.zeros(2_000, int)
    alarm[490:530] = alarm[1_500:1_510] = 1
    table = pl.DataFrame({"label": label, "score": alarm + 0.5, "alarm": alarm})
    table.write_csv(tmp_path / "scores.csv")
    arguments = (tmp_path / "scores.csv", "--prediction-column", "alarm")
    found = run_json(*arguments, "--budget", "1 in 1000 rows")["operating"]
    expected = operating(label, [(490, 530), (1_500, 1_510)], rate=1e-3).summary()
    assert found == pytest.approx(expected)
    assert found["allowed"] == pytest.approx(2.0)
    text = run(*arguments, "--budget", "1 per week", "--step-seconds", 60)
    assert "1 (0.2 allowed)" in text
    assert "-10 rows" in text
    with pytest.raises(InputError, match="--step-seconds"):
        run(*arguments, "--budget", "1 per week")


def test_a_model_alarms_in_one_go_and_live(plant: Path) -> None:
    model = plant / "plant.vace"
    given = ("--model", model, "--label-column", "fault", "--budget", "1 in 1000 rows")
    found = run_json(plant / "plant.csv", *given, "--causes", plant / "causes.json")
    table = pl.read_csv(plant / "bare.csv")
    label = pl.read_csv(plant / "faults.csv")["fault"].to_numpy()
    detector = VACE(random_state=0, engine="numpy", patch_length=32)
    rows = np.sin(np.arange(TRAIN)[:, None] / [5, 7, 9])  # the training again, from its seed
    rows += 0.1 * np.random.default_rng(0).normal(size=(ROWS, 3))[:TRAIN]
    detector.fit(pl.DataFrame(rows, schema=table.columns))
    causes = json.loads((plant / "causes.json").read_text())["plant"]
    counted = operate(detector, table, label, "1 in 1000 rows", causes=causes)
    assert found["operating"] == pytest.approx(counted.summary(), nan_ok=True)
    assert (found["operating"]["found"], found["operating"]["live_found"]) == (2, 2)
    assert found["operating"]["delay_median"] < 30
    assert (found["operating"]["blame_1"], found["operating"]["blamed"]) == (1.0, 2)
    scores = detector.score(table)
    free = evaluate(label, scores)
    assert found["measures"]["VUS-PR"] == pytest.approx(free["VUS-PR"])


def test_labels_may_lie_in_a_file_of_their_own(plant: Path) -> None:
    given = ("--model", plant / "plant.vace", "--label-column", "fault")
    apart = run(plant / "bare.csv", *given, "--labels", plant / "faults.csv")
    assert "found live" in apart
    assert apart == run(plant / "plant.csv", *given)


def test_says_what_does_not_go_together(plant: Path, tmp_path: Path) -> None:
    table, model = plant / "plant.csv", ("--model", plant / "plant.vace")
    column = ("--label-column", "fault")
    with pytest.raises(InputError, match="--model and --threshold"):
        run(table, *column, *model, "--threshold", 3)
    with pytest.raises(InputError, match="--causes needs --model"):
        run(table, *column, "--causes", plant / "causes.json")
    with pytest.raises(InputError, match="--budget needs predictions"):
        run(table, *column, "--budget", "1 per week")
    with pytest.raises(InputError, match="no causes of 'bare"):
        run(plant / "bare.csv", *column, *model, "--labels", plant / "faults.csv",
            "--causes", plant / "causes.json")  # fmt: skip
    pl.read_csv(plant / "faults.csv")[:-5].write_csv(tmp_path / "short.csv")
    with pytest.raises(InputError, match="795 rows, the table 800"):
        run(plant / "bare.csv", *column, *model, "--labels", tmp_path / "short.csv")
    (tmp_path / "bad.json").write_text('{"plant": [{"start": 1}]}')
    with pytest.raises(InputError, match="holds no root causes"):
        run(table, *column, *model, "--causes", tmp_path / "bad.json")
