"""Apache Spark: a model for each key of a DataFrame, its events, and the same as rows stream in.

    models = vace_ad.spark.fit(df, by="machine", time="time")
    models.table.write.parquet("models")              # a row for each key, the model as bytes
    events = models.detect(new)                       # a DataFrame of events
    alarms = models.stream(spark.readStream…)         # a streaming DataFrame of alarms

Every key is worked off by the same code as one table by itself, so scores and events are the same,
row for row. What goes wrong with a key is its row, in the column `error`, and stops no other.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from vace_ad.errors import ConfigError, VaceError, needs

if TYPE_CHECKING:
    from vace_ad.detector import VACE

_MODEL = "model binary, rows bigint, error string"
_EVENT = (
    "kind string, start_time timestamp, end_time timestamp, peak_time timestamp, "
    "alarm_time timestamp, start bigint, end bigint, peak bigint, score double, severity double, "
    "level string, signal string, channels string, error string"
)
ALARM = (
    "what string, event string, time timestamp, start_time timestamp, end_time timestamp, "
    "score double, severity double, signal string, channels string, error string"
)
_DTYPES = {
    "binary": "object",
    "string": "object",
    "timestamp": "datetime64[ns]",
    "bigint": "Int64",
    "double": "float64",
}
_NUMERIC = ("double", "float", "int", "bigint", "smallint", "tinyint", "boolean")
_KNOWN = 256  # models that a worker keeps ready


def fit(df: Any, by: str, time: str, **settings: Any) -> SparkModels:
    """Learn normal operation of each key from its rows; `settings` are those of `VACE`.

    Channels are the numeric columns. Nothing is computed before the table of models is used: cache
    it, or write it and read it again with `SparkModels(table, by, time)`.
    """
    with needs("pyspark", "spark", "vace_ad.spark"):
        import pyspark  # noqa: F401
    kinds = dict(df.dtypes)
    for name in (by, time):
        if name not in kinds:
            raise ConfigError(f"{name!r} is no column; there are {', '.join(kinds)}")
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

    wanted = df.select(by, time, *(f"`{name}`" for name in channels))
    schema = f"`{by}` {kinds[by]}, {_MODEL}"
    return SparkModels(wanted.groupBy(by).applyInPandas(learn, schema), by, time)


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
        by, time = self.by, self.time

        def found(key: tuple[Any, ...], rows: Any, models: Any) -> Any:
            work = partial(_events, rows=rows, time=time, budget=budget)
            events, error = _guarded(key, rows, models, work)
            return framed(by, key[0], {"error": [error]} if error else events, _EVENT)

        return self._together(df, found, _EVENT)

    def score(self, df: Any) -> Any:
        """The score of every row, as a DataFrame of key, time and score."""
        by, time = self.by, self.time
        schema = f"`{time}` timestamp, score double, error string"

        def found(key: tuple[Any, ...], rows: Any, models: Any) -> Any:
            scored, error = _guarded(key, rows, models, partial(_scores, rows=rows, time=time))
            return framed(by, key[0], {"error": [error]} if error else scored, schema)

        return self._together(df, found, schema)

    def _together(self, df: Any, found: Any, schema: str) -> Any:
        kind = dict(df.dtypes)[self.by]
        models = self.table.select(self.by, "model")
        pairs = df.groupBy(self.by).cogroup(models.groupBy(self.by))
        return pairs.applyInPandas(found, f"`{self.by}` {kind}, {schema}")

    def stream(
        self, df: Any, budget: str | None = None, tell: Literal["alarms", "scores"] = "alarms"
    ) -> Any:
        """Alarms (or final scores) of a streaming DataFrame, as a streaming DataFrame.

        Each key's model and the state of its stream are bytes in Spark's own state: a query that
        is killed goes on from its checkpoint, and no alarm is lost or doubled there. Rows are taken
        in order of time within a micro-batch; rows that are not newer than the last one of their
        key are dropped. Spark keeps such state in RocksDB only: set
        `spark.sql.streaming.stateStore.providerClass` as the guide says.
        """
        if tell not in ("alarms", "scores"):
            raise ConfigError(f"tell must be 'alarms' or 'scores', not {tell!r}")
        from vace_ad.spark.key_stream import KeyStream

        kind = dict(df.dtypes)[self.by]
        schema = f"`{self.time}` timestamp, score double" if tell == "scores" else ALARM
        return df.groupBy(self.by).transformWithStateInPandas(
            statefulProcessor=KeyStream(self.by, self.time, budget, schema),
            outputStructType=f"`{self.by}` {kind}, {schema}",
            outputMode="Append",
            timeMode="None",
            initialState=self.table.select(self.by, "model").groupBy(self.by),
        )


# ------------------------------------------------------------------- in a worker


def model_of(data: bytes) -> VACE:
    """The detector of a table's bytes; a worker keeps the last ones ready."""
    return _model_of(hashlib.sha256(data).digest(), _Bytes(data))


class _Bytes:
    """Bytes that a cache knows by their digest alone."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Bytes)

    def __hash__(self) -> int:
        return 0


@lru_cache(_KNOWN)
def _model_of(digest: bytes, held: _Bytes) -> VACE:
    from vace_ad import load

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "key.vace"
        path.write_bytes(held.data)
        held.data = b""  # the cache need not keep them twice
        return load(path)


def _fitted(rows: Any, settings: dict[str, Any]) -> bytes:
    from vace_ad import VACE

    detector = VACE(**settings).fit(rows)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "key.vace"
        detector.save(path)
        return path.read_bytes()


def _ordered(rows: Any, time: str, channels: Sequence[str]) -> Any:
    """A key's rows by time, in the columns that count: a shuffle keeps no order."""
    return rows[[time, *channels]].sort_values(time, kind="stable", ignore_index=True)


def _guarded(key: tuple[Any, ...], rows: Any, models: Any, work: Any) -> tuple[dict[str, Any], Any]:
    """What work gives with a key's model, or why it gave nothing."""
    if not len(rows):
        return {}, None
    data = models["model"].iloc[0] if len(models) else None
    if data is None:
        return {}, f"{key[0]!r} has no model; look at its error in the table of models"
    try:
        with threadpool_limits(1):
            return work(model_of(bytes(data))), None
    except VaceError as wrong:
        return {}, str(wrong)


def _events(model: VACE, rows: Any, time: str, budget: str | None) -> dict[str, Any]:
    from vace_ad.alarms.events import event_columns

    events = model.detect(_ordered(rows, time, model.channels_), budget=budget).events
    return event_columns(events)


def _scores(model: VACE, rows: Any, time: str) -> dict[str, Any]:
    ordered = _ordered(rows, time, model.channels_)
    return {time: ordered[time], "score": model.score(ordered)}


def framed(by: str, key: Any, columns: dict[str, Any], schema: str) -> Any:
    """Columns as a schema has them; those that are not there are empty."""
    import pandas as pd

    n = max((len(column) for column in columns.values()), default=0)
    # text as objects: what pandas 3 makes of it by itself, Spark's conversion does not take
    made: dict[str, Any] = {
        by: pd.Series([key] * n, dtype=object if isinstance(key, str) else None)
    }
    for part in schema.split(", "):
        name, kind = part.rsplit(" ", 1)
        name = name.strip("`")
        made[name] = pd.Series(columns.get(name, [None] * n), dtype=_DTYPES[kind])
    return pd.DataFrame(made)


def _number(kind: str) -> bool:
    return kind in _NUMERIC or kind.startswith("decimal")


def cells_of(rows: Any, channels: Sequence[str]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """A key's rows as a matrix (n, n_channels), NaN where a cell is empty."""
    return np.asarray(rows[list(channels)].to_numpy(dtype=np.float64, na_value=np.nan))


def pieces(rows: Iterator[Any]) -> Any:
    """A key's rows of one micro-batch as one table."""
    import pandas as pd

    return pd.concat(list(rows), ignore_index=True)
