"""The category table: a measure by family, and over all series."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from statistics import fmean

from vace_ad.errors import ConfigError, InputError
from vace_study import published
from vace_study.results import Results
from vace_study.rows import MEASURES
from vace_study.tables.table import Cell, Table, highest


def category_table(results: Results, measure: str = "VUS-PR") -> Table:
    """One row a method; published VUS-PR only where it covers the very same series."""
    if measure not in MEASURES:
        raise ConfigError(f"there is no measure {measure!r}; there are {', '.join(MEASURES)}")
    measured = [row for row in results.rows if row.status != "ok" or measure in row.measures]
    left_out = [name for name in results.methods if not results.values(name, measure)]
    results = Results(results.protocol, measured, results.left_out)
    if not results.methods:
        raise InputError(f"the run holds no row with {measure}")
    families = ordered_families(results)
    counts = Counter(results.families.values())
    rows: list[list[Cell]] = [["n", *(counts[name] for name in families), counts.total()]]
    for method in results.methods:
        values = results.values(method, measure)
        rows.append([method, *family_means(values, results.families, families)])
    columns = ("method", *families, "Overall")
    whole = [i for i, row in enumerate(rows) if i and _covers(results, str(row[0]))]
    best = highest(columns, rows, whole)
    notes = ["bold: the highest of ours that have a result on every series"]
    if measure == "VUS-PR":
        rows += _published_rows(results, families)
        notes.append(
            "a published value stands only in families whose series here are those behind it; "
            "with series of the tuning split among them, --split eval makes them the same"
        )
    if left_out:
        notes.append(f"without {measure}, from before it was measured: {', '.join(left_out)}")
    title = f"{measure} by category, protocol {results.protocol}"
    return Table(title, columns, rows, [*notes, *results.notes()], best=best)


def _covers(results: Results, method: str) -> bool:
    return len(results.values(method, "VUS-PR")) == len(results.families)


def ordered_families(results: Results) -> list[str]:
    """The run's families, in the paper's order, then unknown ones by name."""
    present = set(results.families.values())
    return [name for name in published.FAMILIES if name in present] + sorted(
        present - set(published.FAMILIES)
    )


def family_means(
    values: Mapping[str, float], home: Mapping[str, str], families: list[str]
) -> list[Cell]:
    """Means by family, then over all series."""
    means: list[Cell] = []
    for family in families:
        mine = [value for series, value in values.items() if home[series] == family]
        means.append(fmean(mine) if mine else None)
    return [*means, fmean(values.values()) if values else None]


def _published_rows(results: Results, families: list[str]) -> list[list[Cell]]:
    """By series where such values exist (`tsb-ad` only), else the published family means."""
    rows: list[list[Cell]] = []
    whole = _whole_families(results)
    if results.protocol == "tsb-ad":
        for system, known in published.per_series().items():
            covered = {
                series: known[series]
                for series, family in results.families.items()
                if _all_known(results, family, known)
            }
            cells = family_means(covered, results.families, families)
            if len(covered) < len(results.families):
                cells[-1] = None
            rows.append([f"{system} (published)", *cells])
    for (system, protocol), means in published.by_family().items():
        if system in published.per_series() and protocol == "tsb-ad":
            continue  # told above, series by series
        if protocol == results.protocol and any(family in whole for family in means):
            cells = [means.get(family) if family in whole else None for family in families]
            rows.append([f"{system} (published)", *cells, _overall(results, cells)])
    return rows


def _overall(results: Results, cells: list[Cell]) -> float | None:
    """The mean over series behind family means, where every family has one."""
    counts = Counter(results.families.values())
    families = ordered_families(results)
    if any(cell is None for cell in cells):
        return None
    total = sum(
        float(cell) * counts[family] for cell, family in zip(cells, families, strict=True) if cell
    )
    return total / counts.total()


def _whole_families(results: Results) -> set[str]:
    """Families of which the run holds exactly the evaluation series."""
    tuning = published.tuning_names()
    counts = Counter(results.families.values())
    mixed = {family for series, family in results.families.items() if series in tuning}
    return {
        family
        for family, n in counts.items()
        if n == published.FAMILIES.get(family) and family not in mixed
    }


def _all_known(results: Results, family: str, known: Mapping[str, float]) -> bool:
    return all(name in known for name, home in results.families.items() if home == family)
