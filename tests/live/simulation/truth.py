"""What a simulated world must have told in the end, by one pass over its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from live.fakes import FakeModel
from live.feeds import CHANNELS, START, STEP
from live.naive_align import naive_rows
from vace_ad.live.alarms import Lifecycle, body
from vace_ad.live.sections import AlarmSettings

if TYPE_CHECKING:
    from live.simulation.world import World

SECOND = 10**9
LATE = 3  # steps by which records may come late and still find their place
LEARN = 10  # rows, in worlds that learn
_LATENESS = LATE * STEP
_RESOLVE_AFTER = 60 * SECOND


class BrokenError(AssertionError):
    """An invariant does not hold."""


def _rows(world: World, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The closed rows of an entity and their times, by the book; what came too late is not."""
    newest, kept = None, []
    for record in world.log:
        if record.entity != name or record.time > START + 10**5 * STEP:
            continue
        if newest is not None and record.time // STEP <= (newest - _LATENESS) // STEP - 1:
            continue
        newest = record.time if newest is None else max(newest, record.time)
        kept += [(record.time, channel, value) for channel, value in record.values.items()]
    rows = naive_rows(kept, STEP)
    rows = [row for row in rows if row[0] // STEP <= (newest - _LATENESS) // STEP - 1]
    while rows and not rows[-1][1]:
        rows.pop()  # an empty row is written with the next one
    cells = [[values.get(c, np.nan) for c in world.channels[name]] for _, values in rows]
    return np.array(cells), np.array([time for time, _ in rows], np.int64)


def _expected(world: World, name: str, trained: bool = False):
    """The messages and the stream of an entity, by one pass over its rows.

    Where its model was `trained` before them, they are scored from the first row on.
    """
    rows, times = _rows(world, name)
    start, model = 0, FakeModel(CHANNELS, [0.0] * 3, [1.0] * 3)
    if not len(rows):
        return [], None
    if world.learns:
        enough = np.flatnonzero(times - times[0] >= LEARN * STEP)
        if not len(enough):
            return [], None
        start = int(enough[0]) + 1
        learned = rows[:start]
        scale = np.nanstd(learned, axis=0) + 1e-9
        model = FakeModel(world.channels[name], np.nanmean(learned, axis=0), scale)
        start = 0 if trained else start
    stream, life, messages = (
        model.stream(),
        Lifecycle(name, AlarmSettings(resolve_after=_RESOLVE_AFTER)),
        [],
    )
    for i in range(start, len(rows)):
        added = stream.add(rows[i : i + 1], times[i : i + 1].view("datetime64[ns]"))
        messages += life.changes(added.changes, int(times[i]), int(times[start]))
    return [body(message, None) for message in messages], stream if len(rows) > start else None


def check(world: World) -> None:
    watch = world.watch
    world.channels = {name: watch.registry.get(name).channels for name in world.truth}
    told: dict[str, dict] = {}
    order: dict[str, list[int]] = {}
    for message in world.got:
        alarm, _, revision = message["id"].rpartition(".")
        before = told.setdefault(message["id"], message)
        if _facts(before) != _facts(message):
            raise BrokenError(f"{message['id']} was told in two ways")
        seen = order.setdefault(alarm, [])
        if int(revision) not in seen:
            seen.append(int(revision))
    for alarm, revisions in order.items():
        if revisions != sorted(revisions) and not world.lies:
            raise BrokenError(f"alarm {alarm} was told out of order: {revisions}")
    anomalies = {key: one for key, one in told.items() if one["kind"] == "anomaly"}
    expected: dict[str, dict] = {}
    early: set[str] = set()  # told before the disk forgot
    for name in world.truth:
        messages, stream = _expected(world, name)
        if world.learns and world.lies and _differs(world, name, stream):
            # A disk that forgot the state may have kept the model, and that one is used.
            early |= {message["id"] for message in messages}
            messages, stream = _expected(world, name, trained=True)
        expected |= {message["id"]: message for message in messages}
        _check_stream(world, name, stream)
    for key, message in expected.items():
        if key in anomalies:
            if _facts(anomalies[key]) != _facts(message):
                raise BrokenError(f"{key} says {_facts(anomalies[key])}, not {_facts(message)}")
        elif message["what"] != "update":  # an update gives way to a newer message
            raise BrokenError(f"{message['what']} of {message['entity']} was lost: {key}")
    surplus = set(anomalies) - set(expected) - early
    if surplus:
        raise BrokenError(f"told, and never was: {sorted(surplus)}")
    if world.false_silences:
        raise BrokenError(f"{len(world.false_silences)} alarms of silence, and nobody was silent")


def _differs(world: World, name: str, stream) -> bool:
    found = world.watch.registry.get(name).stream
    return stream is not None and (found is None or found.to_bytes() != stream.to_bytes())


def _check_stream(world: World, name: str, stream) -> None:
    if _differs(world, name, stream):
        found = world.watch.registry.get(name).stream
        raise BrokenError(
            f"the stream of {name} is not that of its table: "
            f"{found and found.to_bytes()}, {stream.to_bytes()}"
        )


def _facts(message: dict) -> tuple:
    keys = ("id", "what", "alarm", "kind", "entity", "onset", "resolved", "score", "severity")
    return tuple(message[key] for key in keys)
