"""A pumping station: twelve related sensors with a daily period, regimes and six faults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import polars as pl

Column = NDArray[np.float64]

DAY = 288  # rows, at five minutes a row
STEP = np.timedelta64(300, "s")
SENSORS = (
    "pump_speed",
    "flow",
    "pump_current",
    "pressure_in",
    "pressure_out",
    "valve_position",
    "tank_level",
    "feed_temperature",
    "jacket_temperature",
    "motor_temperature",
    "vibration",
    "power",
)


@dataclass(frozen=True)
class Fault:
    """A stretch of rows [start, end) in which one sensor, or what it measures, is wrong."""

    kind: str
    sensor: str
    start: int
    end: int


@dataclass(frozen=True)
class Plant:
    """A simulated record and the truth about it."""

    time: NDArray[np.datetime64]  # (n_rows,)
    names: tuple[str, ...]
    values: NDArray[np.float64]  # (n_rows, n_sensors)
    faults: tuple[Fault, ...]
    train_rows: int

    def frame(self) -> pl.DataFrame:
        """The record as a table, without the truth about it."""
        import polars as pl

        return pl.DataFrame(
            {"time": self.time, **dict(zip(self.names, self.values.T, strict=True))}
        )

    @property
    def labels(self) -> NDArray[np.int8]:
        """1 where a fault is present, (n_rows,)."""
        labels = np.zeros(len(self.values), np.int8)
        for fault in self.faults:
            labels[fault.start : fault.end] = 1
        return labels


def simulate(days: int = 30, train_days: int = 12, seed: int = 0) -> Plant:
    """Simulate a station; the first `train_days` are free of faults."""
    if not 1 <= train_days < days:
        raise ValueError(f"train_days={train_days}: must lie between 1 and days − 1 = {days - 1}")
    rng = np.random.default_rng(seed)
    n = days * DAY
    columns = _normal(n, rng)
    faults = _inject(columns, train_days * DAY, n, rng)
    time = np.datetime64("2026-01-05T00:00", "ns") + np.arange(n) * STEP
    values = np.stack([columns[name] for name in SENSORS], axis=1)
    return Plant(time, SENSORS, values, faults, train_days * DAY)


def _normal(n: int, rng: np.random.Generator) -> dict[str, Column]:
    """Normal operation: demand, weather and a cycling valve drive everything else."""
    rows = np.arange(n)
    day = 2 * np.pi * rows / DAY
    weather = 12 + 6 * np.sin(day - 2.0) + _slow_noise(n, DAY, 2.0, rng)
    demand = 60 + 14 * np.sin(day - 1.2) + 5 * np.sin(2 * day) + _regimes(n, rng)
    phase = np.cumsum(2 * np.pi / (32 + _slow_noise(n, 200, 1.5, rng)))
    cycle = np.sin(phase)

    def noise(scale: float) -> Column:
        return np.asarray(scale * rng.normal(size=n))

    speed = _lag(demand + 1.5 * cycle, 4)
    flow = 1.9 * speed + 3 * cycle
    current = 0.35 * speed + 0.0022 * speed**2
    outlet = 2.2 + 0.045 * speed - 0.12 * cycle
    motor = 35 + _lag(0.3 * speed + 0.4 * weather, 18)
    return {
        "pump_speed": speed + noise(0.4),
        "flow": flow + noise(0.9),
        "pump_current": current + noise(0.25),
        "pressure_in": 2.0 - 0.006 * _lag(flow, 3) + noise(0.012),
        "pressure_out": outlet + noise(0.03),
        "valve_position": 50 + 18 * cycle + 0.2 * (demand - 60) + noise(0.8),
        "tank_level": 55 - _lag(flow - 114, 40) * 0.35 + noise(0.3),
        "feed_temperature": 18 + _lag(weather, 12) * 0.7 + noise(0.12),
        "jacket_temperature": 64 + 0.12 * _lag(speed, 10) + 0.9 * np.cos(phase) + noise(0.15),
        "motor_temperature": motor + noise(0.2),
        "vibration": np.exp(0.25 + 0.008 * speed + 0.12 * rng.normal(size=n)),
        "power": 1.15 * current + 4 + noise(0.3),
    }


def _inject(
    columns: dict[str, Column], first: int, n: int, rng: np.random.Generator
) -> tuple[Fault, ...]:
    """Put one fault of each kind into the rows [first, n), in random order, well apart."""
    kinds: list[tuple[str, str, int, Callable[[Column], Column]]] = [
        ("spike", "pressure_out", 3, lambda x: x + 9 * 0.5),
        ("level shift", "feed_temperature", 140, lambda x: x + 9),
        ("frozen sensor", "flow", 150, lambda x: np.full_like(x, x[0])),
        ("broken correlation", "pump_current", 160, lambda x: 2 * x.mean() - x),
        ("changed rhythm", "valve_position", 150, lambda x: _faster(x)),
        ("slow drift", "motor_temperature", 260, lambda x: x + np.linspace(0, 14, len(x))),
    ]
    span = (n - first) // len(kinds)
    faults = []
    for slot, k in enumerate(rng.permutation(len(kinds))):
        kind, sensor, length, change = kinds[k]
        length = min(length, span // 2)
        start = first + slot * span + int(rng.integers(span // 4, span - length))
        part = slice(start, start + length)
        columns[sensor][part] = change(columns[sensor][part])
        faults.append(Fault(kind, sensor, start, start + length))
    return tuple(faults)


def _faster(x: Column) -> Column:
    """The same signal at two and a half times its speed, from its start over and over."""
    return np.asarray(np.interp(np.arange(len(x)) * 2.5 % (len(x) - 1), np.arange(len(x)), x))


def _lag(x: Column, rows: float) -> Column:
    """A first-order lag of so many rows."""
    keep = float(np.exp(-1 / rows))
    steps = (1 - keep) * x
    steps[0] = x[0]
    return np.array(list(accumulate(steps.tolist(), lambda y, step: step + keep * y)))


def _slow_noise(n: int, rows: int, scale: float, rng: np.random.Generator) -> Column:
    """Noise that is smooth over `rows` rows."""
    raw = _lag(rng.normal(size=n), rows)
    return np.asarray(scale * raw * np.sqrt(2 * rows))


def _regimes(n: int, rng: np.random.Generator) -> Column:
    """Set points that the operators change about twice in three days."""
    levels = np.zeros(n)
    at = 0
    while at < n:
        length = int(rng.integers(DAY // 2, 3 * DAY))
        levels[at : at + length] = rng.choice([-12.0, 0.0, 0.0, 10.0])
        at += length
    return _lag(levels, 6)
