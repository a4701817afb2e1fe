"""Messages to a web address, as CloudEvents 1.0 in structured JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from vace_ad.live import fields as f
from vace_ad.live.fields import Field
from vace_ad.live.incidents import grouped, one_message
from vace_ad.live.request import CONNECTION, Caller, RequestError
from vace_ad.live.sinks import Body, SinkError, SinkRefusedError

_LATER = (408, 425, 429)  # refusals that may pass


class WebhookSink:
    """One POST a message, or for what one incident has to say at once; ids of alarms stay."""

    FIELDS: Mapping[str, Field] = {
        "url": Field(f.url("http", "https"), f.REQUIRED, "where to", '"https://example.org/hook"'),
        "source": Field(f.text, "/vace/watch", "who we are, in each event"),
        "repeat": Field(f.switch_off, None, "again every so often until acknowledged", '"1h"'),
        **CONNECTION,
    }
    repeat_acknowledged = False

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings, self._caller = settings, Caller(settings)
        self.repeat: int | None = settings["repeat"]

    def send(self, messages: Sequence[Body]) -> None:
        """Post them one by one, those of one incident together."""
        for group in grouped(messages):
            event = cloud_event(group, self._settings["source"])
            headers = {"Content-Type": "application/cloudevents+json; charset=utf-8"}
            post(self._caller, self._settings["url"], event, headers)

    def close(self) -> None:
        """Nothing is open between requests."""


def cloud_event(group: Sequence[Body], source: str) -> dict[str, Any]:
    """A message, or several of one incident, in the envelope of CloudEvents."""
    data = dict(group[0]) if len(group) == 1 else one_message(group)
    return {
        "specversion": "1.0",
        "id": data["id"],
        "source": source,
        "type": f"vace.{'alarm' if len(group) == 1 else 'incident'}.{data['what']}",
        "subject": (data["entity"] or "source") if len(group) == 1 else data["incident"],
        "time": data["time"],
        "datacontenttype": "application/json",
        "data": data,
    }


def post(caller: Caller, url: str, data: Any, headers: Mapping[str, str]) -> None:
    """POST JSON, or bytes as they are; an answer of 4xx is final, all else may pass."""
    body = data if isinstance(data, bytes) else json.dumps(data).encode()
    try:
        caller.send(url, body, headers)
    except RequestError as error:
        final = error.status and 400 <= error.status < 500 and error.status not in _LATER
        raise (SinkRefusedError if final else SinkError)(f"{f.shown_url(url)} {error}") from None
