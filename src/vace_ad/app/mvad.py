"""Azure's Multivariate Anomaly Detector: its requests, data sources and answers (REST v1.1).

The names of fields are its own. A data source is a table, or a folder of tables, below one folder
of this machine; nothing is fetched.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

import numpy as np
import polars as pl
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from vace_ad.alarms import Event
from vace_ad.app.loading import TIME, joined, load_any, timed_frame
from vace_ad.detection import Detection
from vace_ad.detector import VACE
from vace_ad.errors import InputError
from vace_ad.frames.read_options import ReadOptions
from vace_ad.frames.table import Table

HIGHEST = 2.0  # of `score`
_EPOCHS = ("epochIds", "trainLosses", "validationLosses", "latenciesInSeconds")


class Shape(BaseModel):
    """A part of a request; its fields are written in camel case."""

    model_config = ConfigDict(alias_generator=to_camel)


class AlignPolicy(Shape):
    """How variables come to the same times."""

    align_mode: Literal["Inner", "Outer"] = "Outer"
    fill_na_method: Literal["Previous", "Subsequent", "Linear", "Zero", "Fixed"] = Field(
        "Linear", alias="fillNAMethod"
    )
    padding_value: float | None = None


class Span(Shape):
    """Rows of a data source."""

    data_source: str = Field(min_length=1)
    start_time: AwareDatetime
    end_time: AwareDatetime


class TrainRequest(Span):
    """The body of a request to train."""

    data_schema: Literal["OneTable", "MultiTable"] = "OneTable"
    display_name: str = Field("", max_length=24)
    sliding_window: int = Field(300, ge=28, le=2880)
    align_policy: AlignPolicy = Field(default_factory=lambda: AlignPolicy.model_validate({}))


class BatchRequest(Span):
    """The body of a request to detect."""

    top_contributor_count: int = Field(10, ge=1)


class Variable(Shape):
    """The last values of a variable."""

    name: str
    timestamps: list[AwareDatetime]
    values: list[float | None]


class LastRequest(Shape):
    """The body of a request to detect in the rows that it brings."""

    variables: list[Variable] = Field(min_length=1)
    top_contributor_count: int = Field(10, ge=1)


def source_path(folder: Path, source: str) -> Path:
    """The table or folder that a data source means: a path, or the end of the path of a URL.

    A client that named a blob goes on to name it: what its container held lies in `folder`.
    """
    parts = [part for part in unquote(urlsplit(source).path).split("/") if part]
    root = folder.resolve()
    for first in range(len(parts)):
        place = root.joinpath(*parts[first:]).resolve()
        if place.is_relative_to(root) and place != root and place.exists():
            return place
    raise InputError(
        f"dataSource {source!r} is not in the folder of data; put the table there, and name it by "
        "its path in that folder"
    )


def read_source(place: Path, info: TrainRequest) -> pl.DataFrame:
    """A data source as one table, its gaps filled as the policy says."""
    policy = info.align_policy
    if place.is_dir() != (info.data_schema == "MultiTable"):
        raise InputError(
            f"dataSchema is {info.data_schema} and the data source a "
            f"{'folder' if place.is_dir() else 'file'}; OneTable is a CSV file, MultiTable a "
            "folder with one for each variable"
        )
    if info.data_schema == "OneTable":
        frame = timed_frame([place]).sort(TIME)
    else:
        files = sorted(place.rglob("*.csv"))
        if not files:
            raise InputError("the folder of the data source holds no CSV file")
        parts = [_variable(file) for file in files]
        frame = joined(parts, place, "inner" if policy.align_mode == "Inner" else "full")
    if policy.fill_na_method == "Fixed" and policy.padding_value is None:
        raise InputError("fillNAMethod Fixed came without paddingValue; give the value")
    values = pl.all().exclude(TIME)
    if policy.fill_na_method == "Previous":
        return frame.with_columns(values.forward_fill())
    if policy.fill_na_method == "Subsequent":
        return frame.with_columns(values.backward_fill())
    if policy.fill_na_method == "Linear":  # the detector's own way
        return frame
    return frame.with_columns(values.fill_null(policy.padding_value or 0.0))


def _variable(file: Path) -> pl.DataFrame:
    """A file of `timestamp,value`, named by the file."""
    frame = timed_frame([file])
    if frame.width != 2:
        raise InputError(
            f"{file.name} holds {frame.width - 1} columns of values; MultiTable wants one, named "
            "by the file"
        )
    return frame.rename({frame.columns[1]: file.stem})


def table_of(frame: pl.DataFrame, channels: tuple[str, ...] | None = None) -> Table:
    """The table that a detector takes, with a model's channels."""
    return load_any(frame, ReadOptions(), channels).table


def last_frame(request: LastRequest, path: Path) -> pl.DataFrame:
    """The rows that a request brings."""
    parts = []
    for one in request.variables:
        if len(one.timestamps) != len(one.values):
            raise InputError(
                f"variable {one.name!r} has {len(one.timestamps)} timestamps and "
                f"{len(one.values)} values; give one each"
            )
        times = np.array([_naive(time) for time in one.timestamps], "datetime64[ns]")
        values = pl.Series(one.name, one.values, pl.Float64)
        parts.append(pl.DataFrame([pl.Series(TIME, times), values]))
    return joined(parts, path)


def rows_between(table: Table, start: datetime, end: datetime) -> tuple[int, int]:
    """The rows [a, b) of a span of time, both ends included."""
    assert table.time is not None
    if end < start:
        raise InputError(f"endTime {end.isoformat()} is before startTime {start.isoformat()}")
    a = int(np.searchsorted(table.time, _naive(start)))
    b = int(np.searchsorted(table.time, _naive(end), side="right"))
    if a >= b:
        raise InputError(
            f"the data source has no row between {stamp(_naive(start))} and {stamp(_naive(end))}; "
            f"it has {stamp(table.time[0])} to {stamp(table.time[-1])}"
        )
    return a, b


def train(table: Table, info: TrainRequest) -> VACE:
    """Fit a detector on the rows between the two times."""
    a, b = rows_between(table, info.start_time, info.end_time)
    return VACE().fit(table[a:b])


def detect(detector: VACE, table: Table, first: int, top: int) -> list[dict[str, Any]]:
    """The results of the rows from `first` on; those before only warm up."""
    found = detector.detect(table, first=first)
    events: dict[int, Event] = {}
    for event in found.anomalies:
        events |= dict.fromkeys(range(event.start, event.end), event)
    idle = {row: one.kind for one in found.idle for row in range(one.start, one.end)}
    return [_result(table, found, row, events.get(row), idle.get(row), top)
            for row in range(first, len(table))]  # fmt: skip


def _result(
    table: Table, found: Detection, row: int, event: Event | None, idle: str | None, top: int
) -> dict[str, Any]:
    assert table.time is not None
    answer: dict[str, Any] = {"timestamp": stamp(table.time[row])}
    evidence = float(found.evidence[row])
    if np.isnan(evidence):
        why = f"the machine is {idle}" if idle else "too many values are missing or too few came"
        error = {"code": "NoScore", "message": f"this row has no score: {why}"}
        return {**answer, "errors": [error]}
    value: dict[str, Any] = {
        "isAnomaly": event is not None,
        "severity": 0.0 if event is None else event.unit_score,
        "score": min(max(evidence, 0.0), HIGHEST),
    }
    if event is not None:
        value["interpretation"] = [
            {
                "variable": name,
                "contributionScore": share,
                "correlationChanges": {
                    "changedVariables": [event.partner] if event.partner and not i else []
                },
            }
            for i, (name, share) in enumerate(event.shares[:top])
        ]
    return {**answer, "value": value, "errors": []}


def variable_states(table: Table, a: int = 0, b: int | None = None) -> list[dict[str, Any]]:
    """What came of each variable in rows [a, b)."""
    part = table[a:b]
    assert part.time is not None
    missing = np.isnan(part.values)
    ends = {"firstTimestamp": stamp(part.time[0]), "lastTimestamp": stamp(part.time[-1])}
    return [
        {"variable": name, "filledNARatio": float(missing[:, i].mean()),
         "effectiveCount": int((~missing[:, i]).sum()), **ends}
        for i, name in enumerate(part.names)
    ]  # fmt: skip


def model_state() -> dict[str, list[float]]:
    """The losses by epoch: none, since the detector is fitted in closed form."""
    return {name: [] for name in _EPOCHS}


def _naive(time: datetime) -> np.datetime64:
    return np.datetime64(time.astimezone(UTC).replace(tzinfo=None), "ns")


def stamp(time: np.datetime64) -> str:
    """A time in ISO 8601, in UTC."""
    unit = "s" if time == time.astype("datetime64[s]") else "us"
    return f"{np.datetime_as_string(time, unit=unit)}Z"  # type: ignore[call-overload]
