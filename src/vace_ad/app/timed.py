"""CSV files with a timestamp each, as one table: what other services call a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import polars as pl

from vace_ad.app.loading import read_frame
from vace_ad.errors import TableReadError
from vace_ad.frames.read_options import ReadOptions
from vace_ad.frames.sources import FILE, find_sources
from vace_ad.frames.time import split_time
from vace_ad.frames.timestamps import zoned

TIME = "timestamp"


def timed_frame(files: Sequence[Path], prefix: str = "") -> pl.DataFrame:
    """Files of the same columns as one table: `timestamp`, then the columns with a prefix."""
    frame, _ = read_frame(find_sources(files), ReadOptions())
    frame, time, clock = split_time(frame.drop(FILE, strict=False))
    if time is None:
        raise TableReadError(
            f"{files[0]}: no column of times was found; its first column is to hold timestamps"
        )
    frame = frame.rename(lambda name: prefix + name)
    frame = frame.insert_column(0, zoned(TIME, time, clock.zone))
    return frame.unique(TIME, keep="first", maintain_order=True)


def joined(
    parts: Sequence[pl.DataFrame], place: Path, how: Literal["full", "inner"] = "full"
) -> pl.DataFrame:
    """All columns in one table, with each time that any of them has (full), or all (inner)."""
    frame = parts[0]
    for part in parts[1:]:
        if part[TIME].dtype != frame[TIME].dtype:
            raise TableReadError(
                f"{place}: timestamps of {part.columns[1]!r} are in {part[TIME].dtype}, those of "
                f"{frame.columns[1]!r} in {frame[TIME].dtype}; write all in one time zone"
            )
        twice = set(part.columns[1:]) & set(frame.columns)
        if twice:
            raise TableReadError(
                f"{place}: {sorted(twice)[0]!r} is in two files; rename one, or put each component "
                "in a folder of its own"
            )
        frame = frame.join(part, on=TIME, how=how, coalesce=True)
    return frame.sort(TIME)
