import json
import time
from contextlib import contextmanager

import pytest

kafka = pytest.importorskip("confluent_kafka", reason="pip install 'vace-ad[live]'")

from vace_ad.live.settings import read_settings  # noqa: E402
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
    made = KafkaSource(read_settings(KafkaSource.SETTINGS, given, "source"))
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


def poll(members, n, seconds=40):
    """Read from all of them in turn until so many records came; who read which entity."""
    found, end = [], time.monotonic() + seconds
    while len(found) < n and time.monotonic() < end:
        for number, member in enumerate(members):
            batch = member.read(0.1)
            if batch is not None:
                member.acknowledge(batch.position)
                found += [(number, record.entity) for record in batch.records]
    return found


def keyed(producer, start, end):
    for i in range(start, end):
        body = {"time": 1_767_614_400 + i, "entity": f"p{i % 20}", "flow": i}
        producer.produce("plant", json.dumps(body), key=f"p{i % 20}")
    producer.flush(10)


def test_entities_go_with_their_partition_and_their_offsets_are_left_alone():
    with cluster() as (servers, producer):
        keyed(producer, 0, 100)
        first = source(servers)
        assert len(poll([first], 100)) == 100
        assert first.lost == []
        homes = dict(first._partition)
        second = source(servers)
        end = time.monotonic() + 60
        while not (first.lost and second._ours) and time.monotonic() < end:
            poll([first, second], 1, 0.3)  # all are taken back, then dealt out again to both
        assert second._ours
        assert not first._ours & second._ours
        gone = {name for name, where in homes.items() if where in second._ours}
        assert gone
        assert sorted(first.lost) == sorted(gone)
        keyed(producer, 100, 200)
        found = poll([first, second], 100)
        assert len(found) == 100  # nothing twice, nothing left out
        assert {entity for number, entity in found if number == 1} == gone
        stale = {"plant": {str(partition): 0 for _, partition in second._ours}}
        first.acknowledge(stale)  # of partitions that are not its own any more
        time.sleep(0.5)
        second.close()
        first.close()
        third = source(servers)
        keyed(producer, 200, 210)
        assert len(poll([third], 10) + poll([third], 1, 1)) == 10
        third.close()
