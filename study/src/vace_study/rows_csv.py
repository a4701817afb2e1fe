"""The rows of a run as a CSV file, one line each: what is committed beside the tables.

A line holds all that tables and figures are made of; tracebacks and the seconds of measuring stay
in the run's own folder. Reading gives the rows back, so tables and figures can be made again from
the file alone, and a run can go on from it on another machine.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from vace_ad.errors import InputError
from vace_study import published
from vace_study.rows import GEOMETRY, MEASURES, Row
from vace_study.series import SeriesName

_KEY = ("method", "series", "seed", "protocol", "status")
_COST = ("fit_seconds", "score_seconds", "cpu_seconds", "peak_memory_mb")
_COUNTS = ("rows", "channels", "train_rows", "evaluated_rows", "anomalous_rows", "window")
_BETWEEN = " | "  # between two notes of a row


def to_line(row: Row) -> dict[str, Any]:
    """The cells of a row; numbers with six decimals."""
    geometry = {name: row.geometry.get(name) for name in (*GEOMETRY, "verdict")}
    cells = {
        **{name: getattr(row, name) for name in _KEY},
        **{name: row.measures.get(name) for name in MEASURES},
        **{name: getattr(row, name) for name in (*_COST, *_COUNTS)},
        **geometry,
        "notes": _BETWEEN.join(" ".join(note.split()) for note in row.notes),
        "error": row.error,
        "config": row.config,
        "version": row.version,
    }
    return {name: _short(cell) for name, cell in cells.items()}


def from_line(cells: Mapping[str, str]) -> Row:
    """The row of a line; cells that older files do not have stay unknown."""
    stem = cells["series"]
    numbers = {
        name: float(cells[name]) for name in (*MEASURES, *GEOMETRY, *_COST) if cells.get(name)
    }
    geometry: dict[str, float | str] = {name: numbers[name] for name in GEOMETRY if name in numbers}
    if geometry:
        geometry["verdict"] = cells["verdict"]
    status: Any = cells["status"]
    notes = cells.get("notes")
    return Row(
        method=cells["method"],
        series=stem,
        seed=int(cells["seed"]),
        protocol=cells["protocol"],
        status=status,
        family=SeriesName.parse(stem).family,
        split="tuning" if stem in published.tuning_names() else "eval",
        config=cells["config"],
        version=cells["version"],
        error=cells.get("error") or None,
        notes=tuple(notes.split(_BETWEEN)) if notes else (),
        measures={name: numbers[name] for name in MEASURES if name in numbers},
        geometry=geometry,
        **{name: numbers.get(name) for name in _COST},  # type: ignore[arg-type]
        **{name: int(cells[name]) if cells.get(name) else None for name in _COUNTS},  # type: ignore[arg-type]
    )


def read_flat(path: str | Path) -> list[Row]:
    """The rows of a CSV file."""
    with Path(path).open(newline="") as file:
        return rows_of(csv.DictReader(file), path)


def rows_of(lines: Iterable[Mapping[str, str]], path: str | Path) -> list[Row]:
    """The rows of lines read from a file."""
    rows = []
    for number, cells in enumerate(lines, start=2):
        try:
            rows.append(from_line(cells))
        except (KeyError, ValueError, TypeError, InputError) as error:
            raise InputError(
                f"{path}, line {number} is not a row of a run ({error!r}); expected is a file that "
                "study/benchmarks/reproduce.py wrote"
            ) from error
    return rows


def _short(value: Any) -> Any:
    return round(value, 6) if isinstance(value, float) else value
