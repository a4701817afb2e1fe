"""What operators copy: checked by the tools that read it, as far as they are here."""

import configparser
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from vace_ad.live.server.metrics import exposition
from vace_ad.live.sinks.gauges import GaugeSink
from vace_ad.live.status import Status

DEPLOY = Path(__file__).parents[2] / "deploy"


def series():
    """Every name that /metrics can show."""
    sink = GaugeSink({"most": 10})
    sink.send([{"alarm": "a", "what": "open", "entity": "p", "kind": "anomaly", "channel": "",
                "channels": [], "severity": 1.0}])  # fmt: skip
    status = Status()
    status.waiting, status.problems = {"hook": 1}, {"source": "gone"}
    text = exposition(status, [sink]).decode()
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
              summary: vace watch on a reads nothing; /readyz says why
      - eval_time: 40m
        alertname: VaceReadingsLate
        exp_alerts:
          - exp_labels: {{severity: warning, instance: a}}
            exp_annotations:
              summary: more than 1 % of readings come too late on a; raise align.lateness
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
