"""The examples: their configurations, and their feeds against real servers."""

import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from live.fakes import FakeModel
from live.running import running, until
from live.servers import free_port, mosquitto, wait_for_port
from vace_ad.live.config import load_config

EXAMPLES = Path(__file__).parents[2] / "examples" / "live"


def example(name):
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))


def test_every_example_is_tested():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {"plant_mqtt", "service_prometheus"}


@pytest.mark.parametrize("name", ["plant_mqtt", "service_prometheus"])
def test_help(name):
    command = [sys.executable, EXAMPLES / f"{name}.py", "--help"]
    assert "usage:" in subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_the_plant_over_mqtt(tmp_path, capsys):
    pytest.importorskip("paho.mqtt.client", reason="pip install 'vace-ad[live]'")
    plant_mqtt = example("plant_mqtt")
    plant = plant_mqtt["simulate"]()
    normal = plant.values[: plant.train_rows]
    model = FakeModel(plant.names, normal.mean(axis=0), np.ptp(normal, axis=0) / 6)
    model.save(tmp_path / "plant.vace")
    with mosquitto(tmp_path) as (url, _):
        port = int(url.rsplit(":", 1)[1])
        path = plant_mqtt["write_config"](tmp_path, port, 0)
        with running(load_config(path)) as (watch, _):
            until(lambda: watch.source.problem is None)
            plant_mqtt["send"](plant, port, 1e6, range(plant.train_rows, plant.train_rows + 150))
            until(lambda: watch.status.counts["readings"] == 150 * 12)
            assert watch.known == {"station": "watching"}
            assert watch.status.counts["late"] == 0


def test_the_service_over_prometheus(tmp_path):
    service = example("service_prometheus")
    ports = {name: free_port() for name in ("service", "prometheus", "alertmanager")}
    for program in ("prometheus", "prometheus-alertmanager"):
        if service["shutil"].which(program) is None:
            pytest.skip(f"{program} is not installed: apt-get install {program}")
    shown = service["Service"](ports["service"])
    processes = service["servers"](tmp_path, ports)
    try:
        wait_for_port(ports["prometheus"])
        path = service["write_config"](tmp_path, "5s", **ports, page=0)
        with running(load_config(path)) as (watch, _):
            until(lambda: "watching" in str(watch.known), 60)
            assert list(watch.known) == [f"127.0.0.1:{ports['service']}"]
            entity = next(iter(watch.entities.values()))
            assert sorted(entity.channels) == ["connections", "cpu", "latency", "requests"]
    finally:
        for process in processes:
            process.terminate()
            process.wait(10)
        shown.close()
