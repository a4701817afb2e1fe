"""For an on-call engineer: score a service's metrics against last week, page on events.

Learns request rate, errors, latencies and machine load from a quiet week, keeps the model in a
file, scores today's export with it, and says whom to wake. Run it with:

    python examples/service_metrics.py
"""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from vace_ad import VACE, load
from vace_ad.alarms import Budget

MINUTES_A_DAY = 1440


def metrics(days: int, seed: int) -> pl.DataFrame:
    """Eight metrics of a web service, one row a minute, with a daily rhythm."""
    rng = np.random.default_rng(seed)
    n = days * MINUTES_A_DAY
    day = 2 * np.pi * np.arange(n) / MINUTES_A_DAY
    load_ = 1 + 0.5 * np.sin(day - 2) + 0.15 * np.sin(3 * day)
    cron = (np.arange(n) % 60 < 4).astype(float)  # a job at every full hour

    def noise(scale: float) -> np.ndarray:
        return scale * rng.normal(size=n)

    return pl.DataFrame(
        {
            "time": np.datetime64("2026-03-02", "ns") + np.arange(n) * np.timedelta64(1, "m"),
            "requests": 900 * load_ + noise(25),
            "errors": np.maximum(2 * load_ + noise(0.8), 0),
            "latency_p50": 40 + 8 * load_ + 5 * cron + noise(1.5),
            "latency_p99": 180 + 60 * load_ + 40 * cron + noise(12),
            "cpu": 30 + 25 * load_ + 12 * cron + noise(2),
            "memory": 60 + 4 * load_ + noise(0.4),
            "db_connections": 40 + 30 * load_ + noise(2),
            "queue_depth": np.maximum(5 * load_ + 20 * cron + noise(2), 0),
        }
    )


def main() -> int:
    """Return the exit status: 0 for a quiet day, 3 when somebody should look."""
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "service.vace"
        VACE(random_state=0, patch_length=60, stride=10).fit(metrics(days=7, seed=0)).save(model)
        today = metrics(days=1, seed=1).with_columns(
            pl.when(pl.int_range(pl.len()).is_between(700, 760))  # the pool leaks connections
            .then(pl.col("db_connections") + 60)
            .otherwise(pl.col("db_connections"))
            .alias("db_connections")
        )
        found = load(model).detect(today, budget=Budget(1, "week"))
    for event in found.events:
        suspects = [name for name, _ in event.shares[:3]]
        page = {
            "from": str(event.start_time.astype("datetime64[m]")),
            "to": str(event.end_time.astype("datetime64[m]")),
            "severity": round(event.severity),
            "suspects": suspects,
            "because": event.signal,
        }
        print(json.dumps(page))
    return 3 if found.events else 0


if __name__ == "__main__":
    sys.exit(main())
