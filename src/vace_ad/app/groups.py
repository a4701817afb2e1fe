"""Tables with rows of several machines: checks of the columns that identify them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vace_ad.app.loading import read_frame
from vace_ad.errors import InputError
from vace_ad.frames.read_options import ReadOptions, names_of
from vace_ad.settings import option

if TYPE_CHECKING:
    import polars as pl

    from vace_ad.frames.sources import TableSource

BY_FILE = "file"  # `--by file`: each file is a machine, where no column is called so
FEW_ROWS = 8  # a key whose values have fewer rows each, as a rule, tells no machines apart
MANY = 1000  # fewer values than this are taken for machines, however short


def read_keyed(
    places: str | Path | Iterable[str | Path], how: ReadOptions
) -> tuple[pl.DataFrame, list[str]]:
    """The rows of all machines with their key columns first, and notes."""
    from vace_ad.frames.sources import FILE, find_sources

    by = names_of(how.by) or []
    sources = find_sources(places)
    if by == [BY_FILE]:
        sources = by_file(sources)
    frame, report = read_frame(sources, how)
    frame, notes = with_keys(frame.drop(FILE, strict=False), by)
    return frame, [*report.notes, *notes]


def by_file(sources: Sequence[TableSource]) -> list[TableSource]:
    """Each file a machine, named after it."""
    from vace_ad.frames.sources import TableSource

    stems = [Path(one.place).name.split(".")[0] for one in sources]
    names = stems if len(set(stems)) == len(stems) else [one.place for one in sources]
    return [
        TableSource(one.place, (*one.keys, (BY_FILE, name)))
        for one, name in zip(sources, names, strict=True)
    ]


def with_keys(frame: pl.DataFrame, by: Sequence[str]) -> tuple[pl.DataFrame, list[str]]:
    """Rows that name their machine, keys as words and first; the others are left out and said."""
    import polars as pl

    for name in by:
        if name not in frame.columns:
            raise InputError(
                f"no column is called {name!r}; the table has {', '.join(frame.columns[:12])}"
                f"{', …' if frame.width > 12 else ''}; {option('by', BY_FILE)} takes each file as "
                "a machine"
            )
    keys = [_as_words(frame[name]) for name in by]
    frame = frame.with_columns(keys).select(*by, pl.exclude(by))
    nameless = frame.select(pl.any_horizontal(pl.col(by).is_null())).to_series()
    notes = []
    if nameless.all():
        raise InputError(f"no row names its {' and '.join(by)}; name another column")
    if nameless.any():
        frame = frame.filter(~nameless)
        notes.append(f"{int(nameless.sum()):,} rows left out: they name no {' and '.join(by)}")
    return frame, notes


def refuse_no_key(counts: Sequence[int], by: Sequence[str]) -> None:
    """Refuse a column that tells rows apart, not machines: many values, few rows each."""
    median = sorted(counts)[len(counts) // 2]
    if len(counts) > MANY and median < FEW_ROWS:
        raise InputError(
            f"{' and '.join(map(repr, by))} has {len(counts):,} different values, as a rule with "
            f"{median:,} row{'s' * (median != 1)} each: that tells no machines apart; name another "
            f"column with {option('by')}"
        )


def _as_words(column: pl.Series) -> pl.Series:
    """Keys as words: whole numbers without a fraction, nothing for empty ones."""
    import polars as pl

    if column.dtype.is_float():
        known = column.drop_nulls()
        if bool((known == known.floor()).all()) and not bool(known.is_infinite().any()):
            column = column.fill_nan(None).cast(pl.Int64, strict=False)
    words = column.cast(pl.String).str.strip_chars()
    return words.replace({"": None}).alias(column.name)
