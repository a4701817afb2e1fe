"""What time it is: this machine's clock, or that of a past that is run through again."""

from __future__ import annotations

import threading
import time


class Clock:
    """The clock of this machine."""

    def time_ns(self) -> int:
        """Nanoseconds since 1970."""
        return time.time_ns()

    def monotonic_ns(self) -> int:
        """Nanoseconds that pass as they should, whatever the clock is set to."""
        return time.monotonic_ns()

    def monotonic(self) -> float:
        """The same in seconds."""
        return self.monotonic_ns() / 1e9

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait for an event; whether it came."""
        return event.wait(seconds)


class SetClock(Clock):
    """A clock that stands still until it is set; it is never set back."""

    def __init__(self, now: int = 0) -> None:
        self._now = now

    def time_ns(self) -> int:
        """Nanoseconds since 1970."""
        return self._now

    def monotonic_ns(self) -> int:
        """The same."""
        return self._now

    def set(self, now: int) -> None:
        """It is this late now."""
        self._now = max(self._now, now)
