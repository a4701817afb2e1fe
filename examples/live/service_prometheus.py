"""A service over Prometheus: its metrics, a watch, alerts in Alertmanager.

    python examples/live/service_prometheus.py

Needs prometheus, prometheus-alertmanager (Debian packages of these names) and vace-ad[live]. A
small web service is simulated: it shows metrics, Prometheus scrapes them every second, the watch
learns from the first two minutes, then the pool of connections leaks.
"""

from __future__ import annotations

import argparse
import math
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PORTS = {"service": 18080, "prometheus": 19090, "alertmanager": 19093, "page": 8490}
CONFIG = """
[source]
kind = "prometheus"
url = "http://127.0.0.1:{prometheus}"
step = "1s"
delay = "2s"
queries = {{ requests = "requests", latency = "latency", connections = "connections", cpu = "cpu" }}

[align]
step = "1s"
fill = "hold"
hold = "10s"

[model]
learn = "{learn}"

[alarms]
budget = "20 per day"
resolve_after = "15s"
update_every = "10s"

[[sink]]
kind = "alertmanager"
url = "http://127.0.0.1:{alertmanager}"
repeat = "10s"

[[sink]]
kind = "stdout"
format = "text"

[state]
path = "service.state"

[server]
address = "127.0.0.1:{page}"
"""


def write_config(folder: Path, learn: str = "2min", **ports: int) -> Path:
    """The configuration of the watch."""
    path = folder / "service.toml"
    path.write_text(CONFIG.format(learn=learn, **{**PORTS, **ports}))
    return path


class Service:
    """Shows the metrics of a service with load that comes and goes, and maybe a leak."""

    def __init__(self, port: int) -> None:
        self.leak = 0.0
        random_state, outer = random.Random(0), self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                load = 1 + 0.5 * math.sin(time.time() / 6) + random_state.gauss(0, 0.03)
                metrics = {
                    "requests": 100 * load,
                    "latency": 20 + 5 * load + random_state.gauss(0, 0.3),
                    "connections": 40 + 30 * load + outer.leak + random_state.gauss(0, 1),
                    "cpu": 0.2 + 0.3 * load + random_state.gauss(0, 0.01),
                }
                body = "".join(f"{name} {value}\n" for name, value in metrics.items()).encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def start(program: str, *arguments: str, folder: Path) -> subprocess.Popen[bytes]:
    """Start a server whose log goes to the folder."""
    path = shutil.which(program)
    if path is None:
        sys.exit(f"{program} is not installed: apt-get install {program}")
    with (folder / f"{program}.log").open("wb") as log:
        return subprocess.Popen([path, *arguments], cwd=folder, stdout=log, stderr=log)


def servers(folder: Path, ports: dict[str, int]) -> list[subprocess.Popen[bytes]]:
    """Prometheus that scrapes the service, and an Alertmanager."""
    (folder / "prometheus.yml").write_text(
        "global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: service\n"
        f"  static_configs: [{{targets: ['127.0.0.1:{ports['service']}']}}]\n"
    )
    (folder / "alertmanager.yml").write_text("route: {receiver: none}\nreceivers: [{name: none}]\n")
    prometheus = start(
        "prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=tsdb",
        f"--web.listen-address=127.0.0.1:{ports['prometheus']}", folder=folder,
    )  # fmt: skip
    manager = start(
        "prometheus-alertmanager", "--config.file=alertmanager.yml", "--storage.path=am",
        "--cluster.listen-address=", f"--web.listen-address=127.0.0.1:{ports['alertmanager']}",
        folder=folder,
    )  # fmt: skip
    return [prometheus, manager]


def main() -> None:
    """Two minutes to learn, one of peace, half a minute of leak, one to resolve."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        service = Service(PORTS["service"])
        running = servers(folder, PORTS)
        run = "from vace_ad.cli.main import main; main()"
        time.sleep(5)
        running.append(subprocess.Popen([sys.executable, "-c", run, "watch", write_config(folder)]))
        try:
            print(f"alerts: http://127.0.0.1:{PORTS['alertmanager']}", flush=True)
            time.sleep(190)
            print("the pool leaks connections", flush=True)
            service.leak = 80.0
            time.sleep(30)
            print("mended", flush=True)
            service.leak = 0.0
            time.sleep(60)
        finally:
            for process in reversed(running):
                process.terminate()
                process.wait(10)
            service.close()


if __name__ == "__main__":
    main()
