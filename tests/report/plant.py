"""A made-up plant with faults, and the report data that a detection of it would give."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter1d

from vace_ad.alarms.events import Event, Reading
from vace_ad.report import Curve, ReportData, WhatIf

NAMES = (
    "pump_1.current", "pump_1.vibration", "pump_2.current", "pump_2.vibration",
    "boiler.pressure", "boiler.temperature", "feed.flow", "feed.temperature", "valve_3.position",
    "tank.level", "outlet.flow", "outlet.turbidity", "ambient.temperature", "grid.voltage",
)  # fmt: skip


def make_plant(
    n_rows: int = 30_000, n_channels: int = 14, seed: int = 7, **changes: Any
) -> ReportData:
    """Return a plant sampled every minute, with five faults and one silence."""
    rng = np.random.default_rng(seed)
    t = np.arange(n_rows)
    day = np.sin(2 * np.pi * t / 1440)[:, None]
    load = uniform_filter1d(rng.normal(size=n_rows), max(1, n_rows // 60)) * np.sqrt(n_rows / 60)
    level = rng.uniform(5, 400, n_channels)
    values = level + level * (
        0.04 * day * rng.normal(size=n_channels)
        + 0.03 * load[:, None] * rng.normal(size=n_channels)
        + 0.006 * rng.normal(size=(n_rows, n_channels))
    )
    names = [NAMES[i] if i < len(NAMES) else f"sensor_{i:03d}" for i in range(n_channels)]
    spans = [(int(n_rows * a), int(n_rows * a + max(6, n_rows * b))) for a, b in FAULTS]
    events = [_fault(i, a, b, values, names) for i, (a, b) in enumerate(spans)]
    quiet = int(n_rows * 0.58)
    events.append(Event(quiet, quiet, quiet, kind="no data"))
    events.sort(key=lambda event: event.start)
    time = np.datetime64("2026-02-20T06:00", "ns") + t * np.timedelta64(60, "s")
    time[quiet:] += np.timedelta64(n_rows // 50, "m")
    position, direction = (_surprise(rng, spans, n_rows, gain) for gain in (1.0, 0.6))
    rows = np.arange(0, n_rows, max(1, n_rows // 6000))
    facts = {
        "model": "VACE, default preset", "seed": "0", "fitted in": "18.2 s", "scored in": "6.4 s",
        "input": "plant.csv", "sha-256": "9f2c41d07be1", "vace-ad": "0.1.0",
    }  # fmt: skip
    data: dict[str, Any] = {
        "title": "plant.csv",
        "channels": names,
        "values": values,
        "scores": position * (1 + 0.4 * direction),
        "threshold": 3.4,
        "time": time,
        "time_zone": "UTC",
        "signals": {"position": position, "direction": direction},
        "signal_words": {
            "position": "a shape never seen in training",
            "direction": "a familiar shape moving in an unfamiliar way",
        },
        "expected": {} if "channels" in changes else _expected(values, names, events),
        "events": events,
        "near_misses": [_near_miss(int(n_rows * at), values, names) for at in (0.42, 0.71)],
        "what_if": [WhatIf(s / 10, 5 - s // 4, "about one a week") for s in range(-20, 21)],
        "trust": [
            "It learned from 9,000 rows, which is 6 days 6 h of operation.",
            "Training shows a pattern of about 1 day, seen 6 times.",
            "99.8 % of the rows have a score; in the others too many values are missing.",
        ],
        "training": (0, int(n_rows * 0.3)),
        "trajectory": _path(rng, rows, spans, n_rows),
        "trajectory_rows": rows,
        "geometry": {
            "effective_rank_pr": 0.21, "effective_rank_entropy": 0.34,
            "active_dims": 0.97, "top1_variance": 0.22,
        },
        "verdict": "Healthy: the embedding uses many directions and none dominates.",
        "alarm_words": "about one false alarm a week",
        "notes": ["Column 'status' is text and was left out.", "Column 'spare_2' never changes."],
        "facts": facts,
        "command": "vace detect plant.csv --train-until 2026-02-26 --budget '1 per week'",
    }  # fmt: skip
    return ReportData(**(data | changes))


FAULTS = ((0.36, 0.004), (0.47, 0.02), (0.66, 0.0005), (0.79, 0.012), (0.9, 0.03))


def _fault(i: int, start: int, end: int, values: NDArray[np.float64], names: list[str]) -> Event:
    """Put the i-th fault into the table and say who is to blame."""
    guilty = (3 * i + 1) % len(names)
    scale, length = values[:, guilty].std(), end - start
    blamed = [(guilty + k) % len(names) for k in (0, 1, 4, 7)]
    middle = start + length // 2
    ranges = {names[c]: _range(values[start - 60 : start, c]) for c in blamed}
    shapes = (
        np.full(length, 5.0), np.linspace(0, 7, length), np.full(length, 12.0),
        4 * np.sin(np.arange(length) / 3), -np.minimum(np.arange(length) / 40, 6.0),
    )  # fmt: skip
    values[start:end, guilty] += scale * shapes[i]
    others = [names[(guilty + k) % len(names)] for k in (1, 4, 7)]
    shares = [(names[guilty], 0.61), *zip(others, (0.17, 0.09, 0.04), strict=True)]
    return Event(
        start, end, (start + end) // 2, severity=(62, 88, 41, 74, 97)[i],
        probability=10.0 ** -(3 + i), signal=("position", "direction")[i % 2],
        shares=tuple(dict(shares).items()), normal_rows=4176, partner=others[0] if i == 1 else None,
        lasting=i == 4, readings=tuple(
            Reading(names[c], float(values[middle, c]), *ranges[names[c]]) for c in blamed
        ),
    )  # fmt: skip


def _near_miss(start: int, values: NDArray[np.float64], names: list[str]) -> Event:
    return Event(
        start, start + 30, start + 5, ratio=0.62, shares=((names[0], 0.5),), kind="near miss"
    )  # fmt: skip


def _expected(
    values: NDArray[np.float64], names: list[str], events: list[Event]
) -> dict[str, Curve]:
    """Return where the first suspects were expected: where a running median has them."""
    found = {}
    for name in [event.shares[0][0] for event in events if event.shares]:
        column = values[:, names.index(name)]
        middle = uniform_filter1d(column, 301)
        reach = 4 * np.median(np.abs(column - middle))
        nats = np.minimum(np.abs(column - middle) / reach, 20.0)
        found[name] = Curve(middle - reach, middle + reach, nats)
    return found


def _range(rows: NDArray[np.float64]) -> tuple[float, float]:
    """Return where a channel is expected after these rows."""
    middle, reach = float(np.median(rows)), 5 * float(rows.std())
    return middle - reach, middle + reach


def _surprise(
    rng: np.random.Generator, spans: list[tuple[int, int]], n_rows: int, gain: float
) -> NDArray[np.float64]:
    base = uniform_filter1d(rng.gamma(2.0, 0.5, n_rows), 48)
    for i, (a, b) in enumerate(spans):
        base[a:b] += gain * (2.5 + i % 3) * np.sin(np.linspace(0.4, np.pi - 0.4, b - a)) ** 0.5
    return base


def _path(
    rng: np.random.Generator, rows: NDArray[np.int64], spans: list[tuple[int, int]], n_rows: int
) -> NDArray[np.float64]:
    angle = 2 * np.pi * rows / 1440
    radius = 1 + 0.25 * np.sin(5 * angle) + 0.09 * rng.normal(size=len(rows))
    points = np.column_stack([radius * np.cos(angle), 0.7 * radius * np.sin(angle)])
    for i, (a, b) in enumerate(spans):
        inside = (rows >= a) & (rows < b)
        swing = np.sin(np.linspace(0, np.pi, inside.sum()))
        points[inside] += swing[:, None] * np.array([1.6, 1.1 * (-1) ** i])
    return points
