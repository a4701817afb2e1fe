import copy
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest

from vace_ad import VACE
from vace_ad.errors import (
    ChannelMismatchError,
    ConfigError,
    InputError,
    NotFittedError,
    TooShortError,
    VaceWarning,
)

SMALL = {"patch_length": 16, "stride": 4, "fit_stride": 4, "widths": (16, 16, 16, 8)}


def waves(n=500, d=3, seed=0):
    rng = np.random.default_rng(seed)
    t = np.arange(n)[:, None]
    return np.sin(t / (3 + np.arange(d))) + 0.1 * rng.normal(size=(n, d))


@pytest.fixture(scope="module")
def fitted():
    return VACE(**SMALL).fit(waves())


def test_scores_are_one_finite_number_a_row(fitted):
    scores = fitted.score(waves(200, seed=1))
    assert scores.shape == (200,)
    assert scores.dtype == np.float64
    assert np.isfinite(scores).all()


def test_a_changed_stretch_scores_higher(fitted):
    test = waves(600, seed=1)
    test[300:340] = np.sin(np.arange(40) * 2.0)[:, None]
    scores = fitted.score(test)
    assert scores[305:335].min() > np.quantile(scores[:250], 0.99)


@pytest.mark.parametrize("preset", ["paper", "released"])
def test_the_papers_presets_run(preset):
    small = {"patch_length": 16, "pretext_offset": 16, "widths": (16, 16, 16, 8), "iterations": 3}
    det = VACE(preset=preset, batch_size=32, **small).fit(waves(200))
    assert len(det.facts_["losses"][0]) == 3
    assert np.isfinite(det.score(waves(100, seed=1))).all()


@pytest.mark.parametrize(
    "ablation",
    [
        {"encoder": "shared"},
        {"iterations": 2, "pretext": False},
        {"position": "memory"},
        {"direction": False},
        {"batch_norm": False},
    ],
)
def test_every_ablation_is_a_setting(ablation):
    det = VACE(**SMALL, batch_size=32, **ablation).fit(waves(300))
    assert np.isfinite(det.score(waves(100, seed=1))).all()


def test_patch_signals_and_the_trajectory_have_a_value_a_patch(fitted):
    test = waves(100, seed=1)
    n = 100 - 16 + 1
    assert fitted.position_scores(test).shape == (n,)
    assert fitted.direction_scores(test).shape == (n,)
    assert fitted.embed(test).shape[0] == n
    assert fitted.embed(test).shape[1] == 8 * fitted.config.encoders


def test_a_list_of_tables_is_not_joined():
    first, second = waves(300), waves(300, seed=5)
    both = VACE(**SMALL).fit([first, second])
    assert both.facts_["patches"] == 2 * (300 - 16 + 1)


# ------------------------------------------------------------------ reproducible


def test_same_seed_same_scores_whatever_ran_before():
    test = waves(200, seed=1)
    first = VACE(**SMALL, random_state=3).fit(waves()).score(test)
    np.random.default_rng().normal(size=10)
    VACE(**SMALL, random_state=9).fit(waves(seed=4))
    again = VACE(**SMALL, random_state=3).fit(waves()).score(test)
    np.testing.assert_array_equal(first, again)
    other = VACE(**SMALL, random_state=4).fit(waves()).score(test)
    assert np.abs(first - other).max() > 1e-6


def test_same_scores_in_a_new_process():
    code = (
        "import sys; sys.path.insert(0, 'tests'); import numpy as np; from vace_ad import VACE;"
        "x = np.sin(np.arange(400)[:, None] / [3, 4, 5]) + np.arange(400)[:, None] % 7 / 50;"
        "s = VACE(patch_length=16, stride=4, fit_stride=4, widths=(16, 16, 16, 8)).fit(x[:300])"
        ".score(x); print(s.tobytes().hex())"
    )
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert runs[0].stdout == runs[1].stdout
    assert len(runs[0].stdout) > 1000


# ------------------------------------------------------------------------ causal


def test_later_rows_change_nothing_bit_for_bit(fitted):
    test = waves(400, seed=1)
    changed = test.copy()
    t = 200
    reach = 48  # half of the longest spread, which is longer than a patch of 16 and its velocity
    changed[t + reach + 1 :] = 50 * waves(400, seed=2)[t + reach + 1 :]
    before, after = fitted.score(test), fitted.score(changed)
    np.testing.assert_array_equal(before[: t + 1], after[: t + 1])
    assert np.abs(before[-50:] - after[-50:]).max() > 0


# ---------------------------------------------------------------------- in pieces


@pytest.mark.parametrize("size", [1, 7, 100, 1000])
def test_an_iterator_of_chunks_scores_as_the_whole_bit_for_bit(fitted, size):
    test = waves(700, seed=1)
    test[300:320] = np.nan  # a gap cuts the series
    with pytest.warns(VaceWarning, match="20 of 700"):
        whole = fitted.score(test)
    chunks = (test[a : a + size] for a in range(0, 700, size))
    with pytest.warns(VaceWarning, match="20 of 700"):
        np.testing.assert_array_equal(fitted.score(chunks), whole)


def test_a_parquet_path_scores_as_the_table(fitted, tmp_path):
    table = pl.DataFrame(waves(300, seed=1), schema=list(fitted.channels_))
    table.write_parquet(tmp_path / "t.parquet")
    np.testing.assert_array_equal(fitted.score(tmp_path / "t.parquet"), fitted.score(table))
    with pytest.raises(InputError, match="does not exist"):
        fitted.score(tmp_path / "none.parquet")
    with pytest.raises(InputError, match="read it into a table first"):
        fitted.score("plant.csv")


def test_chunks_too_short_in_all(fitted):
    with pytest.raises(TooShortError, match="got 10 rows"):
        fitted.score(iter([waves(4), waves(6)]))


# --------------------------------------------------------------------- bad input


def test_too_few_training_rows():
    with pytest.raises(TooShortError, match=r"24 training rows.*25 in a row.*patch_length"):
        VACE(**SMALL).fit(waves(24))
    VACE(**SMALL).fit(waves(25))


def test_too_few_test_rows(fitted):
    with pytest.raises(TooShortError, match="got 15 rows"):
        fitted.score(waves(15))
    assert fitted.score(waves(16)).shape == (16,)


def test_no_triple_warns_and_calibrates():
    small = {"patch_length": 16, "pretext_offset": 16, "widths": (16, 16, 16, 8), "iterations": 3}
    with pytest.warns(VaceWarning, match="nothing is trained but BatchNorm"):
        det = VACE(preset="released", batch_size=32, **small).fit(waves(40))
    assert np.isfinite(det.score(waves(60, seed=1))).all()


def test_rows_with_too_many_missing_channels_have_no_score(fitted):
    test = waves(200, seed=1)
    test[50:60, 1] = np.nan  # one of three: rebuilt
    test[120:123] = np.inf  # short: interpolated
    test[150:160, :2] = np.nan  # two of three: more than half
    with pytest.warns(VaceWarning, match="10 of 200 rows"):
        scores = fitted.score(test)
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(scores)), np.arange(150, 160))


def test_an_answer_without_one_score_is_an_error(fitted):
    test = waves(200, seed=1)
    test[:, :2] = np.nan
    for call in (fitted.score, fitted.signals, fitted.detect, fitted.predict):
        with pytest.raises(InputError, match=r"none of the 200 rows can be scored.*max_missing"):
            call(test)
    allowed = VACE(**SMALL, max_missing=0.7).fit(waves())
    assert np.isfinite(allowed.score(test)).all()
    strict = VACE(**SMALL, max_missing=0.0).fit(waves())
    test = waves(200, seed=1)
    test[50:60, 1] = np.nan
    with pytest.warns(VaceWarning, match="10 of 200 rows"):
        assert np.isnan(strict.score(test)[50:60]).all()


def test_gaps_in_training(fitted):
    train = waves()
    train[100:130] = np.nan
    det = VACE(**SMALL).fit(train)
    assert det.facts_["rows_used"] == 470
    assert np.isfinite(det.score(waves(100, seed=1))).all()


def test_a_channel_without_values_is_named():
    train = waves()
    train[:, 1] = np.nan
    with pytest.raises(InputError, match="channel_1"):
        VACE(**SMALL).fit(train)


def test_constant_channels():
    train = waves()
    train[:, 1] = 7
    scores = VACE(**SMALL).fit(train).score(waves(200, seed=1))
    assert np.isfinite(scores).all()
    with pytest.warns(VaceWarning, match="nothing to learn"):
        det = VACE(**SMALL).fit(np.ones((300, 3)))
    assert np.isfinite(det.score(np.ones((100, 3)))).all()
    assert np.isfinite(det.score(waves(100))).all()
    assert det.geometry_.verdict == "collapsed"


@pytest.mark.parametrize("d", [1, 80])
def test_one_and_many_channels(d):
    det = VACE(**SMALL).fit(waves(150, d))
    assert np.isfinite(det.score(waves(60, d, seed=1))).all()


@pytest.mark.parametrize("dtype", ["i8", "?", "f2", ">f4"])
def test_other_types(dtype):
    data = np.maximum(10 * waves(300), 0).astype(dtype)
    assert np.isfinite(VACE(**SMALL).fit(data).score(data[:100])).all()


def test_strided_and_read_only_arrays():
    data = np.repeat(waves(300), 2, axis=1)[:, ::2]
    data.flags.writeable = False
    expected = VACE(**SMALL).fit(waves(300)).score(waves(300))
    np.testing.assert_array_equal(VACE(**SMALL).fit(data).score(data), expected)


@pytest.mark.parametrize(("factor", "offset"), [(1e30, 0), (1e-30, 0), (1e-3, 1e9), (1e30, 1e32)])
def test_extreme_values(fitted, factor, offset):
    train, test = factor * waves() + offset, factor * waves(200, seed=1) + offset
    plain = fitted.score(waves(200, seed=1))
    scores = VACE(**SMALL).fit(train).score(test)
    assert np.isfinite(scores).all()
    np.testing.assert_allclose(scores, plain, rtol=0.02)


def test_nothing_but_text_and_complex_are_refused(fitted):
    with (
        pytest.raises(InputError, match="no column of numbers"),
        pytest.warns(VaceWarning, match="'site' is text"),
    ):
        VACE(**SMALL).fit(pd.DataFrame({"site": ["x", "y"]}))
    with pytest.raises(InputError, match="complex"):
        VACE(**SMALL).fit(waves() * 1j)


def test_channels_by_name():
    names = ["a", "b", "c"]
    det = VACE(**SMALL).fit(pd.DataFrame(waves(), columns=names))
    test = waves(100, seed=1)
    expected = det.score(test)
    swapped = pl.DataFrame(test, schema=names).select("c", "a", "b")
    np.testing.assert_array_equal(det.score(swapped), expected)
    with pytest.raises(ChannelMismatchError, match="missing: 'c'"):
        det.score(swapped.drop("c"))


def test_not_fitted():
    for call in (VACE().score, VACE().signals, VACE().detect, VACE().embed):
        with pytest.raises(NotFittedError, match="call fit first"):
            call(waves())
    with pytest.raises(NotFittedError, match="call fit first"):
        VACE().stream()


def test_changed_settings_ask_for_a_refit(fitted):
    det = copy.deepcopy(fitted)
    test = waves(100, seed=1)
    expected = det.score(test)
    det.set_params(patch_length=24)
    for call in (det.score, det.detect, det.embed):
        with pytest.raises(NotFittedError, match=r"patch_length.*16 to 24.*call fit again"):
            call(test)
    det.set_params(patch_length=16)
    np.testing.assert_array_equal(det.score(test), expected)
    det.set_params(patch_length=24).fit(waves())
    assert np.abs(det.score(test) - expected).max() > 1e-6


@pytest.mark.parametrize("bad", [waves(10), waves() * 1j, np.full((300, 3), np.nan)])
def test_a_fit_that_fails_leaves_the_old_model(fitted, bad):
    det = copy.deepcopy(fitted)
    test = waves(100, seed=1)
    expected, model, calibration = det.score(test), det.model_, det.calibration_
    with pytest.raises(InputError):
        det.fit(bad)
    assert det.model_ is model
    assert det.calibration_ is calibration
    np.testing.assert_array_equal(det.score(test), expected)


@pytest.mark.parametrize("kind", ["Shape", "LevelScale", "Spike", "Relation"])
def test_a_fit_interrupted_anywhere_leaves_the_old_model(fitted, kind, monkeypatch):
    import vace_ad.signals

    det = copy.deepcopy(fitted)
    test = waves(100, seed=1)
    expected = det.score(test)
    (chosen,) = (each for each in vace_ad.signals.KINDS if each.__name__ == kind)

    def interrupted(training):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(chosen, "fit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            det.fit(waves(300, seed=7) * 5)
    np.testing.assert_array_equal(det.score(test), expected)


def test_a_refit_forgets_the_old_calibration(fitted):
    det = copy.deepcopy(fitted)
    before = det.calibration_
    det.fit(waves(400, seed=3))
    assert det.calibration_ is not before
    assert det.calibration_.n_rows == 400


@pytest.mark.parametrize("stretch", [3, 30])
def test_masked_cells_are_missing_whatever_lies_under_the_mask(fitted, stretch):
    test = waves(200, seed=1)
    missing = test.copy()
    missing[80 : 80 + stretch, 1] = np.nan
    masked = np.ma.MaskedArray(test.copy(), np.isnan(missing))
    masked.data[80 : 80 + stretch, 1] = 1e6
    np.testing.assert_array_equal(fitted.score(masked), fitted.score(missing))
    train = np.ma.masked_greater(np.where(waves() > 1.1, 1e6, waves()), 1e5)
    assert train.mask.any()
    det, plain = VACE(**SMALL).fit(train), VACE(**SMALL).fit(train.filled(np.nan))
    np.testing.assert_array_equal(det.score(test), plain.score(test))
    whole = np.ma.masked_all((50, 3), dtype=np.int64)
    with pytest.raises(InputError, match="none of the 50 rows"):
        fitted.score(whole)


def test_float32_tables_score_as_their_float64_values(fitted):
    test = waves(300, seed=1).astype(np.float32)
    expected = fitted.score(test.astype(np.float64))
    np.testing.assert_array_equal(fitted.score(test), expected)
    frame = pl.DataFrame(test, schema=list(fitted.channels_))
    assert set(frame.dtypes) == {pl.Float32}
    np.testing.assert_array_equal(fitted.score(frame), expected)
    train = waves().astype(np.float32)
    single, double = (VACE(**SMALL).fit(x) for x in (train, train.astype(np.float64)))
    np.testing.assert_array_equal(single.score(test), double.score(test))
    test[100:110, 1], test[200] = np.inf, np.nan
    np.testing.assert_array_equal(fitted.score(test), fitted.score(test.astype(np.float64)))
    silences = [(e.start, e.end) for e in fitted.detect(test).events if e.kind == "no data"]
    assert silences == [(100, 110)]


def test_a_float32_table_in_memory_is_not_copied_whole(fitted):
    import tracemalloc

    rows = np.tile(waves(500, seed=1).astype(np.float32), (400, 1))  # 200,000 × 3
    fitted.score(rows[:9000])
    tracemalloc.start()
    fitted.score(rows)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * rows.nbytes + 20e6  # six lines of evidence and the scores, no copy of rows


def test_detect_gives_events_as_a_table_of_the_callers_kind(fitted):
    test = waves(600, seed=1)
    test[300:340] += 5
    for make, kind in ((pd.DataFrame, pd.DataFrame), (pl.DataFrame, pl.DataFrame)):
        found = fitted.detect(make(dict(zip(fitted.channels_, test.T, strict=True))))
        frame = found.to_frame()
        assert isinstance(frame, kind)
        assert len(frame) == len(found.events) > 0
        assert {"start", "end", "score", "signal"} <= set(frame.columns)
    np.testing.assert_array_equal(found.scores, fitted.score(test))
    assert list(found.signals) == list(fitted.signals(test))


def test_fewer_patches_than_a_velocity_needs():
    settings = {"iterations": 2, "batch_size": 16, "patch_length": 16, "widths": (16, 16, 16, 8)}
    det = VACE(preset="released", pretext_offset=16, **settings).fit(waves(100))
    assert np.isfinite(det.score(waves(18))).all()


def test_the_words_of_scikit_learn(fitted):
    test = waves(400, seed=1)
    test[200:230, 1] += 8
    over = fitted.decision_function(test)
    assert over.shape == (400,)
    assert over[200:230].max() > 0 > over[:150].max()
    found = fitted.detect(test)
    np.testing.assert_array_equal(over, found.evidence - 1)
    assert fitted.feature_names_in_.tolist() == ["channel_0", "channel_1", "channel_2"]
    assert fitted.n_features_in_ == 3
    again = VACE(**SMALL)
    assert not hasattr(again, "feature_names_in_")
    labels = again.fit_predict(test)
    np.testing.assert_array_equal(labels, again.predict(test))
    assert set(labels.tolist()) <= {0, 1}


@pytest.mark.parametrize("device", ["banana", "cuda:x", "CPU", ""])
def test_a_device_that_there_is_not(device):
    with pytest.raises(ConfigError, match=r"must be 'cpu', 'cuda', 'mps' or 'xpu'"):
        VACE(device=device)


def test_devices_that_there_are():
    assert [VACE(device=name).config.device for name in ("cpu", "cuda", "cuda:1", "mps")]


def test_rows_before_the_first_change_neither_the_place_nor_the_blame_of_events():
    rows = waves(3_000, 4, seed=5)
    for start, channel in ((1_700, 2), (2_400, 0)):
        rows[start : start + 40, channel] += 3
    detector = VACE(**SMALL).fit(rows[:1_200])
    found = detector.detect(rows, first=1_500).anomalies
    assert [event.start for event in found] == pytest.approx([1_700, 2_400], abs=8)
    assert [event.shares[0][0] for event in found] == ["channel_2", "channel_0"]


def test_a_list_of_series_is_scored_as_it_is_fitted(fitted):
    series = [waves(60, seed=1), waves(90, seed=2)]
    whole = [fitted.score(one) for one in series]
    for got, wanted in zip(fitted.score(series), whole, strict=True):
        np.testing.assert_array_equal(got, wanted)
    assert [len(one.scores) for one in fitted.detect(series)] == [60, 90]
    assert [len(one) for one in fitted.predict(tuple(series))] == [60, 90]
    np.testing.assert_array_equal(fitted.score(list(series[0])), whole[0])  # arrays that are rows
    np.testing.assert_array_equal(fitted.score(series[0].tolist()), whole[0])
