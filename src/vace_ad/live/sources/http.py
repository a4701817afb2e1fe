"""HTTP push: programs send rows to the server, which answers when they are safely kept."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from vace_ad.live.fields import Field
from vace_ad.live.records import BadRecordError, Record, from_csv, from_influx, from_json
from vace_ad.live.sources.files import NAME_FIELDS, names_of
from vace_ad.live.sources.push import PENDING, PushSource

_UNITS = {"ns": 1, "us": 10**3, "u": 10**3, "ms": 10**6, "s": 10**9}


class HttpSource(PushSource):
    """Records that the server hands over from requests."""

    FIELDS: Mapping[str, Field] = {**NAME_FIELDS, **PENDING}

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__(settings["pending"])
        self._names = names_of(settings)

    def parse(self, body: bytes, kind: str, precision: str = "ns") -> list[Record]:
        """The records of a request by its content type; the first bad one refuses it whole."""
        try:
            text = body.decode("utf-8")
        except UnicodeDecodeError as error:
            raise BadRecordError(f"the body is not UTF-8: {error.reason}") from None
        now = time.time_ns()
        if kind == "text/csv":
            return list(from_csv(text.splitlines(), self._names))
        if kind == "text/plain":
            if precision not in _UNITS:
                raise BadRecordError(f"precision must be one of {', '.join(_UNITS)}")
            lines = (
                from_influx(line, self._names, now, _UNITS[precision]) for line in text.splitlines()
            )
            return [record for record in lines if record is not None]
        return list(from_json(text, self._names, now))
