"""One key of a streaming DataFrame: its model and the state of its stream, kept by Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql.streaming import StatefulProcessor
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from vace_ad.alarms.events import event_columns
from vace_ad.errors import VaceError
from vace_ad.spark import Columns, framed, model_of, stamps_of
from vace_ad.stream import Stream


class KeyStream(StatefulProcessor):  # type: ignore[misc]
    """Runs each key's rows through its stream."""

    def __init__(
        self, by: str, time: str, budget: str | None, columns: Columns, *, alarms: bool
    ) -> None:
        self._by, self._time, self._budget = by, time, budget
        self._columns, self._alarms = columns, alarms

    def init(self, handle: Any) -> None:
        """Name what is kept of a key."""
        self._model = handle.getValueState("model", "model binary")
        # the stream; times of rows without a final score, as microseconds; the time of the last row
        self._stream = handle.getValueState("stream", "stream binary, times binary, last bigint")

    def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:  # noqa: N802
        """The table of models, before the first row."""
        for data in initialState["model"]:
            if data is not None:
                self._model.update((bytes(data),))

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802
        """The next rows of a key."""
        table = pd.concat(list(rows), ignore_index=True)  # of one micro-batch
        if not self._model.exists():
            yield self._failed(key, f"{key[0]!r} has no model; its rows are not scored")
            return
        try:
            with threadpool_limits(1):
                yield self._framed(key, self._work(table))
        except VaceError as wrong:
            yield self._failed(key, str(wrong))

    def _work(self, table: Any) -> dict[str, Any]:
        detector = model_of(bytes(self._model.get()[0]))
        table = table.sort_values(self._time, kind="stable")
        stamps = stamps_of(table[self._time])
        if self._stream.exists():
            state, waiting, last = self._stream.get()
            stream = Stream.from_bytes(bytes(state), detector, trusted=True)
            held = np.frombuffer(bytes(waiting), np.int64)
        else:
            stream, held = detector.stream(budget=self._budget), np.empty(0, np.int64)
            last = np.iinfo(np.int64).min  # not a time: rows without one are dropped
        fresh = (stamps > last) & np.r_[True, stamps[1:] > stamps[:-1]]
        cells = table[list(detector.channels_)].to_numpy(dtype=np.float64, na_value=np.nan)[fresh]
        stamps = stamps[fresh]
        if not len(stamps):
            return {}
        times = stamps.view("datetime64[us]")
        added = stream.add(cells, times)
        held = np.concatenate([held, stamps])
        done, held = held[: len(added.scores)], held[len(added.scores) :]
        self._stream.update((stream.to_bytes(), held.tobytes(), int(stamps[-1])))
        if self._alarms:
            return _alarms(added.changes, times[-1])
        return {self._time: done.view("datetime64[us]"), "score": added.scores}

    def _framed(self, key: Any, columns: dict[str, Any]) -> Any:
        return framed(self._by, key[0], columns, self._columns)

    def _failed(self, key: Any, words: str) -> Any:
        return self._framed(key, {"what": ["error"], "error": [words]})

    def close(self) -> None:
        """Spark keeps the state."""


def _alarms(changes: Any, now: np.datetime64) -> dict[str, Any]:
    events = [change.event for change in changes]
    columns = event_columns(events)
    return {
        **columns,
        "what": [change.what for change in changes],
        "event": [event.id for event in events],
        "time": [now] * len(events),
    }
