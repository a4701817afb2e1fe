"""Messages on standard output: a line each, as JSON or in words."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from vace_ad.live import fields as f
from vace_ad.live.fields import Field
from vace_ad.live.incidents import grouped, one_message
from vace_ad.live.sinks import Body


class StdoutSink:
    """Standard output."""

    FIELDS: Mapping[str, Field] = {
        "format": Field(f.choice("json", "text"), "json", "of a line"),
    }
    repeat: int | None = None
    repeat_acknowledged = False

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._json = settings["format"] == "json"

    def send(self, messages: Sequence[Body]) -> None:
        """Print them, a line for all of one incident that come at once."""
        for group in grouped(messages):
            message = group[0] if len(group) == 1 else one_message(group)
            words = f"{message['time']} {message['what']}: {message['summary']}"
            print(json.dumps(message) if self._json else words, flush=True)
        sys.stdout.flush()

    def close(self) -> None:
        """Standard output stays open."""
