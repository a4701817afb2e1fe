import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from vace_ad.live.settings import read_settings
from vace_ad.live.sinks import SinkError, SinkRefusedError

pytest.importorskip("opentelemetry.proto", reason="pip install 'vace-ad[otlp]'")
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from vace_ad.live.sinks.otlp import OtlpSink

MESSAGE = {
    "id": "a.1", "what": "open", "alarm": "a", "kind": "anomaly", "entity": "pump", "channel": "",
    "onset": "2026-01-05T12:00:00.000Z", "time": "2026-01-05T12:00:10.500Z", "resolved": None,
    "severity": 71.5, "score": 9.25, "signal": "level", "incident": "i",
    "channels": [{"name": "flow", "share": 0.9}, {"name": "level", "share": 0.1}],
    "reason": "", "summary": "pump: anomaly in flow 90%", "link": None,
}  # fmt: skip


@pytest.fixture
def collector():
    """Takes logs as a collector does; `answers` are given first."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.server.got.append((self.path, dict(self.headers), body))
            self.send_response(self.server.answers.pop(0) if self.server.answers else 200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.got, server.answers = [], []
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def make(server, **more):
    url = f"http://127.0.0.1:{server.server_port}"
    return OtlpSink(read_settings(OtlpSink.SETTINGS, {"url": url, **more}, "sink"))


def test_an_alarm_is_a_log_record(collector):
    make(collector, service="line-3").send([MESSAGE, {**MESSAGE, "what": "resolve"}])
    ((path, headers, body),) = collector.got
    assert (path, headers["Content-Type"]) == ("/v1/logs", "application/x-protobuf")
    (resource,) = ExportLogsServiceRequest.FromString(body).resource_logs
    assert resource.resource.attributes[0].value.string_value == "line-3"
    first, last = resource.scope_logs[0].log_records
    assert first.time_unix_nano == 1_767_614_410_500_000_000
    assert (first.severity_text, last.severity_text) == ("WARN", "INFO")
    assert first.body.string_value == MESSAGE["summary"]
    assert first.event_name == "vace.alarm.open"
    found = {one.key: one.value for one in first.attributes}
    assert found["vace.entity"].string_value == "pump"
    assert found["vace.severity"].double_value == 71.5
    assert [v.string_value for v in found["vace.channels"].array_value.values] == ["flow", "level"]
    assert "vace.resolved" not in found


def test_what_may_pass_is_tried_again_and_what_may_not_is_refused(collector):
    collector.answers += [503, 429, 400]
    sink = make(collector)
    for kind in (SinkError, SinkError, SinkRefusedError):
        with pytest.raises(SinkError) as raised:
            sink.send([MESSAGE])
        assert type(raised.value) is kind


def test_the_token_is_sent_and_not_shown(collector, monkeypatch):
    monkeypatch.setenv("COLLECTOR_TOKEN", "sesame")
    sink = make(collector, token_env="COLLECTOR_TOKEN")
    sink.send([MESSAGE])
    assert collector.got[0][1]["Authorization"] == "Bearer sesame"
    assert "sesame" not in repr(sink.settings)
