import json
import time
from itertools import pairwise

import pytest

from live.servers import node_exporter, prometheus
from vace_ad.live.fields import check_table
from vace_ad.live.request import RequestError
from vace_ad.live.sources.prometheus import PrometheusSource

S = 10**9


def make(url="http://127.0.0.1:1", **more):
    given = {"url": url, "queries": {"load": "load"}, "step": "10s", **more}
    return PrometheusSource(check_table(given, PrometheusSource.FIELDS, "source"))


def test_a_real_server(tmp_path):
    with node_exporter(tmp_path) as (port, text):
        text.write_text("load 3.5\n")
        with prometheus(tmp_path, port) as url:
            made = make(url, queries={"load": "load", "twice": "2 * load"}, step="1s")
            made.open(None)
            records, end = [], time.monotonic() + 20
            while len(records) < 4 and time.monotonic() < end:
                batch = made.read(0.2)
                if batch is not None:
                    records += batch.records
            assert made.problem is None
            assert {record.entity for record in records} == {f"127.0.0.1:{port}"}
            assert records[-1].values == {"load": 3.5, "twice": 7.0}
            assert len({record.time for record in records}) == len(records)
            assert records[-1].time % S == 0


class Answers:
    """Stands in for the server: a line through every step, and a record of what was asked."""

    def __init__(self):
        self.asked, self.down = [], False

    def send(self, url):
        from urllib.parse import parse_qs, urlsplit

        if self.down:
            raise RequestError("cannot be reached: refused")
        query = {key: values[0] for key, values in parse_qs(urlsplit(url).query).items()}
        self.asked.append((float(query["start"]), float(query["end"])))
        steps = range(int(float(query["start"])), int(float(query["end"])) + 1, 10)
        values = [[at, str(at)] for at in steps]
        result = [{"metric": {"instance": "a"}, "values": values}]
        return json.dumps({"data": {"result": result}}).encode()


def test_nothing_is_missed_while_away_and_nothing_asked_twice():
    made, answers = make(), Answers()
    made._caller = answers
    now = time.time_ns() // (10 * S) * 10 * S
    made.open({"until": now - 50_000 * 10 * S})
    times = []
    while True:
        batch = made.read(0.0)
        if batch is None:
            break
        times += [record.time for record in batch.records]
    assert times[0] == now - 49_999 * 10 * S
    assert {b - a for a, b in pairwise(times)} == {10 * S}
    assert len(times) in (50_000, 50_001)
    assert max(end - start for start, end in answers.asked) <= 20_000


def test_a_server_that_is_down_is_waited_for():
    made, answers = make(), Answers()
    made._caller, answers.down = answers, True
    made.open(None)
    assert made.read(0.0) is None
    assert "cannot be reached" in made.problem
    assert made.read(0.0) is None
    answers.down = False
    made._backoff.worked()
    assert made.read(0.0) is not None
    assert made.problem is None


def test_a_look_back_ends():
    made = make()
    made._caller = Answers()
    made.look_back(1_000_000 * S, 1_000_100 * S)
    first, last = made.read(0.0), made.read(0.0)
    assert len(first.records) == 10
    assert last.end


@pytest.mark.parametrize("answer", [b"<html>", b"{}", b'{"data": {"result": [{"metric": 1}]}}'])
def test_another_server_is_said(answer):
    made = make()
    made._caller = type("Other", (), {"send": lambda self, url: answer})()
    made.open(None)
    assert made.read(0.0) is None
    assert "not Prometheus's" in made.problem
