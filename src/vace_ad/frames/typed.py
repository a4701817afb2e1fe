"""Parquet and Arrow files, also damaged ones, which end in one sentence."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from vace_ad.errors import TableReadError
from vace_ad.frames.limits import check_cells
from vace_ad.frames.text import first_line

if TYPE_CHECKING:
    import polars as pl


def read_typed(name: str, data: bytes | Path, kind: str, most: int) -> pl.DataFrame:
    """Read a Parquet or Arrow file whose cells fit into `most` bytes."""
    import polars as pl

    source = io.BytesIO(data) if isinstance(data, bytes) else data
    try:
        if kind == "Parquet":
            lazy = pl.scan_parquet(source, hive_partitioning=False)
            rows = lazy.select(pl.len()).collect().item()
            check_cells(name, rows, len(lazy.collect_schema()), most)
            return pl.read_parquet(source, hive_partitioning=False)
        return pl.read_ipc_stream(source) if kind == "Arrow stream" else pl.read_ipc(source)
    except TableReadError:
        raise
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        # A panic is no Exception, so that nobody catches it by accident; here it is meant.
        raise TableReadError(
            f"{name} begins like {kind} but cannot be read ({first_line(error)}); "
            "it may be cut short or damaged, write it again"
        ) from error
