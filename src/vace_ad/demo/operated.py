"""A pump unit as it is operated: off times, two products, set points, weather, maintenance, faults.

The truth about it is known: which changes are expected, and which are faults of which sensor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vace_ad.demo.plant import Fault

if TYPE_CHECKING:
    import polars as pl

Column = NDArray[np.float64]

DAY = 288  # rows, at five minutes a row
STEP = np.timedelta64(300, "s")
START = np.datetime64("2026-05-04T00:00:00", "ns")
TRAIN_DAYS, DAYS = 28, 56
OFF = "pump_speed < 100"
CONTEXT = ("ambient", "set_point", "product")


@dataclass(frozen=True)
class Operated:
    """A simulated record and the truth about it."""

    time: NDArray[np.datetime64]  # (n_rows,)
    columns: dict[str, NDArray[np.float64]]
    product: NDArray[np.str_]  # (n_rows,)
    faults: tuple[Fault, ...]
    expected: tuple[tuple[str, int, int], ...]  # changes that are no faults, rows [start, end)
    maintenance: tuple[str, ...]  # windows
    train_rows: int = TRAIN_DAYS * DAY

    def frame(self) -> pl.DataFrame:
        """The record as a table, without the truth about it."""
        import polars as pl

        columns = {name: np.round(values, 4) for name, values in self.columns.items()}
        return pl.DataFrame({"time": self.time, **columns, "product": self.product})


def simulate_operated(seed: int = 0) -> Operated:
    """Eight weeks: four of normal operation to learn from, then four with all that happens."""
    rng = np.random.default_rng(seed)
    n = DAYS * DAY
    row = np.arange(n)
    hour = (row % DAY) / 12
    ambient = 17 + 6 * np.sin(2 * np.pi * (hour - 9) / 24) + _slow(rng, n, 3 * DAY, 2.0)
    heat = (46 * DAY, 49 * DAY)
    ambient += 14 * _bump(n, *heat, DAY // 2)
    product = np.where(np.repeat(rng.random(DAYS) < 0.5, DAY), "A", "B")
    choices = rng.choice([56.0, 60.0, 64.0], DAYS)
    choices[:3] = 56.0, 60.0, 64.0
    change = 35
    choices[change - 1 : change + 3] = 56.0, 64.0, 64.0, 64.0
    set_point = np.repeat(choices, DAY)
    load = 1200 + 120 * np.sin(2 * np.pi * (hour - 6) / 24) + _slow(rng, n, 40, 25.0)
    stops = [(d * DAY + 240, d * DAY + 240 + int(rng.integers(60, 110))) for d in range(4, DAYS, 3)]
    running = np.ones(n)
    for a, b in stops:
        running[a:b] = 0.0
    speed = _lag(load * running, 1.2) * (_lag(running, 1.2) > 0.02)
    b_grade = (product == "B").astype(float)
    flow = 0.08 * speed * (1 - 0.12 * b_grade) + rng.normal(0, 0.6, n)
    dp = 0.25 + 0.00006 * flow**2 + 0.08 * b_grade + rng.normal(0, 0.008, n)
    current = 3 + 0.012 * speed * (1 + 0.15 * b_grade) + rng.normal(0, 0.15, n)
    heating = _lag(np.where(running > 0, set_point, ambient), 8)
    temperature = heating + rng.normal(0, 0.25, n)
    valve = 20 + 0.9 * (ambient - 17) + 0.008 * speed + _lag(rng.normal(0, 1.2, n), 3)
    motor = ambient + _lag(1.6 * current, 12) + rng.normal(0, 0.3, n)
    vibration = 0.4 + 0.0009 * speed + np.abs(rng.normal(0, 0.05, n))
    faults = (
        Fault("filter clogs", "filter_pressure", 30 * DAY + 40, 33 * DAY + 100),
        Fault("bearing wears", "vibration", 38 * DAY + 60, 39 * DAY + 60),
        Fault("sensor drifts", "motor_temperature", 43 * DAY + 30, 44 * DAY + 30),
        Fault("valve sticks", "cooling_valve", 52 * DAY + 100, 52 * DAY + 230),
    )
    clog, wear, drift, stuck = (slice(one.start, one.end) for one in faults)
    grows = [np.linspace(0, 1, one.end - one.start) for one in faults]
    on = speed > 100
    dp[clog] += 0.35 * grows[0] ** 1.5 * on[clog]
    flow[clog] -= 4 * grows[0] ** 1.5 * on[clog]
    vibration[wear] += 0.9 * grows[1] * on[wear]
    motor[drift] += 7 * grows[2]
    valve[stuck] = valve[stuck.start] + rng.normal(0, 0.05, stuck.stop - stuck.start)
    work = (41 * DAY + 96, 41 * DAY + 192)  # people test sensors, and drive the pump by hand
    inside = slice(*work)
    flow[inside] = rng.uniform(20, 130, 96)
    dp[inside] += rng.uniform(-0.2, 0.6, 96)
    vibration[inside] = rng.uniform(0.1, 4, 96)
    columns = {
        "ambient": ambient, "set_point": set_point, "pump_speed": speed, "flow": flow,
        "filter_pressure": dp, "motor_current": current, "temperature": temperature,
        "cooling_valve": valve, "motor_temperature": motor, "vibration": vibration,
    }  # fmt: skip
    time = START + row * STEP
    expected = (
        ("heat wave", *heat),
        ("maintenance", *work),
        ("set point", change * DAY, change * DAY + DAY),
        *(("off", a, b) for a, b in stops),
    )
    windows = (f"{time[work[0]]}..{time[work[1]]}",)
    return Operated(time, columns, product, faults, expected, windows)


def _lag(values: Column, rows: float) -> Column:
    """Values that follow with a time constant of so many rows."""
    keep, found, last = np.exp(-1 / rows), np.empty(len(values)), float(values[0])
    for i, value in enumerate(values.tolist()):
        last = keep * last + (1 - keep) * value
        found[i] = last
    return found


def _slow(rng: np.random.Generator, n: int, rows: float, scale: float) -> Column:
    """Noise that changes within so many rows, with this deviation."""
    raw = _lag(rng.normal(size=n), rows)
    return np.asarray(scale * raw / raw.std())


def _bump(n: int, start: int, end: int, edge: int) -> Column:
    """1 between two rows, with soft edges."""
    row = np.arange(n)
    rise, fall = (1 / (1 + np.exp(-(row - at) / (edge / 6))) for at in (start, end))
    return np.asarray(rise - fall)
