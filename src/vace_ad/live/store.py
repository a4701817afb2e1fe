"""Persistent state: positions, streams, alarms and unsent messages, in one SQLite file.

One transaction holds everything that a batch changed. Streams are not written every time: the
rows since their last snapshot are, and after a crash they run through the stream again. What
belongs to one entity has a checksum: damage affects that entity alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from vace_ad.errors import StateError
from vace_ad.executors.store import file_lock  # filelock would be a second kind of lock
from vace_ad.live.database import (
    VERSION,
    Pending,
    Queued,
    checksum,
    make_private,
    open_database,
    read_json,
    reports_damage,
    verify,
)

_IN_USE = "{} is in use by another watch; stop that one first, or start with another [state] path"


class Store:
    """The file; each thread opens its own."""

    def __init__(
        self, path: Path, outbox: int = 10_000, *, alone: bool = False, prepared: bool = False
    ) -> None:
        """Open a file, for one watch if `alone`; a `prepared` one has this version's tables."""
        self.path, self._outbox = path, outbox
        with ExitStack() as opened:
            try:
                if alone or not path.exists():
                    make_private(path)
                if alone:
                    lock = path.with_name(path.name + ".lock")
                    opened.enter_context(file_lock(lock, _IN_USE.format(path)))
            except OSError as error:
                raise StateError(f"{path} cannot be written: {error.strerror}") from None
            self._db = open_database(path, prepared=prepared)
            opened.callback(self._db.close)
            if not prepared:
                self._check_version()
            self._opened = opened.pop_all()

    def _check_version(self) -> None:
        version = self.meta("version")
        if version is None:
            self._run("insert or ignore into meta values ('version', ?)", str(VERSION))
        elif version != str(VERSION):
            raise StateError(
                f"{self.path} was written by another version (format {version}, this one reads "
                f"{VERSION}); start with another [state] path"
            )

    def reopen(self) -> Store:
        """The same file for another thread."""
        return Store(self.path, self._outbox, prepared=True)

    def close(self) -> None:
        """Close the file, then release its lock."""
        self._opened.close()

    # ------------------------------------------------------------------ writing

    def commit(self, pending: Pending) -> int:
        """Write all of it or nothing; returns how many messages the full outbox pushed out."""
        db = self._db
        with reports_damage(self.path):
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
        meta = dict(pending.meta)
        if pending.position is not None:
            meta["position"] = json.dumps(pending.position)
        db.executemany("insert or replace into meta values (?, ?)", meta.items())
        for name in pending.set_aside:
            self._set_aside(name)
        for name in pending.gone:
            self._remove(name)
        db.executemany(
            "insert or replace into entity values (?, ?, ?, ?, ?)",
            [(name, *kept, checksum(name, kept[2])) for name, kept in pending.entities.items()],
        )
        db.executemany(
            "insert or replace into journal values (?, ?, ?, ?, ?)",
            [(*row, checksum(row.name, row.row, row.time, row.cells)) for row in pending.journal],
        )
        db.executemany(
            "insert or replace into snapshot values (?, ?, ?, ?, ?)",
            [(name, *kept, checksum(name, *kept)) for name, kept in pending.snapshots.items()],
        )
        below = pending.forgotten | {name: one[0] for name, one in pending.snapshots.items()}
        db.executemany(
            "delete from journal where name = ? and row < ? and time < ?",
            [(name, row, pending.needed.get(name, 2**62)) for name, row in below.items()],
        )
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
        """Put messages into the outbox; a newer message replaces an unsent update."""
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
        """Move a damaged entity to a table of its own, where it can be inspected."""
        self._db.execute(
            "insert or replace into set_aside select entity.name, small, rows, model, state "
            "from entity left join snapshot using (name) where entity.name = ?",
            (name,),
        )
        self._remove(name)

    def _remove(self, name: str) -> None:
        for table in ("entity", "snapshot", "journal"):
            self._db.execute(f"delete from {table} where name = ?", (name,))

    def forget(self, before: int) -> None:
        """Drop alarms that were resolved before a time."""
        self._run("delete from alarm where resolved < ?", before)
        for table in ("pattern", "said"):
            self._run(f"delete from {table} where alarm not in (select id from alarm)")

    # ------------------------------------------------------------------ reading

    def _run(self, query: str, *values: Any) -> int:
        """Change rows; how many."""
        with reports_damage(self.path):
            return self._db.execute(query, values).rowcount

    def _rows(self, query: str, *values: Any) -> list[Any]:
        with reports_damage(self.path):
            return self._db.execute(query, values).fetchall()

    def _one(self, query: str, *values: Any) -> Any:
        return next(iter(self._rows(query, *values)), None)

    def _json(self, text: Any) -> Any:
        with reports_damage(self.path):
            return read_json(text)

    def meta(self, key: str) -> str | None:
        """A single value."""
        found = self._one("select value from meta where key = ?", key)
        return found[0] if found else None

    @property
    def position(self) -> Any:
        """Where the source continues; None at the first start."""
        text = self.meta("position")
        return None if text is None else self._json(text)

    def roster(self) -> list[tuple[str, int, str]]:
        """Every entity: its name, the time of its last row, its phase."""
        return self._rows("select name, seen, phase from entity")

    def entity(self, name: str) -> dict[str, Any] | None:
        """The small state of an entity."""
        found = self._one("select small, sum from entity where name = ?", name)
        if found is None:
            return None
        verify(name, found[1], name, found[0])
        small: dict[str, Any] = self._json(found[0])
        return small

    def snapshot(self, name: str) -> tuple[int, str, bytes] | None:
        """The last snapshot: how many rows it has seen, its model's identity, its bytes."""
        found = self._one("select rows, model, state, sum from snapshot where name = ?", name)
        if found is None:
            return None
        rows, model, state, total = found
        verify(name, total, name, rows, model, state)
        return rows, model, state

    def journal(self, name: str, start: int = 0, end: int = 2**62) -> list[tuple[int, int, bytes]]:
        """Rows of an entity from `start` on: number, time, cells."""
        rows = self._rows(
            "select row, time, cells, sum from journal where name = ? and row >= ? and row < ? "
            "order by row",
            name, start, end,
        )  # fmt: skip
        for row, time, cells, total in rows:
            verify(name, total, name, row, time, cells)
        return [row[:3] for row in rows]

    def open_alarms(self, name: str) -> list[dict[str, Any]]:
        """The open alarms of an entity, as last reported."""
        query = "select body from alarm where entity = ? and resolved is null"
        return [self._json(body) for (body,) in self._rows(query, name)]

    def stretches(self, name: str, kind: str) -> list[tuple[int, int | None, bool]]:
        """Start, end and whether it is a fault, of alarms that nobody called normal."""
        query = (
            "select onset, resolved, fault is not null from alarm "
            "where entity = ? and kind = ? and normal is null"
        )
        return [(a, b, bool(fault)) for a, b, fault in self._rows(query, name, kind)]

    def alarms(self, resolved: bool | None = None, limit: int = 200) -> list[dict[str, Any]]:
        """Alarms as last reported, the newest first, with the verdicts on them."""
        which = {None: "", True: "where resolved is not null", False: "where resolved is null"}
        rows = self._rows(
            f"select body, acknowledged, normal, fault from alarm {which[resolved]} "
            "order by onset desc limit ?",
            limit,
        )
        return [
            {**self._json(b), "acknowledged": a, "normal": n, "fault": fault}
            for b, a, n, fault in rows
        ]

    def n_open(self) -> int:
        """How many alarms are open."""
        return int(self._one("select count(*) from alarm where resolved is null")[0])

    # ------------------------------------------------------- people and the outbox

    def incident_of(self, alarm: str) -> str | None:
        """The incident that an alarm was last reported with."""
        found = self._one("select body from alarm where id = ?", alarm)
        return self._json(found[0]).get("incident") if found else None

    def patterns(self, alarm: str) -> list[Any]:
        """The patterns of the events of an alarm."""
        found = self._one("select body from pattern where alarm = ?", alarm)
        return self._json(found[0]) if found else []

    def mark(self, alarm: str, column: str, when: str | None) -> bool:
        """Note that a person acknowledged an alarm, or called it normal or a fault; False if none.

        None takes it back.
        """
        assert column in ("acknowledged", "normal", "fault")
        return self._run(f"update alarm set {column} = ? where id = ?", when, alarm) == 1

    def submit(self, alarm: str, what: str) -> None:
        """Queue a verdict until the loop has applied it: normal, fault or undo."""
        self._run("insert into said (alarm, what) values (?, ?)", alarm, what)

    def submitted(self) -> list[tuple[int, str, str, str]]:
        """Queued verdicts, the oldest first: number, alarm, verdict, entity.

        A fault waits for its alarm's end, as only then all of its rows are known.
        """
        return self._rows(
            "select said.seq, said.alarm, said.what, alarm.entity from said join alarm "
            "on alarm.id = said.alarm where said.what != 'fault' or alarm.resolved is not null "
            "order by said.seq"
        )

    def span(self, alarm: str) -> tuple[int, int] | None:
        """When an alarm began and was resolved, in nanoseconds; None while it is open."""
        query = "select onset, resolved from alarm where id = ? and resolved is not null"
        found: tuple[int, int] | None = self._one(query, alarm)
        return found

    def queued(self, sink: str, after: int = 0, limit: int = 100) -> list[Queued]:
        """The oldest messages of a sink after a number."""
        rows = self._rows(
            "select seq, body, came from outbox where sink = ? and seq > ? order by seq limit ?",
            sink, after, limit,
        )  # fmt: skip
        return [Queued(seq, self._json(text), came) for seq, text, came in rows]

    def waiting(self) -> dict[str, int]:
        """Unsent messages by sink."""
        return dict(self._rows("select sink, count(*) from outbox group by sink"))
