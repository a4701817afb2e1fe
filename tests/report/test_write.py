from __future__ import annotations

import os
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from report.plant import make_plant
from vace_ad.alarms.events import Event
from vace_ad.report import ReportData, write_report
from vace_ad.report.data import MIN_CONTEXT, surroundings
from vace_ad.report.write import channels_by_blame, typical_values

HOSTILE = "</script><script>window.pwned = 1</script><img src=x onerror='window.pwned = 1'>"


class Tags(HTMLParser):
    """Counts elements, and keeps what asks for something elsewhere."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]


def written(data: ReportData, path: Path) -> str:
    write_report(data, path)
    return path.read_text(encoding="utf-8")


def test_the_page_is_one_file_that_asks_for_nothing(tmp_path: Path) -> None:
    text = written(make_plant(2000), tmp_path / "report.html")
    page = Tags(text)
    assert all(link.startswith("#") for link in page.links)
    assert "url(" not in text
    assert "@import" not in text
    assert "default-src 'none'" in text
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_hostile_text_adds_no_element(tmp_path: Path) -> None:
    def tags(text: str) -> list[str]:
        words = dict.fromkeys(("title", "verdict", "alarm_words", "command", "time_zone"), text)
        names = [f"{text}{i}" for i in range(4)]
        blamed = Event(
            900, 990, 950, severity=50, probability=0.1, signal=text, shares=((names[0], 1.0),)
        )
        near = Event(700, 710, 705, shares=((names[1], 1.0),), kind="near miss")
        data = make_plant(
            2000, 4, channels=names, events=[blamed], near_misses=[near], trust=[text],
            signals={text: np.zeros(2000)},
            signal_words={text: text}, notes=[text], facts={text: text}, geometry={text: 1.0},
            **words,
        )  # fmt: skip
        return [tag for tag in Tags(written(data, tmp_path / "report.html")).tags if tag != "wbr"]

    assert tags(HOSTILE) == tags("harm/less")  # both names have a component


def test_a_slot_named_in_data_is_not_filled(tmp_path: Path) -> None:
    text = written(make_plant(500, 4, title="{{script}}{{packed}}"), tmp_path / "report.html")
    assert text.count("<title>{{script}}{{packed}}</title>") == 1


def test_the_limit_on_size_holds_and_the_page_says_what_is_missing(tmp_path: Path) -> None:
    data = make_plant(120_000, 6)
    path = tmp_path / "report.html"
    write_report(data, path, budget=1_000_000)
    assert path.stat().st_size < 1_000_000
    assert "lowest and highest value of every 16 rows" in path.read_text()
    assert "Every row of the table is in this file" in written(data, path)


def test_many_rows_and_thousands_of_events_stay_below_five_megabytes(tmp_path: Path) -> None:
    data = make_plant(300_000, 12)  # 29 MB
    path = tmp_path / "report.html"
    write_report(data, path)
    assert path.stat().st_size < 5_000_000
    one = data.events[0]
    bursts = [replace(one, start=row, end=row + 9, peak=row) for row in range(90_000, 270_000, 90)]
    write_report(replace(data, events=bursts), path)
    assert path.stat().st_size < 5_000_000


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")

    def fail(draft: Path, target: Path) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_report(make_plant(500), path)
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_odd_tables_can_be_written(tmp_path: Path) -> None:
    values = np.array([[np.inf, 1e308, 3.0]])
    data = ReportData("\ud800", ["a", "a", ""], values, np.array([np.nan]), np.inf)
    assert "Nothing found in 1 row of 3 channels." in written(data, tmp_path / "report.html")


def contrast(one: str, other: str) -> float:
    def light(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((light(one), light(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_text_and_curves_stand_out_from_their_ground(theme: int) -> None:
    style = (files("vace_ad.report") / "static" / "style.css").read_text()
    block = re.findall(r"^:root.*?^}", style, re.S | re.M)[theme]
    colours = dict(re.findall(r"--([\w-]+): (#\w{6})", block))
    for name in ("ink", "soft", "accent", "event", "warn"):
        ground = colours["warn-fill" if name == "warn" else "card"]
        assert contrast(colours[name], ground) >= 4.5, name
    for name in ("curve", "score", "train", "none", "signal-0", "signal-1", "signal-2", "signal-3"):
        assert contrast(colours[name], colours["card"]) >= 3, name


def test_surroundings_grow_with_the_event_and_stay_in_the_table() -> None:
    assert surroundings(Event(500, 510, 500), 1000) == (500 - MIN_CONTEXT, 510 + MIN_CONTEXT)
    assert surroundings(Event(300, 500, 300), 1000) == (100, 700)
    assert surroundings(Event(0, 900, 0), 1000) == (0, 1000)


def test_typical_values_are_medians_of_before_during_and_after() -> None:
    column = np.repeat([1.0, 5.0, np.nan], 200)
    assert typical_values(column, Event(200, 400, 200)) == [1.0, 5.0, None]


def test_channels_are_ordered_by_blame_weighted_with_severity() -> None:
    events = [
        Event(0, 5, 0, severity=10, shares=(("a", 1.0),)),
        Event(9, 12, 9, severity=90, shares=(("c", 0.6), ("b", 0.4))),
        Event(20, 20, 20, kind="no data"),
    ]
    data = ReportData("t", ["a", "b", "c", "d"], np.zeros((30, 4)), np.zeros(30), 1, events=events)
    assert channels_by_blame(data) == [2, 1, 0, 3]
