"""Sinks: where messages of alarms go, one small interface, one file a kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from vace_ad.errors import VaceError
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
