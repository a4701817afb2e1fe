"""Prometheus remote write: a Prometheus sends what it scrapes, so nothing is scraped twice."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from fnmatch import fnmatchcase
from typing import Any, ClassVar, NamedTuple

from vace_ad.live import remote_write_codec
from vace_ad.live.records import BadRecordError, Record, read_name, read_number
from vace_ad.live.settings import Text, Texts, key
from vace_ad.live.sources.push import PushSettings, PushSource
from vace_ad.live.sources.rates import COUNTER, Rates, Several, channel_of, to_records

_NOT_NAMED = ("__name__", "job")  # labels that are not part of a channel's name
_BUCKET = "_bucket"
_SERIES = 1_000_000  # remembered with their places
Labels = tuple[tuple[str, str], ...]


class Sample(NamedTuple):
    """A sample of a series that is watched."""

    entity: str
    time: int  # nanoseconds
    channel: str
    value: float
    counter: Hashable | None  # which counter it is of, where it is of one


class RemoteWriteSettings(PushSettings):
    """Keys of the source."""

    entity: Text = key("instance", "the label that names the entity")
    metrics: Texts | None = key(
        None, "which metrics to take, by pattern; others are left out", '["node_*"]'
    )
    labels: Texts | None = key(
        None, "labels in a channel's name; by default all but entity and job", '["mode"]'
    )
    several: Several = key(
        "sum", "how several series of one cell are combined: mean, sum, max, min"
    )
    counters: Texts | None = key(
        None, "more counters, by pattern; *_total and metadata are recognised", '["bytes"]'
    )


class RemoteWriteSource(PushSource[RemoteWriteSettings]):
    """Series that a Prometheus, an agent or a collector writes to `/api/v1/write`."""

    SETTINGS = RemoteWriteSettings
    needs_step = True
    TEMPLATE: ClassVar[Any] = {
        "source": {"metrics": '["node_load*", "node_memory_Mem*", "node_network_*_bytes_total"]'},
        "align": {"step": '"30s"', "lateness": '"30s"', "fill": '"hold"'},
        "model": {"learn": '"14d"'},
    }

    def __init__(self, settings: RemoteWriteSettings) -> None:
        super().__init__(settings)
        remote_write_codec.check_installed()
        self._rates = Rates()
        self._counters: dict[str, bool] = {}  # what metadata said, where the name does not say it
        self._places: dict[Labels, tuple[str, str, bool] | tuple[()] | None] = {}

    def open(self, position: Any) -> None:
        """Requests that were not answered come again; which metrics are counters is known still."""
        self._counters |= dict.fromkeys((position or {}).get("counters", ()), True)
        self._counters |= dict.fromkeys((position or {}).get("gauges", ()), False)

    def parse(self, body: bytes) -> list[Sample]:
        """The readings of a request; series that cannot be used are left out and noted."""
        written = remote_write_codec.decode(body)
        for name, counter in written.types.items():
            if counter != (COUNTER.fullmatch(name) is not None) and self._takes(name):
                self._counters[name] = counter
                self._places.clear()
        if len(self._places) > _SERIES:
            self._places.clear()
        readings: list[Sample] = []
        for labels, samples in written.series:
            place = self._places.get(labels, ())
            if place == ():
                place = self._places[labels] = self._place(dict(labels))
            if place:
                entity, channel, counter = place
                series = labels if counter else None
                readings += [
                    Sample(entity, time * 10**6, channel, read_number(value), series)
                    for time, value in samples
                ]
        return readings

    def _place(self, labels: Mapping[str, str]) -> tuple[str, str, bool] | None:
        """Entity and channel of a series, and whether it is a counter; None leaves it out."""
        name, wanted = labels.get("__name__", ""), self.settings.entity
        if not self._takes(name):
            return None
        if wanted not in labels:
            self.note(
                f"series of {name!a} have no label {wanted!r} and are left out; source.entity "
                "names the label of the entity"
            )
            return None
        if name.endswith(_BUCKET) and "le" in labels:
            self.note(
                f"the buckets of {name!a} are left out: its _count and _sum are rated; write a "
                "quantile with a recording rule to watch one"
            )
            return None
        inside = self.settings.labels or [
            one for one in labels if one not in _NOT_NAMED and one != wanted
        ]
        pairs = [(one, labels[one]) for one in sorted(inside) if one in labels]
        try:
            return (
                read_name(labels[wanted], "an entity"),
                read_name(channel_of(name, pairs), "a channel"),
                self._counter(name),
            )
        except BadRecordError as error:
            self.note(f"series of {name!a} are left out: {error}")
            return None

    def _counter(self, name: str) -> bool:
        known = self._counters.get(name)
        if known is None:
            known = COUNTER.fullmatch(name) is not None
        return known or any(fnmatchcase(name, one) for one in self.settings.counters or ())

    def _takes(self, name: str) -> bool:
        patterns = self.settings.metrics
        return not patterns or any(fnmatchcase(name, one) for one in patterns)

    def _records(self, items: list[Sample]) -> list[Record]:
        cells: list[tuple[str, int, str, float]] = []
        for entity, time, channel, value, counter in items:
            found: float | None = value
            if counter is not None:
                found = self._rates.of(counter, time, value)
            if found is not None:
                cells.append((entity, time, channel, found))
        return to_records(cells, self.settings.several)

    def _position(self) -> dict[str, Any]:
        known = sorted(self._counters.items())
        return {
            "count": self._count,
            "counters": [name for name, counter in known if counter],
            "gauges": [name for name, counter in known if not counter],
        }

    def acknowledge(self, position: Any) -> None:
        """Answer the requests whose records are stored."""
        super().acknowledge(position["count"])
