"""Small fleets: machines of four sensors, some of which fail, alone or together."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import polars as pl

ROWS, FAULT = 900, slice(700, 740)
SENSORS = ("flow", "speed", "pressure")
QUICK = {"patch_length": 16, "encoders": 1, "widths": (8, 8, 8, 8), "engine": "numpy"}
START = np.datetime64("2026-01-01", "ns")


def machine(seed: int, *, fault: bool = False, rows: int = ROWS) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    phase = 2 * np.pi * (np.arange(rows)[:, None] / [12.0, 31.0] + rng.uniform(size=2))
    x = np.sin(phase) @ rng.normal(size=(2, 3)) + 0.1 * rng.normal(size=(rows, 3))
    if fault:
        x[FAULT, 2] = 6 + rng.normal(size=len(x[FAULT]))
    time = START + np.arange(rows) * np.timedelta64(60 * 10**9, "ns")
    return pl.DataFrame({"time": time, **{name: x[:, i] for i, name in enumerate(SENSORS)}})


def fleet(n: int = 4, faulty: Collection[int] = (1,), rows: int = ROWS) -> pl.DataFrame:
    parts = [
        machine(i, fault=i in faulty, rows=rows).with_columns(machine=pl.lit(f"m{i}"))
        for i in range(n)
    ]
    return pl.concat(parts).sort("time", maintain_order=True)
