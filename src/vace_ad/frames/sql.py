"""Tables from a database: a connection string and a query that can only read.

SQLite needs nothing else; DuckDB and PostgreSQL come with the extra `sql`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from vace_ad.errors import ConfigError, MissingExtraError, TableReadError, needs
from vace_ad.frames.read_options import size_words
from vace_ad.frames.text import column_names, first_line
from vace_ad.settings import option

if TYPE_CHECKING:
    from vace_ad.frames.read import MemoryLimit

_BATCH = 10_000  # rows that become columns together
_FETCHED = 256  # rows that SQLite hands over at a time
_NESTED = ("list", "array", "struct", "map", "union", "variant", "blob", "bit")  # of DuckDB
_LONGEST = 2**31 - 1  # bytes of a cell that SQLite can be told to allow


def safe_name(place: str) -> str:
    """A connection string without its password."""
    return re.sub(r"(://[^:/@]*):.*@", r"\1:…@", place)


def read_sql(limit: MemoryLimit, place: str, query: str | None) -> pl.DataFrame:
    """The rows of a query, within the limit; one that writes, anywhere, is refused."""
    kind, _, rest = place.partition("://")
    name = limit.name
    if not query:
        raise ConfigError(
            f"{name} is a database; say what to read with "
            f"{option('query', 'SELECT time, temp FROM readings ORDER BY time')}"
        )
    readers = {"sqlite": _sqlite, "duckdb": _duckdb}
    try:
        if kind in readers:
            return readers[kind](limit, _file(name, rest), query)
        return _postgresql(limit, place, query)
    except (MissingExtraError, TableReadError):
        raise
    except Exception as error:  # each driver has errors of its own, all about the query or the way
        raise TableReadError(
            f"{name}: the query failed ({safe_name(first_line(error))}); a query may only read, "
            "and only from this database"
        ) from error


def _file(name: str, rest: str) -> Path:
    """sqlite:///relative.db and sqlite:////absolute.db, as connection strings are written."""
    path = Path(rest.removeprefix("/"))
    if not path.is_file():
        raise TableReadError(f"{name}: {path} does not exist; check the path")
    return path


def _sqlite(limit: MemoryLimit, path: Path, query: str) -> pl.DataFrame:
    import sqlite3
    from contextlib import closing

    reading = {
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_RECURSIVE,
    }

    def authorise(action: int, *_: Any) -> int:
        # Opened for reading alone, SQLite still writes other files: VACUUM INTO, ATTACH.
        return sqlite3.SQLITE_OK if action in reading else sqlite3.SQLITE_DENY

    longest = max(_FETCHED, limit.most // _FETCHED)  # bytes of a cell, so that what is fetched fits
    with closing(sqlite3.connect(_read_only(path), uri=True)) as database:
        database.set_authorizer(authorise)
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(longest, _LONGEST))
        try:
            cursor = database.execute(query)
            names = [one[0] for one in cursor.description or ()]
            limit.check_cells(0, len(names))
            return _frame(limit, names, iter(lambda: cursor.fetchmany(_FETCHED), []))
        except sqlite3.DataError as error:
            raise TableReadError(
                f"{limit.name}: a cell holds more than {size_words(longest)}; leave its column out "
                f"of the query, or lift {option('max_size')}"
            ) from error


def _read_only(path: Path) -> str:
    """The address of a SQLite database that is opened without writing a file.

    With write-ahead logging SQLite makes files beside the database even for reading. Without a log
    nobody has it open, and what it holds cannot change.
    """
    with path.open("rb") as file:
        logging = 2 in file.read(20)[18:]
    alone = logging and not path.with_name(f"{path.name}-wal").exists()
    return f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if alone else ''}"


def _frame(
    limit: MemoryLimit, names: list[str], fetched: Iterable[list[tuple[Any, ...]]]
) -> pl.DataFrame:
    """Columns of numbers or words; SQLite types cells, not columns. A blob is no value."""
    titles = column_names(names, len(names))
    parts: list[pl.DataFrame] = []
    batch: list[tuple[Any, ...]] = []
    size = 0

    def columns() -> pl.DataFrame:
        cells = zip(*batch, strict=True) if batch else ([] for _ in titles)
        return pl.DataFrame([_column(t, list(c)) for t, c in zip(titles, cells, strict=True)])

    for rows in fetched:
        size += 8 * len(titles) * len(rows)
        size += sum([len(cell) for row in rows for cell in row if cell.__class__ in (str, bytes)])
        if size > limit.most:
            raise limit.too_large()
        batch += rows
        if len(batch) >= _BATCH:
            parts.append(columns())
            batch = []
    parts.append(columns())
    worded = {n for part in parts for n, kind in part.schema.items() if kind == pl.String}
    return pl.concat([part.with_columns(pl.col(worded).cast(pl.String)) for part in parts])


def _column(title: str, cells: list[Any]) -> pl.Series:
    if set(map(type, cells)) <= {int, float, type(None)}:
        return pl.Series(title, cells, dtype=pl.Float64, strict=False)
    words = [None if cell is None or isinstance(cell, bytes) else str(cell) for cell in cells]
    return pl.Series(title, words, dtype=pl.String)


def _duckdb(limit: MemoryLimit, path: Path, query: str) -> pl.DataFrame:
    with needs("duckdb", "sql", "reading from DuckDB"):
        import duckdb
    # Opened for reading alone, DuckDB still writes other files: COPY TO, ATTACH, its spill.
    locked: dict[str, Any] = {
        "enable_external_access": "false",
        "lock_configuration": "true",
        "memory_limit": f"{max(limit.most, 64 * 10**6)}B",
        "temp_directory": "",
    }
    with duckdb.connect(str(path), read_only=True, config=locked) as database:
        rows = database.sql(query)
        if rows is None:
            raise TableReadError(f"{limit.name}: the query gives no rows; write a SELECT")
        flat = [
            n for n, kind in zip(rows.columns, rows.types, strict=True) if kind.id not in _NESTED
        ]
        if not flat:
            raise TableReadError(
                f"{limit.name}: the query gives no column of numbers, words or times"
            )
        if len(flat) < len(rows.columns):  # a list in a cell may be of any length: never computed
            rows = rows.select(*(duckdb.ColumnExpression(n) for n in flat))
        return _gathered(limit, rows.to_arrow_reader(_BATCH))


def _postgresql(limit: MemoryLimit, place: str, query: str) -> pl.DataFrame:
    with needs("adbc-driver-postgresql", "sql", "reading from PostgreSQL"):
        from adbc_driver_postgresql import dbapi
    place = place.replace("postgres://", "postgresql://", 1)
    if "options=" not in place:
        sign = "&" if "?" in place else "?"
        place += f"{sign}options=-c%20default_transaction_read_only%3Don"
    with dbapi.connect(place) as database, database.cursor() as cursor:
        cursor.execute(query)
        return _gathered(limit, cursor.fetch_record_batch())


def _gathered(limit: MemoryLimit, reader: Any) -> pl.DataFrame:
    """Arrow's batches as one table, unless they grow beyond the limit."""
    limit.check_cells(0, len(reader.schema.names))
    parts, size = [pl.DataFrame(reader.schema.empty_table())], 0
    for batch in reader:
        size += batch.nbytes
        if size > limit.most:
            raise limit.too_large()
        parts.append(pl.DataFrame(batch))
    return pl.concat(parts)
