"""Tables on the command line: the options that say how to read one."""

from __future__ import annotations

from typing import Annotated

import typer

_READING = "How the table is read"

TablePath = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="CSV (also .gz or .zst), Parquet or Arrow file; - for standard input. Delimiter, "
        "decimal sign, encoding, header and time column are found out.",
    ),
]
TimeColumn = Annotated[
    str | None,
    typer.Option(help="The column that holds the time.", rich_help_panel=_READING),
]
TimeZone = Annotated[
    str | None,
    typer.Option(
        help="Where the clock hung, if the stamps do not say, for example Europe/Berlin.",
        rich_help_panel=_READING,
    ),
]
Sort = Annotated[
    bool, typer.Option("--sort", help="Put the rows in order of time.", rich_help_panel=_READING)
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
