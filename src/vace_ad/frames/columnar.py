"""Parquet and Arrow files; a damaged one raises one clear error."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from vace_ad.errors import TableReadError
from vace_ad.frames.arrow_size import arrow_size
from vace_ad.frames.limits import check_cells, too_large
from vace_ad.frames.text import first_line

if TYPE_CHECKING:
    import polars as pl
    import polars.selectors as cs

_PROBES = 32  # rows of a Parquet file whose words are measured before all are unpacked


def read_typed(
    name: str, data: bytes | Path, kind: str, most: int
) -> tuple[pl.DataFrame, list[str]]:
    """Read a Parquet or Arrow file whose cells fit into `most` bytes, and say what is left out.

    Columns of lists, structures and bytes are never unpacked: they cannot be channels, and a cell
    of them may be of any size.
    """
    import polars as pl

    try:
        if kind == "Parquet":
            frame, nested = _parquet(name, data, most)
        else:
            frame, nested = _arrow(name, data, kind == "Arrow stream", most)
        if _text_bytes(frame) > most:
            raise too_large(name, most)
    except TableReadError:
        raise
    except (
        pl.exceptions.PolarsError,
        pl.exceptions.PanicException,
        OSError,
        ValueError,
    ) as error:
        # A panic is no Exception, so that nobody catches it by accident; here it is meant.
        raise TableReadError(
            f"{name} begins like {kind} but cannot be read ({first_line(error)}); "
            "it may be cut short or damaged, write it again"
        ) from error
    shown = ", ".join(map(repr, nested[:5])) + (", …" if len(nested) > 5 else "")
    note = f"columns of lists, structures or bytes are not read: {shown}"
    return frame, [note] if nested else []


def _parquet(name: str, data: bytes | Path, most: int) -> tuple[pl.DataFrame, list[str]]:
    import polars as pl
    import polars.selectors as cs

    lazy = pl.scan_parquet(
        io.BytesIO(data) if isinstance(data, bytes) else data, hive_partitioning=False
    )
    flat, nested = _flat(lazy.collect_schema())
    rows = lazy.select(pl.len()).collect().item()
    check_cells(name, rows, len(flat), most)
    words = lazy.select(cs.by_name(flat) & _words())
    if words.collect_schema():  # a file repeats a long word at no cost: look before all is unpacked
        starts = [i * rows // _PROBES for i in range(min(_PROBES, rows))]
        probe = [_text_bytes(words.slice(start, 1).collect()) for start in starts]
        if max(probe, default=0) * rows > _PROBES * most or sum(probe) * rows > most * len(probe):
            raise too_large(name, most)
    return lazy.select(flat).collect(), nested


def _arrow(
    name: str, data: bytes | Path, stream: bool, most: int
) -> tuple[pl.DataFrame, list[str]]:
    import polars as pl

    source = io.BytesIO(data) if isinstance(data, bytes) else data
    rows, size = arrow_size(data, stream=stream)
    schema = pl.read_ipc_stream(source, n_rows=0).schema if stream else pl.read_ipc_schema(source)
    flat, nested = _flat(pl.Schema(schema))
    check_cells(name, rows, len(flat), most)
    if size > most:
        raise too_large(name, most)
    if isinstance(source, io.BytesIO):
        source.seek(0)
    read = pl.read_ipc_stream if stream else pl.read_ipc
    return read(source, columns=flat), nested


def _flat(schema: pl.Schema) -> tuple[list[str], list[str]]:
    """Columns of single values, and the others."""
    import polars as pl

    nested = [n for n, kind in schema.items() if kind.is_nested() or kind in (pl.Binary, pl.Object)]
    return [n for n in schema.names() if n not in set(nested)], nested


def _words() -> cs.Selector:
    import polars.selectors as cs

    return cs.string() | cs.categorical() | cs.enum()


def _text_bytes(frame: pl.DataFrame) -> int:
    """Bytes of all words of a table."""
    import polars as pl

    words = frame.select(_words().cast(pl.String).str.len_bytes().cast(pl.UInt64).sum())
    return sum(words.row(0)) if words.width else 0
