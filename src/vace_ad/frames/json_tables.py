"""Tables written as JSON: lines of objects, a list of objects, and answers of range queries.

Prometheus and VictoriaMetrics answer a range query with a matrix; VictoriaMetrics exports a line
for each series.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from vace_ad.errors import TableReadError

if TYPE_CHECKING:
    from vace_ad.frames.read import RawFile

_LATEST = 9.2e9  # seconds since 1970 that fit into nanoseconds: the year 2261
_WANTED = "give a list or lines of objects, or the answer of a Prometheus range query"


def read_json(file: RawFile, by: Sequence[str] = ()) -> tuple[pl.DataFrame, str]:
    """The table, within the limit, and which kind of JSON it was."""
    name = file.name
    content, lines = _parse(name, file.content())
    if lines and all("metric" in line and "values" in line for line in content):
        series = [_exported(name, line) for line in content]
        return _from_series(file, series, by), "JSON series"
    if not lines and isinstance(content, dict):
        return _from_series(file, _matrix(name, content), by), "Prometheus"
    if not all(isinstance(row, dict) for row in content) or not content:
        raise TableReadError(f"{name} is JSON, but not a table; {_WANTED}")
    return _rows(file, content), "JSON lines" if lines else "JSON"


def _parse(name: str, data: bytes) -> tuple[Any, bool]:
    """The content, and whether it is one value a line."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TableReadError(
            f"{name} begins like JSON but is not in UTF-8; write it again"
        ) from error
    try:
        return _json(text), False
    except RecursionError as error:
        raise TableReadError(f"{name} is JSON nested too deeply for a table; {_WANTED}") from error
    except ValueError as whole:
        rows = []
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip():
                continue
            try:
                rows.append(_json(line))
            except (ValueError, RecursionError) as error:
                if number == 1:
                    raise TableReadError(
                        f"{name} begins like JSON but cannot be read ({whole}); write it again"
                    ) from error
                raise TableReadError(
                    f"{name}, line {number} is not a JSON object; correct or remove that line"
                ) from error
        if not all(isinstance(row, dict) for row in rows):
            raise TableReadError(f"{name} is JSON, but not a table; {_WANTED}") from whole
        return rows, True


def _json(text: str) -> Any:
    """A JSON value; half of a surrogate pair, which no text can hold, becomes a question mark."""
    value = json.loads(text)
    if "\\ud" in text.lower():
        whole = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        value = json.loads(whole)
    return value


def _rows(file: RawFile, rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """A column for each key; keys of objects inside are joined by a point."""
    flat = [_flat(row) for row in rows]
    names = list(dict.fromkeys(key for row in flat for key in row))
    file.check_cells(len(rows), len(names))
    columns = {}
    for key in names:
        cells = [row.get(key) for row in flat]
        kinds = {type(cell) for cell in cells if cell is not None}
        if kinds <= {int, float, bool}:
            columns[key] = pl.Series(key, cells, dtype=pl.Float64, strict=False)
        else:
            words = [
                None if c is None else c if isinstance(c, str) else json.dumps(c) for c in cells
            ]
            columns[key] = pl.Series(key, words, dtype=pl.String)
    if not columns:
        raise TableReadError(f"{file.name} is JSON without any value; {_WANTED}")
    return pl.DataFrame(columns)


def _flat(row: Mapping[str, Any], before: str = "", depth: int = 0) -> dict[str, Any]:
    cells: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, dict) and depth < 8:
            cells |= _flat(value, f"{before}{key}.", depth + 1)
        else:
            cells[f"{before}{key}"] = value
    return cells


Series = tuple[Mapping[str, str], Sequence[float], Sequence[Any]]  # labels, seconds, values


def _matrix(name: str, content: Mapping[str, Any]) -> list[Series]:
    """The series of a range query's answer."""
    if content.get("status") == "error":
        raise TableReadError(f"{name} holds an error of Prometheus: {content.get('error')}")
    answer = content.get("data", content)
    kind = answer.get("resultType") if isinstance(answer, dict) else None
    if kind != "matrix":
        what = f"a {kind} of Prometheus" if kind else "JSON, but not a table"
        raise TableReadError(f"{name} is {what}; {_WANTED}")
    try:
        return [
            (
                dict(one["metric"]),
                [float(t) for t, _ in one["values"]],
                [v for _, v in one["values"]],
            )
            for one in answer["result"]
        ]
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise TableReadError(f"{name} is a damaged answer of Prometheus; save it again") from error


def _exported(name: str, line: Mapping[str, Any]) -> Series:
    try:
        return dict(line["metric"]), [t / 1e3 for t in line["timestamps"]], list(line["values"])
    except (KeyError, TypeError, ValueError) as error:
        raise TableReadError(f"{name} is a damaged export of series; save it again") from error


def _from_series(file: RawFile, series: Sequence[Series], by: Sequence[str]) -> pl.DataFrame:
    """A column for each series, named by what tells it apart; a row for each time.

    Labels in `by` become columns, so that each machine has rows of its own.
    """
    if not series:
        raise TableReadError(f"{file.name} holds no series; widen the query or its time")
    times = {second for _, seconds, _ in series for second in seconds}
    file.check_cells(len(times), len(series))
    labels = [{k: v for k, v in dict(one[0]).items() if k not in by} for one in series]
    common = {k for k, v in labels[0].items() if all(each.get(k) == v for each in labels)}
    long = []
    for (metric, seconds, values), own in zip(series, labels, strict=True):
        if len(seconds) != len(values):
            raise TableReadError(f"{file.name} is damaged: a series has more times than values")
        long.append(
            pl.DataFrame(
                {
                    "time": pl.Series(_milliseconds(file.name, seconds), dtype=pl.Int64),
                    "series": [_channel(own, common)] * len(seconds),
                    "value": pl.Series([_number(v) for v in values], dtype=pl.Float64),
                    **{key: [str(metric.get(key, ""))] * len(seconds) for key in by},
                }
            )
        )
    wide = pl.concat(long).pivot(
        on="series", index=["time", *by], values="value", aggregate_function="mean"
    )
    stamps = pl.col("time").cast(pl.Datetime("ms")).cast(pl.Datetime("ns"))
    return wide.sort("time").with_columns(stamps.dt.replace_time_zone("UTC"))


def _milliseconds(name: str, seconds: Sequence[float]) -> list[int]:
    for second in seconds:
        if not abs(second) < _LATEST:  # also what is not a number
            raise TableReadError(f"{name} holds the time {second}, which is not a time since 1970")
    return [round(second * 1e3) for second in seconds]


def _channel(labels: Mapping[str, str], common: set[str]) -> str:
    own = {k: v for k, v in labels.items() if k not in common and k != "__name__"}
    inside = ",".join(f"{k}={v}" for k, v in sorted(own.items()))
    base = str(labels.get("__name__", ""))
    return f"{base}{{{inside}}}" if base and inside else base or inside or "value"


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
