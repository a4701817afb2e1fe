import json
import time
from contextlib import contextmanager

import pytest

kafka = pytest.importorskip("confluent_kafka", reason="pip install 'vace-ad[live]'")

from vace_ad.live.fields import check_table  # noqa: E402
from vace_ad.live.sources.kafka import KafkaSource  # noqa: E402


@contextmanager
def cluster():
    """librdkafka's own mock cluster; it lives as long as the producer that started it."""
    producer = kafka.Producer({"test.mock.num.brokers": 1, "log_level": 0})
    metadata = producer.list_topics(timeout=10)
    broker = next(iter(metadata.brokers.values()))
    yield f"{broker.host}:{broker.port}", producer
    producer.flush(5)


def source(servers, position=None, **more):
    given = {"servers": servers, "topics": "plant", "start": "earliest", "session": "6s", **more}
    made = KafkaSource(check_table(given, KafkaSource.FIELDS, "source"))
    made.open(position)
    return made


def send(producer, start, end, **more):
    for i in range(start, end):
        body = {"time": 1_767_614_400 + i, "entity": f"p{i % 3}", "flow": i}
        producer.produce("plant", json.dumps(body), **more)
    producer.flush(10)


def read(made, n, seconds=20):
    records, position, end = [], None, time.monotonic() + seconds
    while len(records) < n and time.monotonic() < end:
        batch = made.read(0.2)
        if batch is not None:
            records += batch.records
            position = json.loads(json.dumps(batch.position))
    return sorted(int(record.values["flow"]) for record in records), position


def test_positions_of_ours_and_of_the_group():
    with cluster() as (servers, producer):
        send(producer, 0, 20)
        made = source(servers)
        values, position = read(made, 20)
        assert values == list(range(20))
        made.acknowledge(position)
        time.sleep(0.5)
        made.close()
        send(producer, 20, 25)
        again = source(servers)  # the group remembers
        assert read(again, 5)[0] == list(range(20, 25))
        again.close()


def test_what_was_kept_but_not_committed_is_not_read_again():
    with cluster() as (servers, producer):
        send(producer, 0, 10)
        made = source(servers)
        _, position = read(made, 10)
        made.close()  # killed before the offsets were committed
        send(producer, 10, 13)
        again = source(servers, position)
        assert read(again, 3)[0] == [10, 11, 12]
        again.close()


def test_the_key_names_the_entity_and_bad_messages_are_counted():
    with cluster() as (servers, producer):
        producer.produce("plant", '{"time": 1767614400, "entity": "other", "flow": 1}', key="pump")
        producer.produce("plant", "nonsense", key="pump")
        producer.flush(10)
        made = source(servers, key=True)
        records, bad, end = [], 0, time.monotonic() + 20
        while (len(records) < 1 or bad < 1) and time.monotonic() < end:
            batch = made.read(0.2)
            if batch is not None:
                records, bad = records + batch.records, bad + batch.bad
        made.close()
        assert bad == 1
        assert records[0].entity == "pump"
        assert records[0].values["flow"] == 1.0
