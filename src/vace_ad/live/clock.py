"""The clock: that of this machine, or that of a replay."""

from __future__ import annotations

import threading
import time


class Clock:
    """The clock of this machine."""

    def time_ns(self) -> int:
        """Nanoseconds since 1970."""
        return time.time_ns()

    def monotonic_ns(self) -> int:
        """Monotonic nanoseconds."""
        return time.monotonic_ns()

    def monotonic(self) -> float:
        """Monotonic seconds."""
        return self.monotonic_ns() / 1e9

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait for an event; True if it came."""
        return event.wait(seconds)


class SetClock(Clock):
    """A clock that changes only when it is set; never backwards."""

    def __init__(self, now: int = 0) -> None:
        self._now = now

    def time_ns(self) -> int:
        """Nanoseconds since 1970."""
        return self._now

    def monotonic_ns(self) -> int:
        """The same."""
        return self._now

    def set(self, now: int) -> None:
        """Set the time, unless it is later already."""
        self._now = max(self._now, now)
