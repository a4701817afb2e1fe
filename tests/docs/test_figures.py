"""Figures in README, model card, errata and research are those of the committed results."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from statistics import fmean

import pytest

ROOT = Path(__file__).parents[2]
RESULTS = (ROOT / "benchmarks" / "results", ROOT / "study" / "results")
README = (ROOT / "README.md").read_text("utf-8")
CARD = (ROOT / "docs" / "research" / "card.md").read_text("utf-8")
ERRATA = (ROOT / "docs" / "errata.md").read_text("utf-8")
RESEARCH = (ROOT / "docs" / "research.md").read_text("utf-8")


def results(name: str) -> dict[str, dict[str, str]]:
    """The lines of a file of results, by their first column."""
    (path,) = (each / f"{name}.csv" for each in RESULTS if (each / f"{name}.csv").exists())
    with path.open() as file:
        return {next(iter(line.values())): line for line in csv.DictReader(file)}


def table(page: str, head: str) -> tuple[list[str], dict[str, list[str]]]:
    """The column names and the rows of the table whose first line begins like this."""
    start = page.index(head)
    lines = page[start : page.find("\n\n", start)].splitlines()
    cells = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
    return cells[0][1:], {row[0]: row[1:] for row in cells[2:]}


METHODS = {
    "vace-ad": "vace",
    "the default": "vace",
    'the paper\'s VACE (`preset="released"`)': "vace-released",
    "our preset `released`": "vace-released",
    "IForest": "iforest",
    "PCA": "pca",
}


@pytest.mark.parametrize(
    ("page", "head", "known"), [(README, "| | all 68 |", 4), (CARD, "| | SMAP |", 2)]
)
def test_families(page: str, head: str, known: int) -> None:
    names, rows = table(page, head)
    measured = results("category-test-only")
    compared = [said for said in rows if said in METHODS]
    assert len(compared) == known
    for said in compared:
        for name, cell in zip(names, rows[said], strict=True):
            column = "Overall" if name.startswith("all") else name
            value = measured[METHODS[said]][column]  # empty: not run on this family
            assert cell == (f"{float(value):.3f}" if value else ""), (said, name)


def test_series_of_each_family() -> None:
    names, rows = table(CARD, "| | SMAP |")
    counts = results("category-test-only")["n"]
    assert rows["series"] == [counts["Overall" if n == "all" else n] for n in names]


def test_blame() -> None:
    _, rows = table(CARD, "| data | first |")
    measured = results("blame")
    assert {said.split(",")[0] for said in rows} == set(measured)
    for said, cells in rows.items():
        line = measured[said.split(",")[0]]
        events = int(line["events"])  # the file has three digits: round the hits, not them
        shares = [line[name] for name in ("ours_1", "ours_3", "ours_5", "plain_1")]
        hits = [round(float(share) * events) for share in shares]
        assert cells == [f"{hit / events:.2f}" for hit in hits], said


def test_alarms() -> None:
    measured = results("alarms")
    found = re.findall(r"(\w+): (\d+) of (\d+) events found", CARD)
    spent = re.findall(r"(\w+): (\d+) false alarms where ([\d.]+) were allowed", CARD)
    late = re.findall(r"(\w+): half of the onsets (\d+) rows late or more, events ([\d.]+)", CARD)
    assert (len(found), len(spent), len(late)) == (1, 2, 1)
    for family, *cells in found:
        assert cells == [measured[family]["found"], measured[family]["events"]]
    for family, *cells in spent:
        assert cells == [measured[family]["false_alarms"], measured[family]["allowed"]]
    for family, rows, length in late:
        assert f"+{rows}" == measured[family]["onset_median"]
        assert length == measured[family]["length_quartiles"].split()[1]


def test_long_recordings_and_faults() -> None:
    """What the list of weaknesses repeats of the table above it."""
    measured = results("category-test-only")
    counts = {name: int(measured["n"][name]) for name in ("SVDB", "MITDB")}
    whole = sum(n * float(measured["vace"][name]) for name, n in counts.items())
    assert f"VUS-PR {whole / sum(counts.values()):.3f} on {sum(counts.values())} whole" in CARD
    assert f"Daphnet {float(measured['vace']['Daphnet']):.3f};" in CARD


LEFT_OUT = {
    "left out: chosen without the family": "left out, all families",
    "the default on the same series": "default, all families",
    "of these, families that the default was chosen with": "default, families it was chosen with",
    "of these, ASD, JumpStarter and SKAB, which it was not chosen with": (
        "default, families it was not chosen with"
    ),
}


def test_a_family_that_had_no_say() -> None:
    measured = results("leave-one-out")
    _, rows = table(CARD, "| | series | mean of series |")
    assert set(rows) == set(LEFT_OUT)
    for said, cells in rows.items():
        line = measured[LEFT_OUT[said]]
        mean = "{mean_of_series} [{low}, {high}]".format(**line)
        assert cells == [line["series"], mean, line["mean_of_families"]], said
    whole, default = measured["left out, all families"], measured["default, all families"]
    n_families = sum("," not in name for name in measured)
    for page in (README, CARD):
        assert f"{whole['series']} series of {n_families} families" in page
    rounded = [
        f"{float(line[mean]):.2f}"
        for line in (whole, default)
        for mean in ("mean_of_series", "mean_of_families")
    ]
    pattern = (
        r"expect VUS-PR \*\*(.*?)\*\* .*?; (\S+) as a mean of families.*?"
        r"same series give (\S+) \((\S+)\)"
    )
    assert re.findall(pattern, README, flags=re.S) == [tuple(rounded)]
    unseen = float(measured["default, families it was not chosen with"]["mean_of_families"])
    assert re.findall(r"that no weight was chosen with, (\S+)\.", README) == [f"{unseen:.2f}"]
    pattern = r"not used for it: (\S+) as\s+a mean of 16 families, (\S+) with all families used"
    means = (whole["mean_of_families"], default["mean_of_families"])
    assert re.findall(pattern, RESEARCH) == [means]


def test_what_has_the_length_of_a_long_period() -> None:
    """The table of the research page, from the variants of the score."""
    values: dict[str, dict[str, list[float]]] = {}
    with (RESULTS[1] / "variants.csv").open() as file:
        for line in csv.DictReader(file):
            of = values.setdefault(line["variant"], {})
            of.setdefault(line["family"], []).append(float(line["vus_pr"]))
    columns = (
        values["default; windows of one period, however long"],
        values["default"],
        values["default; patches and windows of at most 96 rows"],
    )
    _, rows = table(RESEARCH, "| | both, as in 0.2.0 |")
    for said, cells in rows.items():
        family, _, count = said.partition(", ")
        if not count:
            assert said == f"mean of {len(columns[0])} families"
            means = [fmean(fmean(each) for each in column.values()) for column in columns]
        else:
            assert int(count.split()[0]) == len(columns[0][family]), said
            means = [fmean(column[family]) for column in columns]
        assert cells == [f"{mean:.3f}" for mean in means], said


def test_errata_of_the_paper_s_own_studies() -> None:
    def said(pattern: str) -> tuple[str, ...]:
        (found,) = re.findall(pattern, ERRATA, flags=re.S)
        return found if isinstance(found, tuple) else (found,)

    def rounded(name: str, line: str, *columns: str) -> tuple[str, ...]:
        return tuple(f"{float(results(name)[line][column]):.3f}" for column in columns)

    assert said(r"Here (\S+) and (\S+) on the seeds that both") == rounded(
        "msl-test-only", "mean", "FM", "NCA"
    )
    ablation = results("ablation-test-only")
    assert said(r"deviation of (\S+) between") == rounded("ablation-test-only", "Full model", "std")
    _, lines = table(ERRATA, "| without | series |")
    names = {
        "the channel encoder": "w/o Channel Encoder",
        "the pretext, as released": "w/o Velocity Pretext",
        "the pretext, BatchNorm as in the full model": "w/o Velocity Pretext (calibrated)",
        "Mahalanobis distance": "w/o Mahal. Scoring",
        "direction": "w/o Velocity Scoring",
    }
    assert set(lines) == set(names)
    whole = float(ablation["Full model"]["published_VUS-PR"])
    for words, cells in lines.items():
        line = ablation[names[words]]
        printed = line["published_VUS-PR"]
        assert cells == [
            line["series"], *rounded("ablation-test-only", names[words], "full model", "VUS-PR"),
            signed(line["difference"]), f"{signed(line['low'])} to {signed(line['high'])}",
            signed(float(printed) - whole) if printed else "",
        ], words  # fmt: skip


def test_errata_of_the_geometry() -> None:
    with (RESULTS[1] / "geometry-test-only.csv").open() as file:
        lines = {(line["variant"], line["source"]): line for line in csv.DictReader(file)}
    variants = ("Full model", "w/o Velocity Pretext", "w/o BatchNormalisation")
    ranks = [
        f"{float(lines[variant, source]['effective_rank_pr']):.3f}"
        for source in ("ours", "published")
        for variant in variants
    ]
    active = [
        f"{float(lines[variant, source]['active_dims']):.3f}"
        for variant, source in (
            (variants[1], "ours"), ("w/o Velocity Pretext (calibrated)", "ours"),
            (variants[0], "ours"), (variants[1], "published"), (variants[0], "published"),
        )
    ]  # fmt: skip
    start = ERRATA.index("- Geometry table")
    said = ERRATA[start : ERRATA.index("\n- ", start)]
    series = lines["Full model", "ours"]["series"]
    assert re.findall(r"(\d+) series", said) == [series]
    assert re.findall(r"\d\.\d{3}", said) == [*ranks, *active]


def test_errata_of_the_sensitivity() -> None:
    with (RESULTS[1] / "sensitivity-test-only.csv").open() as file:
        lines = list(csv.DictReader(file))
    start = ERRATA.index("- Sensitivity table, on")
    words = r"on (\w+) tuning.*?default (\S+), other\s+settings (\S+) \((.*?)\) to (\S+) \((.*?)\)"
    ((series, *said),) = re.findall(words, ERRATA[start:], flags=re.S)
    assert {line["series"] for line in lines} == {{"four": "4", "six": "6"}[series]}
    (default,) = {line["VUS-PR"] for line in lines if line["default"] == "1"}
    low, high = (kind(lines, key=lambda line: float(line["VUS-PR"])) for kind in (min, max))
    assert low["value"] in said[2]
    assert high["value"] in said[4]
    values = [default, low["VUS-PR"], high["VUS-PR"]]
    assert [said[0], said[1], said[3]] == [f"{float(value):.3f}" for value in values]


def signed(value: str | float) -> str:
    return f"{float(value):+.3f}".replace("-", "\N{MINUS SIGN}")


def test_times_of_the_measures() -> None:
    _, rows = table((ROOT / "docs" / "metrics.md").read_text("utf-8"), "| | one million rows |")
    assert set(rows) == {"VUS", "all nine", "PATE", "DQE"}
    with (RESULTS[0] / "metrics-scale.csv").open() as file:
        measured = {
            (line["what"], int(line["rows"])): line
            for line in csv.DictReader(file)
            if line["events"] == "100"
        }
    for said, cells in rows.items():
        lines = [measured[said, n] for n in (1_000_000, 10_000_000)]
        times = [f"{float(line['seconds']):.2g} s" for line in lines]
        assert cells == [*times, lines[1]["peak_bytes_a_row"]], said


def test_charts_by_strict_rules() -> None:
    page = (ROOT / "docs" / "bench.md").read_text("utf-8")
    _, rows = table(page, "| | found | false alarms | normal rows in alarms | onset |")

    def measured(name: str, column: str, kind: str) -> dict[str, dict[str, str]]:
        with (RESULTS[0] / f"{name}.csv").open() as file:
            return {r["method"]: r for r in csv.DictReader(file) if r[column] == kind}

    real = measured("chart-alarms", "family", "the six families")
    plants = measured("chart-plants", "fault", "all")
    assert set(rows) == set(real) == set(plants)
    for said, cells in rows.items():
        on, at = real[said], plants[said]
        share = f"{float(on['normal_rows_in_alarms']):.1%}"
        assert cells == [
            on["found"], on["false_alarms"], share, on["onset_median"],
            at["found"], at["false_alarms"], at["first_suspect"], at["clean_twins"],
        ], said  # fmt: skip
