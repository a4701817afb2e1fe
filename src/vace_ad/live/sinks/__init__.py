"""Sinks: where messages about alarms go; one base class, one file for each kind."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from vace_ad.errors import VaceError
from vace_ad.live.detector import Rows
from vace_ad.live.http_client import HttpClient, HttpSettings, RequestError
from vace_ad.live.settings import Settings, host_of

_TEMPORARY = (408, 425, 429)  # status codes below 500 after which to try again
Body = Mapping[str, Any]  # as `vace_ad.live.alarms.body` makes it
S = TypeVar("S", bound=Settings)
H = TypeVar("H", bound=HttpSettings)


class SinkError(VaceError):
    """A message could not be delivered now; it stays in the outbox."""


class SinkRefusedError(SinkError):
    """The receiver will never take this message; it is counted and dropped."""


class Sink(Generic[S]):
    """Where messages go. A subclass has `SETTINGS` and `send`; a key `repeat` sets its own."""

    SETTINGS: ClassVar[type[Settings]] = Settings
    repeat: int | None = None  # send open alarms again every so many nanoseconds
    repeat_acknowledged: bool = False  # also those that somebody has acknowledged

    def __init__(self, settings: S) -> None:
        self.settings = settings
        self.repeat = getattr(settings, "repeat", self.repeat)

    def send(self, messages: Sequence[Body]) -> None:
        """Deliver messages in order, or raise; what was sent before may be sent again."""
        raise NotImplementedError

    def close(self) -> None:
        """Release sockets and threads."""


class HttpSink(Sink[H]):
    """A sink that posts to a server."""

    def __init__(self, settings: H) -> None:
        super().__init__(settings)
        self._client = HttpClient(settings)

    def post(self, data: Any, headers: Mapping[str, str], path: str = "") -> None:
        """POST JSON, or bytes as they are; status 4xx is final, any other failure may pass.

        A `path` is one below the address of the settings.
        """
        url = f"{self.settings.url.rstrip('/')}{path}" if path else self.settings.url
        body = data if isinstance(data, bytes) else json.dumps(data).encode()
        try:
            self._client.send(url, body, headers)
        except RequestError as error:
            final = error.status and 400 <= error.status < 500 and error.status not in _TEMPORARY
            raise (SinkRefusedError if final else SinkError)(f"{host_of(url)} {error}") from None


class Scored(NamedTuple):
    """Rows of one entity that have been scored."""

    entity: str
    channels: tuple[str, ...]
    times: list[int]  # (n,), nanoseconds
    values: Rows  # (n, n_channels)
    scores: list[float]  # (n,), NaN where a row has none
    alarming: list[bool]  # (n,), whether an anomaly was open
    expected: Rows | None = None  # (n, n_channels), where a sink wants bands; NaN for none
    lower: Rows | None = None
    upper: Rows | None = None


class RowSink(Sink[S]):
    """A sink that also gets every scored row.

    Rows come before they are on disk and are held in memory within a bound; if the receiver is away
    for long, the oldest are dropped.
    """

    bands: bool = False  # whether it wants the expected values of every channel

    def rows(self, scored: Scored) -> None:
        """Take rows over, at once; called by the watch."""
        raise NotImplementedError

    def flush(self) -> bool:
        """Send what there is, or raise; whether anything was sent. Called by the sink's thread."""
        raise NotImplementedError
