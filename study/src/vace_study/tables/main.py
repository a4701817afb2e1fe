"""The main table: six measures a method, ours beside the published."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import fmean

from vace_ad.errors import ConfigError, InputError
from vace_study import published
from vace_study.baselines import resolve
from vace_study.compare import paired
from vace_study.results import Results
from vace_study.rows import Row
from vace_study.tables.table import Cell, Table, highest

# The paper's columns, and TSB-AD's names for them.
COLUMNS = {
    "VUS-PR": "VUS-PR",
    "VUS-ROC": "VUS-ROC",
    "AUC-ROC": "AUC-ROC",
    "AUC-PR": "AUC-PR",
    "F1": "Standard-F1",
    "Range-F1": "R-based-F1",
}
NEWER = ("PATE", "DQE")  # measures that are younger than the paper, and than some rows
_EXTRA = ("source", "protocol", "series", "seeds", "std", "difference", "low", "high")
_COSTS = ("seconds", "memory_mb")
_NARROW = ("method", *COLUMNS, "source", "series")  # of a terminal and a page


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
    means: list[list[Cell]] = []  # published, over all 180 series: they do not compare with ours
    shown: dict[str, int] = {}  # published systems, and how many series they stand beside
    for method in sorted(results.methods, key=lambda name: -_mean(results, name)):
        rows.append(_our_row(results, method, base if method != reference else {}))
        system = published.COUNTERPARTS.get(method)
        if system:  # a method may have run on few series: its counterpart on these alone
            rows += _same_series(results, system, results.values(method, "VUS-PR"), base)
            means += [] if system in shown else _published_rows(system)
            shown[system] = max(shown.get(system, 0), len(results.values(method, "VUS-PR")))
    listed = [line["method"] for line in published.table("main")]
    for system in dict.fromkeys([*listed, *published.RIVALS]):
        # Of a rival that we ran on some series, the values on all of the run are shown too.
        if shown.get(system, 0) < (len(base) if system in published.RIVALS else 1):
            rows += _same_series(results, system, results.families, base)
        means += [] if system in shown else _published_rows(system)
    columns = ("category", "method", *COLUMNS, *NEWER, *_EXTRA, *_COSTS)
    ours = [i for i, row in enumerate(rows) if row[columns.index("source")] == "ours"]
    n_series = columns.index("series")
    whole = [i for i in ours if rows[i][n_series] == len(base)]
    notes = [
        f"bold: the highest of ours on {len(base)} series, as many as {reference} has; published "
        "means over all 180 series stand below ours and do not compare with them",
        f"difference: VUS-PR minus that of {reference} on the series both have, with the 95 % "
        "interval of a paired bootstrap over series",
        "VACE's published row is test-only, the other published rows are tsb-ad; the two do not "
        "compare",
        "PATE and DQE: of the rows that have them, which older ones do not; they stand where every "
        "series of the method has such a row",
        "std: of the mean over series, between seeds",
        "seconds: processor time of a fit and a score (wall clock in rows from before that was "
        "taken); memory_mb: peak of the process; both are means over the method's own series",
        *results.notes(),
    ]
    return Table(
        f"Main results, protocol {results.protocol}",
        columns,
        [*rows, *means],
        notes,
        _NARROW,
        {cell for cell in highest(columns, rows, whole) if cell[1] in (*COLUMNS, *NEWER)},
        len(rows),
    )


def _mean(results: Results, method: str) -> float:
    return fmean(results.values(method, "VUS-PR").values())


def _our_row(results: Results, method: str, base: Mapping[str, float]) -> list[Cell]:
    values = results.values(method, "VUS-PR")
    means = [results.mean(method, name) for name in (*COLUMNS.values(), *NEWER)]
    return [
        _category(method),
        method,
        *means,
        "ours",
        results.protocol,
        len(values),
        results.seeds(method),
        results.spread(method, "VUS-PR"),
        *_difference(values, base),
        *costs(results, method),
    ]


def costs(results: Results, method: str) -> tuple[float | None, int | None]:
    """Seconds of a fit and a score, and megabytes, means over series; None where unknown."""
    seconds = [_seconds(row) for row in results.good if row.method == method]
    memory = results.cost(method, "peak_memory_mb")
    known = [each for each in seconds if each is not None]
    return (fmean(known) if known else None, round(fmean(memory.values())) if memory else None)


def _seconds(row: Row) -> float | None:
    if row.cpu_seconds is not None:
        return row.cpu_seconds
    if row.fit_seconds is None or row.score_seconds is None:
        return None
    return row.fit_seconds + row.score_seconds


def _same_series(
    results: Results, system: str, series: Iterable[str], base: Mapping[str, float]
) -> list[list[Cell]]:
    """The published values over these series, where each is known."""
    known = published.per_series().get(system, {})
    same = {name: known[name] for name in series if name in known}
    if not same or results.protocol != "tsb-ad":
        return []
    blank: list[Cell] = [None] * (len(COLUMNS) + len(NEWER) - 1)
    head: list[Cell] = [_published_category(system), system, fmean(same.values()), *blank]
    tail: list[Cell] = ["published, same series", "tsb-ad", len(same), None, None]
    return [[*head, *tail, *_difference(same, base), None, None]]


def _published_rows(system: str) -> list[list[Cell]]:
    """The published means over all 180 series."""
    rows: list[list[Cell]] = []
    for line in _lines(system):
        numbers: list[Cell] = [float(line[column]) for column in COLUMNS]
        origin: list[Cell] = ["published", line["protocol"], 180, *[None] * 7]
        rows.append([line["category"], system, *numbers, *[None] * len(NEWER), *origin])
    if system in published.RIVALS:
        mean = fmean(published.per_series()[system].values())
        blank: list[Cell] = [None] * (len(COLUMNS) + len(NEWER) - 1)
        rows.append([None, system, mean, *blank, "published", "tsb-ad", 180, *[None] * 7])
    return rows


def _published_category(system: str) -> str | None:
    lines = _lines(system)
    return lines[0]["category"] if lines else None  # None: known by series alone, as LSTMAD


def _lines(system: str) -> list[dict[str, str]]:
    return [line for line in published.table("main") if line["method"] == system]


def _difference(values: Mapping[str, float], base: Mapping[str, float]) -> list[Cell]:
    gap = paired(values, base)
    return [gap.mean, gap.low, gap.high] if gap else [None, None, None]


def _category(method: str) -> str:
    try:
        return resolve(method).category
    except ConfigError:  # a detector of the user's that is not installed here
        return "User"
