"""What a reader can ask of the page: which events, which channels, which threshold, which file."""

from __future__ import annotations

import base64
import re
from dataclasses import replace

import numpy as np
import pytest

from report.chromium import Chromium
from report.plant import make_plant
from report.reader import CURRENT, Open
from vace_ad.report import ReportData, ReportEvent, WhatIf

PANELS = "[...document.querySelectorAll('.panel.channel b')].map((b) => b.textContent)"
LISTED = "[...document.querySelectorAll('#events tbody tr:not([hidden])')]"
ORDER = f"{LISTED}.map((tr) => Number(tr.dataset.event))"

# Keeps what is saved: its name, its type, and its text or size.
CATCH = """
window.saved = [];
URL.createObjectURL = (blob) => { saved.push({ blob }); return "#"; };
HTMLAnchorElement.prototype.click = function () { saved.at(-1).name = this.download; };
"""


def choose(page: Chromium, event: int) -> None:
    page.js(f"document.querySelector('tr[data-event=\"{event}\"]').click()")
    page.settle()


def many_events(count: int = 104) -> ReportData:
    data = make_plant(20_000, 8)
    severity = np.random.default_rng(0).permutation(count) / count * 100
    events = [
        ReportEvent(7000 + 100 * i, 7020 + 100 * i, 7005 + 100 * i, float(severity[i]), 1e-4,
                    shares=[(data.channels[i % 8], 0.9)])
        for i in range(count)
    ]  # fmt: skip
    return replace(data, events=events)


def test_channels_follow_the_chosen_event_with_its_suspects_first(
    show: Open, plant: ReportData
) -> None:
    page = show(plant)
    for i in (1, 0):
        choose(page, i)
        suspects = [name for name, _ in plant.events[i].shares]
        assert page.js(PANELS)[: len(suspects)] == suspects
    page.js("choose.click(); follow.click()")
    before = page.js(PANELS)
    choose(page, 1)
    assert page.js(PANELS) == before


def test_a_channel_ticked_by_hand_stays(show: Open, plant: ReportData) -> None:
    page = show(plant)
    choose(page, 0)
    extra = next(name for name in plant.channels if name not in page.js(PANELS))
    page.js(
        "[...document.querySelectorAll('#chooser li')].find((li) => "
        f"li.textContent === {extra!r}).querySelector('input').click()"
    )
    choose(page, 1)
    assert extra in page.js(PANELS)


def test_long_names_lose_their_middle_not_their_end(show: Open) -> None:
    data = make_plant(3000, 4, events=(), near_misses=())
    names = [f"{'very/long/path/' * 20}to_the.sensor_{i}" for i in range(4)]
    page = show(replace(data, channels=names, expected={}), size=(360, 740))
    assert page.js("document.documentElement.scrollWidth") == 360
    assert page.js(PANELS) == names
    ends = page.js(
        "[...document.querySelectorAll('.panel.channel .tail')].map((tail) => {"
        " const box = tail.getBoundingClientRect();"
        " return box.right <= innerWidth && tail.scrollWidth <= tail.clientWidth + 1; })"
    )
    assert ends == [True] * 4


def test_on_a_phone_events_come_before_the_curves(show: Open, plant: ReportData) -> None:
    page = show(plant, size=(360, 740))
    assert page.box("aside")[1] < page.box("#timeline")[1]
    page = show(plant)
    assert page.box("aside")[0] > page.box("#timeline")[0]


def test_many_events_come_by_severity_and_can_be_searched(show: Open) -> None:
    data = many_events()
    page = show(data)
    severity = [round(data.events[i].severity) for i in page.js(ORDER)]
    assert severity == sorted(severity, reverse=True)
    box = "document.getElementById('find')"  # window.find is the browser's own
    page.js(f"{box}.value = {data.channels[3]!r}; {box}.dispatchEvent(new Event('input'))")
    assert sorted(page.js(ORDER)) == list(range(3, 104, 8))
    assert page.js("found.textContent") == "13 of 104"
    page.js("document.activeElement.blur()")
    first, second = page.js(ORDER)[:2]
    choose(page, first)
    page.key("n")
    assert page.js(CURRENT) == str(second)  # the next one that is listed


def test_events_can_be_filtered_by_kind(show: Open, plant: ReportData) -> None:
    page = show(plant)
    page.js("kind.value = 'no data'; kind.dispatchEvent(new Event('change'))")
    assert [plant.events[i].kind for i in page.js(ORDER)] == ["no data"]


def test_near_misses_are_listed_apart_and_can_be_chosen(show: Open, plant: ReportData) -> None:
    page = show(plant)
    assert page.js(f"{LISTED}.length") == len(plant.events)
    page.js("document.querySelector('tr[data-near=\"1\"] a').click()")
    page.settle()
    assert page.js("document.getElementById('detail-title').textContent") == "Near miss 2 of 2"
    assert "below the limit" in page.js("document.querySelector('.lead').textContent")
    assert page.js("location.hash") == "#near-2"
    page = show(replace(plant, events=(), near_misses=()))
    assert page.js("document.getElementById('near-misses').hidden")


def test_the_slider_and_the_line_tell_what_another_threshold_gives(
    show: Open, plant: ReportData
) -> None:
    page = show(plant)
    answer = "document.getElementById('answer').textContent"
    assert page.js(answer).startswith("3.40: 5 anomalies")
    page.js("threshold.value = 0; threshold.dispatchEvent(new Event('input'))")
    assert page.js(answer).startswith("1.40: 10 anomalies instead of 5")
    page.js("document.getElementById('threshold-reset').click()")
    assert page.js(answer).startswith("3.40: 5 anomalies;")
    page.settle()
    left, top, width, height = page.box(".panel.score canvas")
    x, before = left + 0.3 * width, page.js("stack.dataset.from")
    hits = []
    for y in range(int(top), int(top + height)):
        page.mouse("mouseMoved", x, y)
        if page.js("document.querySelector('.panel.score canvas').style.cursor") == "ns-resize":
            hits.append(y)
    line = (hits[0] + hits[-1]) / 2
    page.drag((x, line), (x, line - 14), shift=False)
    assert float(page.js(answer).split(":")[0]) > 3.6
    assert "instead of 5" in page.js(answer)
    assert page.js("stack.dataset.from") == before  # the curves did not move


def test_a_threshold_for_each_row_is_drawn(show: Open) -> None:
    data = make_plant(20_000, 4)
    line = 3.4 + np.sin(np.arange(20_000) / 3000)
    page = show(replace(data, threshold=line, what_if=[WhatIf(-1, 9), WhatIf(0, 5), WhatIf(1, 2)]))
    picture = "document.querySelector('.panel.score canvas').toDataURL()"
    with_line = page.js(picture)
    page.js("threshold.value = 0; threshold.dispatchEvent(new Event('input'))")
    page.settle()
    assert page.js(picture) != with_line
    assert "9 anomalies instead of 5" in page.js("answer.textContent")
    first, last = (f"{value - 1:.2f}" for value in (line[0], line[-1]))
    assert page.js("answer.textContent").startswith(f"{first} at the start, {last} at the end: 9 ")


def test_the_expected_range_is_drawn_around_the_curves_of_the_event(
    show: Open, plant: ReportData
) -> None:
    def picture(data: ReportData) -> str:
        page = show(data)
        choose(page, 1)
        page.settle()
        return str(page.js("document.querySelector('.panel.channel canvas').toDataURL()"))

    bare = replace(plant, expected={})
    assert picture(plant) != picture(bare)
    page = show(plant)
    choose(page, 1)
    channel, value, low, high = plant.events[1].readings[0]
    said = page.js("document.querySelector('.typical').textContent")
    assert said.startswith(f"{channel} ")
    assert ", expected " in said
    found = re.findall(r" (-?[\d,]+\.?\d*)", said[len(channel) :])
    numbers = [float(one.replace(",", "").rstrip(".")) for one in found[:3]]
    assert numbers == pytest.approx([value, low, high], rel=0.02)
    assert "expected range" in page.js("legend.textContent")


def test_events_are_saved_as_csv_and_curves_as_a_picture(show: Open, plant: ReportData) -> None:
    names = ['=cmd("x"),', *plant.channels[1:]]
    event = ReportEvent(9000, 9100, 9050, 80, 1e-5, shares=[(names[0], 0.9)])
    page = show(replace(plant, channels=names, expected={}, events=[event], near_misses=()))
    page.js(CATCH)
    page.js("csv.click()")
    text = page.js("saved[0].blob.text()")
    head, row = text.splitlines()
    assert head.startswith("kind,first_row,end_row,from,to,lasts,severity")
    assert row.startswith("anomaly,9000,9100,")
    assert row.endswith(""","'=cmd(""x""), 90%",""")
    assert page.js("saved[0].name") == "plant-events.csv"
    page.js("png.click()")
    page.until("saved.length === 2 && saved[1].name")
    assert page.js("saved[1].name") == "plant.png"
    size = page.js("createImageBitmap(saved[1].blob).then((map) => [map.width, map.height])")
    assert size[0] > 600
    assert size[1] > 600


@pytest.mark.parametrize("dark", [False, True])
def test_geometry_is_folded_away_for_researchers(show: Open, plant: ReportData, dark: bool) -> None:
    page = show(plant, dark=dark)
    assert not page.js("research.open")
    assert "Effective rank" not in page.js("document.querySelector('.cards').textContent")
    assert plant.trust[1] in page.js("document.querySelector('.cards').textContent")
    page = show(replace(plant, trajectory=None, trajectory_rows=None, geometry={}, verdict=""))
    assert page.js("getComputedStyle(research).display") == "none"


def test_the_evidence_of_a_suspect_is_drawn_below_its_curve(show: Open, plant: ReportData) -> None:
    def picture(data: ReportData) -> str:
        page = show(data)
        choose(page, 1)
        page.settle()
        return str(page.js("document.querySelector('.suspect canvas').toDataURL()"))

    name = plant.events[1].shares[0][0]
    curve = plant.expected[name]
    calm = {**plant.expected, name: curve._replace(nats=np.zeros(plant.n_rows))}
    assert picture(plant) != picture(replace(plant, expected=calm))


def test_what_an_event_means_is_said_in_sentences(show: Open, plant: ReportData) -> None:
    page = show(plant)
    choose(page, 1)
    said = page.js("document.querySelector('.lead').textContent")
    assert "At the peak: " in said
    assert "It is rarer than anything in 4,176 normal rows." in said
    first, partner = plant.events[1].shares[0][0], plant.events[1].partner
    assert f"{first} and {partner} stopped going together." in said
    choose(page, 5)
    said = page.js("document.querySelector('.lead').textContent")
    assert "It ended because a lasting change became the new normal." in said


def test_paper_has_a_page_for_each_event_and_no_title_page(show: Open, plant: ReportData) -> None:
    page = show(plant)
    assert page.js("getComputedStyle(printout).display") == "none"
    page.call("Emulation.setEmulatedMedia", media="print", features=[])
    assert page.js("getComputedStyle(printout).display") == "block"
    assert page.js("printout.querySelectorAll('article').length") == 5  # the gap has no rows
    assert page.js("getComputedStyle(printout.querySelector('article')).breakBefore") == "page"
    pdf = base64.b64decode(page.call("Page.printToPDF")["data"])
    assert 7 <= len(re.findall(rb"/Type /Page\b", pdf)) <= 10
    page.call("Emulation.setEmulatedMedia", media="", features=[])
