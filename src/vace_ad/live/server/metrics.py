"""What Prometheus scrapes: the counters and latencies of the watch."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from vace_ad.live.sinks.gauges import LABELS, GaugeSink
from vace_ad.live.status import BOUNDS, Histogram, Status

_DROPPED = ("late", "twice", "replayed", "future", "empty", "bad", "unknown_channel",
            "too_many_channels", "too_many_entities", "no_model")  # fmt: skip
_COUNTERS = {
    "readings": "readings put in place", "rows": "rows worked off",
    "unscored": "rows that a model could give no score",
    "reordered": "readings that came late and were put in place", "sent": "messages delivered",
    "send_failed": "deliveries that failed and are tried again",
    "refused": "messages that a sink refused for good",
    "outbox_dropped": "messages that a full outbox pushed out",
    "damaged": "entities whose state was damaged and began anew",
    "checkpoints": "transactions kept", "alarms_opened": "alarms opened",
    "alarms_resolved": "alarms resolved",
}  # fmt: skip


class Collector:
    """Reads a status when it is scraped."""

    def __init__(self, status: Status, sinks: list[Any]) -> None:
        self._status = status
        self._gauges = [sink for sink in sinks if isinstance(sink, GaugeSink)]

    def collect(self) -> Iterator[Metric]:
        """Every series."""
        status, counts = self._status, self._status.counts
        for name, words in _COUNTERS.items():
            yield CounterMetricFamily(f"vace_{name}", words, value=counts[name])
        dropped = CounterMetricFamily("vace_dropped", "readings not used", labels=["why"])
        for why in _DROPPED:
            dropped.add_metric([why], counts[why])
        yield dropped
        yield _histogram("vace_row_seconds", "from arrival to being kept", status.row_seconds)
        yield _histogram("vace_alert_seconds", "from arrival to delivery", status.alert_seconds)
        yield _histogram("vace_checkpoint_seconds", "of a transaction", status.checkpoint_seconds)
        yield _gauge("vace_ready", "whether readings come and are kept", float(status.ready))
        yield _gauge(
            "vace_checkpoint_age_seconds", "since the last", time.time() - status.checkpoint
        )
        yield _gauge("vace_entities_loaded", "entities in memory", status.loaded)
        yield _gauge("vace_start_time_seconds", "of the watch", status.started)
        entities = GaugeMetricFamily("vace_entities", "by what they do", labels=["phase"])
        for phase in ("learning", "fitting", "watching"):
            entities.add_metric([phase], status.phases[phase])
        yield entities
        yield _gauge("vace_alarms_open", "alarms that are open", status.n_open)
        waiting = GaugeMetricFamily("vace_outbox", "messages that wait", labels=["sink"])
        for sink, n in status.waiting.items():
            waiting.add_metric([sink], n)
        yield waiting
        problems = GaugeMetricFamily("vace_problem", "1 while something is wrong", labels=["part"])
        for part in list(status.problems):
            problems.add_metric([part], 1)
        yield problems
        yield from self._alarms()

    def _alarms(self) -> Iterator[Metric]:
        for sink in self._gauges:
            family = GaugeMetricFamily(
                "vace_alarm", "severity of an open alarm, 0 to 100", labels=LABELS
            )
            for values, severity in sink.series():
                family.add_metric(list(values), severity)
            yield family


def exposition(status: Status, sinks: list[Any]) -> bytes:
    """The text that Prometheus reads."""
    registry = CollectorRegistry()
    registry.register(Collector(status, sinks))
    return generate_latest(registry)


def _gauge(name: str, words: str, value: float) -> Metric:
    return GaugeMetricFamily(name, words, value=value)


def _histogram(name: str, words: str, histogram: Histogram) -> Metric:
    total, buckets = 0, []
    for bound, count in zip([*map(str, BOUNDS), "+Inf"], list(histogram.counts), strict=True):
        total += count
        buckets.append((bound, float(total)))
    return HistogramMetricFamily(name, words, buckets=buckets, sum_value=histogram.sum)
