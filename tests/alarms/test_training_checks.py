"""The training rows, looked at: each note names rows, times and what to do, and clean rows none."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from vace_ad import VACE, load
from vace_ad.alarms.training_checks import TrainingAudit, without
from vace_ad.frames.table import Table
from vace_ad.frames.training_data import TrainingPart

DATA = Path(os.environ.get("VACE_DATA", Path(__file__).parents[3] / "shared" / "data"))
SETTINGS = {"random_state": 0, "patch_length": 24}
FAULTS = ((700, 720), (1_500, 1_530))


def plant(n=2_400, seed=0):
    rng = np.random.default_rng(seed)
    return np.sin(np.arange(n)[:, None] / [3, 4, 5]) + 0.1 * rng.normal(size=(n, 3))


def faulty():
    rows = plant()
    for start, end in FAULTS:
        rows[start:end, 1] += 4.0
    return rows


def notes(data, **settings):
    detector = VACE(**{**SETTINGS, **settings}).fit(data)
    return {note["kind"]: note for note in detector.facts_["training"]}


def stamped(rows, step):
    time = np.datetime64("2026-03-02T00:00:00", "ns") + np.arange(len(rows)) * np.timedelta64(step)
    return pl.DataFrame({"time": time, **{f"c{i}": rows[:, i] for i in range(rows.shape[1])}})


def names(note, fault):
    return any(start < fault[1] and end > fault[0] for start, end in note["rows"])


def test_clean_rows_get_no_note():
    assert notes(plant()) == {}


def test_faults_in_training_are_named_with_rows_and_times():
    minute = np.timedelta64(10, "m")
    found = notes(stamped(faulty(), minute))["contaminated"]
    assert all(names(found, fault) for fault in FAULTS)
    assert len(found["times"]) == len(found["rows"])
    first = np.datetime64("2026-03-02T00:00:00") + found["rows"][0][0] * minute
    assert found["times"][0][0] == str(first.astype("datetime64[s]")).replace("T", " ")
    assert found["times"][0][0] in found["words"]
    assert "left out of training" in found["words"]


def test_rows_are_counted_over_all_tables_and_gaps():
    rows = faulty()
    rows[300:340] = np.nan  # no patch reaches across
    found = notes([rows[:1_000], rows[1_000:]])["contaminated"]
    assert all(names(found, fault) for fault in FAULTS)


def test_notes_are_kept_with_the_model(tmp_path):
    detector = VACE(**SETTINGS).fit(faulty())
    detector.save(tmp_path / "plant.vace")
    assert load(tmp_path / "plant.vace").facts_["training"] == detector.facts_["training"]
    assert "look at" in repr(detector)


def test_robust_leaves_them_out():
    rows = faulty()
    plain = VACE(**SETTINGS, robust=False).fit(rows)
    robust = VACE(**SETTINGS).fit(rows)
    clean = VACE(**SETTINGS).fit(plant())
    assert robust.facts_["rows_used"] < plain.facts_["rows_used"]
    assert "left out" in robust.facts_["training"][0]["words"]
    test = plant(seed=1)[:600]
    test[300:320, 1] += 4.0
    peaks = [detector.score(test)[300:320].max() for detector in (plain, robust, clean)]
    assert peaks[1] > 1.5 * peaks[0]  # the like of it is strange again
    assert peaks[1] == pytest.approx(peaks[2], rel=0.5)


def test_robust_changes_nothing_where_nothing_stands_out():
    rows, test = plant(), plant(seed=1)[:300]
    plain, robust = (VACE(**SETTINGS, robust=each).fit(rows).score(test) for each in (False, True))
    assert np.array_equal(plain, robust)


def test_too_few_rows_for_the_patch():
    found = notes(plant(100))["short"]
    assert "100 rows, 4.2 patches of 24" in found["words"]
    assert "at least 120 rows" in found["words"]


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (np.timedelta64(10, "s"), "less than a day"),
        (np.timedelta64(1, "m"), "less than a week"),
        (np.timedelta64(10, "m"), None),
        (np.timedelta64(100, "ms"), None),  # a trial, not a plant
    ],
)
def test_less_than_a_day_or_a_week(step, words):
    found = notes(stamped(plant(), step))
    assert ("span" in found) == (words is not None)
    if words:
        assert words in found["span"]["words"]


def test_drift_names_channels_and_quarters():
    rows = plant()
    rows[:, 2] += np.linspace(0, 10, len(rows))
    found = notes(rows)["drift"]
    assert found["rows"] == [[0, 600], [1_800, 2_400]]
    assert "1 of 3 channels" in found["words"]


def test_a_switch_is_no_drift():
    rows = np.column_stack([plant(), (np.arange(2_400) > 1_200).astype(float)])
    assert "drift" not in notes(rows)


def test_parts_without_stretches():
    parts = [
        TrainingPart(10, np.arange(500.0)[:, None]),
        TrainingPart(580, np.arange(300.0)[:, None]),
    ]
    kept = without(parts, np.array([[200, 205], [498, 510]]), least=6)
    assert [(part.start, len(part.rows)) for part in kept] == [(10, 200), (215, 293), (590, 290)]
    assert kept[1].rows[0, 0] == 205.0


def test_too_much_to_leave_out_is_how_the_training_is():
    parts = [TrainingPart(0, np.zeros((100, 1)))]
    assert without(parts, np.array([[20, 26]]), least=6) is None
    assert without(parts, np.array([[20, 24]]), least=30) is None  # what is left is too short
    assert without(parts, np.empty((0, 2), np.int64), least=6) is None


def test_a_stop_in_training_does_not_blind_the_cells():
    rows, test = plant(), plant(seed=1)[:600]
    rows[1_000:1_030] = -6.0
    test[300:330, 1] += 2.0
    blind, robust, clean = (
        VACE(**SETTINGS, robust=robust).fit(each).detect(test).events
        for robust, each in ((False, rows), (True, rows), (True, plant()))
    )
    assert not blind
    assert [(event.start, event.shares[0][0]) for event in robust] == [
        (event.start, event.shares[0][0]) for event in clean
    ]
    assert len(robust) == 1


def test_a_labelled_fault_in_the_first_part_of_a_real_series_is_named():
    paths = sorted((DATA / "TSB-AD-M").glob("066_SMD_*.parquet"))
    if not paths:
        pytest.skip("needs the SMD series of TSB-AD-M in $VACE_DATA")
    table = pl.read_parquet(paths[0])
    table = table[: int(0.3 * len(table))]
    label = table["Label"].to_numpy()
    edges = np.flatnonzero(np.diff(np.r_[0, label, 0])).reshape(-1, 2).tolist()
    found = notes(table.drop("Label").to_numpy(), patch_length=None)["contaminated"]
    assert len(edges) == 3
    assert sum(names(found, edge) for edge in edges) >= 1


def test_a_mode_that_training_hardly_shows_is_named():
    rng = np.random.default_rng(0)
    modes = np.zeros((600, 3))
    modes[:590, 0] = modes[590:, 1] = 1
    modes[:, 2] = rng.normal(size=600)
    channels = ("product=A", "product=B", "x=y")
    looked = TrainingAudit([Table(modes, channels)], [TrainingPart(0, modes)], 24, None, None)
    note = looked._rare_mode()
    assert note is not None
    assert "product=B in 10 of 600 rows" in note.words
    assert "product=A" not in note.words
    modes[300:, :2] = 0, 1
    assert looked._rare_mode() is None
