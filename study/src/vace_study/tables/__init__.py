"""The paper's tables from a run, each number beside the published one; and that of alarms."""

from __future__ import annotations

from collections.abc import Callable

from vace_study.results import Results
from vace_study.tables.by_series import series_table
from vace_study.tables.category import category_table
from vace_study.tables.main import main_table
from vace_study.tables.measures import measures_table
from vace_study.tables.operating import operating_table
from vace_study.tables.rivals import rivals_table
from vace_study.tables.studies import (
    ablation_table,
    geometry_table,
    msl_table,
    sensitivity_table,
)
from vace_study.tables.table import Table

TABLES: dict[str, Callable[[Results], Table]] = {
    "main": main_table,
    "ablation": ablation_table,
    "sensitivity": sensitivity_table,
    "category": category_table,
    "geometry": geometry_table,
    "msl": msl_table,
    "measures": measures_table,
    "operating": operating_table,
    "rivals": rivals_table,
    "series": series_table,
}
SPLITS = {"sensitivity": "tuning"}  # whose split is not all that ran

__all__ = ["SPLITS", "TABLES", "Table"]
