from __future__ import annotations

import errno
import io
import json
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from safetensors import SafetensorError

from cli.runs import FAULT, QUICK, ROWS, Runner, frame, values
from vace_ad import load
from vace_ad.errors import TableReadError


@pytest.fixture
def vace(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner(monkeypatch, capsys)


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tables") / "plant.csv"
    frame().write_csv(path)
    return path


def test_results_folder(vace: Runner, plant: Path, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "results"
    answer = vace("detect", plant, "--out", out, "--budget", "1 per day", "--patch-length", "16")
    assert answer.status == 0, answer.err
    names = {"scores.parquet", "events.csv", "model.vace", "run.json", "report.html"}
    assert {path.name for path in out.iterdir()} == names
    assert [path.name for path in out.parent.iterdir()] == ["results"]

    scores = pl.read_parquet(out / "scores.parquet")
    assert scores.columns[:4] == ["row", "time", "score", "unit_score"]
    assert scores.columns[4:6] == ["evidence", "surprise"]
    assert scores["evidence"].null_count() == 450  # training rows have none
    above = scores.filter(pl.col("evidence") > 1)["row"]
    assert above.is_in(range(FAULT.start, FAULT.stop)).any()
    assert scores.height == ROWS
    events = pl.read_csv(out / "events.csv", try_parse_dates=True)
    hit = events.filter((pl.col("start") < FAULT.stop) & (pl.col("end") > FAULT.start))
    assert hit.height >= 1
    assert hit["channels"][0].startswith("pressure")
    assert hit["start_time"][0].year == 2026
    again = load(out / "model.vace").score(values())
    np.testing.assert_allclose(again, scores["score"].to_numpy(), rtol=1e-6)

    run = json.loads((out / "run.json").read_text())
    assert run["training"] == {"rows": [0, 450]}
    assert run["budget"] == {"amount": 1.0, "per": "day"}
    assert run["config"]["patch_length"] == 16
    assert run["seed"] == 0
    assert len(run["input"]["sha256"]) == 64
    assert run["versions"]["vace-ad"]
    assert "<html" in (out / "report.html").read_text(encoding="utf-8")


def test_words_on_a_terminal(vace: Runner, plant: Path) -> None:
    answer = vace("detect", plant, *QUICK)
    assert answer.status == 0
    assert "1,500 rows × 4 channels, a row every 1 min" in answer.out
    assert "trained on the first 450 rows (30%)" in answer.out
    assert "about one false alarm a week" in answer.out
    assert "█" in answer.out
    assert "pressure" in answer.out
    assert "\x1b[" not in answer.out  # no colours in a pipe


def test_json(vace: Runner, plant: Path) -> None:
    answer = vace("detect", plant, "--json", *QUICK)
    record = json.loads(answer.out)
    assert record["out"] is None
    (event, *_) = [
        e for e in record["events"] if e["start"] < FAULT.stop and e["end"] > FAULT.start
    ]
    assert event["kind"] == "anomaly"
    assert event["start_time"].startswith("2026-01-01T1")
    assert sum(event["shares"].values()) == pytest.approx(1)
    assert 0 < event["severity"] < 100
    assert event["unit_score"] == event["severity"] / 100
    assert event["level"] in ("low", "medium", "high", "critical")
    assert event["probability"] < event["probability_upper"] < 0.1
    assert event["normal_rows"] > 100
    first = event["readings"][0]
    assert first["channel"] == next(iter(event["shares"]))
    assert not first["low"] < first["value"] < first["high"]
    assert event["lasting"] is False
    assert "partner" in event


def test_quiet_and_exit_status(vace: Runner, plant: Path) -> None:
    answer = vace("detect", plant, "--quiet", "--fail-on-events", *QUICK)
    assert answer == (3, "", "")
    nothing = vace("detect", plant, "--fail-on-events", "--threshold", "1e9", *QUICK)
    assert nothing.status == 0
    assert "nothing found" in nothing.out


def test_standard_input(vace: Runner, plant: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(plant.read_bytes())))
    answer = vace("detect", "-", *QUICK)
    assert answer.status == 0
    assert "standard input: 1,500 rows" in answer.out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--train-until", "2026-01-01T10:00"], "the first 600 rows (40%)"),
        (["--train-rows", "500"], "the first 500 rows (33%)"),
        (["--train-share", "0.5"], "the first 750 rows (50%)"),
    ],
)
def test_training_rows(vace: Runner, plant: Path, options: list[str], words: str) -> None:
    assert words in vace("detect", plant, *options, *QUICK).out


def test_training_file(vace: Runner, plant: Path, tmp_path: Path) -> None:
    frame(seed=0, fault=False).drop("time").write_parquet(tmp_path / "normal.parquet")
    answer = vace("detect", plant, "--train-file", tmp_path / "normal.parquet", "--json", *QUICK)
    record = json.loads(answer.out)
    assert record["training"]["files"][0]["rows"] == ROWS
    assert any(e["start"] < FAULT.stop and e["end"] > FAULT.start for e in record["events"])


def test_gaps_irregular_steps_and_odd_columns_are_told(vace: Runner, tmp_path: Path) -> None:
    table = frame().with_columns(
        state=pl.lit("run"), still=pl.lit(1.0), again=pl.col("flow"), row=pl.int_range(pl.len())
    )
    table = pl.concat([table[:900], table[960:]])
    table.write_csv(tmp_path / "t.csv", separator=";", decimal_comma=True)
    record = json.loads(vace("detect", tmp_path / "t.csv", "--json", *QUICK).out)
    notes = " | ".join(record["notes"])
    for words in (
        "1 gap in time, the longest 1 h 1 min",
        "'state' is text: left out",
        "'still' is constant: kept",
        "'again' is identical to 'flow': kept",
        "'row' is a row counter: left out",
    ):
        assert words in notes
    (silence,) = [event for event in record["events"] if event["kind"] == "no data"]
    assert (silence["start"], silence["end"], silence["severity"]) == (900, 900, None)


def test_resampling(vace: Runner, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    jitter = pl.Series(rng.integers(-20_000, 20_000, ROWS)).cast(pl.Duration("ms"))
    table = frame().with_columns(pl.col("time") + jitter)
    table.write_parquet(tmp_path / "t.parquet")
    told = json.loads(vace("detect", tmp_path / "t.parquet", "--json", *QUICK).out)
    assert any("the step is irregular" in note for note in told["notes"])
    even = vace("detect", tmp_path / "t.parquet", "--resample", "2min", "--json", *QUICK)
    record = json.loads(even.out)
    assert record["time"]["step"] == 2 * 60 * 10**9
    assert record["input"]["rows"] in (750, 751)
    assert not any("irregular" in note for note in record["notes"])


def test_contaminated_training_is_told(vace: Runner, tmp_path: Path) -> None:
    table = frame().with_columns(
        pl.when(pl.int_range(pl.len()).is_between(300, 310))
        .then(60.0)
        .otherwise(pl.col("speed"))
        .alias("speed")
    )
    table.write_csv(tmp_path / "t.csv")
    answer = vace("detect", tmp_path / "t.csv", "--train-share", "0.6", "--json", *QUICK)
    told = json.loads(answer.out)
    note = next(one for one in told["fit"]["training"] if one["kind"] == "contaminated")
    assert any(start < 311 and end > 300 for start, end in note["rows"])
    assert note["words"] in told["notes"]


def test_earlier_results_are_replaced_or_kept_whole(
    vace: Runner, plant: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "results"
    options = ["detect", plant, "--out", out, *QUICK]
    assert vace(*options, "--format", "csv").status == 0
    assert (out / "scores.csv").is_file()
    before = (out / "run.json").read_text()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("vace_ad.app.results.write_report", full)
        answer = vace(*options)
    assert answer.status == 2
    assert (out / "run.json").read_text() == before
    assert [path.name for path in tmp_path.iterdir()] == ["results"]
    assert vace(*options).status == 0
    assert not (out / "scores.csv").exists()


def bad(answer: tuple[int, str, str], expected: str) -> None:
    """One sentence on standard error, status 2, nothing else."""
    status, out, err = answer
    assert status == 2
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert expected in err
    assert "Traceback" not in out + err


TABLES = {
    "empty": (b"", "is empty"),
    "no numbers": (b"a,b\nx,y\nz,w\n", "no column holds numbers"),
    "unreadable encoding": (b"\x81\x8d,1\n2,3\n", "--encoding"),
    "backwards": (
        b"time,a\n2026-01-02,1\n2026-01-01,2\n2026-01-03,1\n",
        "time goes backwards",
    ),
    "too few rows": (b"a\n" + b"".join(b"%d\n" % (i % 7) for i in range(100)), "rows to train on"),
}


@pytest.mark.parametrize(("data", "expected"), TABLES.values(), ids=TABLES.keys())
def test_bad_tables(vace: Runner, tmp_path: Path, data: bytes, expected: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_bytes(data)
    bad(vace("detect", path, "--out", tmp_path / "results"), expected)
    assert [p.name for p in tmp_path.iterdir()] == ["bad.csv"]


def test_missing_table(vace: Runner, tmp_path: Path) -> None:
    bad(vace("detect", tmp_path / "no.csv", "--out", tmp_path / "r"), "does not exist")
    assert list(tmp_path.iterdir()) == []


OPTIONS = {
    "two budgets": (["--budget", "1/week", "--threshold", "2"], "give one of them"),
    "two trainings": (["--train-rows", "500", "--train-share", "0.5"], "give one of them"),
    "share of all": (["--train-share", "1.5"], "between 0 and 1"),
    "all rows": (["--train-rows", "1500"], "leave some to look at"),
    "until no time": (["--train-until", "soon"], "not a time"),
    "unknown setting": (["--set", "encoder_count=3"], "not a setting"),
    "no setting": (["--set", "encoders"], "NAME=VALUE"),
    "no duration": (["--resample", "often"], "not a duration"),
    "no such column": (["--columns", "flow,heat"], "no column is called 'heat'"),
    "negative join": (["--join", "-1"], "join=-1"),
    "rate above one": (["--false-alarm-rate", "2"], "between 0 and 1"),
}


@pytest.mark.parametrize(("options", "expected"), OPTIONS.values(), ids=OPTIONS.keys())
def test_bad_options(vace: Runner, plant: Path, options: list[str], expected: str) -> None:
    bad(vace("detect", plant, *QUICK, *options), expected)


def test_alarms_in_time_need_time(vace: Runner, tmp_path: Path) -> None:
    frame().drop("time").write_csv(tmp_path / "t.csv")
    options = ["detect", tmp_path / "t.csv", "--budget", "1 per week", *QUICK]
    bad(vace(*options), "without time; give it as --step,")
    assert vace(*options, "--step", "1min").status == 0


def test_places_that_results_cannot_go(vace: Runner, plant: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    bad(vace("detect", plant, "--out", tmp_path, *QUICK), "holds other files")
    bad(vace("detect", plant, "--out", tmp_path / "thesis.txt", *QUICK), "is a file")
    assert (tmp_path / "thesis.txt").read_text() == "mine"


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        pl.exceptions.ComputeError("parquet: IO error: No space left on device (os error 28)"),
        SafetensorError("Error while serializing: No space left on device (os error 28)"),
    ],
)
def test_disk_full(
    vace: Runner, plant: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def full(*_: object) -> None:
        raise error

    monkeypatch.setattr("vace_ad.app.results.write_frame", full)
    answer = vace("detect", plant, "--out", tmp_path / "r", *QUICK)
    bad(answer, "no space left")
    assert list(tmp_path.iterdir()) == []


def test_interrupt(
    vace: Runner, plant: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("vace_ad.app.results.write_report", stop)
    bad(
        vace("detect", plant, "--out", tmp_path / "r", *QUICK),
        "interrupted; nothing was written",
    )
    assert list(tmp_path.iterdir()) == []


def test_debug_shows_the_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from vace_ad.cli.main import main

    arguments = ["vace", "detect", str(tmp_path / "no.csv"), "--debug"]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(TableReadError):
        main()


def test_a_late_channel_a_condition_and_a_range(vace: Runner, tmp_path: Path) -> None:
    rows = np.arange(ROWS)
    table = frame().with_columns(
        late=pl.Series(np.where(rows < 700, np.nan, np.sin(rows))).fill_nan(None),
        state=pl.Series(np.where(rows % 300 < 30, "stop", "run")),
    )
    table.write_csv(tmp_path / "t.csv")
    out = tmp_path / "out"
    answer = vace(
        *("detect", tmp_path / "t.csv", "--out", out, "--excel", "--where", "state == 'run'"),
        *("--train-range", "2026-01-01..2026-01-01T05:00"),
        *("--train-range", "2026-01-01T06:00..2026-01-01T10:00", *QUICK),
        *("--train-skip", "2026-01-01T08:00..2026-01-01T08:10"),
    )
    assert answer.status == 0, answer.err
    assert "no training row has a value of it: 'late'" in answer.out + answer.err
    run = json.loads((out / "run.json").read_text())
    assert run["training"]["ranges"] == [
        "2026-01-01..2026-01-01T05:00",
        "2026-01-01T06:00..2026-01-01T10:00",
    ]
    assert run["fit"]["rows"] == 300 + 240 - 30 - 10
    assert (out / "events.xlsx").read_bytes().startswith(b"PK")


def test_fit_takes_a_condition_and_ranges_left_out(vace: Runner, tmp_path: Path) -> None:
    table = frame(fault=False).with_columns(state=pl.Series(["run"] * 1000 + ["stop"] * 500))
    table.write_csv(tmp_path / "t.csv")
    skip = ["--train-skip", "..2026-01-01T01:00", "--where", "state == 'run'"]
    answer = vace("fit", tmp_path / "t.csv", "--model", tmp_path / "m.vace", *skip, *QUICK)
    assert answer.status == 0, answer.err
    assert load(tmp_path / "m.vace").facts_["rows"] == 940


def test_excel_needs_a_folder(vace: Runner, plant: Path, tmp_path: Path) -> None:
    answer = vace("detect", plant, "--excel")
    assert answer.status != 0
    assert "--excel needs --out" in answer.err
    answer = vace("detect", plant, "--excel", "--out", tmp_path / "o", "--by", "machine")
    assert "--excel and --by cannot be combined" in answer.err


def test_units_of_a_table_are_in_the_report(vace: Runner, tmp_path: Path) -> None:
    lines = frame().write_csv().splitlines()
    lines.insert(1, ",l/s,rpm,bar,kW")
    (tmp_path / "t.csv").write_text("\n".join(lines))
    answer = vace("detect", tmp_path / "t.csv", "--out", tmp_path / "out", *QUICK)
    assert answer.status == 0, answer.err
    assert "the row below the names holds units: l/s, rpm, bar, kW" in answer.out + answer.err
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    assert run["input"]["units"]["pressure"] == "bar"
    assert "pressure [bar]" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
