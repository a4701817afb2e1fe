"""Apache Spark: a model for each key of a DataFrame, its events, and the same as rows stream in.

    models = vace_ad.spark.fit(df, by="machine", time="time")
    models.table.write.parquet("models")              # a row for each key, the model as bytes
    events = models.detect(new)                       # a DataFrame of events
    alarms = models.stream(spark.readStream…)         # a streaming DataFrame of alarms

Every key is processed by the same code as a single table, so scores and events are the same, row
for row. An error of one key is a row with the column `error`; the other keys continue.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from vace_ad.alarms.events import event_columns
from vace_ad.detector import VACE, load
from vace_ad.errors import ConfigError, VaceError, needs

Columns = dict[str, str]  # the types of columns by name
_MODEL = {"model": "binary", "rows": "bigint", "error": "string"}
_EVENT = {
    "kind": "string", "start_time": "timestamp", "end_time": "timestamp", "peak_time": "timestamp",
    "alarm_time": "timestamp", "start": "bigint", "end": "bigint", "peak": "bigint",
    "score": "double", "severity": "double", "level": "string", "signal": "string",
    "channels": "string", "error": "string",
}  # fmt: skip
_ALARM = {
    "what": "string", "event": "string", "time": "timestamp", "start_time": "timestamp",
    "end_time": "timestamp", "score": "double", "severity": "double", "signal": "string",
    "channels": "string", "error": "string",
}  # fmt: skip
_DTYPES = {"binary": "object", "string": "object", "bigint": "Int64", "double": "float64"}
_STORE = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_NO_TIME = np.iinfo(np.int64).min
_NUMERIC = ("double", "float", "int", "bigint", "smallint", "tinyint", "boolean")
_KNOWN = 256  # models that a worker keeps ready
_models: dict[bytes, VACE] = {}  # by the digest of their bytes, the least recently used first


def fit(df: Any, by: str, time: str, **settings: Any) -> SparkModels:
    """Learn normal operation of each key from its rows; `settings` are those of `VACE`.

    Channels are the numeric columns. Nothing is computed before the table of models is used: cache
    it, or write it and read it again with `SparkModels(table, by, time)`.
    """
    with needs("pyspark", "spark", "vace_ad.spark"):
        import pyspark  # noqa: F401
    rows, kinds = _numbered(df, by, time), dict(df.dtypes)
    channels = [name for name, kind in kinds.items() if name not in (by, time) and _number(kind)]
    if not channels:
        raise ConfigError(f"no column but {by!r} and {time!r} is numeric, so there is no channel")

    def learn(key: tuple[Any, ...], rows: Any) -> Any:
        import pandas as pd

        model, error = None, None
        try:
            with threadpool_limits(1):
                model = _fitted(_ordered(rows, time, channels), settings)
        except VaceError as wrong:
            error = str(wrong)
        return pd.DataFrame({by: [key[0]], "model": [model], "rows": [len(rows)], "error": [error]})

    wanted = rows.select(*map(_quoted, (by, time, *channels)))
    schema = _schema({by: kinds[by], **_MODEL})
    return SparkModels(wanted.groupBy(_quoted(by)).applyInPandas(learn, schema), by, time)


class SparkModels:
    """A model for each key, in a DataFrame with the columns key, `model`, `rows` and `error`."""

    def __init__(self, table: Any, by: str, time: str) -> None:
        missing = {by, "model"} - set(table.columns)
        if missing:
            raise ConfigError(
                f"a table of models has the columns {by!r} and 'model'; {', '.join(missing)} is "
                f"missing, there are {', '.join(table.columns)}"
            )
        self.table, self.by, self.time = table, by, time

    def detect(self, df: Any, budget: str | None = None) -> Any:
        """The events of each key's rows, as a DataFrame; keys without a model say so in `error`."""
        return self._cogrouped(df, partial(_events, time=self.time, budget=budget), _EVENT)

    def score(self, df: Any) -> Any:
        """The score of every row, as a DataFrame of key, time and score."""
        return self._cogrouped(df, partial(_scores, time=self.time), self._scored)

    @property
    def _scored(self) -> Columns:
        return {self.time: "timestamp", "score": "double", "error": "string"}

    def _cogrouped(self, df: Any, work: Any, columns: Columns) -> Any:
        """What work finds in each key's rows, beside its model."""
        by = self.by

        def found(key: tuple[Any, ...], rows: Any, models: Any) -> Any:
            return framed(by, key[0], _guarded(key, rows, models, work), columns)

        models = self.table.select(_quoted(by), "model").groupBy(_quoted(by))
        pairs = _numbered(df, by, self.time).groupBy(_quoted(by)).cogroup(models)
        both = {by: dict(df.dtypes)[by], **columns}
        return _timed(pairs.applyInPandas(found, _schema(both)), both)

    def stream(
        self, df: Any, budget: str | None = None, tell: Literal["alarms", "scores"] = "alarms"
    ) -> Any:
        """Alarms (or final scores) of a streaming DataFrame, as a streaming DataFrame.

        Each key's model and the state of its stream are bytes in Spark's own state: a query that
        is killed goes on from its checkpoint, and no alarm is lost or doubled there. Rows are taken
        in order of time within a micro-batch; rows that are not newer than the last one of their
        key are dropped. Spark keeps such state in RocksDB only.
        """
        if tell not in ("alarms", "scores"):
            raise ConfigError(f"tell must be 'alarms' or 'scores', not {tell!r}")
        if "RocksDB" not in df.sparkSession.conf.get(_STORE, ""):
            raise ConfigError(
                f"Spark keeps the state of streams in RocksDB only; set {_STORE} to {_ROCKSDB}"
            )
        from vace_ad.spark.key_stream import KeyStream

        own = _ALARM if tell == "alarms" else self._scored
        both = {self.by: dict(df.dtypes)[self.by], **own}
        found = (
            _numbered(df, self.by, self.time)
            .groupBy(_quoted(self.by))
            .transformWithStateInPandas(
                statefulProcessor=KeyStream(
                    self.by, self.time, budget, own, alarms=tell == "alarms"
                ),
                outputStructType=_schema(both),
                outputMode="Append",
                timeMode="None",
                initialState=self.table.select(_quoted(self.by), "model").groupBy(_quoted(self.by)),
            )
        )
        return _timed(found, both)


# ------------------------------------------------------------------- times and names
# pandas gets Spark's timestamps in the session's time zone, in which an hour comes twice a year: on
# their way to a worker and back they are numbers of microseconds.


def _numbered(df: Any, by: str, time: str) -> Any:
    """Rows whose times are numbers, once their names are checked."""
    from pyspark.sql import functions

    for name in (by, time):
        if name not in df.columns:
            raise ConfigError(f"{name!r} is not a column; there are {', '.join(df.columns)}")
    dotted = next((name for name in df.columns if "." in name), None)
    if dotted is not None:
        plain = dotted.replace(".", "_")
        raise ConfigError(
            f"{dotted!r}: Spark gives no column with a dot in its name to pandas; rename it, with "
            f"df.withColumnRenamed({dotted!r}, {plain!r})"
        )
    stamps = functions.col(_quoted(time)).cast("timestamp")
    return df.withColumn(time, functions.unix_micros(stamps))


def _timed(df: Any, columns: Columns) -> Any:
    """The same with times out of numbers."""
    from pyspark.sql import functions

    return df.select(
        *(
            functions.timestamp_micros(_quoted(name)).alias(name)
            if kind == "timestamp"
            else functions.col(_quoted(name))
            for name, kind in columns.items()
        )
    )


def _schema(columns: Columns) -> str:
    """Columns in Spark's words, times as numbers."""
    return ", ".join(
        f"{_quoted(name)} {'bigint' if kind == 'timestamp' else kind}"
        for name, kind in columns.items()
    )


def _quoted(name: str) -> str:
    """A column's name in backquotes, so that it may contain any character."""
    return "`" + name.replace("`", "``") + "`"


# ------------------------------------------------------------------- in a worker


def model_of(data: bytes) -> VACE:
    """The detector of a table's bytes; a worker keeps the last ones ready."""
    digest = hashlib.sha256(data).digest()
    model = _models.pop(digest, None)
    if model is None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "key.vace"
            path.write_bytes(data)
            model = load(path)
    _models[digest] = model  # at the end: the last to go
    if len(_models) > _KNOWN:
        del _models[next(iter(_models))]
    return model


def _fitted(rows: Any, settings: dict[str, Any]) -> bytes:
    detector = VACE(**settings).fit(rows)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "key.vace"
        detector.save(path)
        return path.read_bytes()


def _ordered(rows: Any, time: str, channels: Sequence[str]) -> Any:
    """A key's rows by time, in the columns that count: a shuffle keeps no order."""
    table = rows[[time, *channels]].sort_values(time, kind="stable", ignore_index=True)
    table[time] = stamps_of(table[time]).view("datetime64[us]")
    return table


def stamps_of(column: Any) -> NDArray[np.int64]:
    """Microseconds of a column; those that are missing are the number of NaT."""
    found: NDArray[np.int64] = column.astype("Int64").fillna(_NO_TIME).to_numpy(np.int64)
    return found


def _guarded(key: tuple[Any, ...], rows: Any, models: Any, work: Any) -> dict[str, Any]:
    """The columns that work returns with a key's model, or one that says why there are none."""
    if not len(rows):
        return {}
    data = models["model"].iloc[0] if len(models) else None
    if data is None:
        return {"error": [f"{key[0]!r} has no model; look at its error in the table of models"]}
    try:
        with threadpool_limits(1):
            columns: dict[str, Any] = work(model_of(bytes(data)), rows)
            return columns
    except VaceError as wrong:
        return {"error": [str(wrong)]}


def _events(model: VACE, rows: Any, time: str, budget: str | None) -> dict[str, Any]:
    events = model.detect(_ordered(rows, time, model.channels_), budget=budget).events
    return event_columns(events)


def _scores(model: VACE, rows: Any, time: str) -> dict[str, Any]:
    ordered = _ordered(rows, time, model.channels_)
    return {time: ordered[time], "score": model.score(ordered)}


def framed(by: str, key: Any, columns: dict[str, Any], wanted: Columns) -> Any:
    """Columns as they are wanted; those that are not there are empty."""
    import pandas as pd

    n = max((len(column) for column in columns.values()), default=0)
    # text as objects: what pandas 3 makes of it by itself, Spark's conversion does not take
    made: dict[str, Any] = {
        by: pd.Series([key] * n, dtype=object if isinstance(key, str) else None)
    }
    for name, kind in wanted.items():
        column = columns.get(name, [None] * n)
        if kind == "timestamp":
            stamps = np.asarray(column, "datetime64[us]")
            made[name] = pd.Series(stamps.view(np.int64), dtype="Int64").mask(np.isnat(stamps))
        else:
            made[name] = pd.Series(column, dtype=_DTYPES[kind])
    return pd.DataFrame(made)


def _number(kind: str) -> bool:
    return kind in _NUMERIC or kind.startswith("decimal")
