"""From a detector and its detection to the data of the page, and its words about trust."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from vace_ad import VACE
from vace_ad.alarms import Budget
from vace_ad.detection import Detection
from vace_ad.frames.table import as_table
from vace_ad.views.report import report_data, seasonality_words, trust

TRAIN = 2400
Fitted = tuple[VACE, pd.DataFrame, Detection]


@pytest.fixture(scope="module")
def fitted() -> Fitted:
    rng = np.random.default_rng(0)
    t = np.arange(4000)
    values = np.sin(2 * np.pi * t / 96)[:, None] * [1, 2, 3] + 0.1 * rng.normal(size=(4000, 3))
    values[3000:3030, 1] += 4
    values[2700:2720, 2] += 0.8  # nearly an event
    index = pd.date_range("2026-01-01", periods=4000, freq="15min")
    frame = pd.DataFrame(values, columns=["a", "b", "c"], index=index)
    detector = VACE(random_state=0).fit(frame[:TRAIN])
    return detector, frame, detector.detect(frame, first=TRAIN, budget="1 in 10000 rows")


def test_the_page_gets_curves_near_misses_other_limits_and_trust(fitted: Fitted) -> None:
    _, frame, found = fitted
    data = report_data("t", found, training=(0, TRAIN), units={"b": "bar", "gone": "l"})
    event = max(data.events, key=lambda event: event.severity)
    curve = data.expected["b"]
    inside = (frame["b"] > curve.lower) & (frame["b"] < curve.upper)
    assert inside[TRAIN:2990].mean() > 0.95  # it follows the seasonality, whose range is 4
    assert np.nanmax((curve.upper - curve.lower)[TRAIN:2990]) < 2
    assert not inside[3000:3025].any()
    assert np.nanmin(curve.nats[3000:3025]) > np.nanquantile(curve.nats[TRAIN:2990], 0.99)
    reading = event.readings[0]
    assert reading.channel == "b"
    assert reading.value == frame["b"].iloc[event.peak]
    assert reading.high < reading.value
    assert reading.low == pytest.approx(curve.lower[event.peak], abs=0.2)
    assert all(near.kind == "near miss" and near.start >= TRAIN for near in data.near_misses)
    assert data.units == {"b": "bar"}
    now = next(one for one in data.what_if if one.shift == 0)
    assert now.events == len(found.anomalies)
    assert any("a pattern of about 1 day, seen 25 times" in line for line in data.trust)
    assert any(
        line.startswith("It learned from 2,400 rows, which is 25 days") for line in data.trust
    )


def test_the_curves_are_those_of_expect(fitted: Fitted) -> None:
    detector, frame, found = fitted
    table = detector.expect(frame)
    for name, curve in report_data("t", found).expected.items():
        np.testing.assert_allclose(curve.lower, table[f"{name} lower"], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(curve.upper, table[f"{name} upper"], rtol=1e-5, atol=1e-5)


def test_trust_says_what_speaks_against_it(fitted: Fitted) -> None:
    detector, frame, found = fitted
    moved = frame.copy()
    moved["c"] += 50
    words = " ".join(trust(detector.model_, as_table(moved), found))
    assert "1 channel lies mostly outside it" in words
    half = replace(found, scores=np.where(np.arange(4000) < 2000, np.nan, 1.0), events=())
    assert any(
        line.startswith("50 % of the rows")
        for line in trust(detector.model_, as_table(frame), half)
    )


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"seasonality": {"period": 288, "rise": 0.5}, "step_seconds": 300.0}, "about 1 day."),
        ({"seasonality": {"period": 60, "rise": 0.5}, "step_seconds": 1.0}, "about 1 min."),
        (
            {"seasonality": {"period": 60, "rise": 0.5}, "rows": 600},
            "about 60 rows, seen 10 times.",
        ),
        ({"seasonality": {"period": 0, "rise": 0.0}}, "no clear period"),
    ],
)
def test_the_rhythm_in_words(facts: dict[str, object], said: str) -> None:
    assert said in seasonality_words(facts)


def test_a_detection_writes_its_report_with_and_without_its_model(
    fitted: Fitted, tmp_path: Path
) -> None:
    _, _, found = fitted
    found.report(tmp_path / "with.html", first=TRAIN)
    text = (tmp_path / "with.html").read_text()
    assert "Training shows a pattern" in text
    assert len(re.findall(r'<tr data-event="', text)) == len(found.events)
    assert "expected " in text
    alone = replace(found, model=None)
    alone.report(tmp_path / "without.html", first=TRAIN)
    assert "Nothing was recorded about the training" in (tmp_path / "without.html").read_text()
    assert report_data("t", alone).expected == {}


def test_a_threshold_of_a_person_is_not_said_to_rest_on_training(fitted: Fitted) -> None:
    detector, frame, found = fitted
    assert any("held-out" in line for line in trust(detector.model_, as_table(frame), found))
    given = detector.detect(frame, budget=Budget(50.0, "threshold"), first=TRAIN)
    lines = trust(detector.model_, as_table(frame), given)
    assert "The threshold was set by the user (scores above 50)." in lines
    assert not any("rest on" in line for line in lines)
