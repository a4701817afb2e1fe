"""What Prometheus scrapes: the counters and latencies of a watch."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from vace_ad.live.sinks.prometheus import LABELS, PrometheusSink
from vace_ad.live.status import COUNTERS, DROPPED, Status


class Collector:
    """Reads a status when it is scraped."""

    def __init__(self, status: Status, sinks: list[Any]) -> None:
        self._status = status
        self._sinks = [sink for sink in sinks if isinstance(sink, PrometheusSink)]

    def collect(self) -> Iterator[Metric]:
        """Every series but the histograms, which the registry has itself."""
        status, counts = self._status, self._status.counts
        for name, words in COUNTERS.items():
            yield CounterMetricFamily(f"vace_{name}", words, value=counts[name])
        dropped = CounterMetricFamily("vace_dropped", "readings not used", labels=["why"])
        for why in DROPPED:
            dropped.add_metric([why], counts[why])
        yield dropped
        for name, words, value in (
            ("ready", "whether readings arrive and are stored", float(status.ready)),
            ("checkpoint_age_seconds", "since the last", time.time() - status.checkpoint),
            ("entities_loaded", "entities in memory", status.loaded),
            ("start_time_seconds", "of the watch", status.started),
            ("alarms_open", "open alarms", status.n_open),
        ):
            yield GaugeMetricFamily(f"vace_{name}", words, value=value)
        phases = {name: status.phases[name] for name in ("learning", "fitting", "watching")}
        problems = dict.fromkeys(list(status.problems), 1)
        yield _labelled("vace_entities", "entities by phase", "phase", phases)
        yield _labelled("vace_outbox", "unsent messages", "sink", status.waiting)
        yield _labelled("vace_problem", "1 while something is wrong", "part", problems)
        for sink in self._sinks:
            family = GaugeMetricFamily("vace_alarm", "severity of an open alarm", labels=LABELS)
            for values, severity in sink.series():
                family.add_metric(values, severity)
            yield family


def exposition(status: Status, sinks: list[Any]) -> bytes:
    """The text that Prometheus reads."""
    registry = CollectorRegistry()
    registry.register(Collector(status, sinks))
    return generate_latest(registry) + generate_latest(status.registry)


def _labelled(name: str, words: str, label: str, values: dict[str, int]) -> Metric:
    family = GaugeMetricFamily(name, words, labels=[label])
    for value, number in values.items():
        family.add_metric([value], number)
    return family
