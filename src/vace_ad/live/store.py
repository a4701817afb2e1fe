"""What must survive: positions, states, alarms and unsent messages, in one SQLite file.

One transaction holds everything that a batch changed. Streams are not written every time: the
rows since their last snapshot are, and after a crash they are run through the stream again. What
belongs to one entity has a checksum: damage costs that entity alone.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar
from zlib import crc32

from vace_ad.errors import StateError
from vace_ad.live.alarms import Alarm
from vace_ad.work.lock import FileLock

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
_LATER = {"alarm": "fault", "entity": "sum", "snapshot": "sum", "journal": "sum"}  # columns that
# states of earlier releases lack
_IN_USE = "{} is in use by another watch; stop that one first, or start with another [state] path"


class DamagedError(StateError):
    """What was kept of one entity is not what was written."""


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
    alarms: list[tuple[Alarm, dict[str, Any]]] = field(default_factory=list)
    outbox: list[tuple[str, dict[str, Any], int]] = field(default_factory=list)
    sent: dict[str, int] = field(default_factory=dict)  # messages up to here are, by sink
    applied: list[int] = field(default_factory=list)  # verdicts
    meta: dict[str, str] = field(default_factory=dict)
    set_aside: list[str] = field(default_factory=list)  # damaged entities, which begin anew
    gone: list[str] = field(default_factory=list)  # entities that a person wants forgotten


# What a disk may say of itself; it passes, and the file is whole.
_PASSING = ("full", "locked", "readonly", "disk I/O", "unable to open")
P = ParamSpec("P")
T = TypeVar("T")


def _sound(method: Callable[Concatenate[Store, P], T]) -> Callable[Concatenate[Store, P], T]:
    """A method that says so where the file is damaged; a full or locked disk passes as it is."""

    @wraps(method)
    def run(self: Store, /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(self, *args, **kwargs)
        except (sqlite3.DatabaseError, UnicodeDecodeError, json.JSONDecodeError) as error:
            if any(words in str(error) for words in _PASSING):
                raise
            raise StateError(
                f"{self.path} is damaged ({error}); put back a copy, or start with another "
                "[state] path"
            ) from error

    return run


class Store:
    """The file; each thread opens its own."""

    def __init__(self, path: Path, outbox: int = 10_000, *, alone: bool = False) -> None:
        """Open a file; `alone` refuses one that another watch has, and keeps others from it."""
        self.path, self._outbox = path, outbox
        self._lock: FileLock | None = None
        try:
            if alone or not path.exists():
                _make_private(path)
            if alone:
                lock = FileLock(path.with_name(path.name + ".lock"), _IN_USE.format(path))
                self._lock = lock.__enter__()
        except OSError as error:
            raise StateError(f"{path} cannot be written: {error.strerror}") from None
        try:
            self._open(path)
        except BaseException:
            self.close()
            raise

    def _open(self, path: Path) -> None:
        try:
            self._db = sqlite3.connect(path, timeout=10, isolation_level=None)
            self._db.execute("pragma journal_mode = wal")
            self._db.execute("pragma synchronous = full")  # after a power cut, too
            self._db.text_factory = _text
            self._db.executescript(_SCHEMA)
            for table, column in _LATER.items():
                known = {row[1] for row in self._db.execute(f"pragma table_info({table})")}
                if column not in known:
                    self._db.execute(f"alter table {table} add column {column}")
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise StateError(f"{path} is no state of vace watch: {error}") from None
        version = self.meta("version")
        if version is None:
            self._begin()
        elif version != str(VERSION):
            raise StateError(
                f"{path} was written by another version (format {version}, this one reads "
                f"{VERSION}); start with another [state] path"
            )

    @_sound
    def _begin(self) -> None:
        self._db.execute("insert or ignore into meta values ('version', ?)", (str(VERSION),))

    def again(self) -> Store:
        """The same file for another thread."""
        return Store(self.path, self._outbox)

    def close(self) -> None:
        """Close the file."""
        if hasattr(self, "_db"):
            self._db.close()
        if self._lock is not None:
            self._lock.__exit__(None, None, None)
            self._lock = None

    # ------------------------------------------------------------------ writing

    @_sound
    def commit(self, pending: Pending) -> int:
        """Write all of it or nothing; returns how many messages the full outbox pushed out."""
        db = self._db
        db.execute("begin immediate")
        try:
            lost = self._write(pending)
            db.execute("commit")
        except BaseException:
            if db.in_transaction:
                db.execute("rollback")
            raise
        return lost

    def _write(self, pending: Pending) -> int:
        db = self._db
        if pending.position is not None:
            self._set("position", json.dumps(pending.position))
        for key, value in pending.meta.items():
            self._set(key, value)
        for name in pending.set_aside:
            self._set_aside(name)
        for name in pending.gone:
            self._remove(name)
        db.executemany(
            "insert or replace into entity values (?, ?, ?, ?, ?)",
            [(name, *kept, _sum(name, kept[2])) for name, kept in pending.entities.items()],
        )
        db.executemany(
            "insert or replace into journal values (?, ?, ?, ?, ?)",
            [(*row, _sum(row.name, row.row, row.time, row.cells)) for row in pending.journal],
        )
        db.executemany(
            "insert or replace into snapshot values (?, ?, ?, ?, ?)",
            [(name, *kept, _sum(name, *kept)) for name, kept in pending.snapshots.items()],
        )
        below = pending.forgotten | {name: one[0] for name, one in pending.snapshots.items()}
        db.executemany("delete from journal where name = ? and row < ?", below.items())
        for alarm, body in pending.alarms:
            db.execute(
                "insert into alarm (id, entity, kind, onset, resolved, body) "
                "values (?, ?, ?, ?, ?, ?) on conflict (id) do update "
                "set resolved = excluded.resolved, body = excluded.body",
                (alarm.id, alarm.entity, alarm.kind, alarm.onset, alarm.resolved, json.dumps(body)),
            )
            if alarm.patterns:
                db.execute(
                    "insert or replace into pattern values (?, ?)",
                    (alarm.id, json.dumps(alarm.patterns)),
                )
        db.executemany("delete from said where seq = ?", [(seq,) for seq in pending.applied])
        db.executemany("delete from outbox where sink = ? and seq <= ?", pending.sent.items())
        return self._queue(pending.outbox)

    def _queue(self, messages: Iterable[tuple[str, dict[str, Any], int]]) -> int:
        """Put messages into the outbox; an unsent update gives way to a newer one."""
        db, touched = self._db, set()
        for sink, body, came in messages:
            if body["what"] != "open":
                db.execute(
                    "delete from outbox where sink = ? and alarm = ? and what = 'update'",
                    (sink, body["alarm"]),
                )
            db.execute(
                "insert into outbox (sink, alarm, what, body, came) values (?, ?, ?, ?, ?)",
                (sink, body["alarm"], body["what"], json.dumps(body), came),
            )
            touched.add(sink)
        lost = 0
        for sink in touched:
            lost += db.execute(
                "delete from outbox where sink = ?1 and seq <= (select seq from outbox "
                "where sink = ?1 order by seq desc limit 1 offset ?2)",
                (sink, self._outbox),
            ).rowcount
        return lost

    def _set_aside(self, name: str) -> None:
        """Take a damaged entity out of the way; its last state stays for who wants to look."""
        self._db.execute(
            "insert or replace into set_aside select entity.name, small, rows, model, state "
            "from entity left join snapshot using (name) where entity.name = ?",
            (name,),
        )
        self._remove(name)

    def _remove(self, name: str) -> None:
        for table in ("entity", "snapshot", "journal"):
            self._db.execute(f"delete from {table} where name = ?", (name,))

    def _set(self, key: str, value: str) -> None:
        self._db.execute("insert or replace into meta values (?, ?)", (key, value))

    @_sound
    def forget(self, before: int) -> None:
        """Drop alarms that were resolved before a time."""
        self._db.execute("delete from alarm where resolved < ?", (before,))
        for table in ("pattern", "said"):
            self._db.execute(f"delete from {table} where alarm not in (select id from alarm)")

    # ------------------------------------------------------------------ reading

    @_sound
    def meta(self, key: str) -> str | None:
        """A single value."""
        found = self._db.execute("select value from meta where key = ?", (key,)).fetchone()
        return found[0] if found else None

    @property
    @_sound
    def position(self) -> Any:
        """Where the source goes on; None at the first start."""
        text = self.meta("position")
        return None if text is None else _loaded(text)

    @_sound
    def roster(self) -> list[tuple[str, int, str]]:
        """Every entity: its name, the time of its last row, what it is doing."""
        return self._db.execute("select name, seen, phase from entity").fetchall()

    @_sound
    def entity(self, name: str) -> dict[str, Any] | None:
        """The small state of an entity."""
        query = "select small, sum from entity where name = ?"
        found = self._db.execute(query, (name,)).fetchone()
        if found is None:
            return None
        _compare(name, found[1], name, found[0])
        small: dict[str, Any] = _loaded(found[0])
        return small

    @_sound
    def snapshot(self, name: str) -> tuple[int, str, bytes] | None:
        """The last snapshot: how many rows it has seen, its model's identity, its bytes."""
        found = self._db.execute(
            "select rows, model, state, sum from snapshot where name = ?", (name,)
        ).fetchone()
        if found is None:
            return None
        rows, model, state, total = found
        _compare(name, total, name, rows, model, state)
        return rows, model, state

    @_sound
    def journal(self, name: str, start: int = 0, end: int = 2**62) -> list[tuple[int, int, bytes]]:
        """Rows of an entity from `start` on: number, time, cells."""
        rows = self._db.execute(
            "select row, time, cells, sum from journal where name = ? and row >= ? and row < ? "
            "order by row",
            (name, start, end),
        ).fetchall()
        for row, time, cells, total in rows:
            _compare(name, total, name, row, time, cells)
        return [row[:3] for row in rows]

    @_sound
    def open_alarms(self, name: str) -> list[dict[str, Any]]:
        """The open alarms of an entity, as they were last told."""
        query = "select body from alarm where entity = ? and resolved is null"
        return [_loaded(body) for (body,) in self._db.execute(query, (name,))]

    @_sound
    def alarms(self, resolved: bool | None = None, limit: int = 200) -> list[dict[str, Any]]:
        """Alarms as they were last told, the newest first, with what people said of them."""
        which = {None: "", True: "where resolved is not null", False: "where resolved is null"}
        rows = self._db.execute(
            f"select body, acknowledged, normal, fault from alarm {which[resolved]} "
            "order by onset desc limit ?",
            (limit,),
        ).fetchall()
        return [
            {**_loaded(b), "acknowledged": a, "normal": n, "fault": fault}
            for b, a, n, fault in rows
        ]

    @_sound
    def n_open(self) -> int:
        """How many alarms are open."""
        query = "select count(*) from alarm where resolved is null"
        return int(self._db.execute(query).fetchone()[0])

    # ------------------------------------------------------- people and the outbox

    @_sound
    def incident_of(self, alarm: str) -> str | None:
        """The incident that an alarm was last told with."""
        found = self._db.execute("select body from alarm where id = ?", (alarm,)).fetchone()
        return _loaded(found[0]).get("incident") if found else None

    @_sound
    def patterns(self, alarm: str) -> list[Any]:
        """How the events of an alarm looked."""
        found = self._db.execute("select body from pattern where alarm = ?", (alarm,)).fetchone()
        return json.loads(found[0]) if found else []

    @_sound
    def mark(self, alarm: str, column: str, when: str | None) -> bool:
        """Note that a person acknowledged an alarm, or called it normal or a fault; False if none.

        None takes it back.
        """
        assert column in ("acknowledged", "normal", "fault")
        done = self._db.execute(f"update alarm set {column} = ? where id = ?", (when, alarm))
        return done.rowcount == 1

    @_sound
    def submit(self, alarm: str, what: str) -> None:
        """Note what a person said, until the watch has done it: normal, fault or undo."""
        self._db.execute("insert into said (alarm, what) values (?, ?)", (alarm, what))

    @_sound
    def submitted(self) -> list[tuple[int, str, str, str]]:
        """What is to be done, the oldest first: number, alarm, what, entity.

        A fault waits for its alarm's end, as only then all of its rows are known.
        """
        return self._db.execute(
            "select said.seq, said.alarm, said.what, alarm.entity from said join alarm "
            "on alarm.id = said.alarm where said.what != 'fault' or alarm.resolved is not null "
            "order by said.seq"
        ).fetchall()

    @_sound
    def span(self, alarm: str) -> tuple[int, int] | None:
        """When an alarm began and was resolved, in nanoseconds; None while it is open."""
        query = "select onset, resolved from alarm where id = ? and resolved is not null"
        found = self._db.execute(query, (alarm,)).fetchone()
        return None if found is None else (found[0], found[1])

    @_sound
    def queued(self, sink: str, after: int = 0, limit: int = 100) -> list[Queued]:
        """The oldest messages of a sink after a number."""
        rows = self._db.execute(
            "select seq, body, came from outbox where sink = ? and seq > ? order by seq limit ?",
            (sink, after, limit),
        ).fetchall()
        return [Queued(seq, _loaded(text), came) for seq, text, came in rows]

    @_sound
    def waiting(self) -> dict[str, int]:
        """Unsent messages by sink."""
        return dict(self._db.execute("select sink, count(*) from outbox group by sink").fetchall())


def _make_private(path: Path) -> None:
    """A file that only its owner reads, in a folder that is made likewise where there is none."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    for one in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm"))):
        if one.exists() and one.stat().st_mode & 0o077:
            try:
                one.chmod(0o600)
            except OSError as error:
                log.warning("%s can be read by others: %s", one, error.strerror)


def _text(data: bytes) -> str:
    """Text of a column; damage shows in its checksum, not as a failure of the whole file."""
    return data.decode("utf-8", "replace")


def _sum(*parts: object) -> int:
    """A checksum against accidents, not against forgery."""
    total = 0
    for part in parts:
        total = crc32(part if isinstance(part, bytes) else f"{part}\x1f".encode(), total)
    return total


def _compare(name: str, total: int | None, *parts: object) -> None:
    if total is not None and _sum(*parts) != total:  # earlier releases wrote none
        raise DamagedError(f"what was kept of {name!r} was damaged: its checksum is another")


def _loaded(text: Any) -> Any:
    """JSON of a column; what is no text counts as JSON that cannot be read."""
    if not isinstance(text, str):
        raise json.JSONDecodeError(f"{type(text).__name__} in place of a text", "", 0)
    return json.loads(text)
