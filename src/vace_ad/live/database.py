"""The SQLite file of a watch: its schema, what a transaction writes, and how damage shows."""

from __future__ import annotations

import json
import logging
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from vace_ad.errors import StateError
from vace_ad.live.alarms import Alarm

log = logging.getLogger("vace_ad.live")
VERSION = 1
_SCHEMA = """
create table if not exists meta (key text primary key, value text) without rowid;
create table if not exists entity (
    name text primary key, seen integer, phase text, small text, sum integer) without rowid;
create table if not exists snapshot (
    name text primary key, rows integer, model text, state blob, sum integer);
create table if not exists journal (
    name text, row integer, time integer, cells blob, sum integer,
    primary key (name, row)) without rowid;
create table if not exists set_aside (
    name text primary key, small text, rows integer, model text, state blob) without rowid;
create table if not exists alarm (
    id text primary key, entity text, kind text, onset integer, resolved integer, body text,
    acknowledged text, normal text, fault text);
create table if not exists said (
    seq integer primary key autoincrement, alarm text, what text);
create table if not exists pattern (alarm text primary key, body text) without rowid;
create index if not exists alarm_open on alarm (resolved, onset);
create table if not exists outbox (
    seq integer primary key autoincrement, sink text, alarm text, what text, body text,
    came integer);
create index if not exists outbox_sink on outbox (sink, seq);
"""
# Columns that files of earlier releases lack.
_LATER = {"alarm": "fault", "entity": "sum", "snapshot": "sum", "journal": "sum"}
# Errors of a disk that pass while the file is intact.
_PASSING = ("full", "locked", "readonly", "disk I/O", "unable to open")


class DamagedError(StateError):
    """What was stored of one entity is not what was written."""


class JournalRow(NamedTuple):
    """A row of an entity since its snapshot."""

    name: str
    row: int
    time: int
    cells: bytes  # float64 by channel


class Queued(NamedTuple):
    """A message in the outbox."""

    seq: int
    body: dict[str, Any]
    came: int


@dataclass
class Pending:
    """Everything that one transaction writes."""

    position: Any = None
    entities: dict[str, tuple[int, str, str]] = field(default_factory=dict)  # seen, phase, small
    journal: list[JournalRow] = field(default_factory=list)
    snapshots: dict[str, tuple[int, str, bytes]] = field(default_factory=dict)
    forgotten: dict[str, int] = field(default_factory=dict)  # journal rows below, by entity
    needed: dict[str, int] = field(default_factory=dict)  # time from which on rows are kept
    alarms: list[tuple[Alarm, dict[str, Any]]] = field(default_factory=list)
    outbox: list[tuple[str, dict[str, Any], int]] = field(default_factory=list)
    sent: dict[str, int] = field(default_factory=dict)  # messages up to here are, by sink
    applied: list[int] = field(default_factory=list)  # verdicts
    meta: dict[str, str] = field(default_factory=dict)
    set_aside: list[str] = field(default_factory=list)  # damaged entities, which start again
    gone: list[str] = field(default_factory=list)  # entities that a person wants forgotten


@contextmanager
def reports_damage(path: Path) -> Iterator[None]:
    """Raise StateError if a file is damaged; errors of the disk pass through."""
    try:
        yield
    except (sqlite3.DatabaseError, UnicodeDecodeError, json.JSONDecodeError) as error:
        if any(words in str(error) for words in _PASSING):
            raise
        raise StateError(
            f"{path} is damaged ({error}); put back a copy, or start with another [state] path"
        ) from error


def open_database(path: Path, *, prepared: bool = False) -> sqlite3.Connection:
    """Open a file; unless it is prepared, with tables and columns added that it lacks."""
    try:
        database = sqlite3.connect(path, timeout=10, isolation_level=None)
        database.execute("pragma journal_mode = wal")
        database.execute("pragma synchronous = full")  # safe after a power cut, too
        # damage shows in the checksum of a text, not as a failure of the whole file
        database.text_factory = lambda data: data.decode("utf-8", "replace")
        if not prepared:
            _prepare(database)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise StateError(f"{path} is not a state file of vace watch: {error}") from None
    return database


def _prepare(database: sqlite3.Connection) -> None:
    database.executescript(_SCHEMA)
    for table, column in _LATER.items():
        known = {row[1] for row in database.execute(f"pragma table_info({table})")}
        if column not in known:
            database.execute(f"alter table {table} add column {column}")


def make_private(path: Path) -> None:
    """Create a file, and its folder if there is none, that only its owner can read."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    for one in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm"))):
        if one.exists() and one.stat().st_mode & 0o077:
            try:
                one.chmod(0o600)
            except OSError as error:
                log.warning("%s can be read by others: %s", one, error.strerror)


def checksum(*parts: object) -> int:
    """A checksum against accidents, not against forgery."""
    total = 0
    for part in parts:
        total = crc32(part if isinstance(part, bytes) else f"{part}\x1f".encode(), total)
    return total


def verify(name: str, total: int | None, *parts: object) -> None:
    """Raise DamagedError if a checksum differs; earlier releases wrote none."""
    if total is not None and checksum(*parts) != total:
        raise DamagedError(f"the stored state of {name!r} is damaged: its checksum differs")


def read_json(text: Any) -> Any:
    """JSON of a column; anything but text counts as JSON that cannot be read."""
    if not isinstance(text, str):
        raise json.JSONDecodeError(f"{type(text).__name__} in place of a text", "", 0)
    return json.loads(text)
