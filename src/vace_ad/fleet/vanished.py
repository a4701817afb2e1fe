"""Machines that stop to report while others go on: no data, until the last row of the fleet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from vace_ad.alarms.events import NO_DATA, Event
from vace_ad.app.results import event_record
from vace_ad.fleet.incidents import nanoseconds
from vace_ad.fleet.results import MachineRow
from vace_ad.fleet.time_spans import short_time

_NAMED = 5  # in the note


def with_vanished(rows: Sequence[MachineRow]) -> tuple[list[MachineRow], list[str]]:
    """The rows, and a note; machines that vanished have an event from their last row on.

    A machine has vanished when it lacks as many rows at its end as are a gap within.
    """
    stamps = [row.until for row in rows if row.until is not None]
    if not stamps:
        return list(rows), []
    newest = max(stamps, key=nanoseconds)
    judged = [_judged(row, newest) for row in rows]
    gone = [row for row in judged if vanished_since(row)]
    if not gone:
        return judged, []
    named = ", ".join(
        f"{row.machine} since {short_time(vanished_since(row) or '')}" for row in gone[:_NAMED]
    )
    more = f" and {len(gone) - _NAMED:,} more" if len(gone) > _NAMED else ""
    return judged, [f"no data up to the end of the others: {named}{more}"]


def _judged(row: MachineRow, newest: str) -> MachineRow:
    if row.until is None or row.patience is None:
        return row
    if nanoseconds(newest) - nanoseconds(row.until) <= row.patience:
        return row
    event = event_record(Event(row.rows, row.rows, row.rows, NO_DATA))
    times = {"start_time": row.until, "end_time": newest, "height": None}
    return replace(row, events=(*row.events, {**event, **times}))


def vanished_since(row: MachineRow) -> str | None:
    """When a machine sent its last row; None where it goes on to the end."""
    last = row.events[-1] if row.events else None
    if last is None or last["kind"] != NO_DATA or last["start"] != row.rows or not row.rows:
        return None
    return str(last["start_time"])
