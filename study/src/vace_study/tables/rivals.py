"""The newest published systems beside ours, on the very same series, by family."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import fmean

from vace_ad.errors import InputError
from vace_study import published
from vace_study.compare import paired
from vace_study.results import Results
from vace_study.tables.category import ordered_families
from vace_study.tables.table import Cell, Table

_OURS = "vace"


def rivals_table(results: Results) -> Table:
    """Means, mean ranks, and ours less each rival with its interval; then over all series."""
    ours = results.values(_OURS, "VUS-PR")
    known = {name: published.per_series()[name] for name in published.RIVALS}
    shared = [series for series in ours if all(series in values for values in known.values())]
    if results.protocol != "tsb-ad" or not shared:
        raise InputError(
            f"the run holds no row of {_OURS} under tsb-ad on a series that has published values; "
            f"run --methods {_OURS} --protocol tsb-ad on evaluation series first"
        )
    systems = {_OURS: ours, **known}
    families = [
        name
        for name in ordered_families(results)
        if any(results.families[series] == name for series in shared)
    ]
    rows = [
        _row(name, [series for series in shared if results.families[series] == name], systems)
        for name in families
    ]
    columns = [
        "family",
        "series",
        *systems,
        *(f"rank {name}" for name in systems),
        *(f"{part} {name}" for name in known for part in ("difference", "low", "high", "wins")),
    ]
    notes = [
        f"difference: VUS-PR of {_OURS} minus that of the system on the same series, with the 95 % "
        f"interval of a paired bootstrap over series; wins: series on which {_OURS} is higher",
        f"rank: mean over series among these {len(systems)}, 1 is the best",
        "the values of AxonAD and SHADE are the published ones; SHADE is its makers' own claim, "
        "which docs/errata.md questions",
    ]
    title = f"Newer systems on the same series, protocol {results.protocol}"
    return Table(title, columns, [*rows, _row("all", shared, systems)], notes)


def _row(name: str, series: list[str], systems: Mapping[str, Mapping[str, float]]) -> list[Cell]:
    values = {system: {one: found[one] for one in series} for system, found in systems.items()}
    ours, *others = values.values()
    cells: list[Cell] = [name, len(series)]
    cells += [fmean(found.values()) for found in values.values()]
    cells += _mean_ranks(values, series)
    for other in others:
        gap = paired(ours, other)
        assert gap is not None  # a family is listed for a series that all have
        cells += [gap.mean, gap.low, gap.high, gap.wins]
    return cells


def _mean_ranks(values: Mapping[str, Mapping[str, float]], series: Iterable[str]) -> list[float]:
    """Of each system: 1 + those above it + half of those equal to it, averaged over series."""
    ranks: dict[str, list[float]] = {system: [] for system in values}
    for one in series:
        every = [found[one] for found in values.values()]
        for system, found in values.items():
            above = sum(value > found[one] for value in every)
            equal = sum(value == found[one] for value in every)
            ranks[system].append(above + (equal + 1) / 2)
    return [fmean(each) for each in ranks.values()]
