"""Sources: one small interface, one file a kind.

A source gives batches of records with a position, and is told when everything up to a position is
safely kept. It reconnects by itself, waiting longer each time; `problem` says what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from vace_ad.live.fields import Field
from vace_ad.live.records import Record


class Batch(NamedTuple):
    """Records, and where to go on after them."""

    records: list[Record]
    position: Any  # plain values, kept as JSON
    bad: int = 0  # pieces that were no records
    why: str = ""  # what was wrong with the first of them
    end: bool = False  # nothing will follow


class Source(Protocol):
    """What `vace watch` needs of a source."""

    FIELDS: Mapping[str, Field]
    live: bool  # records are of now: silence can be told by the clock
    eager: bool  # somebody waits for the acknowledgement: keep every batch at once
    problem: str | None  # why nothing comes, in words; None while all is well

    def open(self, position: Any) -> Any:
        """Start after a position that was kept before; None is the first start.

        Where a source that is started for the first time cannot find its begin again by itself, it
        returns it as a position, which is kept before the first record is read.
        """
        ...

    def read(self, timeout: float) -> Batch | None:
        """The next batch, or None if nothing came within so many seconds."""
        ...

    def acknowledge(self, position: Any) -> None:
        """Everything up to this position is kept: the source may forget it."""
        ...

    def close(self) -> None:
        """Let go of files, sockets and threads."""
        ...


class Backoff:
    """Wait longer after each failure, up to a minute, and not at all after a success."""

    def __init__(self, first: float = 0.5, most: float = 60.0) -> None:
        self._first, self._most, self._failures = first, most, 0
        self.until = 0.0

    def failed(self, now: float) -> float:
        """Note a failure; return the seconds to wait."""
        wait = min(self._most, self._first * 2.0 ** min(self._failures, 20))
        self._failures += 1
        self.until = now + wait
        return wait

    def worked(self) -> None:
        """Note a success."""
        self._failures, self.until = 0, 0.0
