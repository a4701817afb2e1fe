from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from frames.shapes import wide
from vace_ad.app.loading import Reading, load_table
from vace_ad.errors import ConfigError, TableReadError
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
    loaded = load_table(place, Reading(query=ALL))
    assert loaded.table.names == ("flow", "pressure", "temp")
    assert loaded.clock.step == 60 * 10**9
    assert len(loaded.table) == 60
    assert loaded.table.values[0].tolist() == list(ROWS[0][1:])
    assert loaded.source.format == "SQL"


def test_sqlite(sqlite: str) -> None:
    check(sqlite)


def test_duckdb(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "plant.duckdb")) as database:
        database.execute(CREATE.format("TIMESTAMP"))
        database.executemany("INSERT INTO readings VALUES (?, ?, ?, ?)", ROWS)
    check(f"duckdb:///{tmp_path / 'plant.duckdb'}")


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
        load_table(sqlite, Reading())
    with pytest.raises(TableReadError, match=r"the query failed \(no such table: absent\)"):
        load_table(sqlite, Reading(query="SELECT * FROM absent"))
    with pytest.raises(TableReadError, match="the query failed"):
        load_table(sqlite, Reading(query="DELETE FROM readings"))
    with pytest.raises(TableReadError, match="does not exist"):
        load_table(f"sqlite:///{tmp_path / 'no.db'}", Reading(query=ALL))
    with pytest.raises(TableReadError, match="no rows"):
        load_table(sqlite, Reading(query="SELECT * FROM readings WHERE flow > 100"))
    (tmp_path / "text.db").write_text("not a database " * 100)
    with pytest.raises(TableReadError, match="the query failed"):
        load_table(f"sqlite:///{tmp_path / 'text.db'}", Reading(query=ALL))


def test_a_password_is_never_said() -> None:
    assert safe_name("postgresql://me:secret@host/db") == "postgresql://me:…@host/db"
    with pytest.raises(TableReadError) as caught:
        load_table("postgresql://me:secret@127.0.0.1:1/db", Reading(query=ALL))
    assert "secret" not in str(caught.value)
