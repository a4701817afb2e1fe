"""A fitted model: what it says of its training, what an update adds, what its file keeps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from test_detector import SMALL, waves
from vace_ad.alarms.budget import Budget
from vace_ad.config import VACEConfig
from vace_ad.errors import ConfigError, ModelFileError, VaceWarning
from vace_ad.frames.sampling import StepRule
from vace_ad.frames.table import as_table
from vace_ad.model import FAR, Model

SECOND = 10**9


def config(**settings) -> VACEConfig:
    return VACEConfig.from_preset(None, **{**SMALL, "encoders": 1, **settings})


def timed(n: int, seconds: float = 10, start: str = "2026-01-01", seed: int = 0) -> pd.DataFrame:
    """Rows with a time, from step to step."""
    time = np.datetime64(start, "ns") + (np.arange(n) * seconds * SECOND).astype("m8[ns]")
    frame = pd.DataFrame(waves(n, seed=seed), columns=["a", "b", "c"])
    frame.insert(0, "time", time)
    return frame


@pytest.fixture(scope="module")
def plain() -> Model:
    return Model.fit(waves(400), config())


@pytest.fixture(scope="module")
def model() -> Model:
    """With times, and a channel that is context."""
    return Model.fit(timed(400), config(context=("b",)))


def test_facts_of_the_training_rows(plain: Model, model: Model) -> None:
    assert (plain.facts["rows"], plain.facts["rows_used"]) == (400, 400)
    assert (plain.step, plain.facts["step_seconds"], plain.facts["pace_seconds"]) == (None,) * 3
    assert plain.step_rule == StepRule(max_gap=5)
    assert model.step == 10 * SECOND
    assert model.facts["step_seconds"] == 10
    assert model.channels == ("a", "b", "c")
    time = timed(400)["time"].to_numpy()
    rule = StepRule.of([time], 5)
    found = model.step_rule
    assert (found.step, found.regular, found.max_gap) == (rule.step, True, 5)
    assert found.pace == pytest.approx(rule.pace)
    # a file of an older version tells neither
    old = replace(model, facts={"step_seconds": 0.5})
    assert old.step_rule == StepRule(SECOND // 2, True, 5)


def test_context_is_constant_to_signals_and_known_to_alarms(plain: Model, model: Model) -> None:
    rows = waves(5, seed=1)
    assert plain.to_score(rows) is rows
    assert plain.scored is plain.normal
    found = model.to_score(rows)
    np.testing.assert_array_equal(found[:, [0, 2]], rows[:, [0, 2]])
    assert len(set(found[:, 1].tolist())) == 1
    assert model.watched.tolist() == [True, False, True]
    assert model.normal.scale[1] > 0.5
    np.testing.assert_allclose(model.normal.mean, waves(400).mean(axis=0))
    assert model.alarm.watched.tolist() == [True, False, True]


@pytest.mark.parametrize(("expected", "noted"), [(0.99 * FAR, True), (1.01 * FAR, False)])
def test_a_budget_far_beyond_the_training_rows_is_noted(
    plain: Model, expected: float, noted: bool
) -> None:
    n = plain.alarm.tails.n_rows
    found = plain.threshold(Budget(1e4 * expected / n, "rows"))
    assert found.value == 1.0
    assert (found.note is not None) == noted
    assert not noted or f"{n:,} training rows" in found.note


def test_a_budget_by_time_takes_the_step_of_training_before_the_one_given(
    plain: Model, model: Model
) -> None:
    assert FAR == 0.3  # alarms among the training rows, below which limits are extrapolated
    daily = Budget(1, "day")
    assert model.threshold(daily) == model.threshold(daily, 3600 * SECOND)
    minute = plain.threshold(daily, 60 * SECOND)  # 400 rows of a minute: 0.28 days
    assert minute.note is not None
    assert plain.threshold(daily, 120 * SECOND).note is None
    share = plain.threshold(Budget(0.1, "share"))
    assert share.value == pytest.approx(np.quantile(plain.calibration_scores, 0.9), rel=0.05)


def test_a_period_counts_where_it_is_clear(plain: Model) -> None:
    for period, rise, found in ((100, 1.0, 100), (100, 0.0, 0), (0, 1.0, 0)):
        seasonality = {"period": period, "rise": rise}
        assert replace(plain, facts={"seasonality": seasonality}).period == found


def test_tables_of_the_models_channels_are_taken_as_they_are(model: Model) -> None:
    table = model.table(timed(30))
    assert table.names == model.channels
    assert model.table(table) is table
    turned = model.table(timed(30)[["time", "c", "a", "b"]])
    np.testing.assert_array_equal(turned.block(0, 30), table.block(0, 30))
    other = as_table(timed(30)[["time", "c", "a", "b"]])
    np.testing.assert_array_equal(model.table(other).block(0, 30), table.block(0, 30))


def test_an_update_counts_its_rows_and_says_when(model: Model) -> None:
    new = model.table(timed(200, start="2026-02-01", seed=3))
    found = model.updated([new], [])
    assert found.facts["rows"] == 600
    assert found.facts["rows_used"] == 600
    assert found.facts["updates"] == 1
    assert "calibration" in model.facts["seconds"]
    assert set(found.facts["seconds"]) == set(model.facts["seconds"]) | {"update"}
    assert len(found.calibration_scores) == 600
    assert found.alarm.tails.n_rows == model.alarm.tails.n_rows + 200
    assert (found.drift_range.largest >= model.drift_range.largest).all()
    assert found.updated([new], []).facts["updates"] == 2
    older = replace(model, facts={k: v for k, v in model.facts.items() if k != "rows_used"})
    assert older.updated([new], []).facts["rows_used"] == 600
    named = model.updated([new], [new])
    assert named.facts["rows"] == 600
    assert named.alarm.tails.n_rows == model.alarm.tails.n_rows + 400


def test_a_channel_without_values_for_a_while_is_rebuilt() -> None:
    rows = waves(400)
    rows[100:130, 1] = np.nan
    assert Model.fit(rows, config()).facts["rows_used"] == 400


@pytest.mark.parametrize("robust", [True, False])
def test_training_rows_unlike_the_rest_are_noted_and_left_out(robust: bool) -> None:
    rows = waves(1000)
    rows[600:630] += 30
    found = Model.fit(rows, config(robust=robust))
    assert (found.facts["rows_used"] < 1000) == robust
    assert found.facts["rows"] == 1000
    (note,) = (one for one in found.facts["training"] if one["kind"] == "contaminated")
    assert ("left out" in note["words"]) == robust
    ((start, end),) = note["rows"]
    assert start < 615 < end


def test_a_file_that_is_read_in_pieces_says_no_row_numbers(tmp_path) -> None:
    rows = waves(2000)
    rows[600:640] += 30
    pd.DataFrame(rows, columns=["a", "b", "c"]).to_parquet(tmp_path / "long.parquet")
    found = Model.fit(tmp_path / "long.parquet", config(max_fit_rows=1000))
    assert found.facts["rows"] == 2000
    assert found.facts["rows_used"] < 1200
    assert not any(note["rows"] for note in found.facts["training"])


def test_the_sheet_of_the_training_data_has_its_channels_and_no_calendar() -> None:
    with pytest.warns(VaceWarning, match="a weekly rhythm needs 21"):
        found = Model.fit(timed(400, seconds=3600), config(calendar=("2026-01-05",)))
    assert len(found.channels) == 8
    assert [one["name"] for one in found.facts["data"]["sensors"]] == ["a", "b", "c"]
    assert found.inputs == ("a", "b", "c")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"facts": {"rows": -1}}, "how many rows"),
        ({"facts": {"rows": 400, "seconds": None}}, "incomplete"),
        ({"calibration_scores": np.zeros(1)}, "no calibration scores"),
    ],
)
def test_a_file_that_no_fit_writes_is_refused(plain: Model, tmp_path, changed, words) -> None:
    replace(plain, **changed).save(tmp_path / "m.vace")
    with pytest.raises(ModelFileError, match=words):
        Model.load(tmp_path / "m.vace")


def test_a_file_keeps_the_whole_model(plain: Model, model: Model, tmp_path) -> None:
    for one in (plain, model):
        one.save(tmp_path / "m.vace")
        again = Model.load(tmp_path / "m.vace")
        assert again.channels == one.channels
        assert again.config == one.config
        assert again.digest == one.digest
        assert (again.scored is again.normal) == (one.scored is one.normal)
        mine, theirs = one._arrays(), again._arrays()
        assert set(mine) == set(theirs)
        for name, array in mine.items():
            np.testing.assert_array_equal(theirs[name], array)
    with pytest.raises(ConfigError, match="'robust' cannot be changed on loading"):
        Model.load(tmp_path / "m.vace", robust=False)
    numpy = Model.load(tmp_path / "m.vace", engine="numpy")
    assert numpy.config.engine == "numpy"
    assert numpy.digest == model.digest  # how it is computed is no part of what it is


def test_a_digest_tells_models_apart(plain: Model) -> None:
    assert len(plain.digest) == 12
    assert int(plain.digest, 16) >= 0
    assert replace(plain, channels=("x", "y", "z")).digest != plain.digest
    assert replace(plain, config=replace(plain.config, max_gap=4)).digest != plain.digest
    scores = plain.calibration_scores + 1e-9
    assert replace(plain, calibration_scores=scores).digest != plain.digest


def test_several_tables_are_one_training(plain: Model) -> None:
    tables = [as_table(waves(200)), as_table(waves(250, seed=2))]
    found = Model.fit(tables, config())
    assert found.facts["rows"] == found.facts["rows_used"] == 450
    assert found.channels == plain.channels
    assert "the first" not in str(found.facts["training"])
