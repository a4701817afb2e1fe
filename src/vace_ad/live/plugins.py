"""Sources and sinks by kind: those of this package, and others by entry point.

A plug-in is a class with `FIELDS` (its keys in the file) that is called with the checked settings.
Its package names it in the group `vace_ad.sources` or `vace_ad.sinks`:

    [project.entry-points."vace_ad.sources"]
    modbus = "my_package:ModbusSource"
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from vace_ad.errors import ConfigError

_OURS = {
    "source": {
        "csv": "files:CsvSource",
        "jsonl": "files:JsonLinesSource",
        "http": "http:HttpSource",
        "mqtt": "mqtt:MqttSource",
        "sparkplug": "sparkplug:SparkplugSource",
        "prometheus": "prometheus:PrometheusSource",
        "kafka": "kafka:KafkaSource",
        "remote-write": "remote_write:RemoteWriteSource",
        "otlp": "otlp:OtlpSource",
        "opcua": "opcua:OpcUaSource",
        "influx": "influx:InfluxSource",
    },
    "sink": {
        "stdout": "stdout:StdoutSink",
        "webhook": "webhook:WebhookSink",
        "alertmanager": "alertmanager:AlertmanagerSink",
        "mqtt": "mqtt:MqttSink",
        "prometheus": "gauges:GaugeSink",
        "remote-write": "remote_write:RemoteWriteSink",
        "otlp": "otlp:OtlpSink",
        "homeassistant": "homeassistant:HomeAssistantSink",
        "influx": "influx:InfluxSink",
    },
}


@dataclass(frozen=True)
class Kind:
    """Where a kind's class is; loaded only when wanted."""

    name: str
    target: str

    def load(self) -> Any:
        """Return the class."""
        module, _, name = self.target.partition(":")
        try:
            found = getattr(import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise ConfigError(f"the plug-in {self.name!r} cannot be loaded: {error}") from error
        if not hasattr(found, "FIELDS"):
            raise ConfigError(f"the plug-in {self.name!r} has no FIELDS, so its keys are unknown")
        return found


@cache
def kinds(group: str) -> dict[str, Kind]:
    """Every kind of "source" or "sink", ours first; a plug-in cannot replace one of ours."""
    found = {
        name: Kind(name, f"vace_ad.live.{group}s.{target}") for name, target in _OURS[group].items()
    }
    for entry in entry_points(group=f"vace_ad.{group}s"):
        found.setdefault(entry.name, Kind(entry.name, entry.value))
    return found
