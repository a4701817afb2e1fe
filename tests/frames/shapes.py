"""Small tables of the shapes that people have."""

from __future__ import annotations

import numpy as np
import polars as pl

SENSORS = ("flow", "pressure", "temp [degC]")


def times(n: int, start: str = "2026-01-01", step: int = 60) -> np.ndarray:
    return np.datetime64(start, "ns") + np.arange(n) * np.timedelta64(step * 10**9, "ns")


def wide(n: int = 200, seed: int = 0) -> pl.DataFrame:
    x = np.random.default_rng(seed).normal(size=(n, 3)).round(4)
    return pl.DataFrame({"time": times(n), **{s: x[:, i] for i, s in enumerate(SENSORS)}})


def long(n: int = 200) -> pl.DataFrame:
    return wide(n).unpivot(index="time", variable_name="sensor", value_name="value").sort("time")


def keyed(n: int = 200, machines: int = 4, key: str = "machine") -> pl.DataFrame:
    parts = [wide(n, seed).with_columns(pl.lit(f"p{seed}").alias(key)) for seed in range(machines)]
    return pl.concat(parts).sort("time", maintain_order=True)
