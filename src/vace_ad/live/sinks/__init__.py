"""Sinks: where messages about alarms go; one base class, one file for each kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from vace_ad.errors import VaceError
from vace_ad.live.settings import Settings

Body = Mapping[str, Any]  # as `vace_ad.live.alarms.body` makes it
S = TypeVar("S", bound=Settings)


class SinkError(VaceError):
    """A message could not be delivered now; it stays in the outbox."""


class SinkRefusedError(SinkError):
    """The receiver will never take this message; it is counted and dropped."""


class Sink(Generic[S]):
    """Where messages go. A subclass has `SETTINGS` and `send`."""

    SETTINGS: ClassVar[type[Settings]] = Settings
    repeat: int | None = None  # send open alarms again every so many nanoseconds
    repeat_acknowledged: bool = False  # also those that somebody has acknowledged

    def __init__(self, settings: S) -> None:
        self.settings = settings

    def send(self, messages: Sequence[Body]) -> None:
        """Deliver messages in order, or raise; what was sent before may be sent again."""
        raise NotImplementedError

    def close(self) -> None:
        """Release sockets and threads."""
