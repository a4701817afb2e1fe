"""Missing data by the clock: of the source, or of some entities while others send."""

from __future__ import annotations

import json
from collections.abc import Iterable

from vace_ad.live.alarms import Lifecycle, Message

_SHARE = 0.5  # of at least two entities: if more are silent, it is the source


class Silence:
    """Entities without data for too long; if most are, it is one alarm of the source."""

    def __init__(self, life: Lifecycle, after: int | None) -> None:
        self._life, self._after = life, after
        self._last: dict[str, int] = {}  # when an entity was last heard
        self._silent: set[str] = set()
        self._any: int | None = None
        self._down: int | None = None  # since when the source has a problem

    def begin(self, names: Iterable[str], state: str | None, now: int = 0) -> None:
        """After a start, the time without data counts from `now` or from the first tick.

        Every `now` here is of a monotonic clock, so that setting the clock causes no alarm.
        """
        self._last = dict.fromkeys(names, now)
        if state is not None:
            self._life.restore(json.loads(state))

    def state(self) -> str:
        """The alarm of the source, if it is open."""
        return json.dumps(self._life.state())

    def heard(self, names: Iterable[str], now: int) -> None:
        """Records of these entities came."""
        for name in names:
            self._last[name] = self._any = now
            self._silent.discard(name)

    def forget(self, name: str) -> None:
        """Remove an entity: it is no longer expected."""
        self._last.pop(name, None)
        self._silent.discard(name)

    def recent(self, name: str, since: int) -> bool:
        """Whether an entity has sent since then."""
        return self._last.get(name, 0) >= since

    def tick(
        self, now: int, problem: str | None, clock: int | None = None
    ) -> tuple[list[str], list[Message]]:
        """Entities that have just become silent, and messages about the source."""
        if self._after is None:
            return [], []
        clock = now if clock is None else clock
        self._last = {name: last or now for name, last in self._last.items()}
        self._any = self._any or now
        self._down = None if problem is None else self._down or now
        limit, since = now - self._after, min(self._any, self._down or now)
        silent = {name for name, last in self._last.items() if last <= limit}
        if since > limit and len(silent) > 1 and len(silent) > _SHARE * len(self._last):
            since = min(self._last[name] for name in silent)
        if since <= limit:
            return [], self._life.silent(clock - (now - since), clock)
        fresh = sorted(silent - self._silent)
        self._silent |= silent
        return fresh, self._life.heard(clock)
