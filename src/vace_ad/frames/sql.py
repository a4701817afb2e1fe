"""Tables from a database: a connection string and a query.

SQLite needs nothing else; DuckDB and PostgreSQL come with the extra `sql`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vace_ad.caller import option
from vace_ad.errors import ConfigError, MissingExtraError, TableReadError

if TYPE_CHECKING:
    import polars as pl

_CONNECTION = re.compile(r"(sqlite|duckdb|postgresql|postgres)://(.*)", re.DOTALL)


def is_connection(place: str) -> bool:
    """Whether this is a connection string and not a path."""
    return _CONNECTION.match(place) is not None


def safe_name(place: str) -> str:
    """A connection string without its password."""
    return re.sub(r"(://[^:/@]*):.*@", r"\1:…@", place)


def read_sql(place: str, query: str | None) -> pl.DataFrame:
    """The rows of a query."""
    match = _CONNECTION.match(place)
    assert match is not None  # the caller asked is_connection
    name = safe_name(place)
    if not query:
        raise ConfigError(
            f"{name} is a database; say what to read with "
            f"{option('query', 'SELECT time, temp FROM readings ORDER BY time')}"
        )
    readers = {"sqlite": _sqlite, "duckdb": _duckdb}
    try:
        if match[1] in readers:
            return readers[match[1]](_file(name, match[2]), query)
        return _postgresql(place, query)
    except (MissingExtraError, TableReadError):
        raise
    except Exception as error:  # each driver has errors of its own, all about the query or the way
        reason = (str(error).strip().splitlines() or ["no reason given"])[0].rstrip(".")
        raise TableReadError(f"{name}: the query failed ({safe_name(reason)})") from error


def _file(name: str, rest: str) -> Path:
    """sqlite:///relative.db and sqlite:////absolute.db, as connection strings are written."""
    path = Path(rest.removeprefix("/"))
    if not path.is_file():
        raise TableReadError(f"{name}: {path} does not exist; check the path")
    return path


def _sqlite(path: Path, query: str) -> pl.DataFrame:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
        cursor = database.execute(query)
        names = [one[0] for one in cursor.description or ()]
        return _frame(names, cursor.fetchall())


def _frame(names: list[str], rows: list[tuple[Any, ...]]) -> pl.DataFrame:
    """Columns of numbers or words; SQLite types cells, not columns."""
    import polars as pl

    from vace_ad.frames.text import column_names

    columns = []
    for i, name in enumerate(column_names(names, len(names))):
        cells = [row[i] for row in rows]
        numbers = all(cell is None or isinstance(cell, int | float) for cell in cells)
        if numbers:
            columns.append(pl.Series(name, cells, dtype=pl.Float64, strict=False))
        else:
            words = [None if cell is None else str(cell) for cell in cells]
            columns.append(pl.Series(name, words, dtype=pl.String))
    return pl.DataFrame(columns)


def _duckdb(path: Path, query: str) -> pl.DataFrame:
    import polars as pl

    try:
        import duckdb
    except ImportError as error:
        raise MissingExtraError("reading from DuckDB", "duckdb", "sql") from error
    with duckdb.connect(str(path), read_only=True) as database:
        return pl.DataFrame(database.sql(query).to_arrow_table())


def _postgresql(place: str, query: str) -> pl.DataFrame:
    import polars as pl

    try:
        import adbc_driver_postgresql  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            "reading from PostgreSQL", "adbc-driver-postgresql", "sql"
        ) from error
    return pl.read_database_uri(
        query, place.replace("postgres://", "postgresql://", 1), engine="adbc"
    )
