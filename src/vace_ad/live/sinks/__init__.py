"""Sinks: where messages of alarms go, one small interface, one file a kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from vace_ad.errors import VaceError
from vace_ad.live.core import Rows
from vace_ad.live.fields import Field

Body = Mapping[str, Any]  # as `vace_ad.live.alarms.body` makes it


class SinkError(VaceError):
    """A message could not be delivered now; it stays in the outbox."""


class SinkRefusedError(SinkError):
    """The receiver will never take this message; it is counted and dropped."""


class Sink(Protocol):
    """What `vace watch` needs of a sink."""

    FIELDS: Mapping[str, Field]
    repeat: int | None  # send open alarms again every so many nanoseconds
    repeat_acknowledged: bool  # also those that somebody has seen

    def send(self, messages: Sequence[Body]) -> None:
        """Deliver messages in order, or raise; what was sent before may be sent again."""
        ...

    def close(self) -> None:
        """Let go of sockets and threads."""
        ...


class Scored(NamedTuple):
    """Rows of one entity that have been scored."""

    entity: str
    channels: tuple[str, ...]
    times: list[int]  # (n,), nanoseconds
    values: Rows  # (n, n_channels)
    scores: list[float]  # (n,), NaN where a row has none
    alarming: list[bool]  # (n,), whether an anomaly was open
    expected: Rows | None = None  # (n, n_channels), where the sink wants bands
    lower: Rows | None = None
    upper: Rows | None = None


@runtime_checkable
class RowSink(Protocol):
    """What a sink has beside that, which also wants every scored row.

    Rows are no alarms: they are told before they are kept, held in memory within a bound, and the
    oldest go where the receiver is away for long.
    """

    bands: bool  # whether it wants what every channel should be

    def rows(self, scored: Scored) -> None:
        """Take rows over, at once; called by the watch."""
        ...

    def flush(self) -> bool:
        """Send what there is, or raise; whether anything was sent. Called by the sink's thread."""
        ...
