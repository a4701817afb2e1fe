"""Tables on the command line: the options that say how to read one."""

from __future__ import annotations

from typing import Annotated

import typer

_READING = "How the table is read"
TRAINING = "Which rows are normal (give one way; default: the first 30 %)"
MAX_SIZE = "4GB"  # as frames.limits says; not imported here, so that --help stays quick

TablePaths = Annotated[
    list[str],
    typer.Argument(
        metavar="TABLE…",
        help="CSV (also .gz or .zst), Parquet, Arrow, Excel, JSON lines, Prometheus JSON or "
        "InfluxDB line protocol; - for standard input. Several files, a folder, a glob or a "
        "pattern such as data/{machine}.csv are read as one table, sqlite:///plant.db with "
        "--query too. Delimiter, decimal sign, encoding, header and time column are recognised.",
    ),
]
TimeColumn = Annotated[
    str | None,
    typer.Option(help="The column that holds the time.", rich_help_panel=_READING),
]
TimeZone = Annotated[
    str | None,
    typer.Option(
        help="Time zone of the timestamps, if they do not say, for example Europe/Berlin.",
        rich_help_panel=_READING,
    ),
]
Sort = Annotated[
    bool,
    typer.Option(
        "--sort",
        help="Put the rows in order of time, and average rows of the same time.",
        rich_help_panel=_READING,
    ),
]
Resample = Annotated[
    str | None,
    typer.Option(
        help="Average the rows of each span of time, for example 1min: evens out an irregular "
        "step.",
        rich_help_panel=_READING,
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        help="Only these columns, for example temp,flow.",
        metavar="A,B,…",
        rich_help_panel=_READING,
    ),
]
Drop = Annotated[
    str | None,
    typer.Option(help="All but these columns.", metavar="A,B,…", rich_help_panel=_READING),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        help="What stands between cells, for example ';'; \\t for tab.", rich_help_panel=_READING
    ),
]
Decimal = Annotated[
    str | None, typer.Option(help="The decimal sign, . or ,", rich_help_panel=_READING)
]
Encoding = Annotated[
    str | None,
    typer.Option(help="The text's encoding, for example cp1252.", rich_help_panel=_READING),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first line names the columns.",
        rich_help_panel=_READING,
    ),
]
Long = Annotated[
    str | None,
    typer.Option(
        help="Of a long table: the column of sensors and the column of values.",
        metavar="SENSOR,VALUE",
        rich_help_panel=_READING,
    ),
]
By = Annotated[
    str | None,
    typer.Option(
        help="The columns that name a machine, each with its own model; 'file' for a file each.",
        metavar="A,B,…",
        rich_help_panel=_READING,
    ),
]
Sheet = Annotated[
    str | None, typer.Option(help="The sheet of a workbook.", rich_help_panel=_READING)
]
HeaderRow = Annotated[
    int | None,
    typer.Option(
        help="The row of a workbook or text file that names the columns, from 1.",
        rich_help_panel=_READING,
    ),
]
Query = Annotated[
    str | None,
    typer.Option(help="What to read from a database, as SQL.", rich_help_panel=_READING),
]
MaxSize = Annotated[
    str,
    typer.Option(
        help="The most memory that a table may unpack to, for example 8GB.",
        rich_help_panel=_READING,
    ),
]
Where = Annotated[
    str | None,
    typer.Option(
        help="Learn only from rows that satisfy a condition, for example \"Status == 'run' and "
        'speed > 100"; all rows are scored.',
        metavar="CONDITION",
        rich_help_panel=TRAINING,
    ),
]
TrainSkip = Annotated[
    list[str] | None,
    typer.Option(
        help="Do not learn from this range of time, for example 2026-01-05..2026-01-07; may be "
        "given several times.",
        metavar="FROM..TO",
        rich_help_panel=TRAINING,
    ),
]
