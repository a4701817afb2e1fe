"""Alarms as OpenTelemetry log records, to a collector or to what takes OTLP over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vace_ad.errors import needs
from vace_ad.live.http_client import HttpSettings
from vace_ad.live.records import read_time
from vace_ad.live.settings import DurationOrOff, HttpUrl, Text, key
from vace_ad.live.sinks import Body, HttpSink

_SEVERITY = {"open": (13, "WARN"), "update": (13, "WARN"), "resolve": (9, "INFO")}
_ATTRIBUTES = ("alarm", "what", "kind", "entity", "channel", "severity", "score", "signal",
               "incident", "onset", "resolved", "link")  # fmt: skip


class OtlpSettings(HttpSettings):
    """Keys of the sink."""

    url: HttpUrl = key(..., "the collector", '"http://127.0.0.1:4318"')
    service: Text = key("vace-watch", "service.name of the resource")
    repeat: DurationOrOff = key("off", 'time between repeats until acknowledged, such as "1h"')


class OtlpSink(HttpSink[OtlpSettings]):
    """One log record for each message, posted to `/v1/logs`."""

    SETTINGS = OtlpSettings

    def __init__(self, settings: OtlpSettings) -> None:
        super().__init__(settings)
        with needs("opentelemetry-proto", "otlp", "OTLP"):
            from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
        self._service = logs_service_pb2

    def send(self, messages: Sequence[Body]) -> None:
        """Post them together."""
        request = self._service.ExportLogsServiceRequest()
        resource = request.resource_logs.add()
        name = resource.resource.attributes.add(key="service.name")
        name.value.string_value = self.settings.service
        scope = resource.scope_logs.add()
        scope.scope.name = "vace_ad.live"
        for message in messages:
            self._fill(scope.log_records.add(), message)
        headers = {"Content-Type": "application/x-protobuf"}
        self.post(request.SerializeToString(), headers, "/v1/logs")

    def _fill(self, record: Any, message: Body) -> None:
        record.time_unix_nano = read_time(message["time"])
        record.severity_number, record.severity_text = _SEVERITY[message["what"]]
        record.body.string_value = message["summary"]
        record.event_name = f"vace.alarm.{message['what']}"
        for name in _ATTRIBUTES:
            value = message.get(name)
            if value in (None, ""):
                continue
            one = record.attributes.add(key=f"vace.{name}").value
            if isinstance(value, float | int):
                one.double_value = float(value)
            else:
                one.string_value = str(value)
        names = record.attributes.add(key="vace.channels").value.array_value
        for channel in message["channels"]:
            names.values.add(string_value=channel["name"])
