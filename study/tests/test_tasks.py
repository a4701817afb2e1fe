import polars as pl
import pytest

from toys import make_folder, make_table, write
from vace_ad import __version__
from vace_ad.metrics import dqe, evaluate, pate
from vace_study.baselines import resolve
from vace_study.results import Results
from vace_study.rows import MEASURES
from vace_study.tasks import Task, compute

STEM = "002_MSL_id_1_Sensor_tr_120_1st_180"


@pytest.fixture
def path(tmp_path):
    return make_folder(tmp_path) / f"{STEM}.csv"


def task(path, method="toys:Distance", protocols=("tsb-ad", "test-only"), **changes):
    return Task(method, str(path), "eval", 3, protocols, **changes)


def test_a_row_says_everything(path):
    (whole, scores), (test, _) = compute(task(path, keep_scores=True))
    assert (whole.method, whole.series, whole.seed) == ("toys:Distance", STEM, 3)
    assert (whole.status, whole.family, whole.split) == ("ok", "MSL", "eval")
    assert (whole.rows, whole.channels, whole.train_rows) == (300, 2, 120)
    assert (whole.protocol, whole.evaluated_rows, whole.anomalous_rows) == ("tsb-ad", 300, 20)
    assert (test.protocol, test.evaluated_rows, test.anomalous_rows) == ("test-only", 180, 20)
    assert whole.config == resolve("toys:Distance").config_hash
    assert whole.version == __version__
    assert set(whole.measures) == set(MEASURES)
    labels = pl.read_csv(path)["Label"].to_numpy()
    near = whole.window
    assert whole.measures == {
        **evaluate(labels, scores, window=near),
        "PATE": pate(labels, scores, early=near, late=near),
        "DQE": dqe(labels, scores, near=near),
    }
    assert whole.peak_memory_mb > 10
    assert min(whole.fit_seconds, whole.score_seconds, whole.evaluate_seconds) >= 0
    assert 0 < whole.cpu_seconds < 60


def test_what_a_detector_left_out_is_told(path):
    rows = [result.row for result in compute(task(path, "toys:Capped"))]
    assert [row.notes for row in rows] == [("capped: 3 of 9 training windows",)] * 2
    (told,) = Results("tsb-ad", rows[:1]).notes()
    assert told.startswith("toys:Capped: 1 of 1 rows with caps to save time")
    assert told.endswith("3 of 9 training windows")


def test_scores_are_left_out_unless_asked_for(path):
    assert [result.scores for result in compute(task(path))] == [None, None]


@pytest.mark.parametrize(
    ("detector", "error"),
    [
        ("Broken", "RuntimeError: no luck"),
        ("NotANumber", "InputError: 5 of 300 scores are not finite"),
        ("TooFew", "InputError: the detector returned scores of shape (299,), not (300,)"),
    ],
)
def test_a_failure_is_a_row_with_its_error(path, detector, error):
    rows = [result.row for result in compute(task(path, f"toys:{detector}"))]
    assert [row.status for row in rows] == ["failed", "failed"]
    assert rows[0].error.startswith(error)
    assert "Traceback" in rows[0].traceback
    assert rows[0].measures == {}


def test_a_file_that_cannot_be_read_is_a_failed_row(tmp_path):
    (tmp_path / f"{STEM}.parquet").write_bytes(b"no")
    (row, _), _ = compute(task(tmp_path / f"{STEM}.parquet"))
    assert row.status == "failed"
    assert row.error.startswith("TableReadError")


def test_nothing_to_find_in_the_evaluated_part_is_listed(tmp_path):
    path = tmp_path / "001_Genesis_id_1_Sensor_tr_100_1st_50.csv"
    write(make_table(260, 3, 50), path)  # the only event ends before the test part
    (whole, _), (test, _) = compute(task(path))
    assert (whole.status, test.status) == ("ok", "no-anomaly")
    assert test.measures == {}


def test_warnings_and_disagreements_become_notes(tmp_path):
    path = tmp_path / "001_Genesis_id_1_Sensor_tr_100_1st_140.csv"
    write(make_table(260, 3, 150), path)
    (row, _), _ = compute(task(path, "toys:Warns"))
    assert row.notes == (
        "the first anomaly is row 150, the name says 140",
        "UserWarning: the table looks odd",
    )


def test_a_measure_that_is_not_defined_is_left_out_and_noted(path, monkeypatch):
    import vace_ad.metrics as metrics

    known = {**dict.fromkeys(MEASURES, 0.5), "Affiliation-F": float("nan")}
    monkeypatch.setattr(metrics, "evaluate", lambda labels, scores, window: known)
    (row, _), _ = compute(task(path))
    assert row.status == "ok"
    assert set(MEASURES) - set(row.measures) == {"Affiliation-F"}
    assert row.notes == ("VaceWarning: Affiliation-F is not defined here",)
    assert "NaN" not in row.to_json()


def test_geometry_of_vace_is_in_the_row(tmp_path):
    path = tmp_path / "001_Genesis_id_1_Sensor_tr_300_1st_400.csv"
    write(make_table(500, 2, 400), path)
    ((row, _),) = compute(task(path, "vace", ("tsb-ad",)))
    assert row.status == "ok", row.traceback
    assert 0 < row.geometry["effective_rank_pr"] <= 1
    assert row.geometry["verdict"] in ("healthy", "collapsed", "isotropic")
