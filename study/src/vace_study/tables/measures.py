"""Whether newer measures order the methods as VUS-PR does, on the series of the reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import fmean

from vace_ad.errors import InputError
from vace_study.compare import paired
from vace_study.results import Results
from vace_study.tables.main import NEWER
from vace_study.tables.table import Cell, Table

_MEASURES = ("VUS-PR", *NEWER)


def measures_table(results: Results) -> Table:
    """Each measure's mean, place, and difference from the reference with its interval."""
    measured = {method: _values(results, method) for method in results.methods}
    measured = {method: values for method, values in measured.items() if all(values)}
    reference = "vace" if "vace" in measured else next(iter(measured), "")
    shared = set.intersection(*map(set, measured[reference])) if reference else set()
    every = {
        method: values
        for method, values in measured.items()
        if all(shared <= set(each) for each in values)
    }
    if len(every) < 2:
        raise InputError(
            f"the run holds fewer than two methods with {', '.join(_MEASURES)} on the same series; "
            "run them again: rows from before these were measured do not have them"
        )
    means = {
        method: [fmean(found[series] for series in shared) for found in values]
        for method, values in every.items()
    }
    places = [_places({m: each[i] for m, each in means.items()}) for i in range(len(_MEASURES))]
    rows: list[list[Cell]] = []
    for method in sorted(every, key=lambda name: -means[name][0]):
        cells: list[Cell] = [method, len(shared)]
        for i in range(len(_MEASURES)):
            gap = None if method == reference else _gap(every, method, reference, i, shared)
            cells += [means[method][i], places[i][method], *(gap or (None, None, None))]
        rows.append(cells)
    parts = ("", "place", "difference", "low", "high")
    columns = ["method", "series", *(f"{m} {p}".strip() for m in _MEASURES for p in parts)]
    notes = [
        f"difference: from {reference}, with the 95 % interval of a paired bootstrap over series",
        *(
            f"{_MEASURES[i]} orders {_swapped(places[0], places[i])} of the "
            f"{len(every) * (len(every) - 1) // 2} pairs of methods otherwise than VUS-PR"
            for i in range(1, len(_MEASURES))
        ),
        f"only methods with all three measures on every series on which {reference} has them",
    ]
    if fewer := [method for method in measured if method not in every]:
        notes.append(f"left out, with fewer series: {', '.join(fewer)}")
    title = f"VUS-PR, PATE and DQE side by side, protocol {results.protocol}"
    return Table(title, columns, rows, notes)


def _values(results: Results, method: str) -> list[dict[str, float]]:
    """The measures by series, over the rows that have them all."""
    rows = [row for row in results.good if row.method == method]
    whole = [row for row in rows if all(name in row.measures for name in _MEASURES)]
    kept = Results(results.protocol, whole)
    return [kept.values(method, name) for name in _MEASURES]


def _places(means: Mapping[str, float]) -> dict[str, int]:
    """1 for the best."""
    return {method: i for i, method in enumerate(sorted(means, key=lambda m: -means[m]), start=1)}


def _swapped(one: Mapping[str, int], other: Mapping[str, int]) -> int:
    """Pairs of methods in the opposite order."""
    return sum((one[a] < one[b]) != (other[a] < other[b]) for a, b in combinations(one, 2))


def _gap(
    every: Mapping[str, Sequence[Mapping[str, float]]],
    method: str,
    reference: str,
    measure: int,
    shared: set[str],
) -> tuple[float, float | None, float | None]:
    mine, base = (
        {series: every[name][measure][series] for series in sorted(shared)}
        for name in (method, reference)
    )
    found = paired(mine, base)
    assert found is not None  # both have the shared series, of which there are some
    return found.mean, found.low, found.high
