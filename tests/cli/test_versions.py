"""A newer model where it is not worse, and the way back; faults in and out as CSV."""

import json

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from vace_ad import VACE, load
from vace_ad.app.retraining import Versions
from vace_ad.cli.main import app
from vace_ad.errors import ModelFileError

N = 1_500
FAULT = ("2026-01-01T21:40:00", "2026-01-01T22:19:00")  # rows 1300 to 1339


def rows(seed, level=0.0):
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=N)
    values = hidden[:, None] * [1, 2, -1] + 0.2 * rng.normal(size=(N, 3)) + level
    values[1_300:1_340, 1] += 9
    time = np.datetime64("2026-01-01", "ns") + np.arange(N) * np.timedelta64(1, "m")
    return pl.DataFrame({"time": time, **dict(zip(("a/x", "a/y", "b/z"), values.T, strict=True))})


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    old = rows(0)[:1_200]
    VACE().fit(old).save(folder / "old.vace")
    rows(1, level=4.0).write_csv(folder / "recent.csv")
    (folder / "faults.csv").write_text(",".join(FAULT) + "\n")
    return folder


@pytest.fixture
def place(files, tmp_path):
    for file in files.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


def run(*words):
    result = CliRunner().invoke(app, [*map(str, words)])
    assert result.exit_code == 0, result.output + repr(result.exception)
    return json.loads(result.stdout)


def test_a_model_of_recent_rows_is_taken_and_given_back(place) -> None:
    model = place / "old.vace"
    before = load(model).model_.digest
    options = ("--labels", place / "faults.csv", "--budget", "1 in 1000 rows", "--json")
    told = run("retrain", model, place / "recent.csv", *options)
    assert told["taken"]
    assert told["new"]["found"] == told["new"]["faults"] == 1
    assert told["new"]["false_alarms"] <= told["present"]["false_alarms"]
    assert load(model).model_.digest != before
    listed = run("models", model, "--json")
    assert [one["number"] for one in listed["versions"]] == [1, 2]
    assert listed["active"] == 2
    assert listed["versions"][1]["trained"][0].startswith("2026-01-01")
    assert run("models", model, "--back", "--json")["active"] == 1
    assert load(model).model_.digest == before
    assert run("models", model, "--use", 2, "--json")["active"] == 2


def test_a_worse_model_is_not_taken_nor_a_better_one_in_a_dry_run(place, monkeypatch) -> None:
    from vace_ad.app import retraining as versions

    worse, better = versions.Worth(0, 1, 0), versions.Worth(1, 1, 0)
    worths = iter([better, worse, worse, better])  # present, new
    monkeypatch.setattr(versions, "_worth", lambda *given: next(worths))
    model = place / "old.vace"
    before = model.read_bytes()
    for options in ((), ("--dry-run",)):
        assert not run("retrain", model, place / "recent.csv", "--json", *options)["taken"]
    assert model.read_bytes() == before
    assert run("models", model, "--json")["versions"] == []


def test_versions_that_are_not_there(place) -> None:
    model = place / "old.vace"
    with pytest.raises(ModelFileError, match="no version before"):
        Versions(model).back()
    with pytest.raises(ModelFileError, match="kept are: none"):
        Versions(model).use(3)
    folder = place / "old.vace.versions"
    folder.mkdir()
    (folder / "versions.json").write_text("{}")
    with pytest.raises(ModelFileError, match="cannot be read"):
        Versions(model)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("retrain", "old.vace", "recent.csv", "--share", "2"), "between 0.1 and 0.9"),
        (("models", "old.vace", "--back", "--use", "1"), "cannot be combined"),
    ],
)
def test_options_that_mean_nothing(place, words, said) -> None:
    words = [str(place / one) if one.endswith((".vace", ".csv")) else one for one in words]
    result = CliRunner().invoke(app, words)
    assert said in str(result.exception)


def test_evaluate_tells_the_forewarning(place) -> None:
    told = run("evaluate", place / "recent.csv", "--model", place / "old.vace",
               "--labels", place / "faults.csv", "--json")  # fmt: skip
    (fault,) = told["forewarning"]["faults"]
    assert fault["found"]
    result = CliRunner().invoke(
        app,
        ["evaluate", str(place / "recent.csv"), "--model", str(place / "old.vace"), "--labels",
         str(_other_year(place))],
    )  # fmt: skip
    assert "no row of the table lies in a stretch" in str(result.exception)


def _other_year(place):
    file = place / "other.csv"
    file.write_text("start,end\n2020-01-01,2020-01-02\n")
    return file


def test_verdicts_leave_as_labels(place) -> None:
    model, file = place / "old.vace", place / "said.csv"
    nothing = CliRunner().invoke(app, ["feedback", str(model), "--export", str(file)])
    assert "nothing to export" in str(nothing.exception)
    run("feedback", model, "--fault", *FAULT, "--note", "a, b", "--json")
    run("feedback", model, "--export", file, "--json")
    header, line = file.read_text().splitlines()
    assert header == "start,end,code,note,equipment"
    assert line.startswith("2026-01-01T21:40:00")
    assert '"a, b"' in line


def test_blame_by_component(place) -> None:
    found = load(place / "old.vace").detect(rows(0), budget="1 in 1000 rows")
    event = next(one for one in found.anomalies if one.end > 1_300)
    assert event.components[0][0] == "a"
    assert sum(share for _, share in event.components) == pytest.approx(
        sum(share for _, share in event.shares)
    )
    assert "components" in found.to_frame().columns
