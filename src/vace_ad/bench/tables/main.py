"""The main table: six measures a method, ours beside the published."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

from vace_ad.baselines import resolve
from vace_ad.bench import published
from vace_ad.bench.compare import paired
from vace_ad.bench.results import Results
from vace_ad.bench.tables.table import Cell, Table
from vace_ad.errors import ConfigError, InputError

# The paper's columns, and TSB-AD's names for them.
COLUMNS = {
    "VUS-PR": "VUS-PR",
    "VUS-ROC": "VUS-ROC",
    "AUC-ROC": "AUC-ROC",
    "AUC-PR": "AUC-PR",
    "F1": "Standard-F1",
    "Range-F1": "R-based-F1",
}
_EXTRA = ("source", "protocol", "series", "seeds", "difference", "low", "high")


def main_table(results: Results, reference: str | None = None) -> Table:
    """Means over series, with each method's VUS-PR minus the reference's on shared series."""
    if not results.methods:
        raise InputError("the run holds no row with measures yet")
    usual = [name for name in ("vace", "vace-released") if name in results.methods]
    reference = reference or [*usual, *results.methods][0]
    if reference not in results.methods:
        raise ConfigError(f"the run holds no result of the reference {reference!r}")
    base = results.values(reference, "VUS-PR")
    rows: list[list[Cell]] = []
    shown: set[str] = set()
    for method in sorted(results.methods, key=lambda name: -_mean(results, name)):
        rows.append(_our_row(results, method, base if method != reference else {}))
        system = published.COUNTERPARTS.get(method)
        if system and system not in shown:
            shown.add(system)
            rows += _published_rows(results, system, base)
    for line in published.table("main"):
        if line["method"] not in shown:
            rows += _published_rows(results, line["method"], base)
    notes = [
        f"difference: VUS-PR minus that of {reference} on the series both have, with the 95 % "
        "interval of a paired bootstrap over series",
        "VACE's published row is test-only, the other published rows are tsb-ad; the two do not "
        "compare",
        *results.notes(),
    ]
    columns = ("category", "method", *COLUMNS, *_EXTRA)
    return Table(f"Main results, protocol {results.protocol}", columns, rows, notes)


def _mean(results: Results, method: str) -> float:
    return fmean(results.values(method, "VUS-PR").values())


def _our_row(results: Results, method: str, base: Mapping[str, float]) -> list[Cell]:
    values = results.values(method, "VUS-PR")
    means = [fmean(results.values(method, name).values()) for name in COLUMNS.values()]
    return [
        _category(method),
        method,
        *means,
        "ours",
        results.protocol,
        len(values),
        results.seeds(method),
        *_difference(values, base),
    ]


def _published_rows(results: Results, system: str, base: Mapping[str, float]) -> list[list[Cell]]:
    """The published values: over the run's own series where each is known, and over all 180."""
    lines = [row for row in published.table("main") if row["method"] == system]
    category = lines[0]["category"] if lines else None  # known by series alone, as LSTMAD
    rows: list[list[Cell]] = []
    known = published.per_series().get(system, {})
    same = {name: known[name] for name in results.families if name in known}
    if same and results.protocol == "tsb-ad":
        blank: list[Cell] = [None] * (len(COLUMNS) - 1)
        head: list[Cell] = [category, system, fmean(same.values()), *blank]
        tail: list[Cell] = ["published, same series", "tsb-ad", len(same), None]
        rows.append([*head, *tail, *_difference(same, base)])
    for line in lines:
        numbers: list[Cell] = [float(line[column]) for column in COLUMNS]
        origin: list[Cell] = ["published", line["protocol"], 180, None, None, None, None]
        rows.append([category, system, *numbers, *origin])
    return rows


def _difference(values: Mapping[str, float], base: Mapping[str, float]) -> list[Cell]:
    gap = paired(values, base)
    return [gap.mean, gap.low, gap.high] if gap else [None, None, None]


def _category(method: str) -> str:
    try:
        return resolve(method).category
    except ConfigError:  # a detector of the user's that is not installed here
        return "User"
