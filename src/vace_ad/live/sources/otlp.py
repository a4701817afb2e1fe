"""OpenTelemetry metrics over HTTP (OTLP): entities of resources, channels of metrics."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from math import isfinite, nan
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import BeforeValidator

from vace_ad.errors import needs
from vace_ad.live.records import BadRecordError, Record, read_name, read_number
from vace_ad.live.settings import Texts, key
from vace_ad.live.sources.push import PushSettings, PushSource
from vace_ad.live.sources.rates import (
    Histogram,
    Histograms,
    Rates,
    Several,
    channel_of,
    explicit,
    exponential,
    quantile,
    to_records,
)

PROTOBUF, JSON = "application/x-protobuf", "application/json"
_DELTA, _CUMULATIVE = 1, 2  # how the values of a sum relate to time
_NO_VALUE = 1  # flag of a point: its series has ended
_LARGEST = 64 << 20  # bytes that a request may become


def _levels(value: Any) -> tuple[float, ...]:
    items = value if isinstance(value, list) else [value]
    good = all(isinstance(one, float | int) and 0 < one < 1 for one in items)
    if not items or not good:
        raise ValueError("a list of numbers between 0 and 1, such as [0.5, 0.99]")
    return tuple(float(one) for one in items)


Levels = Annotated[tuple[float, ...], BeforeValidator(_levels)]
Labels = tuple[tuple[str, str], ...]


class DataPoint(NamedTuple):
    """A reading, with what it takes to make a rate of it."""

    entity: str
    time: int  # nanoseconds
    name: str
    labels: Labels  # in the channel's name
    series: Labels  # all of them, which identify a counter
    kind: str  # "gauge", "delta", "cumulative"
    value: float | Histogram
    start: int = 0  # since when a delta or a histogram counts


class OtlpSettings(PushSettings):
    """Keys of the source."""

    entity: Texts = key(
        ["service.namespace", "service.name", "host.name"],
        "attributes of a resource that make the entity's name, those it has, joined by /",
    )
    attributes: Texts | None = key(
        None, "attributes in a channel's name; by default all", '["http.route"]'
    )
    several: Several = key(
        "sum", "how several points of one cell are combined: mean, sum, max, min"
    )
    quantiles: Levels = key([0.5, 0.99], "quantiles of histograms, each a channel")


class OtlpSource(PushSource[OtlpSettings]):
    """Metrics that exporters and collectors send to `/v1/metrics`."""

    SETTINGS = OtlpSettings
    needs_step = True
    TEMPLATE: ClassVar[Any] = {
        "source": {"entity": '["service.namespace", "service.name", "host.name"]'},
        "align": {"step": '"1min"', "lateness": '"30s"', "fill": '"hold"'},
        "model": {"learn": '"14d"'},
    }

    def __init__(self, settings: OtlpSettings) -> None:
        super().__init__(settings)
        with needs("opentelemetry-proto", "otlp", "OTLP"):
            from google.protobuf import json_format
            from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
        self._json, self._service = json_format, metrics_service_pb2
        self._rates, self._histograms = Rates(), Histograms()

    # -------------------------------------------------------------------- requests

    def parse(self, body: bytes, kind: str, packed: str = "") -> list[DataPoint]:
        """The points of a request; what cannot be used is left out and noted."""
        if packed not in ("", "identity", "gzip"):
            raise BadRecordError(f"content-encoding {packed!r}: must be gzip or absent")
        body = _unpacked(body) if packed == "gzip" else body
        request = self._service.ExportMetricsServiceRequest()
        try:
            if kind == PROTOBUF:
                request.ParseFromString(body)
            elif kind == JSON:
                self._json.Parse(body, request, ignore_unknown_fields=True)
            else:
                raise BadRecordError(f"content-type {kind!r}: must be {PROTOBUF} or {JSON}")
        except BadRecordError:
            raise
        except Exception as error:  # protobuf raises its own kinds
            words = str(error)[:200]
            raise BadRecordError(f"not an OTLP request for metrics: {words}") from None
        return list(self._points(request))

    def _points(self, request: Any) -> Iterator[DataPoint]:
        for resource in request.resource_metrics:
            entity = self._entity(_labels(resource.resource.attributes))
            if entity is None:
                continue
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    yield from self._metric(entity, metric)

    def _entity(self, attributes: Mapping[str, str]) -> str | None:
        wanted = self.settings.entity
        parts = [attributes[name] for name in wanted if attributes.get(name)]
        if not parts:
            self.note(
                f"a resource has none of the attributes {', '.join(wanted)}, so it has no name and "
                f"is left out; it has {', '.join(sorted(attributes)[:10]) or 'none'}; set "
                "source.entity"
            )
            return None
        try:
            return read_name("/".join(parts), "an entity")
        except BadRecordError as error:
            self.note(f"a resource is left out: {error}")
            return None

    def _metric(self, entity: str, metric: Any) -> Iterator[DataPoint]:
        shape = metric.WhichOneof("data")
        if shape is None:
            return
        data = getattr(metric, shape)
        kind = {_DELTA: "delta", _CUMULATIVE: "cumulative"}.get(
            getattr(data, "aggregation_temporality", _CUMULATIVE), "cumulative"
        )
        if shape == "gauge" or (shape == "sum" and kind != "delta" and not data.is_monotonic):
            kind = "gauge"
        for point in data.data_points:
            series = tuple(sorted(_labels(point.attributes).items()))
            both = self._shown(series), series
            ended = bool(point.flags & _NO_VALUE)
            time, start = point.time_unix_nano, point.start_time_unix_nano
            head = (entity, time, metric.name, *both)
            if shape in ("gauge", "sum"):
                which = point.WhichOneof("value")
                value = nan if ended or which is None else read_number(getattr(point, which))
                yield DataPoint(*head, kind, value, start)
            elif shape == "summary":
                count = nan if ended else float(point.count)
                yield DataPoint(entity, time, f"{metric.name}.count", *both, "cumulative", count)
                for one in point.quantile_values:
                    level = _percentile(one.quantile)
                    value = nan if ended else read_number(one.value)
                    yield DataPoint(entity, time, f"{metric.name}.{level}", *both, "gauge", value)
            elif not ended:
                make = explicit if shape == "histogram" else exponential
                yield DataPoint(*head, kind, make(point), start)

    def _shown(self, series: Labels) -> Labels:
        wanted = self.settings.attributes
        return tuple(pair for pair in series if pair[0] in wanted) if wanted else series

    # --------------------------------------------------------------------- records

    def _records(self, items: list[DataPoint]) -> list[Record]:
        cells = []
        for point in items:
            for name, value in self._cells(point):
                try:
                    channel = read_name(channel_of(name, point.labels), "a channel")
                except BadRecordError as error:
                    self.note(f"a metric is left out: {error}")
                    continue
                cells.append((point.entity, point.time, channel, value))
        return to_records(cells, self.settings.several)

    def _cells(self, point: DataPoint) -> Iterator[tuple[str, float]]:
        """What a point says of its time: a value, a rate, or a rate and quantiles."""
        value = point.value
        if isinstance(value, Histogram):
            yield from self._histogram_cells(point, value)
        elif point.kind == "gauge":
            yield point.name, value
        elif point.kind == "delta":
            seconds = (point.time - point.start) / 1e9
            if point.start and seconds > 0:
                yield point.name, value / seconds
        else:
            series = point.entity, point.name, point.series
            rate = self._rates.of(series, point.time, value)
            if rate is not None:
                yield point.name, rate

    def _histogram_cells(self, point: DataPoint, whole: Histogram) -> Iterator[tuple[str, float]]:
        """The rate of a histogram's observations, and their quantiles since the last point."""
        new, seconds = whole, (point.time - point.start) / 1e9
        if point.kind == "cumulative":
            series = point.entity, point.name, point.series
            found = self._histograms.since(series, point.time, point.start, whole)
            if found is None:
                return
            new, seconds = found
        if not seconds > 0:
            return
        yield f"{point.name}.count", new.count / seconds
        for level in self.settings.quantiles:
            value = quantile(new, level)
            if isfinite(value):
                yield f"{point.name}.{_percentile(level)}", value


def _percentile(level: float) -> str:
    return f"p{100 * level:g}"


def _labels(attributes: Any) -> dict[str, str]:
    """Attributes as text; lists and maps are left out."""
    found = {}
    for one in attributes:
        which = one.value.WhichOneof("value")
        if which in ("string_value", "int_value", "bool_value", "double_value"):
            value = getattr(one.value, which)
            found[one.key] = str(value).lower() if which == "bool_value" else str(value)
    return found


def _unpacked(body: bytes) -> bytes:
    unpack = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        plain = unpack.decompress(body, _LARGEST)
    except zlib.error as error:
        raise BadRecordError(f"the body is not gzip: {error}") from None
    if unpack.unconsumed_tail:
        raise BadRecordError(f"the request is more than {_LARGEST:,} bytes unpacked")
    return plain
