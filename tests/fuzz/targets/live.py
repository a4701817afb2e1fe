"""The live service: its configuration, its state on disk, and requests to its endpoints."""

from __future__ import annotations

import contextlib
import logging
import socket
import struct
import tempfile
import threading
import time
from pathlib import Path
from random import Random
from typing import Any

from fuzz.mutate import cells_damaged, damaged, json_text_damaged
from fuzz.target import BrokenError, Target
from live.fakes import FakeCore
from live.feeds import CHANNELS, START, STEP, feed, settings
from vace_ad.live.alarms import Alarm
from vace_ad.live.config import load_config, make_config, template
from vace_ad.live.database import JournalRow, Pending
from vace_ad.live.records import BadRecordError
from vace_ad.live.runner import Watch
from vace_ad.live.server.serve import Server
from vace_ad.live.sources.sparkplug import number_of, read_payload, rebirth
from vace_ad.live.store import Store


class ConfigFile(Target):
    """plant.toml: read and checked."""

    def seeds(self) -> list[bytes]:
        kinds = [
            'kind = "csv"\npath = "a.csv"',
            'kind = "prometheus"\nurl = "http://a:9090"\nqueries = { cpu = "up" }',
            'kind = "kafka"\nservers = "a:9092"\ntopics = "t"',
            'kind = "http"',
        ]
        rest = (
            '\n[align]\nstep = "10s"\n[model]\nlearn = "14d"\n[alarms]\nbudget = "2 per day"\n'
            'silence_after = "off"\n[[sink]]\nkind = "webhook"\nurl = "http://a.b/c"\n[[sink]]\n'
            'kind = "mqtt"\nurl = "mqtt://a"\ntopic = "x"\n[state]\npath = "s"\nactive = 10\n'
            '[server]\naddress = "127.0.0.1:8490"\nbody = 1000\n'
        )
        return [template().encode(), *(f"[source]\n{kind}{rest}".encode() for kind in kinds)]

    def damage(self, data: bytes, rng: Random) -> bytes:
        return rng.choice((damaged, cells_damaged, cells_damaged))(data, rng)

    def run(self, data: bytes, folder: Path, *, thorough: bool = False) -> None:
        path = folder / "plant.toml"
        path.write_bytes(data)
        config = load_config(path)
        repr((config, config.budget, config.link))


class Sparkplug(Target):
    """Payloads of Sparkplug B: metrics, types, aliases and times."""

    def seeds(self) -> list[bytes]:
        flow = b"\x0a\x04flow\x10\x05\x20\x0a\x69" + struct.pack("<d", 1.5)  # alias 5, Double
        level = b"\x0a\x05level\x20\x03\x50\xff\xff\xff\xff\x0f"  # Int32
        both = b"".join(b"\x12" + bytes([len(one)]) + one for one in (flow, level))
        return [rebirth(1_767_614_400_000), both, rebirth(1_767_614_400_000) + both]

    def damage(self, data: bytes, rng: Random) -> bytes:
        return damaged(data, rng)

    def run(self, data: bytes, folder: Path, *, thorough: bool = False) -> None:
        with contextlib.suppress(BadRecordError):  # counted by the source
            _, metrics = read_payload(data)
            for metric in metrics:
                number_of(metric, metric.kind)


class StoreFile(Target):
    """The SQLite file of a watch: opened, read and written to."""

    def seeds(self) -> list[bytes]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "state"
            store, alarm = Store(path), Alarm("a", "p", "anomaly", "", 5)
            rows = [JournalRow("p", i, i, b"12345678") for i in range(40)]
            store.commit(
                Pending(
                    position={"n": 1}, entities={"p": (1, "watching", "{}")}, journal=rows,
                    alarms=[(alarm, {"alarm": "a"})],
                    outbox=[("hook", {"what": "open", "alarm": "a"}, 0)],
                    snapshots={"p": (7, "m", b"state" * 100)},
                )
            )  # fmt: skip
            store._db.execute("pragma journal_mode = delete")  # all in one file
            store.close()
            return [path.read_bytes()]

    def damage(self, data: bytes, rng: Random) -> bytes:
        if rng.random() < 0.3:
            return damaged(data, rng)
        out = bytearray(data)
        for _ in range(rng.choice((1, 5, 50))):  # inside a page: its head, its cells
            page = rng.randrange(max(1, len(out) // 4096)) * 4096
            place = page + rng.choice((rng.randrange(100), rng.randrange(4096)))
            if place < len(out):
                out[place] = rng.choice((0, 1, 255, rng.randrange(256)))
        return bytes(out)

    def run(self, data: bytes, folder: Path, *, thorough: bool = False) -> None:
        path = folder / "state"
        path.write_bytes(data)
        with contextlib.closing(Store(path)) as store:
            store.position, store.roster(), store.journal("p"), store.snapshot("p")
            store.alarms(), store.n_open(), store.queued("hook"), store.waiting()
            store.commit(Pending(position={"n": 2}, entities={"q": (1, "watching", "{}")}))


class Service(Target):
    """Requests over a socket to a watch that runs; nothing may end in status 500, or not at all."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="vace-fuzz-"))
        data = settings(
            self._folder,
            source={"kind": "http"},
            server={"address": "127.0.0.1:0", "body": 100_000},
            state={"path": str(self._folder / "state"), "checkpoint": "2ms"},
            limits={"entities": 50, "channels": 20},
        )
        del data["source"]["path"]
        self._failed: list[BaseException] = []
        self._watch: Watch | None = None
        self._thread = threading.Thread(target=self._run, args=(data,), daemon=True)
        self._thread.start()
        self._wait(lambda: self._watch is not None and self._watch.status.ready)
        assert self._watch is not None
        self._server = Server(self._watch)
        self._server.start()
        self._log = _Kept()
        for name in ("uvicorn.error", "vace_ad.live", "asyncio"):
            logging.getLogger(name).addHandler(self._log)

    def _run(self, data: dict[str, Any]) -> None:
        try:
            self._watch = Watch(make_config(data), FakeCore())
            self._watch.run()
        except BaseException as error:
            self._failed.append(error)

    def _wait(self, done: Any) -> None:
        end = time.monotonic() + 10
        while not done() and not self._failed and time.monotonic() < end:
            time.sleep(0.01)
        if self._failed:
            raise self._failed[0]

    def seeds(self) -> list[bytes]:
        import json

        rows = json.dumps(feed(n_rows=3, entities=("p1",))).encode()
        table = f"time,entity,flow\n{START},p1,1.5\n{START + STEP},p1,2\n".encode()
        line = f"pumps,entity=p2 flow=1.5,on=t {START // 10**9}\n".encode()
        score = json.dumps({"rows": [[1, 2, None]] * 8, "channels": CHANNELS}).encode()
        posts = [
            request("POST /api/rows", rows, b"application/json"),
            request("POST /api/rows", table, b"text/csv"),
            request("POST /api/v2/write?precision=s", line, b"text/plain"),
            request("POST /score", score, b"application/json"),
            request("POST /login", b"token=x", b"application/x-www-form-urlencoded"),
            request("POST /api/alarms/a1/acknowledge", b"{}", b"application/json"),
        ]
        paths = (
            "/", "/docs", "/static/live.js", "/healthz", "/readyz", "/metrics", "/openapi.json",
            "/api/status", "/api/entities?limit=5&search=p", "/api/entity?name=p1",
            "/api/alarms?state=open&limit=3", "/api/events",
        )  # fmt: skip
        return [*posts, *(request(f"GET {path}") for path in paths)]

    def damage(self, data: bytes, rng: Random) -> bytes:
        head, _, body = data.partition(b"\r\n\r\n")
        if rng.random() < 0.4:
            return rng.choice((damaged, cells_damaged))(head, rng) + b"\r\n\r\n" + body
        if not body or rng.random() < 0.1:
            return damaged(data, rng)
        body = rng.choice((json_text_damaged, cells_damaged, damaged))(body, rng)
        lines = [line for line in head.split(b"\r\n") if not line.startswith(b"Content-Length")]
        return b"\r\n".join([*lines, b"Content-Length: %d" % len(body), b"", body])

    def run(self, data: bytes, folder: Path, *, thorough: bool = False) -> None:
        self._log.lines.clear()
        answer = self._ask(data)
        if self._failed:
            raise self._failed[0]
        if not self._thread.is_alive():
            raise BrokenError("the watch has ended")
        words = b" ".join(answer.split(b" ", 2)[:2])
        if words.endswith(b" 500") or self._log.lines:
            raise BrokenError(f"{words.decode('latin-1')}: {' '.join(self._log.lines)[-600:]}")

    def _ask(self, data: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", self._server.port), 10) as line:
            with contextlib.suppress(OSError):  # closed early: the answer says why
                line.sendall(data)
                line.shutdown(socket.SHUT_WR)
            try:
                return line.recv(4096)
            except ConnectionError:
                return b""
            except TimeoutError:
                raise BrokenError("no answer within ten seconds") from None


def request(first: str, body: bytes = b"", kind: bytes = b"") -> bytes:
    lines = [f"{first} HTTP/1.1".encode(), b"Host: 127.0.0.1"]
    if body:
        lines += [b"Content-Type: " + kind, b"Content-Length: %d" % len(body)]
    return b"\r\n".join([*lines, b"", body])


class _Kept(logging.Handler):
    """Errors that were logged."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        trace = logging.Formatter().formatException(record.exc_info) if record.exc_info else ""
        self.lines.append(f"{record.getMessage()} {trace}")
