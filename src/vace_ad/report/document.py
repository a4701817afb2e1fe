"""What the scripts of the page need to know, as one JSON document and a few packed arrays.

What surrounds an event: how much to show of before and after, and what changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vace_ad.alarms.events import ANOMALY, NEAR_MISS, NO_DATA, Event
from vace_ad.report.data import ReportData
from vace_ad.report.formatting import length, rarity, readings, stamp, what_it_means
from vace_ad.report.tiles import BLOCK, FACTOR, TILE, Embedding, drawable, pack
from vace_ad.report.time_axis import TimeAxis

SHOWN_AT_FIRST = 6  # channels drawn before anyone chooses
BLAMED = 6  # suspects detailed for an event
LEAST_SHARE = 0.005  # of the blame: less would be shown as 0 %
MAX_POINTS = 20_000  # of the trajectory, outside events


def document(
    data: ReportData,
    clock: TimeAxis,
    embedding: Embedding,
    columns: Sequence[Column],
    events: Mapping[str, list[dict[str, Any]]],
    blobs: Mapping[str, bytes],
) -> dict[str, Any]:
    """Return what the scripts need to know; curves are in the packed part, by length."""
    series = [
        {
            "name": column.name,
            "role": column.role,
            "column": column.channel,
            "chars": [list(map(len, level)) for level in tiles],
        }
        for column, tiles in zip(columns, embedding.tiles, strict=True)
    ]
    return {
        "rows": data.n_rows,
        "threshold": data.level if np.isfinite(data.level) else None,
        "thresholdEnds": [value if np.isfinite(value) else None for value in data.ends],
        "whatIf": [[float(w.shift), int(w.events), w.words] for w in data.what_if],
        "file": data.title,
        "training": None if data.training is None else [int(row) for row in data.training],
        "idle": [{"kind": k, "start": int(a), "end": int(b)} for k, a, b in data.idle],
        "time": {
            "origin": clock.origin_ms, "zone": data.time_zone, "step": clock.step,
            "gap": clock.gap, "knots": len(clock.rows),
            "offsets": [[np.interp(r, clock.rows, clock.at), m] for r, m in data.offsets],
        },
        "layout": {"tile": TILE, "block": BLOCK, "factor": FACTOR, "bits": embedding.bits},
        "blobs": {name: len(blob) for name, blob in blobs.items()},
        "series": series,
        "shown": SHOWN_AT_FIRST,
        "signalWords": dict(data.signal_words),
        **events,
    }  # fmt: skip


def event_records(data: ReportData, clock: TimeAxis) -> dict[str, list[dict[str, Any]]]:
    """Return events and near misses as the scripts need them."""
    return {
        "events": [_event(event, data, clock) for event in data.events],
        "nearly": [_event(event, data, clock) for event in data.near_misses],
    }


class Column(NamedTuple):
    """A curve of the page."""

    name: str
    role: str  # score, signal, threshold, channel, lower, upper, nats
    channel: int  # of the table; -1 where it belongs to none
    line: NDArray[np.floating]  # (n,)


def curves(data: ReportData, order: Sequence[int]) -> list[Column]:
    """Return all curves, the ones to look at first coming first; channels in this order.

    What was expected of a channel comes behind the channels that are shown at first.
    """
    lines = [Column("Evidence", "score", -1, data.scores)]
    lines += [Column(name, "signal", -1, line) for name, line in data.signals.items()]
    if data.line is not None:
        lines.append(Column("Limit", "threshold", -1, data.line))
    channels = [
        Column(data.label(data.channels[i]), "channel", i, data.values[:, i]) for i in order
    ]
    place = {name: i for i, name in enumerate(data.channels)}
    expected = [
        Column(data.label(name), role, place[name], line)
        for name, curve in data.expected.items()
        for role, line in curve._asdict().items()
    ]
    return [*lines, *channels[:SHOWN_AT_FIRST], *expected, *channels[SHOWN_AT_FIRST:]]


def _event(event: Event, data: ReportData, clock: TimeAxis) -> dict[str, Any]:
    gap = event.start == event.end
    first = max(0, event.start - 1) if gap else event.start
    last = min(event.start, data.n_rows - 1) if gap else event.end - 1
    shares = sorted(event.shares, key=lambda pair: -pair[1])[:BLAMED]
    shares = [pair for i, pair in enumerate(shares) if i == 0 or pair[1] >= LEAST_SHARE]
    place = {name: i for i, name in enumerate(data.channels)}
    said = readings(event, data)
    return {
        "start": int(event.start),
        "end": int(event.end),
        "around": [int(row) for row in surroundings(event, data.n_rows)],
        "kind": NO_DATA if event.kind == NO_DATA else ANOMALY,
        "signal": event.signal,
        "conditions": event.conditions,
        "severity": round(float(event.severity)) if np.isfinite(event.severity) else None,
        "from": stamp(data, first, clock),
        "to": stamp(data, last, clock),
        "peak": None if gap else stamp(data, event.peak, clock),
        "lasts": length(event, data, clock),
        "words": what_it_means(event, data),
        "rarity": rarity(event.probability, event.normal_rows),
        "near": event.kind == NEAR_MISS,
        "blame": [
            {
                "column": place[name],
                "share": float(share),
                "typical": typical_values(data.values[:, place[name]], event),
                "reading": said.get(name, ""),
            }
            for name, share in shares
        ],
    }


def pack_clock(clock: TimeAxis) -> bytes:
    """Pack the axis: the rows of its knots, then where they lie."""
    return pack(clock.rows.astype("<f8").tobytes() + clock.at.astype("<f8").tobytes())


def pack_trajectory(data: ReportData) -> dict[str, bytes]:
    """Thin the trajectory, sparing the events, and pack rows, then x, then y."""
    if data.trajectory is None or data.trajectory_rows is None:
        return {}
    rows, points = data.trajectory_rows, data.trajectory
    keep = np.zeros(len(rows), dtype=bool)
    keep[:: max(1, -(-len(rows) // MAX_POINTS))] = True
    for event in data.events:
        keep |= (rows >= event.start) & (rows < event.end)
    keep &= np.isfinite(points).all(axis=1)
    kept: NDArray[np.floating] = points[keep].T  # (2, kept)
    return {"trajectory": pack(rows[keep].astype("<f8").tobytes() + kept.astype("<f4").tobytes())}


MIN_CONTEXT = 64  # rows shown on either side of even the shortest event
CONTEXT = 1.0  # rows shown on either side, as a multiple of the event's own length


def surroundings(event: Event, n_rows: int) -> tuple[int, int]:
    """Return the rows [start, end) of an event with its before and after."""
    margin = max(MIN_CONTEXT, round(CONTEXT * (event.end - event.start)))
    return max(0, event.start - margin), min(n_rows, event.end + margin)


def typical_values(column: NDArray[np.floating], event: Event) -> list[float | None]:
    """Return a channel's median before, during and after an event; None where it has no value."""
    first, last = surroundings(event, len(column))
    parts = (first, event.start), (event.start, event.end), (event.end, last)
    return [_median(drawable(column[a:b])) for a, b in parts]


def channels_by_blame(data: ReportData) -> list[int]:
    """Return all channel numbers, the one blamed most over all events first."""
    blame = np.zeros(len(data.channels))
    place = {name: i for i, name in enumerate(data.channels)}
    for event in data.events:
        weight = event.severity if np.isfinite(event.severity) else 0.0
        for name, share in event.shares:
            blame[place[name]] += weight * share
    return [int(i) for i in np.argsort(-blame, kind="stable")]


def _median(values: NDArray[np.float64]) -> float | None:
    there = values[~np.isnan(values)]
    return float(np.median(there)) if len(there) else None
