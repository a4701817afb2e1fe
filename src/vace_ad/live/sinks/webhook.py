"""Messages to a web address, as CloudEvents 1.0 in structured JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vace_ad.live.http_client import HttpSettings
from vace_ad.live.incidents import merged
from vace_ad.live.settings import DurationOrOff, HttpUrl, Text, key
from vace_ad.live.sinks import Body, HttpSink


class WebhookSettings(HttpSettings):
    """Keys of the sink."""

    url: HttpUrl = key(..., "where to send", '"https://example.org/hook"')
    source: Text = key("/vace/watch", "the source named in each event")
    repeat: DurationOrOff = key("off", 'time between repeats until acknowledged, such as "1h"')


class WebhookSink(HttpSink[WebhookSettings]):
    """One POST for each message; messages of one incident that come together are one."""

    SETTINGS = WebhookSettings

    def send(self, messages: Sequence[Body]) -> None:
        """Post messages."""
        headers = {"Content-Type": "application/cloudevents+json; charset=utf-8"}
        for message in merged(messages):
            self.post(cloud_event(message, self.settings.source), headers)


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
