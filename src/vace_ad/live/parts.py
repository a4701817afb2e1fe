"""The source and the sinks that a configuration names."""

from __future__ import annotations

from typing import Any

from vace_ad.live.config import Config
from vace_ad.live.plugins import kinds
from vace_ad.live.sinks import Sink
from vace_ad.live.sources import Source


def make_source(config: Config) -> Source:
    """The source that a configuration names."""
    source: Source = kinds("source")[config.source.kind].load()(config.source.settings)
    return source


def make_sink(kind: str, settings: dict[str, Any]) -> Sink:
    """A sink by kind."""
    sink: Sink = kinds("sink")[kind].load()(settings)
    return sink


def drained(notes: list[str]) -> list[str]:
    """Notes that a source left, taken away."""
    found = list(notes)
    notes.clear()
    return found
