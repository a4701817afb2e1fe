"""VUS-PR series by series, ours beside the published."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

from vace_ad.errors import InputError
from vace_study import published
from vace_study.results import Results
from vace_study.series import SeriesName
from vace_study.tables.table import Cell, Table


def series_table(results: Results) -> Table:
    """A row for each series, a column for each method and for its published counterpart."""
    if not results.methods:
        raise InputError("the run holds no row with measures yet")
    columns: dict[str, Mapping[str, float]] = {}
    for method in results.methods:
        columns[method] = results.values(method, "VUS-PR")
        system = published.COUNTERPARTS.get(method)
        if system is not None:
            columns[f"{system} (published)"] = _published(results, system)
    columns = {name: values for name, values in columns.items() if values}
    names = {SeriesName.parse(stem).short: stem for stem in sorted(results.families)}
    rows: list[list[Cell]] = [
        [name, *(values.get(stem) for values in columns.values())] for name, stem in names.items()
    ]
    rows.append(["mean", *(fmean(values.values()) for values in columns.values())])
    notes = [
        "VACE has published values by series for MSL alone (test-only), other systems for all "
        "(tsb-ad); means are over the series of the column",
        *results.notes(),
    ]
    title = f"VUS-PR by series, protocol {results.protocol}"
    return Table(title, ("series", *columns), rows, notes, apart=len(names))


def _published(results: Results, system: str) -> dict[str, float]:
    """Values of a system for the run's series under the run's protocol."""
    known: Mapping[str, float] = {}
    if results.protocol == "tsb-ad":
        known = published.per_series().get(system, {})
    elif system == "VACE":
        printed = {line["series"]: float(line["FM"]) for line in published.table("msl")}
        short = {stem: SeriesName.parse(stem).short for stem in results.families}
        known = {stem: printed[name] for stem, name in short.items() if name in printed}
    return {stem: known[stem] for stem in results.families if stem in known}
