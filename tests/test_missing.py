"""Dead and late sensors: the others are scored, and the silence is an event of its own."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from vace_ad import VACE
from vace_ad.errors import InputError, VaceWarning

SMALL = {"patch_length": 24, "stride": 4, "widths": (16, 16, 16, 8), "encoders": 2}


def plant(n: int, seed: int = 0) -> np.ndarray:
    """Eight channels that follow three rhythms."""
    rng = np.random.default_rng(seed)
    rhythms = np.sin(np.arange(n)[:, None] / [5, 8, 21])
    weights = np.random.default_rng(5).normal(size=(3, 8))
    return rhythms @ weights + 0.1 * rng.normal(size=(n, 8))


@pytest.fixture(scope="module")
def detector() -> VACE:
    return VACE(**SMALL).fit(plant(2000))


@cache
def fitted_with_gap(nothing: float) -> VACE:
    train = plant(600, seed=2)
    train[100:150, 4] = nothing
    return VACE(**SMALL).fit(train)


@pytest.mark.parametrize("nothing", [np.inf, -np.inf, 1.7e308, -1e101])
def test_sentinels_are_missing_everywhere_alike(detector, nothing):
    rows, plain = plant(600, seed=1), plant(600, seed=1)
    rows[200:300, 2], plain[200:300, 2] = nothing, np.nan
    rows[400:403], plain[400:403] = nothing, np.nan
    np.testing.assert_array_equal(detector.score(rows), detector.score(plain))
    found = detector.detect(rows)
    silences = [(e.start, e.end, e.shares) for e in found.events if e.kind == "no data"]
    assert silences == [(200, 300, (("channel_2", 1.0),))]
    explained = detector.explain(rows, 250, 260)
    np.testing.assert_array_equal(explained.shares, detector.explain(plain, 250, 260).shares)
    a, b = fitted_with_gap(nothing), fitted_with_gap(np.nan)
    np.testing.assert_array_equal(a.score(rows), b.score(rows))


def test_nothing_but_sentinels_is_an_error_and_not_nothing_found(detector):
    for call in (detector.score, detector.detect):
        with pytest.raises(InputError, match="none of the 600 rows"):
            call(np.full((600, 8), 1.7e308))
    half = plant(600, seed=1)
    half[:300] = 1.7e308
    with pytest.warns(VaceWarning, match="300 of 600"):
        detector.score(half)
    found = detector.detect(half)
    assert any("300 of 600" in note for note in found.notes)
    assert [(e.start, e.end) for e in found.events if e.kind == "no data"] == [(0, 300)]


@pytest.mark.parametrize("channel", range(8))
def test_a_channel_that_is_dead_throughout_leaves_the_others_scored_and_calm(detector, channel):
    rows = plant(1500, seed=1)
    calm = detector.score(rows)
    rows[:, channel] = np.nan
    scores = detector.score(rows)
    assert np.isfinite(scores).all()
    assert np.quantile(scores, 0.95) < 1.5 * np.quantile(calm, 0.95)
    found = detector.detect(rows)
    assert all(event.ratio < 3 for event in found.anomalies)  # a rebuilt channel is not quite real
    (silence,) = (event for event in found.events if event.kind == "no data")
    assert (silence.start, silence.end) == (0, 1500)
    assert silence.shares == ((f"channel_{channel}", 1.0),)


def test_a_fault_meanwhile_in_another_channel_is_seen(detector):
    rows = plant(1500, seed=1)
    rows[600:900, 3] = np.nan
    calm = detector.score(rows)
    broken = rows.copy()
    broken[700:760, 5] += 500 * rows[:, 5].std()
    scores = detector.score(broken)
    assert scores[705:755].min() > 2 * np.nanmax(calm)
    (event,) = detector.detect(broken).anomalies
    assert event.start < 760
    assert event.end > 700
    assert event.shares[0][0] == "channel_5"
    (silence,) = (e for e in detector.detect(broken).events if e.kind == "no data")
    assert (silence.start, silence.end, silence.shares) == (600, 900, (("channel_3", 1.0),))


def test_a_fault_is_seen_beside_a_channel_dead_throughout(detector):
    rows = plant(1500, seed=1)
    rows[:, 3] = np.nan
    rows[700:760, 5] += 500 * rows[:, 5].std()
    (event,) = detector.detect(rows).anomalies
    assert event.start < 760
    assert event.end > 700
    assert event.shares[0][0] == "channel_5"


def test_a_row_is_scored_up_to_a_share_of_missing_channels(detector):
    rows = plant(400, seed=1)
    rows[100:150, :4] = np.nan  # half of them: the setting's limit
    rows[250:300, :5] = np.nan
    with pytest.warns(VaceWarning, match="50 of 400"):
        scores = detector.score(rows)
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(scores)), np.arange(250, 300))


@pytest.mark.parametrize("rows", [5, 6])
def test_gaps_are_events_only_beyond_what_is_interpolated(detector, rows):
    table = plant(300, seed=1)
    table[100 : 100 + rows, 1] = np.nan
    silences = [e for e in detector.detect(table).events if e.kind == "no data"]
    assert len(silences) == (rows > 5)


def test_training_with_a_channel_missing_for_a_stretch():
    train = plant(2000)
    train[300:700, 2] = np.nan
    detector = VACE(**SMALL).fit(train)
    assert detector.facts_["rows_used"] == 2000
    calm = VACE(**SMALL).fit(plant(2000)).score(plant(800, seed=1))
    scores = detector.score(plant(800, seed=1))
    assert abs(np.median(scores) / np.median(calm) - 1) < 0.2
    assert not detector.detect(plant(800, seed=1)).anomalies
