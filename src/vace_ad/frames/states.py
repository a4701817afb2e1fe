"""Columns of words as channels: one of 0 and 1 for each value, called `column=value`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from vace_ad.errors import InputError

MOST = 50  # values of one column


def with_states(data: Any, columns: Sequence[str], expected: Sequence[str] = ()) -> Any:
    """A table whose named columns of words became channels; anything else comes back as it is.

    `expected` are the channels of a model: its columns of words are found by them, and values that
    it does not know become 0 in all of them.
    """
    wanted = list(dict.fromkeys([*columns, *(column_of(name) for name in expected)]))
    try:
        frame = nw.from_native(data, eager_only=True)
    except (TypeError, ValueError):
        return data
    schema = frame.schema
    words = [
        name
        for name in wanted
        if name in schema
        and name not in expected
        and schema[name] in (nw.String, nw.Categorical, nw.Enum)
    ]
    if not words:
        return data
    for name in words:
        column = frame[name].cast(nw.String).str.strip_chars()
        known = [one for one in expected if column_of(one) == name]
        values = [one.removeprefix(f"{name}=") for one in known]
        values = values or sorted(column.drop_nulls().unique().to_list())
        if len(values) > MOST:
            raise InputError(
                f"column {name!r} holds {len(values):,} different words; a column of states has "
                f"{MOST} at most: leave it out, or group them"
            )
        missing = column.is_null()
        new = [
            (column == value).cast(nw.Float64).zip_with(~missing, missing.cast(nw.Float64) * np.nan)
            .alias(f"{name}={value}") for value in values
        ]  # fmt: skip
        frame = frame.drop(name).with_columns(new)
    return frame.to_native()


def column_of(channel: str) -> str:
    """The column of words that a channel belongs to; empty for other channels."""
    column, equals, _ = channel.partition("=")
    return column if equals else ""


def words_of(rows: NDArray[np.float64], channels: Sequence[str], column: str) -> NDArray[Any]:
    """The words (n,) that rows (n, n_channels) hold in a column; None for none that is known."""
    places = [i for i, name in enumerate(channels) if column_of(name) == column]
    values = np.array([None, *(channels[i].removeprefix(f"{column}=") for i in places)], object)
    there = rows[:, places] > 0.5  # NaN compares false
    return np.asarray(values[np.where(there.any(axis=1), there.argmax(axis=1) + 1, 0)])
