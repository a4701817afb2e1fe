"""Messages on standard output: a line each, as JSON or text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal

from vace_ad.live.incidents import merged
from vace_ad.live.settings import Settings, key
from vace_ad.live.sinks import Body, Sink


class StdoutSettings(Settings):
    """Keys of the sink."""

    format: Literal["json", "text"] = key("json", "format of a line")


class StdoutSink(Sink[StdoutSettings]):
    """Standard output; messages of one incident that come together are one line."""

    SETTINGS = StdoutSettings

    def send(self, messages: Sequence[Body]) -> None:
        """Print messages."""
        for message in merged(messages):
            text = f"{message['time']} {message['what']}: {message['summary']}"
            print(json.dumps(message) if self.settings.format == "json" else text, flush=True)
