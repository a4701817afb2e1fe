"""Rows that come from a server in another process: MQTT, Kafka, OPC UA.

Sender and server are processes of their own, so that processor time is that of the watch alone. The
first part of the rows is not timed: the connection is made and the entities are found with it.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "live"))

from servers import free_port, wait_for_port

from vace_ad.live.records import Record

FIRST = 500  # rows of the part that is not timed
SECONDS = 300  # until a server is ready
Parts = Sequence[Sequence[Record]]
LIBRARIES = {"mqtt": "paho", "kafka": "confluent_kafka", "opcua": "asyncua"}


def missing(kind: str) -> str | None:
    """The program that a way needs and that is not here."""
    if kind == "mqtt" and _mosquitto() is None:
        return "mosquitto"
    return None


def parts_of(kind: str, rows: list[Record], entities: int) -> Parts:
    """OPC UA has one value of a variable at a time, so the next row waits for the last one."""
    if kind == "opcua":
        return [rows[a : a + entities] for a in range(0, len(rows), entities)]
    return [rows[:FIRST], rows[FIRST:]]


@contextmanager
def sending(kind: str, parts: Parts, folder: Path) -> Iterator[tuple[dict[str, Any], Any]]:
    """A server: keys of the source, and what sends the part of a number."""
    ours, theirs = get_context("spawn").Pipe()
    with _broker(kind, folder) as address:
        child = get_context("spawn").Process(
            target=_SENDERS[kind], args=(theirs, parts, address), daemon=True
        )
        child.start()
        theirs.close()  # so that the end of the child is seen
        try:
            if not ours.poll(SECONDS):
                raise SystemExit(f"{kind}: the server was not ready in {SECONDS} seconds")
            yield {"kind": kind, **ours.recv()}, ours.send
        finally:
            child.terminate()
            child.join()


def _mosquitto() -> str | None:
    return shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")


@contextmanager
def _broker(kind: str, folder: Path) -> Iterator[int]:
    """The port of a broker: mosquitto for MQTT; Kafka and OPC UA are served by their senders."""
    port = free_port()
    if kind != "mqtt":
        yield port
        return
    config = folder / "mosquitto.conf"
    config.write_text(
        f"listener {port} 127.0.0.1\nallow_anonymous true\npersistence false\n"
        "max_queued_messages 0\n"  # all rows wait at the broker
    )
    log = (folder / "mosquitto.log").open("w")
    with log, subprocess.Popen([str(_mosquitto()), "-c", config], stdout=log, stderr=log) as broker:
        wait_for_port(port, broker)
        yield port
        broker.terminate()


# ------------------------------------------------------------- in the sender's process


def _mqtt(pipe: Connection, parts: Parts, port: int) -> None:
    from paho.mqtt import client as paho
    from paho.mqtt.enums import CallbackAPIVersion

    client = paho.Client(CallbackAPIVersion.VERSION2, "sender", protocol=paho.MQTTv5)
    client.max_inflight_messages_set(1000)
    client.connect("127.0.0.1", port)
    client.loop_start()
    pipe.send({"url": f"mqtt://127.0.0.1:{port}", "topics": "plant/+/row"})
    while True:
        for row in parts[pipe.recv()]:
            body = json.dumps({"time": row.time, **row.values})
            sent = client.publish(f"plant/{row.entity}/row", body, qos=1)
        sent.wait_for_publish()


def _kafka(pipe: Connection, parts: Parts, _port: int) -> None:
    """The broker is librdkafka's own mock cluster, which lives as long as this producer."""
    from confluent_kafka import Producer

    producer = Producer(
        {"test.mock.num.brokers": 1, "log_level": 0, "queue.buffering.max.messages": 10**7}
    )
    broker = next(iter(producer.list_topics(timeout=60).brokers.values()))
    servers = f"{broker.host}:{broker.port}"
    pipe.send({"servers": servers, "topics": "plant", "start": "earliest", "entity": "entity"})
    while True:
        for row in parts[pipe.recv()]:
            body = json.dumps({"entity": row.entity, "time": row.time, **row.values})
            producer.produce("plant", body, key=row.entity)  # one partition: the order is kept
        producer.flush(SECONDS)


def _opcua(pipe: Connection, parts: Parts, port: int) -> None:
    asyncio.run(_opcua_server(pipe, parts, port))


async def _opcua_server(pipe: Connection, parts: Parts, port: int) -> None:
    from asyncua import Server, ua

    server, url = Server(), f"opc.tcp://127.0.0.1:{port}"
    await server.init()
    server.set_endpoint(url)
    server.set_security_policy([ua.SecurityPolicyType.NoSecurity])
    space = await server.register_namespace("urn:plant")
    folder = await server.nodes.objects.add_folder(f"ns={space};s=Plant", "Plant")
    nodes = {}
    for row in parts[0]:
        thing = await folder.add_object(f"ns={space};s={row.entity}", row.entity)
        for name in row.values:
            node = f"ns={space};s={row.entity}.{name}"
            nodes[row.entity, name] = await thing.add_variable(node, name, 0.0)

    async def written(part: Sequence[Record]) -> None:
        for row in part:
            at = datetime.fromtimestamp(row.time / 1e9, UTC)
            for name, value in row.values.items():
                data = ua.DataValue(ua.Variant(value, ua.VariantType.Double), SourceTimestamp=at)
                await nodes[row.entity, name].write_value(data)
            await asyncio.sleep(0)  # the server answers meanwhile

    await written(parts[0])  # a subscription begins with the values of now
    async with server:
        pipe.send({"url": url, "folder": f"ns={space};s=Plant", "interval": "50ms", "repeat": "1h"})
        while True:
            number = await asyncio.to_thread(pipe.recv)
            if number:
                await written(parts[number])


_SENDERS = {"mqtt": _mqtt, "kafka": _kafka, "opcua": _opcua}
WAYS = tuple(_SENDERS)
