import gzip
import math
from collections import Counter

import pytest

from live.feeds import CHANNELS, START, settings
from live.running import ask, running, until
from vace_ad.live.config import make_config
from vace_ad.live.records import BadRecordError
from vace_ad.live.settings import read_settings
from vace_ad.live.sources.rates import Histogram, Histograms, exponential, quantile

pytest.importorskip("opentelemetry.proto", reason="pip install 'vace-ad[otlp]'")
from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)

from vace_ad.live.sources.otlp import JSON, PROTOBUF, OtlpSource

S = 10**9


def make(**more):
    return OtlpSource(read_settings(OtlpSource.SETTINGS, more, "source"))


def request(*metrics, resource=None):
    """Metrics as the JSON of OTLP has them, of one resource."""
    attributes = {"service.name": "shop", "host.name": "n1"} if resource is None else resource
    data = {
        "resourceMetrics": [
            {
                "resource": {"attributes": pairs(attributes)},
                "scopeMetrics": [{"metrics": list(metrics)}],
            }
        ]
    }
    return json_format.ParseDict(data, ExportMetricsServiceRequest())


def pairs(attributes):
    return [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]


def point(at, value, since=0, **attributes):
    return {
        "timeUnixNano": str(at * S),
        "startTimeUnixNano": str(since * S),
        "asDouble": value,
        "attributes": pairs(attributes),
    }


def taken(source, *metrics, **more):
    points = source.parse(request(*metrics, **more).SerializeToString(), PROTOBUF)
    source.push(points)
    batch = source.read(0.0) if points else None
    return batch.records if batch else []


def sums(name, *points, temporality=2, monotonic=True):
    inside = {"aggregationTemporality": temporality, "isMonotonic": monotonic}
    return {"name": name, "sum": {**inside, "dataPoints": list(points)}}


def test_a_resource_is_an_entity_and_a_metric_a_channel():
    gauge = {"name": "queue", "gauge": {"dataPoints": [point(5, 3.0, route="/a"), point(5, 4.0)]}}
    (record,) = taken(make(), gauge)
    assert (record.entity, record.time) == ("shop/n1", 5 * S)
    assert record.values == {'queue{route="/a"}': 3.0, "queue": 4.0}


def test_both_forms_and_gzip_say_the_same():
    made, message = make(), request(sums("n", point(5, 3.0)))
    plain = made.parse(message.SerializeToString(), PROTOBUF)
    assert made.parse(json_format.MessageToJson(message).encode(), JSON) == plain
    assert made.parse(gzip.compress(message.SerializeToString()), PROTOBUF, "gzip") == plain


def test_sums_become_rates_by_their_temporality():
    made = make()
    cumulative = sums("done", point(10, 5.0), point(20, 25.0), point(30, 3.0))
    delta = sums("seen", point(20, 30.0, since=10), temporality=1)
    level = sums("waiting", point(20, 7.0), monotonic=False)  # goes up and down: a gauge
    found = {record.time // S: record.values for record in taken(made, cumulative, delta, level)}
    assert math.isnan(found[10]["done"])
    assert found[20] == {"done": 2.0, "seen": 3.0, "waiting": 7.0}
    assert found[30] == {"done": 0.3}  # began anew at zero


def test_counters_that_differ_in_hidden_attributes_are_rated_apart():
    made = make(attributes="route")
    points = [point(at, at * n, route="/", code=str(n)) for at in (10, 20) for n in (1.0, 5.0)]
    last = taken(made, sums("done", *points))[-1]
    assert last.values == {'done{route="/"}': 6.0}


def histogram(name, *points, temporality=2):
    return {
        "name": name,
        "histogram": {"aggregationTemporality": temporality, "dataPoints": list(points)},
    }


def counts(at, *numbers, since=0, bounds=(1.0, 2.0, 4.0)):
    return {
        "timeUnixNano": str(at * S),
        "startTimeUnixNano": str(since * S),
        "count": str(sum(numbers)),
        "bucketCounts": [str(n) for n in numbers],
        "explicitBounds": list(bounds),
    }


def test_histograms_become_counts_and_quantiles_of_what_was_added():
    made = make(quantiles=[0.5])
    points = counts(10, 100, 0, 0, 0), counts(20, 100, 10, 10, 0), counts(40, 100, 10, 10, 20)
    found = {record.time // S: record.values for record in taken(made, histogram("t", *points))}
    assert found == {20: {"t.count": 2.0, "t.p50": 2.0}, 40: {"t.count": 1.0, "t.p50": 4.0}}
    began_anew = counts(50, 4, 0, 0, 0, since=45)
    (record,) = taken(made, histogram("t", began_anew))
    assert record.values == {"t.count": 0.8, "t.p50": 0.5}


def exponential_histogram(scale, offset, *numbers, zero=0, negative=()):
    from opentelemetry.proto.metrics.v1.metrics_pb2 import ExponentialHistogramDataPoint as Point

    side = Point.Buckets
    count = sum(numbers) + zero + sum(negative)
    return exponential(
        Point(count=count, scale=scale, zero_count=zero,
              positive=side(offset=offset, bucket_counts=numbers),
              negative=side(bucket_counts=negative))
    )  # fmt: skip


def test_quantiles_of_exponential_buckets_at_two_scales():
    old = exponential_histogram(1, 0, 1, 1)  # (1, 1.41], (1.41, 2]
    new = exponential_histogram(0, 0, 6)  # (1, 2], coarser since
    kept = Histograms()
    assert kept.since("a", 10 * S, 0, old) is None
    added, seconds = kept.since("a", 20 * S, 0, new)
    assert (added.count, seconds, dict(added.buckets)) == (4, 10.0, {(1.0, 2.0): 4})
    assert quantile(added, 0.5) == 1.5
    assert kept.since("a", 20 * S, 0, new) is None  # twice
    both = exponential_histogram(0, 1, 2, zero=1, negative=[2])
    assert [quantile(both, level) for level in (0.2, 0.5, 1.0)] == [-1.5, 0.0, 4.0]
    assert math.isnan(quantile(Histogram(0, Counter()), 0.5))
    high = exponential_histogram(-10, 1, 2)  # beyond the largest number
    assert quantile(high, 0.5) == math.inf


def test_other_buckets_count_from_their_own_start():
    kept = Histograms()
    old, new = (Histogram(4, Counter({bucket: 4})) for bucket in ((0.0, 2.0), (0.0, 1.0)))
    kept.since("a", 10 * S, 5 * S, old)
    assert kept.since("a", 20 * S, 5 * S, new) == (new, 10.0)


def test_a_resource_without_a_name_is_left_out_and_said():
    made = make()
    assert taken(made, sums("n", point(5, 3.0)), resource={"other": "x"}) == []
    assert "none of the attributes" in made.notes[0]
    assert "it has other" in made.notes[0]


@pytest.mark.parametrize(
    ("body", "kind", "packed", "words"),
    [
        (b"\xff\xff", PROTOBUF, "", "not an OTLP request"),
        (b"{", JSON, "", "not an OTLP request"),
        (b"{}", "text/csv", "", "content-type"),
        (b"{}", JSON, "br", "content-encoding"),
        (b"{}", JSON, "gzip", "not gzip"),
    ],
)
def test_something_else_is_refused(body, kind, packed, words):
    with pytest.raises(BadRecordError, match=words):
        make().parse(body, kind, packed)


def watched(folder):
    data = settings(folder, align={"step": "1s"}, source={"kind": "otlp"})
    del data["source"]["path"]
    data["server"] = {"address": "127.0.0.1:0"}
    return make_config(data)


def test_the_exporter_of_the_sdk(tmp_path):
    pytest.importorskip("opentelemetry.sdk.metrics", reason="pip install opentelemetry-sdk")
    pytest.importorskip(
        "opentelemetry.exporter.otlp.proto.http.metric_exporter",
        reason="pip install opentelemetry-exporter-otlp-proto-http",
    )
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import Resource

    with running(watched(tmp_path)) as (watch, url):
        exporter = OTLPMetricExporter(f"{url}/v1/metrics", compression=Compression.Gzip)
        reader = PeriodicExportingMetricReader(exporter, export_interval_millis=10**7)
        resource = Resource.create({"service.name": "shop", "host.name": "n1"})
        provider = MeterProvider([reader], resource)
        meter = provider.get_meter("test")
        flow, power = meter.create_gauge("flow"), meter.create_counter("power")
        other = meter.create_histogram("level")
        for i in range(3):
            flow.set(1.0 + i)
            power.add(10)
            other.record(7.0)
            assert provider.force_flush()
        until(lambda: watch.status.counts["readings"] >= 5)
        assert list(watch.known) == ["shop/n1"]
        assert not watch.status.counts["bad"]
        provider.shutdown()


def test_the_answers_of_the_server(tmp_path):
    message = request(
        *({"name": n, "gauge": {"dataPoints": [point(START // S, 1.0)]}} for n in CHANNELS)
    )
    with running(watched(tmp_path)) as (watch, url):
        address = f"{url}/v1/metrics"
        body = json_format.MessageToJson(message).encode()
        status, headers, answer = ask(address, body)
        assert (status, answer) == (200, {})
        assert watch.status.counts["readings"] == 3
        kind = {"Content-Type": PROTOBUF}
        status, headers, answer = ask(address, message.SerializeToString(), kind)
        assert (status, headers["Content-Type"], answer) == (200, PROTOBUF, "")
        assert ask(address, b"\xff", kind)[0] == 400
