"""The page with tables of all kinds: true values, hostile names, gaps, one row, 300,000."""

from __future__ import annotations

import math

import numpy as np
import pytest

from report.plant import make_plant
from report.reader import Open, on_curves, readout, span, window
from vace_ad.alarms.events import Event, Reading
from vace_ad.report import Curve, ReportData


def test_values_under_the_pointer_are_those_of_the_table(show: Open) -> None:
    data = make_plant(20_000, 4, time=None, time_zone=None, events=())
    page = show(data)
    while span(page) > 40:
        page.key("+")
    start, end = window(page)
    row = math.ceil(start) + 5
    page.mouse("mouseMoved", *on_curves(page, (row - start) / (end - start)))
    page.settle()
    for i, name in enumerate(data.channels):
        shown = float(readout(page, name).replace(",", ""))
        local = data.values[row - 50 : row + 50, i]
        assert shown == pytest.approx(data.values[row, i], abs=np.ptp(local) / 50)
    assert page.js("document.querySelector('.hair span').textContent") == f"row {row:,}"


def test_hostile_names_stay_text(show: Open) -> None:
    names = [
        "<script>window.pwned = 1</script>",
        "</script><script>window.pwned = 1</script>",
        "<img src=x onerror='window.pwned = 1'>",
        "\"><svg onload='window.pwned = 1'>",
        "<!--<script>",
        "{{script}} ${window.pwned = 1} \u2028 \u202e",
    ]
    blamed = tuple((name, 0.1) for name in names)
    read = tuple(Reading(name, 3.0, 1.0, 2.0) for name in names)
    event = Event(
        900,
        990,
        950,
        severity=50,
        probability=1e-3,
        signal=names[1],
        shares=blamed,
        readings=read,
        partner=names[2],
    )
    line = np.zeros(2000)
    near = Event(700, 720, 705, shares=blamed, kind="near miss")
    data = make_plant(
        2000, 6, title=names[1], channels=names, events=[event], near_misses=[near],
        expected=dict.fromkeys(names, Curve(line, line + 1, line)),
        trust=names, verdict=names[2], command=names[3],
        signals={names[1]: np.zeros(2000)}, signal_words={names[1]: names[2]}, notes=[names[0]],
        facts={names[2]: names[3]}, alarm_words=names[0], time_zone=names[1],
    )  # fmt: skip
    page = show(data)
    page.js("choose.click()")
    page.key("n")
    page.settle()
    assert page.js("window.pwned") is None
    for where in (".suspect .line b", "#chooser li .name", ".panel.channel b"):
        texts = page.js(f"[...document.querySelectorAll('{where}')].map((e) => e.textContent)")
        assert sorted(texts) == sorted(names), where
    assert page.js("document.title.trim()") == names[1]
    assert page.js("command.textContent") == names[3]
    assert page.js("document.querySelectorAll('script').length") == 4
    assert page.complaints == []


def test_gaps_and_missing_values_break_the_curve(show: Open) -> None:
    data = make_plant(20_000, 4)
    data.values[5000:7000, 0] = np.nan
    page = show(data)
    start, end = window(page)
    page.mouse("mouseMoved", *on_curves(page, (6000 * 60_000 - start) / (end - start)))
    page.settle()
    assert readout(page, data.channels[0]) == "no data"
    assert readout(page, data.channels[1]) != "no data"
    gap = next(event for event in data.events if event.kind == "no data").start
    page.mouse("mouseMoved", *on_curves(page, (gap * 60_000 + 3e6 - start) / (end - start)))
    page.settle()
    assert readout(page, data.channels[1]) == "no data"


@pytest.mark.parametrize("n_rows", [1, 2, 30])
def test_tiny_tables_are_shown(show: Open, n_rows: int) -> None:
    values = np.column_stack([np.arange(n_rows), np.full(n_rows, np.nan), np.ones(n_rows)])
    data = ReportData("tiny", ["a", "b", "c"], values, np.full(n_rows, np.nan), math.inf)
    page = show(data)
    page.key("+")
    page.key("n")
    assert page.complaints == []
    assert page.js("document.getElementById('detail-title').textContent") == "No events"


def test_many_rows_stay_responsive_and_lose_no_spike(show: Open) -> None:
    n_rows = 300_000
    data = make_plant(n_rows, 5)
    spike, top = data.events[1].start + 40, 50 * float(np.abs(data.values[:, 0]).max())
    data.values[spike, 0] = top
    page = show(data)
    start, end = window(page)
    at = (spike * 60_000 - start) / (end - start)
    page.until("Number(stack.dataset.bin) <= 1024 && !stack.hidden")
    x, y = on_curves(page, at)
    page.mouse("mouseMoved", x, y)
    page.settle()
    highest = readout(page, data.channels[0]).split(" to ")[-1].replace(",", "")
    assert float(highest) == pytest.approx(top, rel=0.01)

    page.js(
        "window.frames_ = []; (function tick(last) { requestAnimationFrame((now) => {"
        " frames_.push(now - last); tick(now); }); })(performance.now())"
    )
    for _ in range(40):
        page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-100)
    page.until("stack.dataset.bin === '1'")
    frames = sorted(page.js("frames_"))
    assert frames[len(frames) // 2] < 50  # ms, on one busy core
    assert span(page) < 60_000 * 60
    page.settle()
    page.mouse("mouseMoved", *on_curves(page, 0.9))
    page.settle()
    assert float(readout(page, data.channels[1]).replace(",", "")) > 0
    assert page.complaints == []
