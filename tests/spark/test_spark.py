"""The same scores and events as one by one, and a query that is killed and goes on."""

import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from spark.conftest import KEYS, frame
from vace_ad import VACE
from vace_ad.errors import ConfigError

pytestmark = pytest.mark.filterwarnings("ignore")
SETTINGS = {"patch_length": 16, "encoders": 1}
FAULT = (200, 212)
KILLED = Path(__file__).with_name("killed.py")


@pytest.fixture(scope="module")
def models(spark):
    import vace_ad.spark

    made = vace_ad.spark.fit(
        spark.createDataFrame(frame(500)), by="machine", time="time", **SETTINGS
    )
    made.table = made.table.cache()
    return made


@pytest.fixture(scope="module")
def one_by_one():
    """A detector for each machine, fitted without Spark."""
    return {
        name: VACE(**SETTINGS).fit(rows.drop(columns="machine").reset_index(drop=True))
        for name, rows in frame(500).groupby("machine")
    }


def test_scores_and_events_are_those_of_one_table_by_itself(spark, models, one_by_one):
    new = frame(400, seed=1, fault=FAULT)
    shuffled = spark.createDataFrame(new.sample(frac=1, random_state=0))
    events = models.detect(shuffled, budget="1 per week").toPandas()
    scores = models.score(shuffled).toPandas()
    assert events["error"].isna().all()
    for name, rows in new.groupby("machine"):
        table = rows.drop(columns="machine").reset_index(drop=True)
        mine = scores[scores.machine == name].sort_values("time")
        np.testing.assert_array_equal(mine["score"], one_by_one[name].score(table))
        alone = one_by_one[name].detect(table, budget="1 per week").to_frame()
        found = events[events.machine == name].sort_values("start").reset_index(drop=True)
        assert len(found) == len(alone), name
        for column in ("kind", "start", "end", "peak", "severity", "channels"):
            assert found[column].tolist() == alone[column].tolist(), (name, column)
        if len(alone):  # a table without events has no columns of time
            assert found["start_time"].tolist() == alone["start_time"].tolist(), name
    faulty = events[(events.start <= FAULT[1]) & (events.end >= FAULT[0])]
    assert set(faulty.machine) == {f"m{k:03d}" for k in range(0, KEYS, 3)}


def test_a_key_that_cannot_be_learned_is_a_row(spark):
    import vace_ad.spark

    rows = frame(500, keys=2)
    rows = rows[(rows.machine == "m000") | (rows.index % 500 < 5)]
    made = vace_ad.spark.fit(spark.createDataFrame(rows), "machine", "time", **SETTINGS)
    table = made.table.toPandas().set_index("machine")
    assert pd.isna(table.loc["m000", "error"])
    assert "rows" in table.loc["m001", "error"]
    known = spark.createDataFrame(table.reset_index()[["machine", "model"]])
    made = vace_ad.spark.SparkModels(known, "machine", "time")
    found = made.detect(spark.createDataFrame(frame(60, keys=2, seed=1))).toPandas()
    assert "has no model" in found[found.machine == "m001"]["error"].iloc[0]


def test_names_of_columns_are_checked(spark):
    import vace_ad.spark

    table = spark.createDataFrame(frame(5, keys=1))
    with pytest.raises(ConfigError, match="'pump' is not a column"):
        vace_ad.spark.fit(table, by="pump", time="time")
    with pytest.raises(ConfigError, match="no channel"):
        vace_ad.spark.fit(table.select("machine", "time"), by="machine", time="time")
    with pytest.raises(ConfigError, match=r"withColumnRenamed\('a.x', 'a_x'\)"):
        vace_ad.spark.fit(table.withColumnRenamed("a", "a.x"), by="machine", time="time")
    with pytest.raises(ConfigError, match="'model'"):
        vace_ad.spark.SparkModels(table, "machine", "time")


def streamed(one_by_one, new, size):
    """What each machine's stream says of pieces of the same size."""
    for name, rows in new.groupby("machine"):
        stream = one_by_one[name].stream(budget="1 per week")
        for a in range(0, len(rows), size):
            part = rows[a : a + size]
            yield name, stream.add(part[["a", "b", "c"]].to_numpy(), part["time"].to_numpy())


def expected(one_by_one, new, size):
    """Alarms of each machine's stream."""
    return sorted(
        (name, change.what, change.event.id)
        for name, added in streamed(one_by_one, new, size)
        for change in added.changes
    )


def test_final_scores_of_a_stream_are_those_of_one_by_one(spark, models, one_by_one, tmp_path):
    size, new = 60, frame(120, keys=3, seed=2)
    unknown = frame(5, keys=1).assign(machine="new")
    order = new.groupby("machine").cumcount() // size
    for part in (new[order == 0], new[order == 0], new[order == 1], unknown):  # one comes twice
        spark.createDataFrame(part).coalesce(1).write.mode("append").parquet(str(tmp_path / "in"))
        time.sleep(0.01)  # files are taken by their time
    schema = "machine string, time timestamp, a double, b double, c double"
    rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    query = (
        models.stream(rows.parquet(str(tmp_path / "in")), tell="scores")
        .writeStream.format("memory")
        .queryName("scores")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    table = spark.table("scores").toPandas()
    assert table[table.machine == "new"]["error"].str.contains("has no model").all()
    for name in ("m000", "m001", "m002"):
        alone = [added.scores for who, added in streamed(one_by_one, new, size) if who == name]
        mine = table[table.machine == name].sort_values("time")
        np.testing.assert_array_equal(mine["score"], np.concatenate(alone))
        times = new[new.machine == name]["time"][: len(mine)]
        assert mine["time"].tolist() == times.tolist()


def test_the_hour_that_a_time_zone_has_twice(spark, one_by_one):
    import pyspark.sql.functions as sql

    import vace_ad.spark

    rows = frame(500, keys=1)
    utc = pd.date_range("2026-10-25", periods=500, freq="30s", tz="UTC", unit="us")
    rows = rows.assign(time=utc).rename(columns={"machine": "m id", "time": "at, then"})
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        table = spark.createDataFrame(rows)
        made = vace_ad.spark.fit(table, by="m id", time="at, then", **SETTINGS)
        assert made.table.select("error").first()[0] is None
        found = made.score(table).select("score", sql.unix_micros("`at, then`").alias("at"))
        found = found.toPandas().sort_values("at")
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert found["at"].tolist() == utc.as_unit("us").asi8.tolist()
    plain = rows.drop(columns="m id").assign(**{"at, then": utc.tz_localize(None)})
    alone = VACE(**SETTINGS).fit(plain)
    np.testing.assert_array_equal(found["score"], alone.score(plain))


def test_another_store_of_state_is_refused(spark, models):
    key = "spark.sql.streaming.stateStore.providerClass"
    before = spark.conf.get(key)
    spark.conf.set(key, before.replace("RocksDB", "HDFSBacked"))
    try:
        with pytest.raises(ConfigError, match=f"set {key} to .*RocksDB"):
            models.stream(spark.createDataFrame(frame(5, keys=1)))
    finally:
        spark.conf.set(key, before)


def test_a_killed_query_goes_on_from_its_checkpoint(spark, models, one_by_one, tmp_path):
    size, new = 50, frame(400, seed=1, fault=FAULT)
    order = new.groupby("machine").cumcount() // size
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models.table.select("machine", "model").write.parquet(str(tmp_path / "models"))
        for i in range(order.max() + 1):
            part = spark.createDataFrame(new[order == i]).coalesce(1)
            part.write.mode("append").parquet(str(tmp_path / "rows"))
            time.sleep(0.01)  # files are taken by their time
    command = [sys.executable, str(KILLED), str(tmp_path)]
    started = subprocess.Popen(
        command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    commits = tmp_path / "checkpoint" / "commits"
    end = time.monotonic() + 1800
    while len(list(commits.glob("[0-9]*")) if commits.exists() else []) < 3:
        assert time.monotonic() < end, "no batch was committed in time"
        assert started.poll() is None
        time.sleep(0.05)
    os.killpg(started.pid, signal.SIGKILL)
    started.wait()
    half = len(list((tmp_path / "checkpoint" / "commits").glob("[0-9]*")))
    assert half < 8
    subprocess.run(command, check=True, timeout=1800, capture_output=True)
    alarms = spark.read.parquet(str(tmp_path / "alarms")).toPandas()
    found = sorted(zip(alarms.machine, alarms.what, alarms.event, strict=True))
    assert found == expected(one_by_one, new, size)
    assert {one[0] for one in found if one[1] == "open"} >= {"m000"}
