"""A plant with an off state, context, maintenance and a fault: every door gives the same answer."""

import json
import warnings

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from vace_ad import VACE, load
from vace_ad.cli.main import app
from vace_ad.errors import ConfigError, InputError, TooShortError, VaceWarning
from vace_ad.stream import Stream

N, TRAIN = 2_600, 1_600
SETTINGS = {
    "off": "speed < 5",
    "run_up": 6,
    "run_down": 4,
    "context": ["ambient", "product"],
    "maintenance": ["2026-01-02T08:00..2026-01-02T09:00"],
}
FAULT = (2_150, 2_210)
STOPS = [(a, a + 60) for a in range(300, N, 500)]


def plant() -> pl.DataFrame:
    rng = np.random.default_rng(3)
    row = np.arange(N)
    on = np.ones(N)
    for a, b in STOPS:
        on[a:b] = 0
    ambient = 20 + 6 * np.sin(row / 180) + rng.normal(0, 0.2, N)
    ambient[2_450:] += 25  # a heat wave
    product = np.where(row // 170 % 2, "A", "B")
    speed = on * (50 + 5 * np.sin(row / 23) + rng.normal(0, 0.5, N))
    flow = 2 * speed + rng.normal(0, 0.6, N)
    current = 0.3 * speed + on + rng.normal(0, 0.1, N)
    heat = ambient + 0.4 * speed + 3 * (product == "A") + rng.normal(0, 0.3, N)
    flow[slice(*FAULT)] -= 12
    planned = slice(32 * 60, 33 * 60)  # of the maintenance
    flow[planned] = rng.uniform(0, 300, 60)
    flow[STOPS[-1][0] + 5 : STOPS[-1][1]] = np.nan  # a sensor without power
    time = np.datetime64("2026-01-01", "ns") + row * np.timedelta64(1, "m")
    return pl.DataFrame(
        {"time": time, "speed": speed, "flow": flow, "current": current, "heat": heat,
         "ambient": ambient, "product": product}
    )  # fmt: skip


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    return plant()


@pytest.fixture(scope="module")
def detector(table) -> VACE:
    return VACE(**SETTINGS).fit(table[:TRAIN])


@pytest.fixture(scope="module")
def found(detector, table):
    return detector.detect(table[TRAIN:])


def keys(events):
    return [(e.kind, e.start, e.end, e.alarm, e.shares) for e in events]


def test_only_the_fault_is_told(found) -> None:
    (event,) = found.anomalies
    assert abs(event.start - (FAULT[0] - TRAIN)) < 5
    assert event.shares[0][0] == "flow"
    assert "no data" not in {event.kind for event in found.events}
    blamed = {name for one in found.events for name, _ in one.shares}
    assert not blamed & {"ambient", "product=A", "product=B"}


def test_the_answer_says_what_was_not_judged(found) -> None:
    kinds = {
        kind: [one for one in found.idle if one.kind == kind] for kind in ("off", "maintenance")
    }
    assert [(one.start + TRAIN, one.end + TRAIN) for one in kinds["maintenance"]] == [
        (1_920, 1_980)
    ]
    assert [(one.start + TRAIN, one.end + TRAIN) for one in kinds["off"]] == [
        (a - 4, b + 6) for a, b in STOPS if a > TRAIN
    ]
    assert np.isnan(found.scores[1_930 - TRAIN])
    assert any("ambient" in note and "trained to" in note for note in found.notes)


def test_off_rows_are_not_learned(detector, table) -> None:
    still = sum(b - a + 10 for a, b in STOPS if b < TRAIN)
    assert detector.facts_["rows_used"] <= TRAIN - still
    assert detector.model_.conditions.low[0] > 5


def test_chunks_streams_and_files_give_the_same(detector, table, found, tmp_path) -> None:
    new = table[TRAIN:]
    detector.save(tmp_path / "m.vace")
    again = load(tmp_path / "m.vace")
    assert keys(again.detect(new).events) == keys(found.events)
    warnings.simplefilter("ignore", VaceWarning)  # few rows between two stops
    np.testing.assert_array_equal(again.score(new), detector.score(iter([new[:333], new[333:]])))
    stream, changes, scores = again.stream(), [], []
    for a in range(0, len(new), 71):
        if a == 71 * 9:  # amid a standstill's run-down and the rows that wait
            stream = Stream.from_bytes(stream.to_bytes(), again)
        told = stream.add(new[a : a + 71])
        changes += told.changes
        scores.append(told.scores)
    last = stream.finish()
    changes, scores = [*changes, *last.changes], [*scores, last.scores]
    np.testing.assert_array_equal(np.concatenate(scores), found.scores)
    ended = [change.event for change in changes if change.what == "resolve"]
    assert keys(ended) == keys(e for e in found.events if e.kind != "no data")
    assert again.model_.digest == detector.model_.digest


def test_changes_name_the_row_that_brought_them_though_rows_wait(detector, table) -> None:
    part = table[FAULT[0] - 60 : FAULT[1] + 120]
    stream, one_by_one = detector.stream(), []
    for i in range(len(part)):
        changes = stream.add(part[i : i + 1]).changes
        assert all(change.row == i for change in changes)
        one_by_one += changes
    assert one_by_one
    whole = detector.stream().add(part).changes
    assert [(c.what, c.row) for c in whole] == [(c.what, c.row) for c in one_by_one]


def test_the_command_line_and_a_fleet_of_one_give_the_same(
    table, found, detector, tmp_path
) -> None:
    file, windows = tmp_path / "plant.csv", tmp_path / "windows.csv"
    table.with_columns(machine=pl.lit("one")).write_csv(file)
    windows.write_text("2026-01-02T08:00,2026-01-02T09:00\n")
    labels = tmp_path / "labels.csv"
    labels.write_text("start,end,code,equipment\n2026-01-02T11:50,2026-01-02T12:50,F1,one\n")
    options = ["--off-when", "speed < 5", "--run-up", "6", "--run-down", "4", "--maintenance",
               str(windows), "--context", "ambient,product", "--train-rows", str(TRAIN),
               "--labels", str(labels), "--json"]  # fmt: skip
    run = CliRunner().invoke(app, ["detect", str(file), "--drop", "machine", *options])
    assert run.exit_code == 0, run.output
    told = json.loads(run.stdout)
    whole = detector.detect(table, first=TRAIN)
    assert [(e["kind"], e["start"], e["end"]) for e in told["events"]] == [
        (e.kind, e.start, e.end) for e in whole.events
    ]
    assert told["labels"]["found"] == 1
    assert told["labels"]["false_alarms"] == 0
    assert {one["kind"] for one in told["idle"]} == {"off", "maintenance"}
    run = CliRunner().invoke(app, ["detect", str(file), "--by", "machine", "--budget", "1 per week",
                                   "--out", str(tmp_path / "out"), *options])  # fmt: skip
    assert run.exit_code == 0, run.output
    (record,) = (tmp_path / "out" / "machines").rglob("run.json")
    one = json.loads(record.read_text())
    assert [e["start"] for e in one["events"]] == [e["start"] for e in told["events"]]
    assert one["labels"]["found"] == 1


def test_watching_some_channels(table) -> None:
    settings = {**SETTINGS, "context": [], "watch": ["heat"]}
    table = table.drop("product")
    detector = VACE(**settings).fit(table[:TRAIN])
    assert detector.model_.watched.tolist() == [False, False, False, True, False]
    found = detector.detect(table[TRAIN:])
    assert {name for event in found.events for name, _ in event.shares} <= {"heat"}


def test_a_product_never_seen_is_said(table, detector) -> None:
    other = table[TRAIN:1_800].with_columns(product=pl.lit("C"))
    notes = detector.detect(other).notes
    assert any("product with a value never seen" in note for note in notes)


def test_maintenance_may_be_planned_after_the_fit(table, detector, found) -> None:
    later = VACE(**SETTINGS).fit(table[:TRAIN])
    later.set_params(maintenance=["2026-01-02T11:00..2026-01-02T14:00"])
    assert not [e for e in later.detect(table[TRAIN:]).anomalies if e.start > 400]
    with pytest.raises(Exception, match="call fit again"):
        later.set_params(off="speed < 7").detect(table[TRAIN:])


def test_labels_are_left_out_of_training(table) -> None:
    with_fault = VACE(**SETTINGS).fit(table)
    without = VACE(**SETTINGS).fit(table, labels=[("2026-01-02T11:50", "2026-01-02T12:50")])
    assert without.facts_["rows_used"] <= with_fault.facts_["rows_used"] - 61
    with pytest.raises(InputError, match="is not a time"):
        VACE(**SETTINGS).fit(table, labels=[("then", "later")])


def test_a_machine_that_never_runs_is_refused(table) -> None:
    table = table.drop("product")
    with pytest.raises(TooShortError, match="off or under maintenance"):
        VACE(off="speed < 500").fit(table[:TRAIN])
    detector = VACE(off="speed < 5").fit(table[:TRAIN])
    with pytest.raises(InputError, match="nothing to judge"):
        detector.score(table[:200].with_columns(speed=pl.lit(0.0)))


def test_settings_of_another_type_are_refused() -> None:
    with pytest.raises(ConfigError, match="a list of names"):
        VACE(context="ambient")
    with pytest.raises(ConfigError, match="a string or None"):
        VACE(off=5)


def test_a_watch_gives_the_same_and_says_off(detector, table, found, tmp_path) -> None:
    from vace_ad.frames.columns import with_states
    from vace_ad.live.config import make_config
    from vace_ad.live.runner import Watch
    from vace_ad.live.service import make_detectors
    from vace_ad.live.store import Store

    detector.save(tmp_path / "m.vace")
    coded = with_states(table[TRAIN:], (), detector.channels_)  # live rows are numbers
    stopped = STOPS[-1][0] + 20 - TRAIN
    coded[:stopped].with_columns(pl.col("time").dt.to_string("iso:strict")).write_csv(
        tmp_path / "m.csv"
    )
    (tmp_path / "windows.csv").write_text("2026-01-02T08:00Z,2026-01-02T09:00Z\n")
    config = make_config(
        {
            "source": {"kind": "csv", "path": str(tmp_path / "m.csv"), "follow": False},
            "model": {
                "file": str(tmp_path / "m.vace"),
                "maintenance": str(tmp_path / "windows.csv"),
            },
            "state": {"path": str(tmp_path / "state")},
        }
    )
    watch = Watch(config, make_detectors(config))
    watch.run()
    assert watch.entities["m"].words == "off"
    store = Store(config.state.path)
    alarms = store.alarms(limit=100)
    store.close()
    assert [one["kind"] for one in alarms] == ["anomaly"]  # a sensor without power is no silence
    (event,) = found.anomalies
    assert alarms[0]["onset"].removesuffix(".000Z") == str(event.start_time)[:19]


def test_settings_of_what_a_watch_learns() -> None:
    from vace_ad.live.config import make_config

    given = {
        "source": {"kind": "csv", "path": "m.csv"},
        "model": {"learn": "14d", "off": "speed < 5", "context": ["ambient"]},
        "state": {"path": "state"},
    }
    assert make_config(given).model.context == ("ambient",)
    given["model"] = {"file": "m.vace", "off": "speed < 5"}
    with pytest.raises(ConfigError, match=r"model.off goes with model.learn"):
        make_config(given)
