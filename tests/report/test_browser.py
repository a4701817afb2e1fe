"""The page as a reader uses it: opened from disk in a real browser."""

from __future__ import annotations

import math

import pytest

from report.reader import CURRENT, Open, on_curves, span, window
from vace_ad.report import ReportData

PHONE = (360, 740)


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
    page.js("research.open = true")
    page.settle()
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
    page.js("stack.scrollIntoView()")
    page.settle()
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
