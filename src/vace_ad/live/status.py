"""The state of a watch for operators: counters, latencies, problems, and events for the page."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from vace_ad.errors import needs

with needs("prometheus-client", "live", "vace watch"):
    from prometheus_client import CollectorRegistry, Histogram

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
    """Counters and problems, written by one thread and read by others."""

    def __init__(self) -> None:
        # a Counter, not the client's counters: these are added to for every reading
        self.counts = Counter(dict.fromkeys((*DROPPED, *COUNTERS, "accepted", "rounds"), 0))
        self.started = time.time()
        self.checkpoint = time.time()  # of the last one
        self.registry = CollectorRegistry()
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
