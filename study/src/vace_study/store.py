"""A benchmark run's rows, one JSON line each, in a file that only grows."""

from __future__ import annotations

from pathlib import Path

from vace_ad.errors import InputError
from vace_ad.executors.store import LineStore, read_lines
from vace_study.rows import Row
from vace_study.rows_csv import read_flat


def read_rows(folder: str | Path) -> list[Row]:
    """The rows of a run, also while it is being written; a repeated row replaces the earlier.

    A CSV file of committed rows serves as well.
    """
    if Path(folder).suffix == ".csv" and Path(folder).is_file():
        return read_flat(folder)
    rows = read_lines(folder, Row.from_json)
    if rows is None:
        raise InputError(f"{folder} holds no run; `vace bench run --out {folder}` makes one")
    return rows


class Store(LineStore[Row]):
    """The one writer of a run folder."""

    def __init__(self, folder: str | Path) -> None:
        super().__init__(folder, Row.from_json)
