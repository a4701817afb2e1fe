"""What operators copy: checked by the tools that read it, as far as they are here."""

import configparser
import json
import re
import shutil
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import yaml
from prometheus_client import generate_latest

from live.servers import free_port, server
from vace_ad.live.config import load_config
from vace_ad.live.server import app
from vace_ad.live.sinks.prometheus import PrometheusSettings, PrometheusSink
from vace_ad.live.sources.mqtt import MqttSettings, make_client
from vace_ad.live.status import Status

DEPLOY = Path(__file__).parents[2] / "deploy"


def series():
    """Every name that /metrics can show."""
    sink = PrometheusSink(PrometheusSettings(most=10))
    sink.send([{"alarm": "a", "what": "open", "entity": "p", "kind": "anomaly", "channel": "",
                "channels": [], "severity": 1.0}])  # fmt: skip
    status = Status()
    status.waiting, status.problems = {"hook": 1}, {"source": "gone"}
    status.sinks = [sink]
    text = generate_latest(status.registry).decode()
    return set(re.findall(r"^(vace_\w+)", text, re.MULTILINE))


def used(text):
    return set(re.findall(r"\bvace_\w+", text))


def test_the_rules_use_series_that_exist():
    assert used((DEPLOY / "prometheus-rules.yml").read_text()) <= series()


def test_promtool_takes_the_rules():
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed: apt-get install prometheus")
    command = ["promtool", "check", "rules", DEPLOY / "prometheus-rules.yml"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "7 rules found" in run.stdout


def test_the_rules_fire(tmp_path):
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed: apt-get install prometheus")
    (tmp_path / "test.yml").write_text(
        f"""
rule_files: [{DEPLOY / "prometheus-rules.yml"}]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {{series: 'vace_ready{{instance="a"}}', values: '0x10'}}
      - {{series: 'vace_dropped_total{{instance="a",why="late"}}', values: '0+5x60'}}
      - {{series: 'vace_readings_total{{instance="a"}}', values: '0+100x60'}}
    alert_rule_test:
      - eval_time: 5m
        alertname: VaceWatchNotReady
        exp_alerts:
          - exp_labels: {{severity: critical, instance: a}}
            exp_annotations:
              summary: vace watch on a is not ready; /readyz gives the reason
      - eval_time: 40m
        alertname: VaceReadingsLate
        exp_alerts:
          - exp_labels: {{severity: warning, instance: a}}
            exp_annotations:
              summary: more than 1 % of readings arrive too late on a; increase align.lateness
"""
    )
    command = ["promtool", "test", "rules", tmp_path / "test.yml"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_dashboard_is_json_with_series_that_exist():
    board = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
    assert board["uid"]
    assert board["schemaVersion"] >= 36
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids))
    places = [(p["gridPos"]["x"], p["gridPos"]["y"]) for p in board["panels"]]
    assert len(places) == len(set(places))
    for panel in board["panels"]:
        assert panel["title"]
        for target in panel["targets"]:
            assert used(target["expr"]) <= series(), target["expr"]
            assert used(target["expr"])


def test_the_unit_runs_as_nobody_special():
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str
    unit.read(DEPLOY / "vace-watch.service")
    service = unit["Service"]
    assert service["User"] == "vace"
    assert service["ProtectSystem"] == "strict"
    assert "-HUP" in service["ExecReload"]
    assert int(service["TimeoutStopSec"]) > 5


def test_systemd_takes_the_unit(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    text = (DEPLOY / "vace-watch.service").read_text()
    program = tmp_path / "vace"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit = tmp_path / "vace-watch.service"
    unit.write_text(text.replace("/opt/vace/bin/vace", str(program)))
    command = ["systemd-analyze", "verify", "--man=no", unit]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    ours = [line for line in run.stderr.splitlines() if "vace-watch.service" in line]
    assert ours == []


def test_the_image_is_built_from_the_wheel_and_runs_as_nobody_special():
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    steps = [line for line in lines if line and not line.startswith(("#", " "))]
    assert any("*.whl" in step for step in steps if step.startswith("COPY"))
    last = max(i for i, step in enumerate(steps) if step.startswith("FROM"))
    final = steps[last:]
    (user,) = [step.split()[1] for step in final if step.startswith("USER")]
    assert user.isdigit()
    assert int(user) > 0
    assert not any(step.startswith("ADD") for step in steps)
    assert final.index(f"USER {user}") < [s.split()[0] for s in final].index("ENTRYPOINT")
    assert "STOPSIGNAL SIGTERM" in final


def configured(folder):
    """The configuration that compose and Kubernetes run, with secrets in a folder of the test."""
    (folder / "token").write_text("t" * 48)
    (folder / "mqtt_password").write_text("secret")
    text = (DEPLOY / "plant.toml").read_text().replace("/etc/vace/secrets", str(folder))
    (folder / "plant.toml").write_text(text)
    return load_config(folder / "plant.toml")


def test_the_configuration_is_one_that_the_watch_takes(tmp_path):
    config = configured(tmp_path)
    assert config.source.settings.url == config.sinks[0].settings.url
    assert config.source.settings.client_id != config.sinks[0].settings.client_id
    assert config.server.address == ("0.0.0.0", 8490)
    assert config.server.secret("token") is not None


def compose():
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def test_compose_mounts_what_the_configurations_name(tmp_path):
    services = compose()["services"]
    config = configured(tmp_path)
    host = re.search(r"//(\w+):", config.source.settings.url)[1]
    assert host in services
    assert services["watch"]["depends_on"][host]["condition"] == "service_healthy"
    inside = [each.split(":")[1] for each in services["watch"]["volumes"]]
    wanted = re.findall(r'"(/[^"]+)"', (DEPLOY / "plant.toml").read_text())
    assert wanted
    for path in wanted:
        assert any(path == place or path.startswith(f"{place}/") for place in inside), path
    assert (DEPLOY / services["watch"]["build"]["context"] / "deploy" / "Dockerfile").is_file()
    for each in services["watch"]["volumes"] + services[host]["volumes"]:
        local = each.split(":")[0]
        if local.startswith("./") and not local.startswith("./secrets/"):
            assert (DEPLOY / local).is_file()
        elif not local.startswith("./"):
            assert local in compose()["volumes"]


def test_the_watch_of_compose_is_open_to_this_machine_alone_and_writes_nothing_but_its_state():
    watch = compose()["services"]["watch"]
    assert all(port.startswith("127.0.0.1:") for port in watch["ports"])
    assert watch["read_only"] is True
    assert watch["cap_drop"] == ["ALL"]
    writable = [each for each in watch["volumes"] if not each.endswith(":ro")]
    assert writable == ["state:/var/lib/vace"]


def test_mosquitto_takes_its_configuration_and_refuses_strangers(tmp_path):
    if shutil.which("mosquitto_passwd") is None:
        pytest.skip("mosquitto is not installed: apt-get install mosquitto")
    secret = ["mosquitto_passwd", "-b", "-c", tmp_path / "passwords", "watch", "secret"]
    subprocess.run(secret, check=True, capture_output=True)
    port = free_port()
    text = (DEPLOY / "mosquitto.conf").read_text()
    text = text.replace("listener 1883", f"listener {port} 127.0.0.1")
    text = text.replace("/mosquitto/secrets/passwords", str(tmp_path / "passwords"))
    text = text.replace("/mosquitto/data/", f"{tmp_path}/")
    (tmp_path / "mosquitto.conf").write_text(f"{text}user root\n")
    answers = {}
    with server("mosquitto", "mosquitto", port, "-c", "mosquitto.conf", cwd=tmp_path):
        for password in ("secret", "wrong"):
            (tmp_path / "password").write_text(password)
            given = configured(tmp_path).source.settings.model_dump()
            given |= {"client_id": password, "url": f"mqtt://127.0.0.1:{port}"}
            given |= {"password_env": None, "password_file": tmp_path / "password"}
            settings = MqttSettings(**given)
            client = make_client(settings)
            client.on_connect = lambda _c, _u, _f, reason, _p, who=password: answers.update(
                {who: reason.is_failure}
            )
            client.connect("127.0.0.1", port)
            end = time.monotonic() + 10
            while password not in answers and time.monotonic() < end:
                client.loop(0.1)
            client.disconnect()
    assert answers == {"secret": False, "wrong": True}


def manifests():
    return {
        one["kind"]: one for one in yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())
    }


def test_the_manifests_fit_together():
    found = manifests()
    assert set(found) == {"Service", "StatefulSet"}
    service, stateful = found["Service"]["spec"], found["StatefulSet"]["spec"]
    pod = stateful["template"]
    labels = pod["metadata"]["labels"]
    assert service["selector"] == stateful["selector"]["matchLabels"] == labels
    assert stateful["serviceName"] == found["Service"]["metadata"]["name"]
    assert stateful["replicas"] == 1
    (container,) = pod["spec"]["containers"]
    (port,) = container["ports"]
    assert service["ports"][0]["targetPort"] == port["name"]
    volumes = {volume["name"] for volume in pod["spec"]["volumes"]}
    volumes |= {claim["metadata"]["name"] for claim in stateful["volumeClaimTemplates"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes
    inside = [mount["mountPath"] for mount in container["volumeMounts"]]
    for path in re.findall(r'"(/[^"]+)"', (DEPLOY / "plant.toml").read_text()):
        assert any(path == place or path.startswith(f"{place}/") for place in inside), path


def test_the_pod_has_no_rights_and_the_user_of_the_image():
    spec = manifests()["StatefulSet"]["spec"]["template"]["spec"]
    user = re.search(r"^USER (\d+)", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)[1]
    assert spec["securityContext"]["runAsUser"] == int(user)
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["automountServiceAccountToken"] is False
    (container,) = spec["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert "limits" in container["resources"]


def test_the_probes_ask_what_the_server_answers(tmp_path):
    """The paths exist; the readiness probe gives the token, and fails where the answer is 503."""
    (container,) = manifests()["StatefulSet"]["spec"]["template"]["spec"]["containers"]
    paths = set(re.findall(r'"GET (/\w*)"', Path(app.__file__).read_text()))
    for probe in ("startupProbe", "livenessProbe"):
        assert container[probe]["httpGet"]["path"] in paths
    program, flag, code = container["readinessProbe"]["exec"]["command"]
    assert (program, flag) == ("/opt/vace/bin/python", "-c")
    (tmp_path / "token").write_text("right\n")
    answer = {"status": 200}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            known = self.headers["Authorization"] == "Bearer right" and self.path == "/readyz"
            self.send_response(answer["status"] if known else 401)
            self.end_headers()

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, daemon=True)
        thread.start()
        code = code.replace("8490", str(http.server_port))
        code = code.replace("/etc/vace/secrets", str(tmp_path))
        assert "/readyz" in paths
        runs = []
        for answer["status"] in (200, 503):
            runs.append(
                subprocess.run([sys.executable, "-c", code], capture_output=True).returncode
            )
        http.shutdown()
        thread.join()
    assert runs[0] == 0
    assert runs[1] != 0
