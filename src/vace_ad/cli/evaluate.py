"""`vace evaluate`: the measures of scores against labels, from a file."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vace_ad.cli import operating as operate
from vace_ad.cli.options import parameters
from vace_ad.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from vace_ad.frames.spans import Span


@parameters
def evaluate_command(
    path: Annotated[
        Path,
        typer.Argument(
            help="Table with a label and a score in each row, in any format that `vace detect` "
            "reads."
        ),
    ],
    asked: operate.EvaluateOptions,
) -> None:
    """Evaluate scores against labels: the nine measures of TSB-AD, and operating measures.

    Example: vace evaluate scores.csv --label-column fault --score-column score --window auto

    With predictions (--threshold 4.5 or --prediction-column alarm) it also counts events found and
    missed, false alarms (per day with --step-seconds 60, and the number allowed with --budget) and
    the delay to detection. With a model, it computes scores and alarms itself, as a table and as a
    stream:

    vace evaluate plant.csv --model plant.vace --labels faults.csv --budget "1 per week"
    """
    from vace_ad.app.results import plain
    from vace_ad.cli.output import forewarning_words
    from vace_ad.metrics import evaluate, forewarning, operational

    asked.refuse_clashes()
    faults = operate.past_faults(asked.labels_file, asked.label_column)
    needed = [asked.label_column] if asked.labels_file is None else []
    needed += [asked.score_column] if asked.model is None else []
    needed += [asked.prediction_column] if asked.prediction_column else []
    table = _read(path, needed, asked.drop_missing)
    rows, source = _window(table, asked, [asked.label_column, *needed])

    if faults:
        labels, time, ranges = _stretches(table, faults)
    else:
        labels = _labels(table, asked.label_column, asked.labels_file)
    if asked.model is not None:
        judged = operate.judge_model(path, labels, asked)
    else:
        column = asked.prediction_column
        given = None if column is None else _numbers(table, column)
        judged = operate.judge_columns(_numbers(table, asked.score_column), given, labels, asked)
    predictions, counted = judged.predictions, judged.counted
    warned = None
    if faults and predictions is not None:
        warned = forewarning(time, ranges, judged.alarms, codes=[one.code for one in faults])
    result = {
        "rows": table.height,
        "window": rows,
        "window_from": source,
        "predictions": judged.words,
        "measures": evaluate(labels, judged.scores, window=rows, predictions=predictions),
        "operation": None
        if predictions is None
        else asdict(operational(labels, predictions, asked.step_seconds)),
        "operating": None if counted is None else counted.summary(),
        "forewarning": None if warned is None else warned.to_plain(),
    }
    if asked.as_json:
        typer.echo(json.dumps(plain(result)))
    else:
        _print(result, {} if counted is None else operate.in_words(counted))
        if warned is not None:
            typer.echo(forewarning_words(warned))


def _stretches(
    table: pl.DataFrame, faults: list[Span]
) -> tuple[NDArray[Any], NDArray[np.datetime64], list[tuple[int, int]]]:
    """Labels of rows from stretches of time, the times, and the rows of each stretch."""
    import numpy as np

    from vace_ad.frames.spans import rows_of
    from vace_ad.frames.time import split_time

    _, time, clock = split_time(table, None)
    ranges = rows_of(faults, time, clock.zone)
    labels = np.zeros(table.height, int)
    for start, end in ranges:
        labels[start:end] = 1
    if not labels.any():
        raise InputError(
            "no row of the table lies in a stretch of --labels; check the years and time zones"
        )
    assert time is not None
    return labels, time, ranges


def _labels(table: pl.DataFrame, name: str, file: Path | None) -> NDArray[Any]:
    """The labels, from the table or from a file of their own."""
    if file is None:
        return _numbers(table, name)
    other = _read(file, [name], False)
    if other.height != table.height:
        raise InputError(
            f"{file} has {other.height:,} rows, the table {table.height:,}; expected a label for "
            "each row, in the same order"
        )
    return _numbers(other, name)


def _read(path: Path, needed: list[str], drop_missing: bool) -> pl.DataFrame:
    """Read the file and make sure of the columns."""
    import polars.selectors as cs

    from vace_ad.frames.read import read_table

    table, _ = read_table(path)
    for name in needed:
        _require(table, name)
    if drop_missing:
        table = table.with_columns(cs.float().fill_nan(None)).drop_nulls(needed)
    return table


def _require(table: pl.DataFrame, name: str) -> None:
    if name not in table.columns:
        raise InputError(
            f"there is no column {name!r}; the table has {', '.join(map(repr, table.columns))}: "
            "name one of these with --label-column, --score-column, --prediction-column or "
            "--series-column"
        )


def _numbers(table: pl.DataFrame, name: str) -> NDArray[Any]:
    import polars as pl

    column = table[name]
    if not (column.dtype.is_numeric() or column.dtype == pl.Boolean):
        raise InputError(
            f"column {name!r} is of type {column.dtype}; expected numbers: choose another column, "
            "or look for text in it"
        )
    return column.to_numpy()


def _window(
    table: pl.DataFrame, asked: operate.EvaluateOptions, taken: list[str]
) -> tuple[int, str]:
    """Return the window and where it comes from."""
    window, series_column = asked.window, asked.series_column
    import numpy as np

    from vace_ad.metrics import sliding_window

    if window != "auto":
        if series_column is not None:
            raise InputError(
                f"--series-column cannot be combined with --window {window}, only with auto: "
                "drop one of them"
            )
        if not window.isdecimal():
            raise InputError(
                f"--window is {window!r}; expected 'auto' or a whole number of at least 0"
            )
        return int(window), "given"
    if series_column is None:
        series_column = _first_channel(table, taken)
    _require(table, series_column)
    series = _numbers(table, series_column).astype(float)
    return sliding_window(series[~np.isnan(series)]), f"period of {series_column!r}"


def _first_channel(table: pl.DataFrame, taken: list[str]) -> str:
    """Find the first numeric column that can be a channel: not an index, not a clock."""
    for column in table.iter_columns():
        if column.name in taken or not column.dtype.is_numeric():
            continue
        if not (column.diff().drop_nulls() > 0).all():
            return column.name
    raise InputError(
        "--window auto found no numeric column besides labels, scores and predictions to take the "
        "period from; name one with --series-column, or give the window as a number"
    )


def _print(result: dict[str, Any], operating: dict[str, str]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    console.print(f"{result['rows']:,} rows; window {result['window']} ({result['window_from']})")
    console.print(f"predictions: {result['predictions']}")
    tables = {"measure": {name: f"{value:.4f}" for name, value in result["measures"].items()}}
    if result["operation"] is not None:
        tables["in operation, row by row"] = _in_words(result["operation"])
        tables["alarms, within 48 rows"] = operating
    for title, lines in tables.items():
        table = Table()
        table.add_column(title)
        table.add_column("value", justify="right")
        for name, value in lines.items():
            table.add_row(name, value)
        console.print(table)


def _in_words(operation: dict[str, Any]) -> dict[str, str]:
    words = {
        "events found": f"{operation['events_found']} of {operation['events']}",
        "alarms": str(operation["alarms"]),
        "false alarms": str(operation["false_alarms"]),
    }
    if operation["false_alarms_per_day"] is not None:
        words["false alarms a day"] = f"{operation['false_alarms_per_day']:.3g}"
    if operation["median_delay_seconds"] is not None:
        words["median delay"] = f"{operation['median_delay_seconds']:g} s"
        words["worst delay"] = f"{operation['worst_delay_seconds']:g} s"
    elif operation["delays"]:
        words["worst delay"] = f"{max(operation['delays'])} rows"
    return words
