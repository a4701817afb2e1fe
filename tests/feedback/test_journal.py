from __future__ import annotations

import pytest

from vace_ad.errors import FeedbackError
from vace_ad.feedback import Feedback, Verdict, feedback_path


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
