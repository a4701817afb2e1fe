"""A watch with its server, running in threads of a test."""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from live.fakes import FakeCore
from vace_ad.live.runner import Watch
from vace_ad.live.server.serve import Server

for needed in ("starlette", "uvicorn", "prometheus_client"):
    pytest.importorskip(needed, reason="pip install 'vace-ad[live]'")


@contextmanager
def running(config, make_core=FakeCore):
    """Watch and serve until the block ends; yields the watch and its address."""
    made, failed = [], []

    def run():  # SQLite wants to be opened by the thread that uses it
        try:
            made.append(Watch(config, make_core()))
            made[0].run()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    until(lambda: (made and made[0].status.ready) or failed)
    if failed:
        raise failed[0]
    server = Server(made[0])
    server.start()
    try:
        yield made[0], f"http://127.0.0.1:{server.port}"
    finally:
        made[0].stop()
        thread.join(8)
        server.stop()
        assert not thread.is_alive()
    if failed:
        raise failed[0]


def until(condition, seconds=15):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "not in time"
        time.sleep(0.02)


def ask(url, body=None, headers=None, method=None):
    """Status, headers and body of an answer; JSON is read."""
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    kind = {} if data is None else {"Content-Type": "application/json"}
    request = Request(url, data, {**kind, **(headers or {})}, method=method)
    try:
        with urlopen(request, timeout=20) as answer:
            return answer.status, answer.headers, _read(answer)
    except HTTPError as error:
        with error:
            return error.code, error.headers, _read(error)


def _read(answer):
    text = answer.read()
    return json.loads(text) if "json" in answer.headers.get("Content-Type", "") else text.decode()
