"""Prometheus, VictoriaMetrics and others that answer its range and instant queries."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

from vace_ad.live import fields as f
from vace_ad.live.fields import Field
from vace_ad.live.records import BadRecordError, Record, read_name, read_number
from vace_ad.live.request import CONNECTION, Caller, RequestError
from vace_ad.live.sources import Backoff, Batch

_POINTS = 2000  # steps asked for at once; servers allow 11,000
_SECOND = 10**9


class PrometheusSource:
    """The results of a few queries, one a channel, evaluated at every step."""

    FIELDS: Mapping[str, Field] = {
        "url": Field(f.url("http", "https"), f.REQUIRED, "the server", '"http://127.0.0.1:9090"'),
        "queries": Field(
            f.mapping,
            f.REQUIRED,
            "PromQL by channel",
            '{ cpu = "rate(process_cpu_seconds_total[1m])" }',
        ),
        "entity": Field(f.text, "instance", "the label that names the entity"),
        "labels": Field(f.texts, (), "labels that are put before a channel's name", '["mode"]'),
        "step": Field(f.duration, 15 * _SECOND, "how often queries are evaluated"),
        "mode": Field(
            f.choice("range", "instant"), "range", '"range" loses nothing while we are away'
        ),
        "history": Field(f.pause, 0, "how far to look back at the first start"),
        "delay": Field(f.pause, 0, "how long to wait until scrapes of a step have arrived"),
        **CONNECTION,
    }
    live, eager = True, False

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings, self._caller = settings, Caller(settings)
        self._step: int = settings["step"]
        self._until: int | None = None  # the last step that was asked for
        self._end: int | None = None  # of a look back; None goes on for ever
        self._backoff = Backoff()
        self.problem: str | None = None

    def open(self, position: Any) -> None:
        """Go on after the last step that was kept."""
        self._until = position["until"] if position else None

    def look_back(self, start: int, end: int) -> None:
        """Only the steps between two times."""
        self._until, self._end, self.live = start // self._step * self._step, end, False

    def read(self, timeout: float) -> Batch | None:
        """The results of the steps since the last time."""
        now = time.time_ns() - self._settings["delay"] if self._end is None else self._end
        latest = now // self._step * self._step
        if self._until is None:
            self._until = latest - max(self._settings["history"], self._step)
        if latest <= self._until:
            if self._end is not None:
                return Batch([], {"until": self._until}, end=True)
            time.sleep(min(timeout, (self._until + self._step - now) / _SECOND))
            return None
        if time.monotonic() < self._backoff.until:
            time.sleep(min(timeout, 0.1))
            return None
        range_mode = self._settings["mode"] == "range" or self._end is not None
        first = self._until + self._step if range_mode else latest
        last = min(latest, first + (_POINTS - 1) * self._step)
        try:
            batch = self._ask(first, last, range_mode)
        except (RequestError, BadRecordError) as error:
            wait = self._backoff.failed(time.monotonic())
            self.problem = f"{self._settings['url']} {error}; next try in {wait:.0f} s"
            return None
        self._backoff.worked()
        self.problem = None
        self._until = last
        return batch

    def _ask(self, first: int, last: int, range_mode: bool) -> Batch:
        rows: dict[tuple[int, str], dict[str, float]] = {}
        bad, why = 0, ""
        for channel, query in self._settings["queries"].items():
            for labels, at, value in self._results(query, first, last, range_mode):
                try:
                    entity = read_name(labels.get(self._settings["entity"], "all"), "an entity")
                    front = "".join(f"{labels.get(name, '')}." for name in self._settings["labels"])
                    name = read_name(front + channel, "a channel")
                    cells = rows.setdefault((at, entity), {})
                    cells.setdefault(name, read_number(value))
                except BadRecordError as error:
                    bad, why = bad + 1, why or str(error)
        records = [Record(entity, at, cells) for (at, entity), cells in sorted(rows.items())]
        return Batch(records, {"until": last}, bad, why)

    def _results(
        self, query: str, first: int, last: int, range_mode: bool
    ) -> Iterator[tuple[Mapping[str, str], int, Any]]:
        seconds = {"start": first / _SECOND, "end": last / _SECOND, "step": self._step / _SECOND}
        asked: dict[str, Any] = {"query": query, "time": last / _SECOND}
        if range_mode:
            asked = {"query": query, **seconds}
        kind = "query_range" if range_mode else "query"
        url = f"{self._settings['url'].rstrip('/')}/api/v1/{kind}?{urlencode(asked)}"
        try:
            answer = json.loads(self._caller.send(url))
            series = answer["data"]["result"]
            for one in series:
                for at, value in one["values"] if range_mode else [one["value"]]:
                    yield one["metric"], round(float(at) * 1000) * 10**6, value
        except (ValueError, KeyError, TypeError) as error:
            raise BadRecordError(f"gave an answer that is not Prometheus's: {error!r}") from None

    def acknowledge(self, position: Any) -> None:
        """The server keeps its own."""

    def close(self) -> None:
        """Nothing is open between requests."""
