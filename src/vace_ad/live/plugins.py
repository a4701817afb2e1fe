"""Sources and sinks by kind: those of this package, and others by entry point.

A plug-in is a subclass of `vace_ad.live.sources.Source` or `vace_ad.live.sinks.Sink` that names its
settings in `SETTINGS`. Its package registers it in the group `vace_ad.sources` or `vace_ad.sinks`:

    [project.entry-points."vace_ad.sources"]
    modbus = "my_package:ModbusSource"
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from vace_ad.errors import ConfigError

if TYPE_CHECKING:
    from vace_ad.live.config import Config, PluginSection
    from vace_ad.live.sinks import Sink
    from vace_ad.live.sources import Source

_BUILT_IN = {
    "source": {
        "csv": "files:CsvSource",
        "jsonl": "files:JsonLinesSource",
        "http": "push:HttpSource",
        "mqtt": "mqtt:MqttSource",
        "sparkplug": "sparkplug:SparkplugSource",
        "prometheus": "prometheus:PrometheusSource",
        "kafka": "kafka:KafkaSource",
        "remote-write": "remote_write:RemoteWriteSource",
        "otlp": "otlp:OtlpSource",
        "opcua": "opcua:OpcUaSource",
        "influx": "files:InfluxSource",
    },
    "sink": {
        "stdout": "stdout:StdoutSink",
        "webhook": "webhook:WebhookSink",
        "alertmanager": "alertmanager:AlertmanagerSink",
        "mqtt": "mqtt:MqttSink",
        "prometheus": "prometheus:PrometheusSink",
        "remote-write": "remote_write:RemoteWriteSink",
        "otlp": "otlp:OtlpSink",
        "homeassistant": "homeassistant:HomeAssistantSink",
        "influx": "influx:InfluxSink",
    },
}


@dataclass(frozen=True)
class Kind:
    """Where a kind's class is; loaded only when it is used."""

    name: str
    target: str

    def load(self) -> Any:
        """Return the class."""
        module, _, name = self.target.partition(":")
        try:
            found = getattr(import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise ConfigError(f"the plug-in {self.name!r} cannot be loaded: {error}") from error
        if not hasattr(found, "SETTINGS"):
            raise ConfigError(f"the plug-in {self.name!r} has no SETTINGS: its keys are unknown")
        return found


@cache
def kinds(group: str) -> dict[str, Kind]:
    """Every kind of "source" or "sink"; a plug-in cannot replace a built-in one."""
    found = {
        name: Kind(name, f"vace_ad.live.{group}s.{target}")
        for name, target in _BUILT_IN[group].items()
    }
    for entry in entry_points(group=f"vace_ad.{group}s"):
        found.setdefault(entry.name, Kind(entry.name, entry.value))
    return found


def make_source(config: Config) -> Source[Any]:
    """The source of a configuration."""
    source: Source[Any] = kinds("source")[config.source.kind].load()(config.source.settings)
    return source


def make_sink(part: PluginSection) -> Sink[Any]:
    """A sink of a configuration."""
    sink: Sink[Any] = kinds("sink")[part.kind].load()(part.settings)
    return sink
