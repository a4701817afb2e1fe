"""Real servers for tests, each in a folder and on a free port; a skip where one is missing."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextmanager
def server(program, package, port, *arguments, cwd):
    """Run a program until the test is over, once its port answers."""
    path = shutil.which(program) or shutil.which(program, path="/usr/sbin:/usr/local/sbin")
    if path is None:
        pytest.skip(f"{program} is not installed: apt-get install {package}")
    log = open(cwd / f"{program}.log", "w")  # noqa: SIM115
    process = subprocess.Popen([path, *arguments], cwd=cwd, stdout=log, stderr=log)
    try:
        wait_for_port(port, process)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        log.close()


def wait_for_port(port, process=None, seconds=20):
    end = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if process is not None and process.poll() is not None:
                raise RuntimeError(f"the server ended with {process.returncode}") from None
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


@contextmanager
def mosquitto(folder, port=None):
    port = port or free_port()
    (folder / "mosquitto.conf").write_text(
        f"listener {port} 127.0.0.1\nallow_anonymous true\npersistence false\n"
    )
    arguments = ("-c", str(folder / "mosquitto.conf"))
    with server("mosquitto", "mosquitto", port, *arguments, cwd=folder) as process:
        yield f"mqtt://127.0.0.1:{port}", process


@contextmanager
def prometheus(folder, target, interval="1s", write_to=None, port=None):
    """Scrapes a port; takes remote write, and writes to another address where one is given."""
    port = port or free_port()
    (folder / "prometheus.yml").write_text(
        f"global: {{scrape_interval: {interval}, evaluation_interval: {interval}}}\n"
        "scrape_configs:\n- job_name: it\n  static_configs:\n"
        f"  - targets: ['127.0.0.1:{target}']\n"
        + (f"remote_write:\n- {write_to}\n" if write_to else "")
    )
    arguments = (
        f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}", "--web.enable-remote-write-receiver",
    )  # fmt: skip
    with server("prometheus", "prometheus", port, *arguments, cwd=folder):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def alertmanager(folder, hook):
    port = free_port()
    (folder / "alertmanager.yml").write_text(
        "route: {receiver: hook, group_by: ['alarm'], group_wait: 0s, group_interval: 1s, "
        "repeat_interval: 1h}\nreceivers:\n- name: hook\n  webhook_configs:\n"
        f"  - {{url: '{hook}', send_resolved: true}}\n"
    )
    arguments = (
        f"--config.file={folder / 'alertmanager.yml'}", f"--storage.path={folder / 'am'}",
        f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address=",
    )  # fmt: skip
    name = "prometheus-alertmanager"
    with server(name, name, port, *arguments, cwd=folder):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def node_exporter(folder):
    """The node exporter with only its textfile collector; returns its port and the file."""
    port = free_port()
    text = folder / "text"
    text.mkdir(exist_ok=True)
    arguments = (
        f"--web.listen-address=127.0.0.1:{port}", "--collector.disable-defaults",
        "--collector.textfile", f"--collector.textfile.directory={text}",
    )  # fmt: skip
    with server(
        "prometheus-node-exporter", "prometheus-node-exporter", port, *arguments, cwd=folder
    ):
        yield port, text / "plant.prom"


@contextmanager
def exporter(text):
    """Metrics that a Prometheus can scrape: what `text` returns, at each scrape; gives its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(text().encode())

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield made.server_port
        made.shutdown()
        thread.join()
