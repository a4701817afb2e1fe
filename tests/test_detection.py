from __future__ import annotations

import re
import sys
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from vace_ad import VACE
from vace_ad.alarms.budget import Threshold
from vace_ad.alarms.events import Event
from vace_ad.detection import LISTED, Detection, picture
from vace_ad.errors import MissingExtraError
from vace_ad.report.curves import envelope

N = 5000
HOSTILE = "<script>alert(1)</script>"


def detection(n_events: int = 2) -> Detection:
    scores = np.random.default_rng(0).gamma(2, 0.2, N)
    scores[:50] = np.nan
    events = [
        Event(1000 + 300 * i, 1040 + 300 * i, 1010 + 300 * i, severity=10.0 * i + 5,
              shares=((HOSTILE, 0.75), ("b", 0.25), ("c", 0.0)))
        for i in range(n_events)
    ]  # fmt: skip
    frame = pd.DataFrame(
        {"a": np.zeros(N)}, index=pd.date_range("2026-01-01", periods=N, freq="min")
    )
    threshold = Threshold(1.0, "about one false alarm a week")
    return Detection(scores, {}, scores, scores, threshold, tuple(events), (), (), data=frame)


def test_the_text_says_what_was_found() -> None:
    said = repr(detection()).splitlines()
    assert said[0] == "Detection: 2 anomalies in 5,000 rows (about one false alarm a week)"
    assert "row 1,000  40 rows  severity 5" in said[1]
    assert "b 25%" in said[1]
    assert "c 0%" not in said[1]
    assert len(said) == 3


def test_of_many_events_the_most_severe_are_listed_in_order_of_row() -> None:
    said = repr(detection(9)).splitlines()
    assert len(said) == 1 + LISTED + 1
    assert [int(x) for x in re.findall(r"severity (\d+)", "\n".join(said))] == [45, 55, 65, 75, 85]
    assert said[-1].strip() == "and 4 more"


def test_nothing_found_and_silence_have_their_words() -> None:
    nothing = detection(0)
    assert repr(nothing).startswith("Detection: nothing found in 5,000 rows")
    silent = replace(nothing, events=(Event(7, 7, 7, "no data"),))
    assert "0 anomalies, 1 period without data" in repr(silent)
    assert "a gap in time  no data" in repr(silent)


def test_the_card_is_sound_markup_with_a_picture_and_no_foreign_element() -> None:
    card = detection()._repr_html_()
    tree = ElementTree.fromstring(card)
    assert tree.find(".//script") is None
    assert len(tree.findall(".//svg/rect")) == 2
    assert len(tree.findall(".//tr")) == 2
    assert len(card) < 60_000
    assert detection(0)._repr_html_().count("<tr>") == 0


@pytest.mark.parametrize("n_rows", [1, 3])
def test_tiny_and_empty_scores_are_drawn(n_rows: int) -> None:
    none = np.full(n_rows, np.nan)
    tiny = Detection(none, {}, none, none, Threshold(np.inf, ""), (), (), ())
    assert ElementTree.fromstring(picture(tiny)).tag == "svg"


def test_the_envelope_keeps_every_spike() -> None:
    scores = np.zeros(10_001)
    scores[[77, 9999]] = 5, -5
    rows, low, high = envelope(scores, 100)
    assert len(rows) <= 100
    assert high[rows.searchsorted(77, side="right") - 1] == 5
    assert low[rows.searchsorted(9999, side="right") - 1] == -5


def test_a_plot_takes_axes_and_gives_them_back() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    _, ax = plt.subplots()
    found = detection()
    assert found.plot(ax) is ax
    assert len(ax.patches) == 2
    assert ax.get_title(loc="left").startswith("2 anomalies")
    new = found.plot()
    assert new is not ax
    new.figure.canvas.draw()
    limit = new.lines[-1].get_ydata()
    assert set(limit[np.isfinite(limit)]) == {1.0}
    plt.close("all")


@pytest.fixture(scope="module")
def fault() -> Detection:
    rng = np.random.default_rng(0)
    t = np.arange(3000)
    values = np.sin(2 * np.pi * t / 96)[:, None] * [1, 2, 3] + 0.1 * rng.normal(size=(3000, 3))
    values[2500:2530, 1] += 4
    detector = VACE(random_state=0).fit(values[:2000])
    return detector.detect(values, first=2000)


def test_a_new_figure_has_the_suspect_with_what_was_expected(fault: Detection) -> None:
    pytest.importorskip("matplotlib").use("agg")
    import matplotlib.pyplot as plt

    figure = fault.plot().figure
    assert 2 <= len(figure.axes) <= 4
    below = figure.axes[1]
    assert below.get_ylabel() == fault.anomalies[0].shares[0][0]
    (expected,) = [line for line in below.lines if line.get_label() == "expected"]
    rows, middle = expected.get_xdata(), expected.get_ydata()
    calm = (rows > 2100) & (rows < 2490)
    assert np.abs(middle[calm] - 2 * np.sin(2 * np.pi * rows[calm] / 96)).max() < 1
    plt.close("all")


def test_the_text_and_the_card_hold_the_suspect_against_its_range(fault: Detection) -> None:
    name = fault.anomalies[0].readings[0].channel
    assert re.search(rf"{name} [\d.]+, expected -?[\d.]+ to -?[\d.]+", repr(fault))
    card = fault._repr_html_()
    tree = ElementTree.fromstring(card)
    assert len(tree.findall(".//svg")) == 1 + len(fault.anomalies)
    assert "evidence, up to" in card
    assert len(card) < 60_000


def test_without_matplotlib_the_install_line_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError, match=r"vace-ad\[plot\]"):
        detection().plot()


def test_the_picture_takes_the_colours_of_a_dark_notebook() -> None:
    card = detection()._repr_html_()
    assert "#fff" not in card
    assert 'stroke="currentColor"' in card


@pytest.mark.parametrize("times", [1.0, 3.0])
def test_a_model_that_is_out_of_date_says_so(times: float) -> None:
    """Noise that becomes three times as loud for good: one event, not one a channel and hour."""
    rng = np.random.default_rng(0)
    train, rows = rng.normal(size=(2000, 4)), rng.normal(size=(1500, 4))
    rows[200:] *= times
    found = VACE(random_state=0).fit(train).detect(rows)
    notes = [note for note in found.notes if "out of date" in note]
    assert len(notes) == (times > 1)
    if notes:
        share = int(notes[0].removeprefix("in ").split("%")[0])
        assert 50 < share < 88
        assert 1 <= len(found.anomalies) <= 3
