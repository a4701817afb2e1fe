"""The state of a watch for operators: counters, latencies, problems; what Prometheus scrapes."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from vace_ad.errors import needs
from vace_ad.live.sinks.prometheus import LABELS, PrometheusSink

with needs("prometheus-client", "live", "vace watch"):
    from prometheus_client import CollectorRegistry, Histogram
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)  # seconds
DROPPED = (
    "late", "twice", "replayed", "future", "empty", "bad", "unknown_channel", "too_many_channels",
    "too_many_entities", "no_model",
)  # fmt: skip
COUNTERS = {
    "readings": "readings used", "rows": "rows processed",
    "unscored": "rows without a score",
    "reordered": "readings that arrived late and were used", "sent": "messages delivered",
    "send_failed": "deliveries that failed and are tried again",
    "refused": "messages that a sink refused for good",
    "outbox_dropped": "messages dropped because the outbox was full",
    "damaged": "entities whose state was damaged and started again",
    "checkpoints": "transactions written", "alarms_opened": "alarms opened",
    "alarms_resolved": "alarms resolved",
}  # fmt: skip


class Status:
    """Counters and problems, written by one thread and read by others; Prometheus collects it."""

    def __init__(self) -> None:
        # a Counter, not the client's counters: these are added to for every reading
        self.counts = Counter(dict.fromkeys((*DROPPED, *COUNTERS, "accepted", "rounds"), 0))
        self.started = time.time()
        self.checkpoint = time.time()  # of the last one
        self.sinks: list[Any] = []  # those of Prometheus have series too
        self.registry = CollectorRegistry()
        self.registry.register(self)
        self.checkpoint_seconds = self._histogram("checkpoint", "duration of a transaction")
        self.alert_seconds = self._histogram("alert", "from arrival of a row to delivery")
        self.row_seconds = self._histogram("row", "from arrival of a row to its checkpoint")
        self.phases: Counter[str] = Counter()
        self.loaded = 0
        self.n_open = 0  # alarms
        self.waiting: dict[str, int] = {}  # messages by sink
        self.problems: dict[str, str] = {}  # by part: source, state, sink names
        self._listeners: list[Callable[[str, Any], None]] = []
        self._lock = threading.Lock()

    def _histogram(self, name: str, words: str) -> Histogram:
        return Histogram(f"vace_{name}_seconds", words, registry=self.registry, buckets=_BUCKETS)

    def problem(self, part: str, words: str | None) -> bool:
        """Set or clear the problem of a part; True if that is a change."""
        if words is None:
            return self.problems.pop(part, None) is not None
        news = part not in self.problems
        self.problems[part] = words
        return news

    @property
    def ready(self) -> bool:
        """Whether readings arrive, are used, scored and stored; sinks do not count."""
        return not {"source", "state", "start", "clock", "score"} & set(self.problems)

    def listen(self, listener: Callable[[str, Any], None]) -> Callable[[], None]:
        """Call a listener with every event; returns a function that ends it."""
        with self._lock:
            self._listeners.append(listener)

        def stop() -> None:
            with self._lock:
                self._listeners.remove(listener)

        return stop

    def tell(self, kind: str, data: Any) -> None:
        """Send an event to all listeners."""
        if not self._listeners:
            return
        with self._lock:
            listeners = list(self._listeners)
        for listener in listeners:
            listener(kind, data)

    def collect(self) -> Iterator[Metric]:
        """Every series but the histograms, which the registry has itself; at each scrape."""
        for name, words in COUNTERS.items():
            yield CounterMetricFamily(f"vace_{name}", words, value=self.counts[name])
        dropped = CounterMetricFamily("vace_dropped", "readings not used", labels=["why"])
        for why in DROPPED:
            dropped.add_metric([why], self.counts[why])
        yield dropped
        for name, words, value in (
            ("ready", "whether readings arrive and are stored", float(self.ready)),
            ("checkpoint_age_seconds", "since the last", time.time() - self.checkpoint),
            ("entities_loaded", "entities in memory", self.loaded),
            ("start_time_seconds", "of the watch", self.started),
            ("alarms_open", "open alarms", self.n_open),
        ):
            yield GaugeMetricFamily(f"vace_{name}", words, value=value)
        phases = {name: self.phases[name] for name in ("learning", "fitting", "watching")}
        problems = dict.fromkeys(list(self.problems), 1)
        yield _labelled("vace_entities", "entities by phase", "phase", phases)
        yield _labelled("vace_outbox", "unsent messages", "sink", self.waiting)
        yield _labelled("vace_problem", "1 while something is wrong", "part", problems)
        for sink in (one for one in self.sinks if isinstance(one, PrometheusSink)):
            family = GaugeMetricFamily("vace_alarm", "severity of an open alarm", labels=LABELS)
            for values, severity in sink.series():
                family.add_metric(values, severity)
            yield family


def _labelled(name: str, words: str, label: str, values: dict[str, int]) -> Metric:
    family = GaugeMetricFamily(name, words, labels=[label])
    for value, number in values.items():
        family.add_metric([value], number)
    return family
