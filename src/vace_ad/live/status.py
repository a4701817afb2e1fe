"""What an operator sees: counters, latencies, problems; and news for whoever listens."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from typing import Any

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)  # seconds
COUNTED = (
    "readings", "rows", "late", "twice", "replayed", "future", "empty", "reordered", "bad",
    "unknown_channel", "too_many_channels", "too_many_entities", "no_model", "sent", "send_failed",
    "refused", "outbox_dropped", "accepted", "checkpoints", "rounds", "alarms_opened",
    "alarms_resolved", "unscored",
)  # fmt: skip


class Histogram:
    """Durations by bucket, and their sum."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        self.sum = 0.0

    def observe(self, seconds: float) -> None:
        """Count a duration."""
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.sum += seconds


class Status:
    """Everything that is counted or wrong, written by one thread and read by others."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter(dict.fromkeys(COUNTED, 0))
        self.started = time.time()
        self.checkpoint = time.time()  # of the last one
        self.checkpoint_seconds = Histogram()
        self.alert_seconds = Histogram()  # from a row's arrival to the delivery of its alarm
        self.row_seconds = Histogram()  # from a row's arrival to its state being kept
        self.phases: Counter[str] = Counter()
        self.loaded = 0
        self.n_open = 0  # alarms
        self.waiting: dict[str, int] = {}  # messages by sink
        self.problems: dict[str, str] = {}  # by part: source, state, sink names
        self._listeners: list[Callable[[str, Any], None]] = []
        self._lock = threading.Lock()

    def problem(self, part: str, words: str | None) -> bool:
        """Set or clear what is wrong with a part; True if that is news."""
        if words is None:
            return self.problems.pop(part, None) is not None
        news = part not in self.problems
        self.problems[part] = words
        return news

    @property
    def ready(self) -> bool:
        """Whether readings come, are used, scored and kept; a sink that is down does not matter."""
        return not {"source", "state", "start", "clock", "score"} & set(self.problems)

    def listen(self, listener: Callable[[str, Any], None]) -> Callable[[], None]:
        """Hear of news; returns what ends it."""
        with self._lock:
            self._listeners.append(listener)

        def stop() -> None:
            with self._lock:
                self._listeners.remove(listener)

        return stop

    def tell(self, kind: str, data: Any) -> None:
        """Tell everybody who listens."""
        if not self._listeners:
            return
        with self._lock:
            listeners = list(self._listeners)
        for listener in listeners:
            listener(kind, data)
