"""A tiny benchmark folder, and detectors that behave, misbehave or dawdle."""

import os
import signal
import time
import warnings

import numpy as np
import polars as pl

from vace_study.tasks import compute

SERIES = (  # name, rows, channels; families in the benchmark's spelling
    ("001_Genesis_id_1_Sensor_tr_100_1st_150", 260, 3),
    ("002_MSL_id_1_Sensor_tr_120_1st_180", 300, 2),
    ("003_MSL_id_2_Sensor_tr_90_1st_130", 240, 2),
    ("144_SMAP_id_1_Sensor_tr_110_1st_200", 280, 4),
)


def make_table(rows, channels, first, seed=0):
    """Noise around sines, with an event of 20 rows from `first` on; Label last."""
    rng = np.random.default_rng(seed)
    phase = np.arange(rows)[:, None] / (7 + np.arange(channels))
    values = np.sin(phase) + 0.1 * rng.normal(size=(rows, channels))
    labels = np.zeros(rows, dtype=np.int64)
    labels[first : first + 20] = 1
    values[first : first + 20] += 2.0
    columns = {f"c{i}": values[:, i] for i in range(channels)}
    return pl.DataFrame({**columns, "Label": labels})


def make_folder(folder, suffix=".csv", series=SERIES):
    """The tiny benchmark; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for k, (stem, rows, channels) in enumerate(series):
        first = int(stem.rsplit("_", 1)[1])
        write(make_table(rows, channels, first, seed=k), folder / f"{stem}{suffix}")
    return folder


def write(frame, path):
    if path.suffix == ".parquet":
        frame.write_parquet(path)
    else:
        frame.write_csv(path)


class Distance:
    """Distance from the training mean, plus noise that depends on the seed."""

    def __init__(self, random_state=0):
        self.random_state = random_state

    def fit(self, table):
        self.mean = table.mean(axis=0)
        return self

    def score(self, table):
        noise = np.random.default_rng(self.random_state).normal(size=len(table))
        return np.abs(table - self.mean).sum(axis=1) + 0.2 * noise


class Slow(Distance):
    def score(self, table):
        time.sleep(0.15)
        return super().score(table)


class Fixed(Distance):
    """No randomness, so no random_state."""

    def __init__(self):
        super().__init__(0)


class Broken(Distance):
    def score(self, table):
        raise RuntimeError("no luck")


class Dies(Distance):
    """Takes its whole process along, as the kernel does when memory is short."""

    def fit(self, table):
        if table.shape[1] == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().fit(table)


class NotANumber(Distance):
    def score(self, table):
        return np.where(np.arange(len(table)) < 5, np.nan, super().score(table))


class TooFew(Distance):
    def score(self, table):
        return super().score(table)[1:]


class Warns(Distance):
    def fit(self, table):
        warnings.warn("the table looks odd", UserWarning, stacklevel=2)
        return super().fit(table)


class Capped(Distance):
    notes_ = ("capped: 3 of 9 training windows",)


class Threads(Distance):
    """Reports the limits it finds through its scores' range."""

    def score(self, table):
        limits = {os.environ.get(name) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
        if limits != {"1"}:
            raise RuntimeError(f"limits {limits}")
        return super().score(table)


not_callable = 3


class Here:
    """An engine that computes in this very process: quick, for tests of other things."""

    def run(self, tasks):
        for task in tasks:
            yield task, compute(task)
