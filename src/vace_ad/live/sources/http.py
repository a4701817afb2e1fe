"""HTTP push: programs send rows to the server, which answers when they are on disk."""

from __future__ import annotations

import time

from vace_ad.live.records import BadRecordError, Record, from_csv, from_influx, from_json
from vace_ad.live.sources import NameSettings
from vace_ad.live.sources.push import PushSettings, PushSource

_UNITS = {"ns": 1, "us": 10**3, "u": 10**3, "ms": 10**6, "s": 10**9}


class HttpPushSettings(PushSettings, NameSettings):
    """Keys of the source."""


class HttpSource(PushSource[HttpPushSettings]):
    """Records in the body of requests, in one of several formats."""

    SETTINGS = HttpPushSettings

    def __init__(self, settings: HttpPushSettings) -> None:
        super().__init__(settings)
        self._names = settings.names()

    def parse(self, body: bytes, kind: str, precision: str = "ns") -> list[Record]:
        """The records of a request by its content type; the first bad one refuses it whole."""
        try:
            text = body.decode("utf-8")
        except UnicodeDecodeError as error:
            raise BadRecordError(f"the body is not UTF-8: {error.reason}") from None
        now = time.time_ns()
        if kind == "text/csv":
            return from_csv(text.splitlines(), self._names)
        if kind == "text/plain":
            if precision not in _UNITS:
                raise BadRecordError(f"precision must be one of {', '.join(_UNITS)}")
            return from_influx(text, self._names, now, _UNITS[precision])
        return from_json(text, self._names, now)
