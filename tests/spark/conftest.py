"""A local Spark, where pyspark and a Java runtime are; its tests are run by `make spark`."""

import os
import shutil
import sys
import warnings

import numpy as np
import pytest

KEYS = int(os.environ.get("VACE_SPARK_KEYS", "12"))


@pytest.fixture(scope="session")
def spark():
    pytest.importorskip("pyspark", reason="pip install 'vace-ad[spark]'; then make spark")
    if shutil.which("java") is None:
        pytest.skip("java is not installed: apt-get install default-jre-headless")
    yield session()
    session().stop()


def session():
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    store = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.execution.arrow.pyspark.enabled", "true")
            .config("spark.sql.streaming.stateStore.providerClass", store)
            .getOrCreate()
        )
    found.sparkContext.setLogLevel("ERROR")
    return found


def frame(n, keys=KEYS, seed=0, fault=None):
    """Rows of machines, with a fault in `b` of every third one."""
    import pandas as pd

    rng, parts = np.random.default_rng(seed), []
    start = "2026-01-05" if fault is None else "2026-01-06"
    for k in range(keys):
        rows = rng.normal(size=(n, 3))
        if fault is not None and k % 3 == 0:
            rows[slice(*fault), 1] += 15
        times = pd.date_range(start, periods=n, freq="10s", unit="us")
        columns = dict(zip("abc", rows.T, strict=True))
        parts.append(pd.DataFrame({"machine": f"m{k:03d}", "time": times, **columns}))
    return pd.concat(parts, ignore_index=True)
