"""Silence by the clock: of the source, or of some entities while others speak."""

from __future__ import annotations

import json
from collections.abc import Iterable

from vace_ad.live.alarms import Life, Message

_SHARE = 0.5  # of at least two entities: when more are silent, it is the source


class Silence:
    """Who has not been heard for too long. One cause is one alarm: the source's, if it is that."""

    def __init__(self, life: Life, after: int | None) -> None:
        self._life, self._after = life, after
        self._last: dict[str, int] = {}  # when an entity was last heard
        self._silent: set[str] = set()
        self._any: int | None = None
        self._down: int | None = None  # since when the source has a problem

    def begin(self, names: Iterable[str], state: str | None, now: int = 0) -> None:
        """After a start, everyone has all the time again, from `now` or from the first tick on.

        Every `now` here is of a clock that nobody sets: an hour forward is no silence of an hour.
        """
        self._last = dict.fromkeys(names, now)
        if state is not None:
            self._life.restore(json.loads(state))

    def state(self) -> str:
        """The alarm of the source, if it is open."""
        return json.dumps(self._life.state())

    @property
    def told(self) -> bool:
        """Whether the silence of the source is an open alarm."""
        return bool(self._life.open)

    def heard(self, names: Iterable[str], now: int) -> None:
        """Records of these entities came."""
        for name in names:
            self._last[name] = self._any = now
            self._silent.discard(name)

    def forget(self, name: str) -> None:
        """An entity is watched elsewhere: it is not silent, it is gone."""
        self._last.pop(name, None)
        self._silent.discard(name)

    def recent(self, name: str, since: int) -> bool:
        """Whether an entity was heard since then."""
        return self._last.get(name, 0) >= since

    def tick(
        self, now: int, problem: str | None, clock: int | None = None
    ) -> tuple[list[str], list[Message]]:
        """Entities that have just become silent, and news of the source at this time of day."""
        if self._after is None:
            return [], []
        clock = now if clock is None else clock
        self._last = {name: last or now for name, last in self._last.items()}
        self._any = self._any or now
        self._down = None if problem is None else self._down or now
        limit = now - self._after
        if self._any <= limit or (self._down is not None and self._down <= limit):
            since = min(self._any, self._down or now)
            return [], self._life.silent(clock - (now - since), clock)
        silent = {name for name, last in self._last.items() if last <= limit}
        if len(silent) > 1 and len(silent) > _SHARE * len(self._last):
            since = min(self._last[name] for name in silent)
            return [], self._life.silent(clock - (now - since), clock)
        fresh = sorted(silent - self._silent)
        self._silent |= silent
        return fresh, self._life.heard(clock)
