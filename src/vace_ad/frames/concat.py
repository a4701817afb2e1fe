"""Concatenates several files into one table, in order of time."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vace_ad.errors import InputError, TableReadError
from vace_ad.frames.read import ReadReport
from vace_ad.frames.sources import TableSource
from vace_ad.settings import option

if TYPE_CHECKING:
    import polars as pl

FILE = "\0file"  # the column that says which source a row came from

Reader = Callable[[str], "tuple[pl.DataFrame, ReadReport]"]


def read_sources(sources: Sequence[TableSource], read: Reader) -> tuple[pl.DataFrame, ReadReport]:
    """Read every source with `read`; columns from paths are added.

    Of several sources, the column FILE gives the number of each row's.
    """
    import polars as pl

    frames: list[pl.DataFrame] = []
    reports: list[ReadReport] = []
    for number, source in enumerate(sources):
        frame, report = read(source.place)
        for name, value in source.keys:
            if name in frame.columns:
                raise TableReadError(
                    f"{source.place} has a column {name!r}, and its path names one too; rename "
                    "one of them"
                )
            frame = frame.with_columns(pl.lit(value).alias(name))
        if len(sources) > 1:
            frame = frame.with_columns(pl.lit(number, dtype=pl.UInt32).alias(FILE))
        if frames:
            _same_columns(sources[0].place, frames[0], source.place, frame)
        frames.append(frame)
        reports.append(report)
    if len(frames) == 1:
        return frames[0], reports[0]
    whole = pl.concat([frame.select(frames[0].columns) for frame in frames], how="vertical_relaxed")
    return whole, _one_report(sources, reports, whole)


def _same_columns(first: str, expected: pl.DataFrame, place: str, frame: pl.DataFrame) -> None:
    missing = [name for name in expected.columns if name not in frame.columns]
    extra = [name for name in frame.columns if name not in expected.columns]
    if missing or extra:
        what = f"lacks {missing[0]!r}" if missing else f"has {extra[0]!r}, which {first} lacks"
        raise TableReadError(f"{place} {what}; tables that are read as one need the same columns")
    for name, kind in expected.schema.items():
        other = frame.schema[name]
        if kind != other and kind.is_numeric() != other.is_numeric():
            raise TableReadError(
                f"column {name!r} is {kind} in {first} and {other} in {place}; mend one of them, "
                f"or leave it out with {option('drop', name)}"
            )


def _one_report(
    sources: Sequence[TableSource], reports: Sequence[ReadReport], whole: pl.DataFrame
) -> ReadReport:
    digest = hashlib.sha256("".join(report.sha256 for report in reports).encode()).hexdigest()
    counts = Counter(note for report in reports for note in dict.fromkeys(report.notes))
    notes = [
        note if count == len(reports) else f"{note} (in {count:,} of {len(reports):,} files)"
        for note, count in counts.items()
    ]
    formats = sorted({report.format for report in reports})
    return replace(
        reports[0],
        source=f"{len(sources):,} files",
        format=" and ".join(formats),
        rows=whole.height,
        columns=whole.width - 1,  # without FILE
        sha256=digest,
        notes=tuple(notes),
    )


def order_files(
    frame: pl.DataFrame, time: NDArray[np.datetime64], places: Sequence[str], *, sort: bool
) -> tuple[pl.DataFrame, NDArray[np.datetime64]]:
    """Put whole files in order of time, whatever their names say; refuse files that overlap.

    Rows inside a file stay as they are. With `sort` overlapping rows are merged later.
    """
    files = frame[FILE].to_numpy()
    frame = frame.drop(FILE)
    starts = np.flatnonzero(np.diff(files, prepend=-1))
    spans = [
        (time[a:b].min(), time[a:b].max(), a, b)
        for a, b in zip(starts.tolist(), [*starts[1:].tolist(), len(files)], strict=True)
    ]
    spans.sort(key=lambda span: (span[0], span[1]))
    for (_, end, a, _), (begin, _, c, _) in pairwise(spans):
        if begin <= end and not sort:
            one, other = places[int(files[a])], places[int(files[c])]
            raise InputError(
                f"{one} and {other} cover the same time; if each is a machine of its own, pass "
                f"{option('by', 'file')}; if they belong together, {option('sort', True)} merges "
                "them"
            )
    order = np.concatenate([np.arange(a, b) for _, _, a, b in spans])
    if (np.diff(order) == 1).all():
        return frame, time
    return frame[order], time[order]
