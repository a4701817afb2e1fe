from __future__ import annotations

import os
import resource
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest

from frames.shapes import wide
from vace_ad.app.loading import load_table
from vace_ad.errors import ConfigError, TableReadError
from vace_ad.frames.read import read_table
from vace_ad.frames.read_options import ReadOptions
from vace_ad.frames.sql import safe_name

ALL = "SELECT * FROM readings ORDER BY time"
ROWS = [(str(t)[:19], *r) for t, *r in wide(60).iter_rows()]
CREATE = "CREATE TABLE readings (time {}, flow FLOAT8, pressure FLOAT8, temp FLOAT8)"


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    with closing(sqlite3.connect(tmp_path / "plant.db")) as database:
        database.execute(CREATE.format("TEXT"))
        database.executemany("INSERT INTO readings VALUES (?, ?, ?, ?)", ROWS)
        database.execute("UPDATE readings SET flow = NULL WHERE rowid = 5")
        database.commit()
    return f"sqlite:///{tmp_path / 'plant.db'}"


def check(place: str) -> None:
    loaded = load_table(place, ReadOptions(query=ALL))
    assert loaded.table.names == ("flow", "pressure", "temp")
    assert loaded.clock.step == 60 * 10**9
    assert len(loaded.table) == 60
    assert loaded.table.values[0].tolist() == list(ROWS[0][1:])
    assert loaded.source.format == "SQL"


def test_sqlite(sqlite: str) -> None:
    check(sqlite)


def test_sqlite_with_a_log_is_read_whole_and_gets_no_file_beside_it(sqlite: str) -> None:
    path = Path(sqlite.removeprefix("sqlite:///"))
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("DELETE FROM readings WHERE rowid = 60")
        database.commit()  # to the log alone, as long as the database is open
        assert path.with_name("plant.db-wal").stat().st_size
        assert read_table(sqlite, query=ALL)[0].height == 59
    assert [one.name for one in path.parent.iterdir()] == ["plant.db"]
    assert read_table(sqlite, query=ALL)[0].height == 59
    assert [one.name for one in path.parent.iterdir()] == ["plant.db"]


@pytest.fixture
def duck(tmp_path: Path) -> str:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "plant.duckdb")) as database:
        database.execute(CREATE.format("TIMESTAMP"))
        database.executemany("INSERT INTO readings VALUES (?, ?, ?, ?)", ROWS)
    return f"duckdb:///{tmp_path / 'plant.duckdb'}"


def test_duckdb(duck: str) -> None:
    check(duck)


WRITES = {
    "sqlite": [
        "VACUUM INTO '{}/out'",
        "ATTACH '{}/out' AS other",
        "DELETE FROM readings",
        "CREATE TEMP TABLE other (a)",
        "PRAGMA journal_mode = WAL",
    ],
    "duck": [
        "COPY readings TO '{}/out'",
        "ATTACH '{}/out' AS other",
        "EXPORT DATABASE '{}/out'",
        "DELETE FROM readings",
        "SELECT * FROM read_text('{}/secret')",
        "SET enable_external_access = true",
        "INSTALL httpfs",
    ],
    "postgresql": ["DELETE FROM readings", "COPY readings TO '{}/out'"],
}


@pytest.mark.parametrize(
    ("database", "query"), [(name, query) for name, some in WRITES.items() for query in some]
)
def test_a_query_cannot_write(
    database: str, query: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if database == "postgresql":
        pytest.importorskip("adbc_driver_postgresql")
    place = request.getfixturevalue(database)
    (tmp_path / "secret").write_text("secret")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(TableReadError, match="a query may only read, and only from this database"):
        load_table(place, ReadOptions(query=query.format(tmp_path)))
    assert sorted(tmp_path.iterdir()) == before
    check(place)  # nothing was deleted


HUGE = {
    "sqlite": [
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT n, n * 2 FROM t",
        "SELECT flow, zeroblob(900000000) FROM readings",
        "SELECT flow, hex(zeroblob(1000000)) FROM readings",
    ],
    "duck": [
        "SELECT range, range * 2 FROM range(1000000000000)",
        "SELECT flow, repeat('x', 1000000) FROM readings",
    ],
}


@pytest.mark.parametrize(
    ("database", "query"), [(name, query) for name, some in HUGE.items() for query in some]
)
def test_max_size_holds_for_databases(
    database: str, query: str, request: pytest.FixtureRequest
) -> None:
    place = request.getfixturevalue(database)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(TableReadError, match=r"more than (5 MB; .*max_size=|.* kB; leave its col)"):
        load_table(place, ReadOptions(query=query, max_size="5MB"))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # kB


def test_lists_and_blobs_of_duckdb_are_not_read(duck: str) -> None:
    query = "SELECT flow, range(1000000) AS l, {'a': 1} AS s, 'x'::BLOB AS b FROM readings"
    frame, _ = read_table(duck, query=query, max_size="20MB")
    assert frame.columns == ["flow"]
    with pytest.raises(TableReadError, match="no column of numbers"):
        read_table(duck, query="SELECT range(5) AS l")


def test_sqlite_batches_of_different_kinds_are_one_column(sqlite: str) -> None:
    query = (
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 25000) "
        "SELECT n % 7 AS a, CASE WHEN n > 20000 THEN 'late' ELSE n % 3 END AS b FROM t"
    )
    frame, _ = read_table(sqlite, query=query)
    assert frame.height == 25_000
    assert frame["b"].dtype == pl.String
    assert frame["b"].last() == "late"
    assert frame["a"][7] == 1.0


@pytest.fixture
def postgresql(tmp_path: Path) -> Iterator[str]:
    """A server of our own on a socket in a folder of our own."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found or (os.geteuid() == 0 and shutil.which("runuser") is None):
        pytest.skip("PostgreSQL is not installed")
    tools = found[-1].parent
    user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    home = Path(subprocess.run(["mktemp", "-d"], capture_output=True, text=True).stdout.strip())
    if user:
        shutil.chown(home, "postgres")
    data, log = home / "data", home / "log"
    quiet = {"check": True, "capture_output": True, "cwd": "/"}
    try:
        subprocess.run([*user, tools / "initdb", "-D", data, "-A", "trust", "-U", "me"], **quiet)
        options = f"-k {home} -c listen_addresses="
        start = [*user, tools / "pg_ctl", "-D", data, "-l", log, "-w", "-o", options, "start"]
        subprocess.run(start, **quiet)
    except subprocess.CalledProcessError as error:
        shutil.rmtree(home, ignore_errors=True)
        pytest.skip(f"PostgreSQL does not start here: {error.stderr!r}")
    try:
        values = ", ".join(f"('{t}', {a}, {b}, {c})" for t, a, b, c in ROWS)
        script = f"{CREATE.format('TIMESTAMP')}; INSERT INTO readings VALUES {values};"
        psql = ["psql", "-q", "-h", str(home), "-U", "me", "-d", "postgres", "-c", script]
        subprocess.run(psql, **quiet)
        yield f"postgresql://me@/postgres?host={home}"
    finally:
        subprocess.run([*user, tools / "pg_ctl", "-D", data, "-m", "immediate", "stop"], **quiet)
        shutil.rmtree(home, ignore_errors=True)


def test_postgresql(postgresql: str) -> None:
    pytest.importorskip("adbc_driver_postgresql")
    check(postgresql)


def test_what_can_go_wrong(sqlite: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is a database; say what to read with query="):
        load_table(sqlite, ReadOptions())
    with pytest.raises(TableReadError, match=r"the query failed \(no such table: absent\)"):
        load_table(sqlite, ReadOptions(query="SELECT * FROM absent"))
    with pytest.raises(TableReadError, match="the query failed"):
        load_table(sqlite, ReadOptions(query="DELETE FROM readings"))
    with pytest.raises(TableReadError, match="does not exist"):
        load_table(f"sqlite:///{tmp_path / 'no.db'}", ReadOptions(query=ALL))
    with pytest.raises(TableReadError, match="no rows"):
        load_table(sqlite, ReadOptions(query="SELECT * FROM readings WHERE flow > 100"))
    (tmp_path / "text.db").write_text("not a database " * 100)
    with pytest.raises(TableReadError, match="the query failed"):
        load_table(f"sqlite:///{tmp_path / 'text.db'}", ReadOptions(query=ALL))


def test_a_password_is_never_said() -> None:
    assert safe_name("postgresql://me:secret@host/db") == "postgresql://me:…@host/db"
    with pytest.raises(TableReadError) as caught:
        load_table("postgresql://me:secret@127.0.0.1:1/db", ReadOptions(query=ALL))
    assert "secret" not in str(caught.value)
