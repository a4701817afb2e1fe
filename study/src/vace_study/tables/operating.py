"""The operating table: what alarms at a budget were worth, by method and family."""

from __future__ import annotations

from functools import reduce
from operator import add

from vace_ad.errors import InputError
from vace_ad.metrics.operating import Operating
from vace_study.results import Results
from vace_study.rows import Row
from vace_study.tables.category import ordered_families
from vace_study.tables.table import Cell, Table


def operating_table(results: Results) -> Table:
    """One row a method, budget and family, and one for all families; counts add up."""
    counted = [row for row in results.good if row.operating]
    if not counted:
        raise InputError(
            "the run holds no row with alarms; run it with --budget '1 in 10000 rows' in a folder "
            "of its own, with methods that have alarms, such as vace"
        )
    rows: list[list[Cell]] = []
    groups = dict.fromkeys((row.method, str(row.operating["budget"])) for row in counted)
    for method, budget in groups:
        mine = [r for r in counted if (r.method, r.operating["budget"]) == (method, budget)]
        for family in ordered_families(results):
            part = [row for row in mine if row.family == family]
            if part:
                rows.append([method, budget, family, *_cells(part)])
        rows.append([method, budget, "all", *_cells(mine)])
    without = [name for name in results.methods if name not in {row.method for row in counted}]
    notes = [
        "rows after the training part, whatever the protocol; an event within 48 rows of a "
        "labelled stretch finds it; counts add up over series and seeds",
        "delay: rows from the start of a labelled stretch to the alarm of a live stream",
        *([f"without alarms: {', '.join(without)}"] if without else []),
        *results.notes(),
    ]
    names = tuple(Operating.from_plain(counted[0].operating).summary())
    columns = ("method", "budget", "family", "series", "seeds", *names)
    return Table("Alarms at a budget", columns, rows, notes)


def _cells(rows: list[Row]) -> list[Cell]:
    total = reduce(add, (Operating.from_plain(row.operating) for row in rows))
    series, seeds = {row.series for row in rows}, {row.seed for row in rows}
    return [len(series), len(seeds), *total.summary().values()]
