"""What a detector says of itself in a notebook and at the prompt."""

import numpy as np
import pytest

from vace_ad import VACE


@pytest.fixture(scope="module")
def detector():
    rng = np.random.default_rng(0)
    names = [f"s{i}<b>" for i in range(8)]
    wave = np.sin(2 * np.pi * np.arange(1200)[:, None] / 48 + np.arange(8))
    values = wave + 0.1 * rng.normal(size=(1200, 8))
    import polars as pl

    minutes = np.datetime64("2026-01-01", "ns") + np.arange(1200) * np.timedelta64(60, "s")
    table = pl.DataFrame({"time": minutes} | dict(zip(names, values.T, strict=True)))
    return VACE(random_state=3).fit(table)


def test_before_a_fit_only_settings_are_shown():
    assert repr(VACE(random_state=3)) == "VACE(random_state=3)"
    assert VACE()._repr_html_() == "VACE()"


def test_what_was_learned_is_said(detector):
    said = repr(detector)
    assert said.startswith("VACE(random_state=3)\n")
    for words in ("1,200 rows, one every 1 min", "8: s0<b>", "and 2 more", "48 rows (48 min)",
                  "position, direction, level", "about one false alarm a week; limits from",
                  "training rows judged as if they were new", "openvino"):  # fmt: skip
        assert words in said


def test_names_are_text_in_a_notebook(detector):
    page = detector._repr_html_()
    assert "s0&lt;b&gt;" in page
    assert "<b>," not in page


def test_settings_changed_after_the_fit_are_shown_alone(detector):
    other = VACE(random_state=3).fit(np.random.default_rng(0).normal(size=(300, 2)))
    other.set_params(max_gap=9)
    assert repr(other) == "VACE(max_gap=9, random_state=3)"


def test_blame_is_a_table(detector):
    rows = np.random.default_rng(1).normal(size=(300, 8))
    rows[200:220, 4] += 30
    found = VACE(random_state=0).fit(rows[:200]).explain(rows, 200, 220)
    first = repr(found).splitlines()[0].split()
    assert first[0] == found.top(1)[0][0]
    assert first[1].endswith("%")
    assert found._repr_html_().count("<tr>") == len(found.top(10)) + 1
