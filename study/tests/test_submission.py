"""What is handed to the benchmark's keepers: that it runs, goes on, and says what failed."""

import csv
import importlib.util
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[1] / "submission"
TRAIN, ROWS = 400, 900
pytestmark = pytest.mark.filterwarnings("ignore")  # few training rows; the harness warns a lot


@pytest.fixture
def run_vace():
    spec = importlib.util.spec_from_file_location("Run_VACE", FOLDER / "Run_VACE.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def dataset(tmp_path):
    rng = np.random.default_rng(0)
    x = np.cumsum(rng.normal(size=(ROWS, 2)), axis=0) * 0.05 + np.sin(np.arange(ROWS) / 5)[:, None]
    labels = np.zeros(ROWS, int)
    labels[600:630] = 1
    x[600:630] += 5
    name = f"001_Made_id_1_Sensor_tr_{TRAIN}_1st_600.csv"
    lines = ["a,b,Label", *(f"{a},{b},{label}" for (a, b), label in zip(x, labels, strict=True))]
    (tmp_path / name).write_text("\n".join(lines))
    (tmp_path / "list.csv").write_text(f"file_name\n{name}\n002_Broken_tr_x_1st_9.csv\nmissing.csv")
    (tmp_path / "002_Broken_tr_x_1st_9.csv").write_text("a,Label\n1,0\n")
    return tmp_path, name


def arguments(folder, *more):
    out = folder / "eval"
    return [f"--dataset_dir={folder}", f"--file_list={folder / 'list.csv'}", f"--save_dir={out}",
            f"--score_dir={out}", "--own_measures", *more]  # fmt: skip


def test_a_file_list_becomes_rows_once_each(run_vace, dataset, capsys):
    folder, name = dataset
    run_vace.main(arguments(folder))
    out = capsys.readouterr().out
    with (folder / "eval" / "VACE.csv").open() as file:
        first, second = csv.DictReader(file)
    assert (first["file"], first["error"]) == (name, "")
    assert float(first["VUS-PR"]) > 0.8
    assert float(first["Time"]) > 0
    assert float(first["Memory"]) > 50
    assert second["error"].startswith("ValueError")
    assert "missing.csv: not there" in out
    assert np.load(folder / "eval" / "VACE" / f"{name[:-4]}.npy").shape == (ROWS,)
    run_vace.main(arguments(folder))
    assert len((folder / "eval" / "VACE.csv").read_text().splitlines()) == 3


def test_the_harness_measures_the_same(run_vace, dataset):
    pytest.importorskip("TSB_AD", reason="TSB-AD==1.5 (pip install --no-deps) is not installed")
    rng = np.random.default_rng(1)
    channel, labels = np.sin(np.arange(500) / 4) + 0.1 * rng.normal(size=500), np.zeros(500, int)
    labels[200:220] = 1
    score = rng.random(500) + labels
    own = run_vace.own_measures(score, labels, channel)
    theirs = run_vace.harness_measures(score, labels, channel)
    assert set(theirs) == set(run_vace.MEASURES)
    assert own["VUS-PR"] == pytest.approx(theirs["VUS-PR"], abs=1e-6)
    assert own["AUC-PR"] == pytest.approx(theirs["AUC-PR"], abs=1e-6)
    assert own["Affiliation-F"] == pytest.approx(theirs["Affiliation-F"], abs=1e-6)


def test_the_rows_at_hand_are_those_of_the_study():
    with (FOLDER / "VACE_M.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 68
    study = FOLDER.parent / "results" / "reproduce-rows.csv"
    with study.open() as file:
        known = {
            line["series"]: line
            for line in csv.DictReader(file)
            if (line["method"], line["seed"], line["protocol"]) == ("vace", "0", "tsb-ad")
        }
    for row in rows:
        assert row["VUS-PR"] == known[row["file"].removesuffix(".csv")]["VUS-PR"]
