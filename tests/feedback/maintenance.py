"""A small plant with a maintenance that comes again and again, and faults around it."""

from __future__ import annotations

import numpy as np
import polars as pl

NAMES = ("flow", "level", "power", "heat")
TRAIN, N, STEP = 1500, 3200, np.timedelta64(60 * 10**9, "ns")
TIME = np.datetime64("2026-01-01", "ns") + np.arange(N) * STEP
SERVICES = (1708, 2096, 2508, 2896)  # rows where a maintenance begins
LENGTH = 40


def plant(seed: int = 0) -> np.ndarray:
    """Normal rows, (N, 4)."""
    rng = np.random.default_rng(seed)
    waves = np.sin(2 * np.pi * np.arange(N)[:, None] / 24 + np.arange(4))
    return waves * [1, 5, 0.2, 30] + rng.normal(size=(N, 4)) * [0.1, 0.5, 0.02, 3] + [0, 9, 1, 99]


def service(values: np.ndarray, start: int, length: int = LENGTH, size: float = 1.0) -> None:
    """Level and power drop within five rows, stay, and come back; in place."""
    spread, rows = values[:TRAIN].std(axis=0), np.arange(length)
    shape = np.clip(rows / 5, 0, 1) * np.clip((length - rows) / 3, 0, 1)
    values[start : start + length, 1] -= size * 6 * spread[1] * shape
    values[start : start + length, 2] -= size * 5 * spread[2] * shape


def serviced() -> np.ndarray:
    """Rows with a maintenance at each of SERVICES, not always as long."""
    values = plant()
    for i, start in enumerate(SERVICES):
        service(values, start, LENGTH + 3 * (i % 3))
    return values


def frame(values: np.ndarray, start: int = 0) -> pl.DataFrame:
    """Rows from `start` on as a table with time."""
    columns = {name: values[start:, i] for i, name in enumerate(NAMES)}
    return pl.DataFrame({"time": TIME[start : start + len(values[start:])], **columns})


def near(events, row: int, rows: int = LENGTH) -> bool:
    """Whether an event of a table that begins at TRAIN touches rows from `row` on."""
    return any(e.start + TRAIN < row + rows and e.end + TRAIN > row for e in events)
