from __future__ import annotations

import contextlib
import json
import string

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vace_ad.alarms.pattern import Pattern
from vace_ad.errors import FeedbackError
from vace_ad.feedback import Feedback, Verdict, feedback_path

GOOD = {"id": "a1", "verdict": "normal", "start": "2026-01-01T00:00", "end": "2026-01-01T01:00"}
PATTERN = {"rows": 3, "ratio": 2.0, "channels": {"flow": [1.0, 2.0, 1.0]}}


def test_a_verdict_comes_back_from_its_line() -> None:
    pattern = Pattern.from_plain("x", PATTERN)
    line = Verdict.new(
        "normal", rows=(3, 9), digest="abc", channels=("flow",), note="ü", who="me", pattern=pattern
    )
    again = Verdict.from_plain(json.loads(json.dumps(line.to_plain())))
    assert again.to_plain() == line.to_plain()
    assert again.pattern is not None
    assert again.pattern.id == line.id


def test_the_same_words_have_the_same_id_whoever_says_them() -> None:
    one, two = (Verdict.new("fault", rows=(3, 9), who=who) for who in ("a", "b"))
    assert one.id == two.id
    assert Verdict.new("fault", rows=(3, 10)).id != one.id


def test_times_may_have_an_offset() -> None:
    line = Verdict.from_plain({**GOOD, "end": "2026-01-01T03:00+02:00"})
    assert line.end == np.datetime64("2026-01-01T01:00", "ns")


@pytest.mark.parametrize(
    "change",
    [
        {"verdict": "maybe"},
        {"id": "../x"},
        {"id": 3},
        {"start": "soon"},
        {"start": None, "end": "2026-01-01"},
        {"start": "2026-01-02"},
        {"rows": [5, 5]},
        {"rows": [0, 2**60]},
        {"rows": [0.5, 2]},
        {"channels": ["x" * 501]},
        {"channels": "flow"},
        {"note": "x" * 2001},
        {"script": "rm"},
        {"verdict": "undo"},
        {"pattern": {"rows": 3}},
        {"pattern": {**PATTERN, "rows": 10**9}},
        {"pattern": {**PATTERN, "ratio": 1e9}},
        {"pattern": {**PATTERN, "channels": {}}},
        {"pattern": {**PATTERN, "channels": {"flow": [1.0, float("nan")]}}},
        {"pattern": {**PATTERN, "channels": {"flow": [1e300]}}},
        {"pattern": {**PATTERN, "channels": {"flow": [1.0], "level": [1.0, 2.0]}}},
        {"pattern": {**PATTERN, "channels": {"flow": [True]}}},
        {"pattern": {**PATTERN, "channels": {"flow": [1.0] * 257}, "rows": 999}},
    ],
)
def test_what_does_not_hold_is_refused(change: dict) -> None:
    with pytest.raises(FeedbackError):
        Verdict.from_plain({**GOOD, **change})


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(string.printable, max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*GOOD, "rows", "pattern", "channels", "of"]), values))
def test_nothing_but_feedback_errors_comes_of_anything(plain: dict) -> None:
    with contextlib.suppress(FeedbackError):
        Verdict.from_plain({**GOOD, **plain})


def test_the_file_lies_beside_the_model_and_is_its_own_history(tmp_path) -> None:
    model = tmp_path / "pump.vace"
    assert feedback_path(model).name == "pump.feedback.jsonl"
    feedback = Feedback.beside(model)
    assert not feedback_path(model).exists()
    one, two = (Verdict.new("normal", rows=(k, k + 5)) for k in (0, 10))
    feedback.add(one)
    feedback.add(two)
    feedback.undo(one.id)
    text = feedback_path(model).read_text()
    assert len(text.splitlines()) == 3  # undo is recorded, nothing is removed
    assert [line.id for line in Feedback.beside(model).active] == [two.id]
    feedback.add(one)  # said again after it was taken back
    assert [line.id for line in Feedback.beside(model).active] == [two.id, one.id]


def test_two_writers_keep_each_others_lines(tmp_path) -> None:
    model = tmp_path / "pump.vace"
    one, two = Feedback.beside(model), Feedback.beside(model)
    one.add(Verdict.new("fault", rows=(0, 5)))
    two.add(Verdict.new("fault", rows=(5, 9)))
    assert len(Feedback.beside(model).active) == 2


def test_a_moved_model_takes_its_feedback_along_and_keeps_what_is_there(tmp_path) -> None:
    feedback = Feedback()
    feedback.add(Verdict.new("fault", rows=(0, 5)))
    other = Feedback.beside(tmp_path / "b.vace")
    other.add(Verdict.new("normal", rows=(7, 9)))
    feedback.move(tmp_path / "b.vace")
    assert {line.verdict for line in Feedback.beside(tmp_path / "b.vace").active} == {
        "normal",
        "fault",
    }


@pytest.mark.parametrize("text", ["{", "[]", '{"id": "a"}', "\x00", '{"a":' * 100_000])
def test_a_line_that_is_no_feedback_is_named(tmp_path, text: str) -> None:
    path = feedback_path(tmp_path / "pump.vace")
    good = '{"id": "a", "verdict": "fault", "rows": [1, 2]}\n'
    path.write_text(good + text + "\n")
    with pytest.raises(FeedbackError, match="line 2"):
        Feedback.beside(tmp_path / "pump.vace")


def test_a_file_that_is_too_large_is_refused(tmp_path) -> None:
    path = feedback_path(tmp_path / "pump.vace")
    with path.open("wb") as file:
        file.truncate(65 * 2**20)
    with pytest.raises(FeedbackError, match="bytes"):
        Feedback.beside(tmp_path / "pump.vace")
