"""Messages to a web address, as CloudEvents 1.0 in structured JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from vace_ad.live.http_client import HttpClient, HttpSettings, RequestError
from vace_ad.live.incidents import merged
from vace_ad.live.settings import DurationOrOff, HttpUrl, Text, host_of, key
from vace_ad.live.sinks import Body, Sink, SinkError, SinkRefusedError

_TEMPORARY = (408, 425, 429)  # status codes below 500 after which to try again


class WebhookSettings(HttpSettings):
    """Keys of the sink."""

    url: HttpUrl = key(..., "where to send", '"https://example.org/hook"')
    source: Text = key("/vace/watch", "the source named in each event")
    repeat: DurationOrOff = key("off", 'time between repeats until acknowledged, such as "1h"')


class WebhookSink(Sink[WebhookSettings]):
    """One POST for each message; messages of one incident that come together are one."""

    SETTINGS = WebhookSettings

    def __init__(self, settings: WebhookSettings) -> None:
        super().__init__(settings)
        self._client, self.repeat = HttpClient(settings), settings.repeat

    def send(self, messages: Sequence[Body]) -> None:
        """Post messages."""
        headers = {"Content-Type": "application/cloudevents+json; charset=utf-8"}
        for message in merged(messages):
            event = cloud_event(message, self.settings.source)
            post(self._client, self.settings.url, event, headers)


def cloud_event(message: Body, source: str) -> dict[str, Any]:
    """A message of an alarm, or of an incident with several, in the envelope of CloudEvents."""
    several = "alarms" in message
    return {
        "specversion": "1.0",
        "id": message["id"],
        "source": source,
        "type": f"vace.{'incident' if several else 'alarm'}.{message['what']}",
        "subject": message["incident"] if several else message["entity"] or "source",
        "time": message["time"],
        "datacontenttype": "application/json",
        "data": dict(message),
    }


def post(client: HttpClient, url: str, data: Any, headers: Mapping[str, str]) -> None:
    """POST JSON, or bytes as they are; status 4xx is final, any other failure may pass."""
    body = data if isinstance(data, bytes) else json.dumps(data).encode()
    try:
        client.send(url, body, headers)
    except RequestError as error:
        final = error.status and 400 <= error.status < 500 and error.status not in _TEMPORARY
        raise (SinkRefusedError if final else SinkError)(f"{host_of(url)} {error}") from None
