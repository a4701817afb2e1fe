"""The page as a reader meets it: opened from disk in a real browser, and used."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from report.chromium import Chromium
from report.plant import make_plant
from vace_ad.report import ReportData, ReportEvent, write_report

PHONE = (360, 740)
FROM, TO = "Number(document.getElementById('stack').dataset.from)", "Number(stack.dataset.to)"
CURRENT = "document.querySelector('tr[aria-current=true]').dataset.event"

Open = Callable[..., Chromium]


@pytest.fixture(scope="module")
def plant() -> ReportData:
    return make_plant(20_000, 10)


@pytest.fixture
def show(browser: Chromium, tmp_path: Path) -> Open:
    """Write a report, open it, and insist that it loads without a complaint or a request."""

    def open_report(data: ReportData, **how: Any) -> Chromium:
        path = tmp_path / "report.html"
        write_report(data, path)
        browser.open(path, **how)
        assert browser.complaints == []
        assert browser.requests == [path.as_uri()]
        return browser

    return open_report


def window(page: Chromium) -> tuple[float, float]:
    return page.js(FROM), page.js(TO)


def span(page: Chromium) -> float:
    start, end = window(page)
    return end - start


def on_curves(page: Chromium, share: float, height: float = 60) -> tuple[float, float]:
    """Return the place on the screen at a share of the axis's width."""
    left, top, width, _ = page.box("#stack")
    gutter = float(page.js("getComputedStyle(stack).getPropertyValue('--gutter')")[:-2])
    return left + gutter + share * (width - gutter), top + height


def readout(page: Chromium, channel: str) -> str:
    return str(
        page.js(
            "[...document.querySelectorAll('.panel')].find((p) => "
            f"p.querySelector('b').textContent === {channel!r})"
            ".querySelector('header span').textContent"
        )
    )


def test_it_loads_light_dark_and_on_a_phone(show: Open, plant: ReportData) -> None:
    page = show(plant)
    light = page.js("getComputedStyle(document.body).backgroundColor")
    assert page.js("document.documentElement.dataset.theme") == "light"
    page = show(plant, dark=True)
    assert page.js("document.documentElement.dataset.theme") == "dark"
    page.js("theme.click()")
    assert page.js("getComputedStyle(document.body).backgroundColor") == light
    page = show(plant, size=PHONE)
    assert page.js("document.documentElement.scrollWidth") == PHONE[0]


def test_curves_are_drawn(show: Open, plant: ReportData) -> None:
    page = show(plant)
    inked = page.js(
        "[...document.querySelectorAll('.panel canvas, #overview, .cloud canvas, .suspect canvas')]"
        ".map((c) => new Set(new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width,"
        " c.height).data.buffer)).size)"
    )
    assert len(inked) == 8 + 1 + 1 + 4
    assert min(inked) > 5


def test_the_wheel_zooms_around_the_pointer(show: Open, plant: ReportData) -> None:
    page = show(plant)
    start, end = window(page)
    x, y = on_curves(page, 0.25)
    for _ in range(5):
        page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-120)
    page.settle()
    a, b = window(page)
    assert b - a < (end - start) / 4
    assert a + 0.25 * (b - a) == pytest.approx(start + 0.25 * (end - start), abs=(b - a) / 200)
    page.mouse("mouseWheel", x, y, deltaX=200, deltaY=0)
    page.settle()
    assert window(page)[0] > a
    assert span(page) == pytest.approx(b - a)


def test_dragging_moves_and_shift_drag_zooms_into_a_stretch(show: Open, plant: ReportData) -> None:
    page = show(plant)
    left, right = on_curves(page, 0.4), on_curves(page, 0.6)
    start, end = window(page)
    page.drag(left, right, shift=True)
    a, b = window(page)
    assert (a - start) / (end - start) == pytest.approx(0.4, abs=0.01)
    assert (b - start) / (end - start) == pytest.approx(0.6, abs=0.01)
    page.drag(right, left, shift=False)
    assert window(page)[0] == pytest.approx(a + 0.2 * (b - a), rel=0.01)


def test_a_click_in_the_table_jumps_to_the_event(show: Open, plant: ReportData) -> None:
    page = show(plant)
    assert page.js(CURRENT) == "5"  # the most severe one to begin with, everything in view
    whole = span(page)
    left, top, width, height = page.box("tr[data-event='1'] a")
    page.click(left + width / 2, top + height / 2)
    event = plant.events[1]
    a, b = window(page)
    minute = 60_000
    assert a < event.start * minute < event.end * minute < b
    assert b - a < whole / 4
    assert page.js(CURRENT) == "1"
    assert page.js("document.getElementById('detail-title').textContent") == "Event 2 of 6"
    suspects = page.js(
        "[...document.querySelectorAll('.suspect .line b')].map((b) => b.textContent)"
    )
    assert suspects[:4] == [name for name, _ in event.shares]
    assert page.js("location.hash") == "#event-2"


def test_a_click_on_a_shaded_event_chooses_it(show: Open, plant: ReportData) -> None:
    page = show(plant)
    start, end = window(page)
    page.click(*on_curves(page, (plant.events[1].peak * 60_000 - start) / (end - start)))
    assert page.js(CURRENT) == "1"
    assert window(page) == (start, end)


def test_an_address_with_an_event_opens_there(show: Open, plant: ReportData) -> None:
    page = show(plant)
    page.js("location.hash = '#event-4'")
    page.settle()
    assert page.js(CURRENT) == "3"


def test_keys(show: Open, plant: ReportData) -> None:
    page = show(plant)
    whole = span(page)
    page.key("+")
    assert span(page) == pytest.approx(0.6 * whole, rel=1e-3)
    a, _ = window(page)
    page.key("ArrowRight")
    assert window(page)[0] == pytest.approx(a + 0.15 * 0.6 * whole, rel=1e-3)
    page.key("ArrowLeft")
    assert window(page)[0] == pytest.approx(a)
    page.key("n")
    assert page.js(CURRENT) == "0"  # after the last comes the first
    page.key("n")
    page.key("p")
    page.key("p")
    assert page.js(CURRENT) == "5"
    page.key("0")
    assert span(page) == whole
    page.key("-")
    assert span(page) == whole
    page.js("choose.click(); document.querySelector('#chooser input').focus()")
    page.key("n")
    assert page.js(CURRENT) == "5"  # a letter typed is not a command


def test_the_tab_key_reaches_everything_and_shows_where_it_is(
    show: Open, plant: ReportData
) -> None:
    page = show(plant)
    seen = []
    while page.js("document.activeElement.id") != "copy":
        page.key("Tab")
        seen.append(page.js("document.activeElement.id || document.activeElement.hash"))
        assert page.js("getComputedStyle(document.activeElement).outlineStyle") != "none"
    wanted = ["theme", "zoom-in", "next", "choose", "fit", "overview", "stack", "by-severity"]
    places = [seen.index(name) for name in [*wanted, "#event-1", "#event-6", "copy"]]
    assert places == sorted(places)
    page.js("document.querySelector('a[href=\"#event-3\"]').focus()")
    page.key("Enter")
    assert page.js(CURRENT) == "2"


def test_fingers_move_and_pinch(show: Open, plant: ReportData) -> None:
    page = show(plant, size=PHONE)
    whole = span(page)
    middle, y = on_curves(page, 0.5)
    page.touch("touchStart", (middle - 20, y), (middle + 20, y))
    for reach in (40, 60, 80):
        page.touch("touchMove", (middle - reach, y), (middle + reach, y))
    page.touch("touchEnd")
    page.settle()
    assert span(page) == pytest.approx(whole / 4, rel=0.05)
    a, _ = window(page)
    page.touch("touchStart", (middle + 60, y))
    for reach in (40, 0, -60):
        page.touch("touchMove", (middle + reach, y))
    page.touch("touchEnd")
    page.settle()
    assert window(page)[0] > a
    assert span(page) == pytest.approx(whole / 4, rel=0.05)


def test_the_overview_moves_the_window(show: Open, plant: ReportData) -> None:
    page = show(plant)
    page.key("+")
    page.key("+")
    left, top, width, height = page.box("#overview")
    before = span(page)
    page.click(left + 0.9 * width, top + height / 2)
    assert span(page) == pytest.approx(before)
    assert window(page)[0] > before


def test_curves_fit_their_height_to_the_view_unless_told_otherwise(
    show: Open, plant: ReportData
) -> None:
    page = show(plant)
    page.key("n")
    picture = "document.querySelector('.panel.channel canvas').toDataURL()"
    page.js("fit.click()")
    page.settle()
    whole = page.js(picture)
    page.js("fit.click()")
    page.settle()
    assert page.js(picture) != whole


def test_events_can_be_sorted_by_severity(show: Open, plant: ReportData) -> None:
    page = show(plant)
    order = (
        "[...document.querySelectorAll('#events tbody tr')].map((tr) => Number(tr.dataset.event))"
    )
    page.js("document.getElementById('by-severity').click()")
    severity = [plant.events[i].severity for i in page.js(order)]
    assert severity[:-1] == sorted(severity[:-1], reverse=True)
    assert math.isnan(severity[-1])
    page.js("document.getElementById('by-time').click()")
    assert page.js(order) == list(range(6))


def test_the_command_is_copied_or_at_least_selected(show: Open, plant: ReportData) -> None:
    page = show(plant)
    page.js("copy.click()")
    page.until("copy.textContent === 'Copied' || String(getSelection()) === command.textContent")


def test_channels_can_be_found_and_shown(show: Open, plant: ReportData) -> None:
    page = show(plant)
    names = "[...document.querySelectorAll('.panel.channel b')].map((b) => b.textContent)"
    assert len(page.js(names)) == 6
    hidden = next(name for name in plant.channels if name not in page.js(names))
    page.js("choose.click()")
    page.js(
        "(() => { const box = document.querySelector('#chooser input[type=search]');"
        f"box.value = {hidden.upper()!r}; box.dispatchEvent(new Event('input')); }})()"
    )
    found = "document.querySelectorAll('#chooser li:not([hidden])')"
    assert page.js(f"[...{found}].map((li) => li.textContent)") == [hidden]
    page.js(f"{found}[0].querySelector('input').click()")
    assert hidden in page.js(names)


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
    event = ReportEvent(900, 990, 950, 50, 1e-3, signal=names[1], shares=[(n, 0.1) for n in names])
    data = make_plant(
        2000, 6, title=names[1], channels=names, events=[event], verdict=names[2], command=names[3],
        signals={names[1]: np.zeros(2000)}, signal_words={names[1]: names[2]}, notes=[names[0]],
        facts={names[2]: names[3]}, alarm_words=names[0], time_zone=names[1],
    )  # fmt: skip
    page = show(data)
    page.js("choose.click()")
    page.key("n")
    page.settle()
    assert page.js("window.pwned") is None
    for where in (".suspect .line b", "#chooser li span", ".panel.channel b"):
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


def test_a_million_rows_stay_responsive_and_lose_no_spike(show: Open) -> None:
    n_rows = 1_000_000
    data = make_plant(n_rows, 5)
    spike, top = 123_456, 50 * float(np.abs(data.values[:, 0]).max())
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
