"""The scripts behind the published figures: that they run at all, and that they sum up rightly."""

import csv
import re
import runpy
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest

from made_runs import made_row
from vace_ad import VACE
from vace_ad.metrics import vus
from vace_study.baselines import resolve
from vace_study.catalog import find_series
from vace_study.protocols import exam
from vace_study.rows_csv import to_line
from vace_study.series import load
from vace_study.store import Store, read_rows

FOLDER = Path(__file__).parents[1] / "benchmarks"
SCRIPTS = sorted(
    path.stem for path in FOLDER.glob("*.py") if '__name__ == "__main__"' in path.read_text()
)


def run_here(script, *arguments):
    """In this process: what sums up spends most of its time on imports."""
    argv, path = [script, *map(str, arguments)], [str(FOLDER), *sys.path]
    with patch.object(sys, "argv", argv), patch.object(sys, "path", path):
        runpy.run_path(str(FOLDER / f"{script}.py"), run_name="__main__")


# All in one process: most of a script's time goes into what they all import.
HELP = """
import runpy, sys
folder, *scripts = sys.argv[1:]
sys.path.insert(0, folder)
for script in scripts:
    sys.argv = [script, "--help"]
    try:
        runpy.run_path(f"{folder}/{script}.py", run_name="__main__")
    except SystemExit as end:
        assert not end.code, script
"""


def test_every_script_has_help():
    command = [sys.executable, "-c", HELP, str(FOLDER), *SCRIPTS]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert [f"usage: {script}.py " in told for script in SCRIPTS] == [True] * len(SCRIPTS)


def write(path, lines):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, lines[0])
        writer.writeheader()
        writer.writerows(lines)


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def data(tmp_path):
    """A folder with series that a study finds, and has no time to look at."""
    folder = tmp_path / "TSB-AD-M"
    folder.mkdir()
    for name in ("001_MSL_id_1_Sensor_tr_500_1st_900", "002_SMAP_id_1_Sensor_tr_500_1st_900"):
        (folder / f"{name}.csv").write_text("a,Label\n")
    for k, family in enumerate(("SMD", "Genesis", "GECCO", "Daphnet"), start=3):
        (folder / f"00{k}_{family}_id_1_Sensor_tr_500_1st_900.csv").write_text("a,Label\n")
    return tmp_path


def test_the_pretexts_worth_is_a_paired_difference(data):
    found = {("a", 0): 0.2, ("a", 1): 0.5, ("b", 0): 0.4, ("b", 1): 0.5}
    lines = [
        {"widths": "default", "series": series, "family": "MSL", "encoders": 1, "seed": seed,
         "pretext": pretext, "blend": 0.95, "vus_pr": value + shift}
        for (series, pretext), value in found.items()
        for seed, shift in ((0, -0.1), (1, 0.1))
    ]  # fmt: skip
    write(data / "pretext.csv", lines)
    run_here("pretext", "--data", data, "--out", data, "--minutes", 0)
    everything, family = read(data / "pretext-summary.csv")
    assert (everything["family"], family["family"]) == ("all", "MSL")
    assert (family["series"], family["without"], family["with"]) == ("2", "0.3000", "0.5000")
    assert (family["gain"], family["low"], family["high"]) == ("0.2000", "0.1000", "0.3000")


def test_rules_are_compared_within_halves_of_the_families(data):
    value = {"default": 0.5, "without level": 0.3}
    lines = [
        {"series": name, "family": family, "split": split, "seed": 0, "rule": rule,
         "vus_pr": value[rule]}
        for name, family, split in (
            ("1", "SMAP", "eval"), ("2", "MSL", "eval"), ("3", "SMD", "eval"),
            ("4", "SMD", "eval"), ("5", "MSL", "tuning"),
        )
        for rule in value
    ]  # fmt: skip
    write(data / "signals.csv", lines)
    run_here("signals", "--data", data, "--out", data, "--minutes", 0)
    summary = read(data / "signals-summary.csv")
    counts = {line["group"]: int(line["series"]) for line in summary}
    assert counts == {
        "all of the evaluation split": 4, "choosing half": 3, "confirming half": 2,
        "tuning split": 1, "MSL": 1, "SMAP": 1, "SMD": 2,
    }  # fmt: skip
    gains = {line["gain_default"] for line in summary if line["rule"] == "without level"}
    assert gains == {"-0.2000"}


def test_published_values_are_held_against_the_spread_of_seeds(data):
    found = {"a": (0.2, 0.4, 0.3), "b": (0.2, 0.4, 0.43), "c": (0.2, 0.4, 0.9), "d": (0.2, 0.4, "")}
    lines = [
        {"method": "usad", "series": series, "seed": seed, "vus_pr": values[seed],
         "published": values[2]}
        for series, values in found.items()
        for seed in (0, 1)
    ]  # fmt: skip
    write(data / "baselines-check.csv", lines)
    run_here("baselines_check", "--data", data, "--out", data, "--minutes", 0)
    summary = read(data / "baselines-check-summary.csv")
    assert [line["verdict"] for line in summary] == ["within the seeds", "near", "apart", ""]
    assert [line["mean"] for line in summary] == ["0.3000"] * 4
    assert summary[2]["nearest_distance"] == "0.5000"


def test_published_tables_are_looked_through(tmp_path):
    pytest.importorskip("torch")
    files = ["001_MSL_id_1_Sensor_tr_5_1st_9.csv", "002_MSL_id_2_Sensor_tr_5_1st_9.csv",
             "003_TAO_id_1_Environment_tr_5_1st_9.csv"]  # fmt: skip
    extra, table = [], []
    for i, file in enumerate(files):
        heads = {
            f"TSPulse-{tag}-{head}": 0.1 * i + 0.01 * k + (tag == "ft")
            for tag in ("zs", "ft")
            for k, head in enumerate(("time", "fft", "future", "ensemble"))
        }
        used = "fft" if "MSL" in file else "future"
        listed = {f"TSPulse-{t.upper()}": heads[f"TSPulse-{t}-{used}"] for t in ("zs", "ft")}
        extra.append({"file": file, "xLSTMAD": 0.3, **listed, **heads})
        equal = dict.fromkeys(("PCA", "HBOS", "COPOD", "LOF", "KNN", "OCSVM"), 0.5)
        table.append({"file": file, "ts_len": 10_000, "anomaly_len": 490, **equal})
    write(tmp_path / "tsb-ad-m-per-series-extra.csv", extra)
    write(tmp_path / "tsb-ad-m-per-series-vus-pr.csv", table)
    write(tmp_path / "vace-main.csv", [{"method": "xLSTMAD-R (MSE)", "VUS-PR": 0.37}])
    row = {"method": "xLSTM-AD-R (MSE)", "MSL": 0.3, "TAO": 0.4, "Overall": 0.33}
    write(tmp_path / "vace-category.csv", [row])
    run_here("published_checks", "--published", tmp_path, "--out", tmp_path)
    found = {line["item"]: line["value"] for line in read(tmp_path / "published-checks.csv")}
    assert found["ZS: series met by one head a family"] == "3 of 3"
    assert (found["head of MSL"], found["head of TAO"]) == ("fft", "future")
    assert found["FT: time alone"] == "1.1000"
    assert found["families of the category table met"] == "1 of 2"
    assert found["MSL: different results"] == "1 of 2 series"
    assert found["MSL: equal ids"] == "1, 2"
    assert found["counts within 3 deviations of one"] == "1 of 1"
    assert found["500 draws of 10000 rows"].startswith("487.7 different")
    assert found["DCdetector: value of the loss"] == "0.0e+00"
    assert float(found["USAD: less that of two autoencoders"]) < 1e-8


GENESIS = "001_Genesis_id_1_Sensor_tr_4055_1st_15538"
MSL = "002_MSL_id_1_Sensor_tr_500_1st_900"


def committed(method, series, value, config, **more):
    """A line of committed rows."""
    row = made_row(method, series, vus_pr=value, protocol="test-only", config=config)
    return {**to_line(row), "commit": "abc1234", "machine": "1 core", **more}


@pytest.fixture
def study(tmp_path, data):
    """The options of a study that has no time, from committed rows of two methods."""
    config = resolve("pca").config_hash
    lines = [
        committed("pca", GENESIS, 0.25, config),
        committed("pca", MSL, 0.5, config),
        committed("iforest", GENESIS, 0.75, "of other code"),
    ]
    write(tmp_path / "rows.csv", lines)
    folders = [f"--{name}={tmp_path / name}" for name in ("run", "out", "figures")]
    (tmp_path / "out").mkdir()
    return ["--data", data, "--rows", tmp_path / "rows.csv", *folders, "--minutes", 0]


def test_a_study_goes_on_from_committed_rows_of_methods_as_they_are_now(tmp_path, study):
    pytest.importorskip("matplotlib")
    run_here("reproduce", *study)
    lines = read(tmp_path / "rows.csv")
    assert [(line["method"], line["series"]) for line in lines] == [("pca", GENESIS), ("pca", MSL)]
    assert {line["commit"] for line in lines} == {"abc1234"}  # they are still the same rows
    main = read(tmp_path / "out" / "main-test-only.csv")
    assert (main[0]["method"], float(main[0]["VUS-PR"]), main[0]["series"]) == ("pca", 0.375, "2")
    assert not (tmp_path / "out" / "ablation-test-only.md").exists()


def test_committed_rows_are_of_the_methods_as_they_are_now():
    """Else the next run drops them: raise a version, or leave a new setting out of the hash."""
    rows = read(FOLDER.parent / "results" / "reproduce-rows.csv")
    found = {(row["method"], row["config"]) for row in rows}
    assert found == {(method, resolve(method).config_hash) for method, _ in found}


def test_a_study_puts_rows_of_other_code_aside(tmp_path, study):
    pytest.importorskip("matplotlib")
    config = resolve("pca").config_hash
    old = made_row("iforest", MSL, protocol="test-only", config="of other code")
    own = made_row("pca", MSL, vus_pr=0.125, protocol="test-only", config=config)
    with Store(tmp_path / "run") as store:
        store.append([old, own])
    run_here("reproduce", *study)
    values = {row.series: row.measures["VUS-PR"] for row in read_rows(tmp_path / "run")}
    assert values == {MSL: 0.125, GENESIS: 0.25}  # its own row, and what it lacked
    (aside,) = (tmp_path / "run").glob("rows-before-*.jsonl")
    assert "of other code" in aside.read_text()


def test_named_rows_are_dropped_so_that_they_are_computed_again(tmp_path, study):
    pytest.importorskip("matplotlib")
    run_here("reproduce", *study)
    with pytest.raises(SystemExit):
        run_here("reproduce", *study, "--again", "--series", "002")  # of which method?
    run_here("reproduce", *study, "--again", "--methods", "pca", "--series", "002")
    assert [line["series"] for line in read(tmp_path / "rows.csv")] == [GENESIS]
    assert [row.series for row in read_rows(tmp_path / "run")] == [GENESIS]
    (aside,) = (tmp_path / "run").glob("rows-before-*.jsonl")
    assert len(aside.read_text().splitlines()) == 2
    run_here("reproduce", *study)  # what was dropped does not come back
    assert [line["series"] for line in read(tmp_path / "rows.csv")] == [GENESIS]


@pytest.mark.data
@pytest.mark.parametrize("series", ["075_SMD_id_19", "077_SMD_id_21"])
def test_committed_rows_of_the_default_are_those_of_the_present_code(data_folder, series):
    """On series whose training stretches may be left out: where this fails, raise the version of
    the default, or compute the rows that changed with `reproduce.py --again`."""
    rows = read(FOLDER.parent / "results" / "reproduce-rows.csv")
    (row,) = (
        row for row in rows if row["series"].startswith(series) and row["method"] == "vace"
        if (row["seed"], row["protocol"]) == ("0", "test-only")
    )  # fmt: skip
    (path,) = (entry.path for entry in find_series(data_folder) if entry.name.stem == row["series"])
    of = exam(load(path), "test-only")
    score = VACE(random_state=0).fit(of.train).score(of.scored)
    found = vus(of.labels.astype(int), score, of.window).vus_pr
    assert found == pytest.approx(float(row["VUS-PR"]), abs=0.01)


def test_what_is_left_of_each_stage(tmp_path, study):
    told = subprocess.run(
        [sys.executable, FOLDER / "reproduce.py", *map(str, study), "--list", "--methods", "pca"],
        capture_output=True, text=True, check=True,
    ).stderr  # fmt: skip
    (line,) = [line for line in told.splitlines() if " rows " in line]
    # Six series of a folder that has few, two protocols, none of them among the committed.
    assert re.match(r" *1 +0 of +12 rows  pca, iforest", line)


def test_a_family_is_measured_with_what_others_choose(tmp_path):
    value = {
        ("SMAP", "default"): 0.6, ("SMAP", "2 spike"): 0.9, ("ASD", "default"): 0.3,
        ("ASD", "2 spike"): 0.2, ("MSL", "default"): 0.5, ("MSL", "2 spike"): 0.4,
    }  # fmt: skip
    lines = [
        {"series": f"{k}_{family}", "family": family, "variant": variant, "vus_pr": found}
        for (family, variant), found in value.items()
        for k in range(2)
    ]
    write(tmp_path / "variants.csv", lines)
    run_here("leave_one_out", "--data", tmp_path, "--out", tmp_path, "--minutes", 0)
    summary = {line["family"]: line for line in read(tmp_path / "leave-one-out.csv")}
    assert summary["SMAP"]["chosen_without_it"] == "default"  # the others fall with the spike
    assert (summary["SMAP"]["left_out"], summary["SMAP"]["best"]) == ("0.600", "0.900")
    assert (summary["ASD"]["chosen_without_it"], summary["ASD"]["left_out"]) == ("2 spike", "0.200")
    whole = summary["left out, all families"]
    assert (whole["series"], whole["mean_of_families"]) == ("6", "0.400")
    assert summary["default, families it was chosen with"]["mean_of_families"] == "0.550"
    assert summary["default, families it was not chosen with"]["mean_of_families"] == "0.300"


def test_a_series_is_computed_anew_alone(tmp_path):
    """Its old lines go when there are new ones; those of others keep the commit they came from."""
    folder = tmp_path / "practice"
    folder.mkdir()
    rng = np.random.default_rng(0)
    table = pl.DataFrame(rng.normal(size=(400, 2)), schema=["a", "b"])
    labels = pl.Series("Label", (np.arange(400) // 20 == 16).astype(int))  # 20 rows
    names = [f"{k}_ASD_id_{k}_Facility_tr_300_1st_320" for k in (901, 902, 903)]
    for name in names:
        table.with_columns(labels).write_parquet(folder / f"{name}.parquet")
    old = {"family": "ASD", "variant": "default", "vus_pr": "0.5", "commit": "old", "machine": "m"}
    write(tmp_path / "variants.csv", [{"series": name, **old} for name in names[:2]])
    run_here("leave_one_out", "--data", tmp_path, "--out", tmp_path, "--again", 902)
    lines = read(tmp_path / "variants.csv")
    assert [line for line in lines if line["series"] == names[0]] == [{"series": names[0], **old}]
    anew = [line for line in lines if line["series"] == names[1]]
    assert len(anew) == len({line["variant"] for line in anew}) == 120
    assert "old" not in {line["commit"] for line in anew}
    assert {line["series"] for line in lines} == {*names[:2]}
