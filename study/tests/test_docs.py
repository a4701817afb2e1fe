"""The detector shown in the guide does what it says, and the figures of docs/bench.md are right."""

import csv
import re
from pathlib import Path

import numpy as np

from vace_study.baselines.registry import _as_method

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "bench.md"
GUIDE = ROOT / "docs" / "guides" / "extending.md"


def test_the_example_detector_keeps_the_contract(rng):
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), flags=re.DOTALL)
    (code,) = (block for block in blocks if "class FarFromMean" in block)
    names: dict[str, type] = {"__name__": "example"}
    exec(code, names)
    method = _as_method("example:FarFromMean", names["FarFromMean"])
    table = rng.normal(size=(50, 3))
    table[30] += 20
    detector = method.make(0)
    detector.fit(table[:20])
    assert method.seeded
    assert np.argmax(detector.score(table)) == 30


def test_the_charts_have_the_figures_of_the_results():
    with (ROOT / "study" / "results" / "category-tsb-ad.csv").open() as file:
        measured = {line["method"]: line for line in csv.DictReader(file)}
    page = PAGE.read_text()
    start = page.index("| | SMAP |")
    head, _, series, *lines = page[start : page.index("\n\n", start)].splitlines()
    names = ["Overall" if name == "all" else name for name in cells(head)[1:]]
    assert cells(series)[1:] == [measured["n"][name] for name in names]
    assert len(lines) == 14
    for line in lines:
        method, *figures = cells(line)
        found = [measured[method.strip("`")][name] for name in names]
        assert figures == [value and f"{float(value):.3f}" for value in found], method


def test_their_alarms_have_the_figures_of_the_results():
    with (ROOT / "study" / "results" / "operating.csv").open() as file:
        measured = {r["method"]: r for r in csv.DictReader(file) if r["family"] == "all"}
    page = PAGE.read_text()
    start = page.index("| at one false alarm in 10,000 rows |")
    lines = page[start : page.index("\n\n", start)].splitlines()[2:]
    assert {cells(line)[0].strip("`") for line in lines} == set(measured)
    for line in lines:
        method, *figures = cells(line)
        row = measured[method.strip("`")]
        assert figures == [
            f"{row['found']} of {row['events']}",
            f"{row['false_alarms']} ({float(row['allowed']):.0f} allowed)",
            f"{float(row['normal_rows_in_events']):.1%}",
            row["live_found"],
            f"{float(row['delay_median']):.0f}",
            f"{float(row['blame_1']):.2f}",
        ], method


def test_newer_measures_reorder_as_many_pairs_as_the_page_says():
    def pairs(protocol):
        notes = (ROOT / "study" / "results" / f"measures-{protocol}.md").read_text()
        found = dict(re.findall(r"- (\w+) orders (\d+ of the \d+) pairs", notes))
        return [found["PATE"], found["DQE"]]

    page = " ".join(PAGE.read_text().split())
    pattern = (
        r"Of the (\d+) pairs of methods, PATE orders (\d+) and DQE (\d+) differently from VUS-PR "
        r"\(test-only (\d+) and (\d+)\)"
    )
    ((all_of_them, *orders),) = re.findall(pattern, page)
    wanted = [*pairs("tsb-ad"), *pairs("test-only")]
    assert [f"{n} of the {all_of_them}" for n in orders] == wanted


def test_axonad_gives_what_the_pages_say():
    with (ROOT / "study" / "results" / "main-tsb-ad.csv").open() as file:
        lines = list(csv.DictReader(file))
    (ours,) = (line for line in lines if line["method"] == "axonad")
    published = lines[lines.index(ours) + 1]
    assert (published["method"], published["series"]) == ("AxonAD", ours["series"])
    mean, theirs = (f"{float(line['VUS-PR']):.3f}" for line in (ours, published))
    page = " ".join(PAGE.read_text().split())
    assert f"gives {mean} on the {ours['series']} series that it ran on" in page
    assert f"where the published values average to {theirs}." in page
    errata = " ".join((ROOT / "docs" / "errata.md").read_text().split())
    assert f"on {ours['series']} of them our own `axonad` gives {mean}" in errata


def cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]
