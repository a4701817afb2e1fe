"""People meet one threshold, whichever way they look."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cli.runs import Runner, frame
from vace_ad import VACE
from vace_ad.alarms import Budget
from vace_ad.detection import Detection
from vace_ad.views.thresholds import at_start, ends, told

FIRST = 700  # rows that train


@pytest.fixture(scope="module")
def detector() -> VACE:
    return VACE(random_state=0).fit(frame()[:FIRST])


@pytest.fixture(scope="module")
def found(detector: VACE) -> Detection:
    return detector.detect(frame()[FIRST:])


def test_the_first_threshold_is_the_one_that_the_detector_announces(
    detector: VACE, found: Detection
) -> None:
    first, meant = at_start(detector, Budget())
    assert first == ends(found)[0] == found.limits[0]
    assert meant == found.threshold
    assert f"threshold     {first:.3g} at the start" in repr(detector)


def test_a_notebook_and_a_report_tell_the_same(found: Detection, tmp_path: Path) -> None:
    first, last = ends(found)
    assert first != last
    words = f"threshold {first:.3g} at the start, {last:.3g} at the end"
    assert told(found) == words
    assert f"{words} ({found.threshold.words})" in repr(found)
    found.report(tmp_path / "r.html")
    assert f"<li>{words}, {found.threshold.words}</li>" in (tmp_path / "r.html").read_text()


def test_a_threshold_that_a_person_gave_is_one_number(detector: VACE) -> None:
    found = detector.detect(frame()[FIRST:], budget=Budget(4.5, "threshold"))
    assert told(found) == "threshold 4.5"


def test_rows_of_the_training_have_none_and_without_any_the_budget_s_own_is_told(
    detector: VACE, found: Detection
) -> None:
    whole = detector.detect(frame(), first=FIRST)
    assert np.isnan(whole.limits[:FIRST]).all()
    assert ends(whole) == (whole.limits[FIRST], whole.limits[-1])
    empty = replace(found, limits=np.full(len(found.limits), np.nan))
    assert ends(empty) == (found.threshold.value, found.threshold.value)


def test_the_command_line_says_it_as_the_report_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    vace = Runner(monkeypatch, capsys)
    frame().write_csv(tmp_path / "t.csv")
    answer = vace("detect", tmp_path / "t.csv", "--train-rows", str(FIRST), "--out", tmp_path / "r")
    said = re.search(r"^  (threshold .* at the start, .* at the end): (.*)$", answer.out, re.M)
    assert said is not None, answer.out
    assert f"<li>{said[1]}, {said[2]}</li>" in (tmp_path / "r" / "report.html").read_text()
    record = json.loads((tmp_path / "r" / "run.json").read_text())["threshold"]
    assert said[1] == (
        f"threshold {record['first']:.3g} at the start, {record['last']:.3g} at the end"
    )
    model = tmp_path / "r" / "model.vace"
    assert f"threshold {record['first']:.3g} at the start: {said[2]}" in vace("inspect", model).out
