"""A pumping station over MQTT: a broker, twelve sensors, a watch, alarms on the terminal.

    python examples/live/plant_mqtt.py            # then open the page that it names

Needs mosquitto (apt-get install mosquitto) and vace-ad[live]. The station is simulated: twelve
days train the detector, then days pass in seconds and six faults come.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from vace_ad.demo import Plant, simulate

CONFIG = """
[source]
kind = "mqtt"
url = "mqtt://127.0.0.1:{port}"
topics = "plant/+/+"
entity = "{{1}}"
channel = "{{2}}"

[align]
step = "5min"
lateness = "10min"
fill = "hold"
hold = "30min"

[model]
file = "plant.vace"

[alarms]
budget = "1 per week"
resolve_after = "2h"
update_every = "1h"
silence_after = "off"   # simulated days pass in seconds

[[sink]]
kind = "stdout"
format = "text"

[state]
path = "plant.state"

[server]
address = "127.0.0.1:{page}"
"""


def write_config(folder: Path, port: int, page: int = 8490) -> Path:
    """The configuration of the watch."""
    path = folder / "plant.toml"
    path.write_text(CONFIG.format(port=port, page=page))
    return path


def train(folder: Path, plant: Plant) -> None:
    """Learn the station from its days without faults."""
    from vace_ad import VACE
    from vace_ad.frames import Table

    normal = slice(0, plant.train_rows)
    VACE(random_state=0).fit(Table(plant.values[normal], plant.names, plant.time[normal])).save(
        folder / "plant.vace"
    )


def broker(folder: Path, port: int) -> subprocess.Popen[bytes]:
    """Start mosquitto on this machine alone."""
    program = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")
    if program is None:
        sys.exit("mosquitto is not installed: apt-get install mosquitto")
    file = folder / "mosquitto.conf"
    file.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\n")
    return subprocess.Popen([program, "-c", file], stderr=subprocess.DEVNULL)


def send(plant: Plant, port: int, rows_per_second: float, rows: range) -> None:
    """Publish rows, every sensor by itself."""
    from paho.mqtt import client as paho

    client = paho.Client(paho.CallbackAPIVersion.VERSION2)
    client.max_queued_messages_set(0)
    client.connect("127.0.0.1", port)
    client.loop_start()
    for row in rows:
        stamp = str(plant.time[row].astype("datetime64[s]")) + "Z"
        told = None
        for name, value in zip(plant.names, plant.values[row], strict=True):
            body = json.dumps({"time": stamp, "value": float(value)})
            told = client.publish(f"plant/station/{name}", body, qos=1)
        if told is not None:
            told.wait_for_publish(10)
        time.sleep(1 / rows_per_second)
    client.loop_stop()
    client.disconnect()


def main() -> None:
    """Run broker, watch and station until the station's days are over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows-per-second", type=float, default=50)
    parser.add_argument("--port", type=int, default=18830, help="of the broker")
    parser.add_argument("--page", type=int, default=8490, help="port of the page")
    options = parser.parse_args()
    plant = simulate()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print("learning the station from twelve normal days …", flush=True)
        train(folder, plant)
        config = write_config(folder, options.port, options.page)
        mosquitto = broker(folder, options.port)
        run = "from vace_ad.cli.main import main; main()"
        watch = subprocess.Popen([sys.executable, "-c", run, "watch", config])
        try:
            time.sleep(3)
            print(
                f"faults to come: {', '.join(fault.sensor for fault in plant.faults)}", flush=True
            )
            rows = range(plant.train_rows, len(plant.values))
            send(plant, options.port, options.rows_per_second, rows)
            time.sleep(3)
        finally:
            watch.terminate()
            watch.wait(10)
            mosquitto.terminate()
            mosquitto.wait(10)


if __name__ == "__main__":
    main()
