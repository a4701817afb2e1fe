"""Prometheus, VictoriaMetrics and others that answer its range and instant queries."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Literal
from urllib.parse import urlencode

from vace_ad.errors import ConfigError
from vace_ad.live.http_client import HttpClient, HttpSettings, RequestError
from vace_ad.live.records import BadRecordError, read_name, read_number
from vace_ad.live.settings import (
    Duration,
    DurationOrZero,
    HttpUrl,
    Table,
    Text,
    Texts,
    hint,
    host_of,
    key,
)
from vace_ad.live.sources import Backoff, Batch, Source
from vace_ad.live.sources.rates import Several, to_records
from vace_ad.wording import listed, plural

_POINTS = 2000  # steps asked for at once; servers allow 11,000
_SECOND = 10**9
_TRIES = 3  # of a look back and a check, which end with the server's answer
_WIDTH = 4  # steps that the rate of a counter is taken over
_COUNTER = re.compile(r"([a-zA-Z_:][\w:]*_(?:total|count|sum|bucket))\s*(\{[^{}]*\})?")
_ALL = "all"  # the entity of a series without any label


# Query sets for `vace watch --init prometheus`: by the names that client libraries and the node
# exporter give; the first one is written, the others as comments.
_RED = {
    "requests": "sum by (instance) (rate(http_requests_total[5m]))",
    "errors": 'sum by (instance) (rate(http_requests_total{code=~"5.."}[5m]))',
    "duration": "sum by (instance) (rate(http_request_duration_seconds_sum[5m])) / "
    "sum by (instance) (rate(http_request_duration_seconds_count[5m]))",
}
_USE = {
    "cpu": '1 - avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[5m]))',
    "memory": "1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes",
    "disk": "max by (instance) (rate(node_disk_io_time_seconds_total[5m]))",
    "load": 'node_load1 / on (instance) count by (instance) (node_cpu_seconds_total{mode="idle"})',
    "paging": "rate(node_vmstat_pgmajfault[5m])",
    "network_errors": "sum by (instance) (rate(node_network_receive_errs_total[5m]) + "
    "rate(node_network_transmit_errs_total[5m]))",
}


class PrometheusSettings(HttpSettings):
    """Keys of the source."""

    url: HttpUrl = key(..., "the server", '"http://127.0.0.1:9090"')
    queries: Table = key(
        ..., "PromQL by channel; a bare counter is turned into a rate",
        '{ cpu = "rate(process_cpu_seconds_total[1m])" }',
    )  # fmt: skip
    entity: Text = key("instance", "the label that names the entity")
    labels: Texts | None = key(None, "labels that are put before a channel's name", '["mode"]')
    several: Several = key(
        "mean", "how several series of one cell are combined: mean, sum, max, min"
    )
    step: Duration = key("15s", "time between evaluations of the queries")
    mode: Literal["range", "instant"] = key("range", '"range" loses nothing during a restart')
    history: DurationOrZero = key("0s", "how far to look back at the first start")
    delay: DurationOrZero = key("0s", "how long to wait until scrapes of a step have arrived")


class PrometheusSource(Source[PrometheusSettings]):
    """The results of a few queries, one for each channel, evaluated at every step."""

    SETTINGS = PrometheusSettings
    EXAMPLES: ClassVar[Any] = {
        "queries": {
            "RED: requests, errors, duration of a service": _RED,
            "USE: utilisation, saturation, errors of a machine": _USE,
        }
    }
    TEMPLATE: ClassVar[Any] = {
        "source": {"step": '"1min"', "history": '"14d"', "delay": '"30s"'},
        "align": {"step": '"1min"'},
        "model": {"learn": '"14d"'},
    }

    def __init__(self, settings: PrometheusSettings) -> None:
        super().__init__(settings)
        self._client = HttpClient(settings)
        self._step: int = settings.step
        self._until: int | None = None  # the last step that was asked for
        self._end: int | None = None  # of a look back; None goes on for ever
        self._backoff = Backoff()
        self._queries = {name: self._rated(name, q) for name, q in settings.queries.items()}

    def _rated(self, channel: str, query: str) -> str:
        """A bare counter only grows, until it falls to zero: its rate is what can be watched."""
        match = _COUNTER.fullmatch(query.strip())
        if match is None:
            return query
        window = max(60, _WIDTH * self._step // _SECOND)
        rated = f"rate({query.strip()}[{window}s])"
        self.note(f"channel {channel}: {match[1]} is a counter, so {rated} is watched")
        return rated

    def open(self, position: Any) -> None:
        """Go on after the last step that was kept."""
        if self._end is None:
            self._until = position["until"] if position else None

    def look_back(self, start: int, end: int) -> PrometheusSource:
        """Only the steps between two times."""
        self._until, self._end, self.live = start // self._step * self._step, end, False
        return self

    def read(self, timeout: float) -> Batch | None:
        """The results of the steps since the last time."""
        now = time.time_ns() - self.settings.delay if self._end is None else self._end
        latest = now // self._step * self._step
        if self._until is None:
            self._until = latest - max(self.settings.history, self._step)
        if latest <= self._until:
            if self._end is not None:
                return Batch([], {"until": self._until}, end=True)
            time.sleep(min(timeout, (self._until + self._step - now) / _SECOND))
            return None
        if time.monotonic() < self._backoff.until:
            time.sleep(min(timeout, 0.1))
            return None
        range_mode = self.settings.mode == "range" or self._end is not None
        first = self._until + self._step if range_mode else latest
        last = min(latest, first + (_POINTS - 1) * self._step)
        try:
            batch = self._ask(first, last, range_mode)
        except (RequestError, BadRecordError) as error:
            self._failed(error)
            return None
        if self._end is not None and self.problem is not None:
            raise ConfigError(f"[source] {self.problem}")
        self._backoff.worked()
        self._until = last
        return batch

    def _failed(self, error: Exception) -> None:
        """Back off; a backtest gives up after errors that will not pass."""
        wait = self._backoff.failed(time.monotonic())
        words = f"{host_of(self.settings.url)} {error}"
        status = getattr(error, "status", None)  # below 500 it is the query, or the token
        wrong = isinstance(error, BadRecordError) or (status is not None and status < 500)
        if self._end is not None and (wrong or self._backoff.failures >= _TRIES):
            raise ConfigError(f"[source] {words}")
        self.problem = f"{words}; next try in {wait:.0f} s"

    def _ask(self, first: int, last: int, range_mode: bool) -> Batch:
        """One request a channel, for all steps and entities."""
        cells: dict[tuple[str, int, str], list[float]] = {}
        bad, why, unnamed = 0, "", set[str]()
        for channel, query in self._queries.items():
            for labels, at, value in self._results(query, first, last, range_mode):
                if self.settings.entity not in labels and set(labels) - {"__name__"}:
                    unnamed |= set(labels)
                    continue
                try:
                    entity = read_name(labels.get(self.settings.entity, _ALL), "an entity")
                    front = "".join(
                        f"{labels.get(name, '')}." for name in self.settings.labels or ()
                    )
                    place = entity, at, read_name(front + channel, "a channel")
                    cells.setdefault(place, []).append(read_number(value))
                except BadRecordError as error:
                    bad, why = bad + 1, why or str(error)
        self.problem = self._missing_label(unnamed, named=bool(cells))
        for name in {name for (_, _, name), values in cells.items() if len(values) > 1}:
            self.note(
                f"channel {name}: the query gives several series of an entity, "
                f"{self.settings.several} of them is used; aggregate in the query, such as sum by "
                f"({self.settings.entity}) (…), or tell them apart with source.labels"
            )
        every = ((*place, value) for place, values in cells.items() for value in values)
        return Batch(to_records(every, self.settings.several), {"until": last}, bad, why)

    def _missing_label(self, unnamed: Iterable[str], named: bool) -> str | None:
        """What to say of series that do not have the label of the entity."""
        known = sorted(set(unnamed) - {"__name__"})
        if not known:
            return None
        wanted = self.settings.entity
        words = (
            f"source.entity = {wanted!r}: series do not have this label"
            f"{hint(wanted, known)}; they have {', '.join(known[:10])}"
        )
        if named:  # of other series: those without it are left out, and it is said
            self.note(f"{words}; they are left out")
            return None
        return f"{words}; none can be used"

    def _results(
        self, query: str, first: int, last: int, range_mode: bool
    ) -> Iterator[tuple[Mapping[str, str], int, Any]]:
        asked = {"time": last}
        if range_mode:
            asked = {"start": first, "end": last, "step": self._step}
        seconds = {name: value / _SECOND for name, value in asked.items()}
        kind = "query_range" if range_mode else "query"
        asking = urlencode({"query": query, **seconds})
        url = f"{self.settings.url.rstrip('/')}/api/v1/{kind}?{asking}"
        try:
            answer = json.loads(self._client.send(url))
            for one in answer["data"]["result"]:
                for at, value in one["values"] if range_mode else [one["value"]]:
                    yield one["metric"], round(float(at) * 1000) * 10**6, value
        except (ValueError, KeyError, TypeError) as error:
            raise BadRecordError(f"gave an answer that is not Prometheus's: {error!r}") from None

    def check(self) -> list[str]:
        """Ask once what there is now, for `--dry-run`; a server without an answer is an error."""
        now = time.time_ns() - self.settings.delay
        try:
            batch = self._ask(now, now, range_mode=False)
        except (RequestError, BadRecordError) as error:
            raise ConfigError(f"[source] {host_of(self.settings.url)} {error}") from None
        if self.problem is not None:
            raise ConfigError(f"[source] {self.problem}")
        channels = sorted({name for record in batch.records for name in record.values})
        entities = sorted({record.entity for record in batch.records})
        empty = [name for name in self._queries if not any(c.endswith(name) for c in channels)]
        lines = [
            f"now {plural(len(entities), 'entity', 'entities')}: "
            f"{listed(entities, 8) or 'none'}; channels: {listed(channels, 8) or 'none'}"
        ]
        if empty:
            lines.append(f"no series now: {listed(empty, 8)}; is the query right?")
        return lines + self.notes
