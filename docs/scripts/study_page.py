"""The page of the study, put together from the committed tables and figures."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from vace_study import published

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "study" / "results"
FIGURES = ROOT / "docs" / "figures"

HEAD = """---
hide: [navigation]
---
# The study: every system, every table

Generated from the rows in `study/results/reproduce-rows.csv`, which have seed, settings, commit and
machine type. `make reproduce` continues the runs, most important stages first, and updates rows,
tables and figures; `python study/benchmarks/reproduce.py --list` lists the remaining runs, and
`python study/benchmarks/study_tables.py` updates tables and figures without new runs.

- Not every system has run on every series. Each line gives the number of series, and only tables
  "on the series that all have" compare systems with each other.
- Systems that are slow without a GPU ran with caps, under names that end in `-quick`; the notes
  below a table list the caps. Their results are not those of the uncapped system.
- Published numbers are shown as they are, also where ours contradict them. Where per-series values
  are published, "published, same series" is their mean over the same series as our line;
  "published, 180" is the VACE paper's main table, with VACE's own number test-only, all others
  tsb-ad.
- PATE and DQE are means over the rows that have them (older rows do not), shown where every series
  of a system has such a row.
- "against vace" is VUS-PR minus that of `vace` on the series that both have, with the 95 % interval
  of a paired bootstrap over series. Seconds are processor time of a fit and a score on one core.
- All measures of every line are in `study/results/main-*.csv`.
- Numbers of the two [protocols](../bench.md#two-protocols) are not comparable.
"""


class Section(NamedTuple):
    """A heading, a sentence, tables and figures by the names of their files."""

    title: str
    text: str
    tables: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()


SECTIONS = (
    Section(
        "On the series that all have",
        "Systems with too few series for the comparison are left out and listed. With few series, "
        "differences are not significant; the second diagram has fewer systems on more series.",
        ("main-common-tsb-ad", "main-common-test-only"),
        ("critical-difference-tsb-ad", "cost-tsb-ad", "critical-difference-many-test-only"),
    ),
    Section(
        "Newer systems",
        "AxonAD and SHADE appeared after the paper. Their published values are compared with ours "
        "on the same series; the diagram has every published system with a value for each series. "
        "`axonad` in the other tables is our own version, run on some of the series. "
        "SHADE is a hosted service whose values only its makers can compute: see the "
        "[errata](../errata.md).",
        ("rivals-tsb-ad",),
        ("scatter-rivals-tsb-ad", "critical-difference-rivals-tsb-ad"),
    ),
    Section(
        "All rows",
        "Means over each system's own series.",
        ("main-tsb-ad", "main-test-only"),
        ("scatter-test-only", "density-test-only"),
    ),
    Section(
        "Newer measures",
        "Whether PATE and DQE order systems as VUS-PR does, on the series that all of these have.",
        ("measures-tsb-ad", "measures-test-only"),
    ),
    Section(
        "By category",
        "",
        tuple(
            f"category{measure}-{protocol}"
            for protocol in ("tsb-ad", "test-only")
            for measure in ("", "-PATE", "-DQE")
        ),
        ("categories-test-only",),
    ),
    Section(
        "Alarms at a budget",
        "Control charts raise an alarm above a limit from their training scores; `vace` has its "
        "own rules.",
        ("operating",),
    ),
    Section(
        "Ablation",
        "The paper's variants of its method, each beside the full model on the series and seeds "
        "that both have. Where these are few, a difference means little: compare it with the "
        "spread of the mean over seeds (std). The published columns are of 180 series.",
        ("ablation-test-only",),
    ),
    Section(
        "Sensitivity",
        "One setting at a time, on tuning series; with few series and one seed, mostly noise.",
        ("sensitivity-test-only",),
    ),
    Section(
        "Geometry of the embeddings",
        "Diagnostics of the training embeddings.",
        ("geometry-test-only",),
        ("geometry-test-only",),
    ),
    Section("The MSL series", "Without and with the channel encoder.", ("msl-test-only",)),
)


def study() -> str:
    """The page, of what there is."""
    lines = [HEAD]
    for section in SECTIONS:
        body = [*_tables(section), *_pictures(section)]
        if body:
            lines += [f"## {section.title}", "", section.text, "", *body]
    lines += _families()
    return "\n".join(lines) + "\n"


def _tables(section: Section) -> Iterator[str]:
    for name in section.tables:
        path = RESULTS / f"{name}.md"
        if not path.exists():
            continue
        text = path.read_text(encoding="utf-8")
        if name.startswith("main-"):
            title, _, *notes = text.split("\n\n")
            explained = ("difference:", "PATE and DQE:", "std:", "seconds:", "VACE's published row")
            kept = [
                note
                for note in "\n\n".join(notes).splitlines()
                if not note.removeprefix("- ").startswith(explained)
            ]
            text = "\n".join([title, "", *_systems(name), "", *kept, ""])
        yield text


def _systems(name: str) -> Iterator[str]:
    """The main table for readers: a line a system, published numbers in columns beside ours."""
    yield (
        "| system | VUS-PR | PATE | DQE | published, same series | published, 180 | series | "
        "seeds: std | against vace | seconds | MB |"
    )
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    printed = {line["method"]: line["VUS-PR"] for line in published.table("main")}
    with (RESULTS / f"{name}.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    # A line of ours is followed by its published counterpart on the same series, if there is one.
    for line, after in pairwise([*lines, {}]):
        if line["source"] != "ours":
            continue
        same = after["VUS-PR"] if after.get("source") == "published, same series" else ""
        system = published.COUNTERPARTS.get(line["method"], "")
        spread = f":\N{NO-BREAK SPACE}{float(line['std']):.3f}" if line["std"] else ""
        cells = [
            line["method"], *(_short(line[name]) for name in ("VUS-PR", "PATE", "DQE")),
            _short(same), printed.get(system, ""), line["series"], line["seeds"] + spread,
            _interval(line), f"{float(line['seconds']):.3g}", line["memory_mb"],
        ]  # fmt: skip
        yield f"| {' | '.join(cells)} |"


def _short(number: str) -> str:
    return f"{float(number):.3f}" if number else ""


def _interval(line: dict[str, str]) -> str:
    if not line["low"]:
        return ""
    gap, low, high = (float(line[name]) for name in ("difference", "low", "high"))
    return f"{gap:+.3f} [{low:+.3f}, {high:+.3f}]".replace(" ", "\N{NO-BREAK SPACE}")


def _pictures(section: Section) -> Iterator[str]:
    for name in section.figures:
        if (FIGURES / f"{name}.png").exists():
            yield f"![{section.title}: {name}](../figures/{name}.png)\n"


def _families() -> list[str]:
    """Family means of the systems that have published values of each series."""
    path = RESULTS / "published-families.csv"
    if not path.exists():
        return []
    with path.open(newline="") as file:
        lines = list(csv.DictReader(file))
    table = [
        "| method | family | series | ours | published, same series | gap | 95 % interval | caps |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for line in lines:
        interval = f"{line['low']} to {line['high']}" if line["low"] else ""
        n = f"{line['series']} of {line['of']}"
        cells = (line["method"], line["family"], n, line["ours"], line["published_same_series"],
                 line["gap"], interval, line["capped"].replace("|", "·"))  # fmt: skip
        table.append(f"| {' | '.join(cells)} |")
    text = (
        "VUS-PR, protocol tsb-ad, evaluation series. The gap is ours less the published value on "
        "the very same series, with the interval of a paired bootstrap over series."
    )
    return ["## Family means beside the published ones", "", text, "", *table, ""]
