"""Feeds with faults in them, configurations for them, and a sink that listens."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

from live.fakes import FakeModel
from vace_ad.live.config import make_config

START = 1_767_614_400 * 10**9
STEP = 10 * 10**9
CHANNELS = ("flow", "level", "power")


def feed(n_rows=400, entities=("p1", "p2"), faults=((100, 120, 1), (300, 310, 2)), seed=0):
    """Records as JSON objects; faults are (start, end, channel) of every entity."""
    rng = np.random.default_rng(seed)
    lines = []
    for i in range(n_rows):
        for name in entities:
            values = rng.normal(size=len(CHANNELS))
            for start, end, channel in faults:
                if start <= i < end:
                    values[channel] += 20
            cells = dict(zip(CHANNELS, values.tolist(), strict=True))
            lines.append({"time": START + i * STEP, "entity": name, **cells})
    return lines


def model():
    return FakeModel(CHANNELS, [0.0] * 3, [1.0] * 3)


def settings(folder, **sections):
    """The tables of a configuration: JSON lines, a model file, a state in this folder."""
    path = folder / "model.json"
    if not path.exists():
        model().save(path)
    data = {
        "source": {"kind": "jsonl", "path": str(folder / "feed.jsonl")},
        "align": {"step": "10s"},
        "model": {"file": str(path)},
        "alarms": {"resolve_after": "2min", "silence_after": "off", "group": "0s"},
        "state": {"path": str(folder / "watch.state"), "checkpoint": "50ms"},
        "sink": [],
    }
    for name, table in sections.items():
        data[name] = table if isinstance(table, list) else {**data.get(name, {}), **table}
    return data


def config(folder, **sections):
    return make_config(settings(folder, **sections))


def write(folder, lines, mode="w"):
    with (folder / "feed.jsonl").open(mode) as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


class Receiver:
    """A web server that keeps what is posted to it, and can refuse."""

    def __init__(self):
        self.got, self.answer = [], 200
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if outer.answer == 200:
                    plain = "json" in self.headers["Content-Type"]
                    outer.got.append(json.loads(body) if plain else body)
                self.send_response(outer.answer)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()
