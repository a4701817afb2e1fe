import json
import shutil
import subprocess
import time
from itertools import pairwise

import pytest

from live.fakes import FakeCore, FakeModel
from live.feeds import settings
from live.running import until
from live.servers import node_exporter, prometheus
from vace_ad.errors import ConfigError, InputError
from vace_ad.live.config import make_config
from vace_ad.live.http_client import RequestError
from vace_ad.live.service import backtest, plan
from vace_ad.live.settings import read_settings
from vace_ad.live.sources import Backoff
from vace_ad.live.sources.prometheus import PrometheusSource

S = 10**9


def make(url="http://127.0.0.1:1", **more):
    given = {"url": url, "queries": {"load": "load"}, "step": "10s", **more}
    return PrometheusSource(read_settings(PrometheusSource.SETTINGS, given, "source"))


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
    made._client = answers
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
    steps = (time.time_ns() - now) // (10 * S)  # that have begun meanwhile
    assert 50_000 <= len(times) <= 50_000 + steps
    assert max(end - start for start, end in answers.asked) <= 20_000


def test_a_server_that_is_down_is_waited_for():
    made, answers = make(), Answers()
    made._client, answers.down = answers, True
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
    made._client = Answers()
    made.look_back(1_000_000 * S, 1_000_100 * S)
    first, last = made.read(0.0), made.read(0.0)
    assert len(first.records) == 10
    assert last.end


@pytest.mark.parametrize("answer", [b"<html>", b"{}", b'{"data": {"result": [{"metric": 1}]}}'])
def test_another_server_is_said(answer):
    made = make()
    made._client = type("Other", (), {"send": lambda self, url: answer})()
    made.open(None)
    assert made.read(0.0) is None
    assert "not Prometheus's" in made.problem


class Series:
    """Stands in for the server: the series of each query, by their labels, at every step."""

    def __init__(self, **series):
        self.series, self.asked = series, []

    def send(self, url):
        from urllib.parse import parse_qs, urlsplit

        query = {key: values[0] for key, values in parse_qs(urlsplit(url).query).items()}
        self.asked.append(query["query"])
        at = float(query["end"])
        result = [
            {"metric": labels, "values": [[at, str(value)]]}
            for labels, value in self.series[query["query"]]
        ]
        return json.dumps({"data": {"result": result}}).encode()


def read(made, **series):
    made._client = Series(**series)
    made.open(None)
    return made.read(0.0)


def test_a_look_back_is_not_forgotten_when_the_source_is_opened():
    made = make()
    made._client = Answers()
    made.look_back(1_000_000 * S, 1_000_100 * S)
    made.open(None)
    assert len(made.read(0.0).records) == 10


@pytest.mark.parametrize(
    ("rule", "value"), [("mean", 3.0), ("sum", 9.0), ("max", 6.0), ("min", 1.0)]
)
def test_several_series_of_an_entity_are_combined_and_said_once(rule, value):
    made = make(several=rule)
    series = [({"instance": "a", "cpu": str(i)}, v) for i, v in enumerate((1.0, 2.0, 6.0))]
    batch = read(made, load=[*series, ({"instance": "b", "cpu": "0"}, 5.0)])
    assert {r.entity: r.values["load"] for r in batch.records} == {"a": value, "b": 5.0}
    (note,) = made.notes
    assert f"several series of an entity, {rule} of them is used" in note
    assert "sum by (instance)" in note


def test_a_misspelt_entity_label_is_a_problem_and_no_entity():
    made = make(entity="instnace")
    batch = read(made, load=[({"__name__": "load", "instance": "a", "job": "x"}, 1.0)])
    assert batch.records == []
    assert "did you mean 'instance'?" in made.problem
    plain = make(entity="instnace")
    assert [r.entity for r in read(plain, load=[({}, 1.0)]).records] == ["all"]  # sum(…)
    assert plain.problem is None
    some = make()
    batch = read(some, load=[({"instance": "a"}, 1.0), ({"job": "x"}, 2.0)])
    assert [r.entity for r in batch.records] == ["a"]
    assert some.problem is None
    assert "they are left out" in some.notes[0]


def test_a_bare_counter_is_rated_and_said():
    queries = {
        "requests": 'http_requests_total{job="api"}',
        "rated": "rate(http_requests_total[5m])",
        "load": "node_load1",
    }
    made = make(queries=queries, step="2min")
    rated = 'rate(http_requests_total{job="api"}[480s])'
    assert list(made._queries.values()) == [rated, queries["rated"], "node_load1"]
    assert made.notes == [
        f"channel requests: http_requests_total is a counter, so {rated} is watched"
    ]


@pytest.mark.parametrize("status", [None, 400])
def test_a_look_back_does_not_wait_for_ever(status, monkeypatch):
    monkeypatch.setattr("vace_ad.live.sources.prometheus.Backoff", lambda: Backoff(first=0.0))
    made = make("http://secret.example:9090/hidden-path")

    def send(url):
        raise RequestError("cannot be reached: refused", status)

    made._client = type("Down", (), {"send": staticmethod(send)})()
    made.look_back(1_000_000 * S, 1_000_100 * S)
    made.open(None)
    for _ in range(2 if status is None else 0):  # what may pass is tried again
        assert made.read(0.0) is None
    with pytest.raises(ConfigError, match="cannot be reached") as raised:
        made.read(0.0)
    assert "hidden-path" not in str(raised.value)


def watched(folder, url, **source):
    source = {
        "kind": "prometheus",
        "url": url,
        "queries": {"flow": "flow"},
        "step": "2min",
    } | source
    data = settings(folder, align={"step": "2min"})
    return make_config({**data, "source": source})


def test_a_dry_run_asks_the_server(tmp_path):
    core = lambda config: FakeCore()  # noqa: E731
    with pytest.raises(ConfigError, match="cannot be reached"):
        plan(watched(tmp_path, "http://127.0.0.1:1"), core)
    with node_exporter(tmp_path) as (port, text):
        text.write_text("flow 3.5\nevents_total 7\n")
        with prometheus(tmp_path, port) as url:
            made = make(url, queries={"flow": "flow"}, step="1s")
            made.open(None)
            until(lambda: (batch := made.read(0.1)) and batch.records, 20)
            lines = plan(watched(tmp_path, url, queries={"flow": "flow", "no": "nope"}), core)
            assert "step 2 min" in lines[0]
            assert lines[1].strip() == f"now 1 entity: 127.0.0.1:{port}; channels: flow"
            assert lines[2].strip() == "no series now: no; is the query right?"
            with pytest.raises(ConfigError, match=r"answered 400.*parse error"):
                plan(watched(tmp_path, url, queries={"flow": "rate(flow"}), core)
            with pytest.raises(InputError, match=r"asks for 7 days|has no rows"):
                backtest(watched(tmp_path, url), 7 * 86_400 * S, core)
            with pytest.raises(ConfigError, match=r"answered 400"):
                backtest(watched(tmp_path, url, queries={"flow": "rate(flow"}), 3600 * S, core)
    with pytest.raises(ConfigError, match="cannot be reached"):
        backtest(watched(tmp_path, "http://127.0.0.1:1"), 3600 * S, core)


def test_a_backtest_of_a_real_server_reads_all_that_was_asked_for(tmp_path):
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed: apt-get install prometheus")
    now = int(time.time()) // 60 * 60
    lines = ["# TYPE flow gauge"]
    for name in ("a", "b", "c"):
        for i in range(-300, 1):
            if -120 <= i < -90:
                continue  # half an hour without any scrape
            value = 30.0 if -40 <= i < -35 and name == "b" else (i * 37 % 11 - 5) / 5
            lines.append(f'flow{{instance="{name}"}} {value} {now + 60 * i}')
    (tmp_path / "past.txt").write_text("\n".join([*lines, "# EOF", ""]))
    command = [promtool, "tsdb", "create-blocks-from", "openmetrics", "past.txt", "tsdb"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    FakeModel(["flow"], [0.0], [1.0]).save(tmp_path / "one.json")
    with prometheus(tmp_path, 1) as url:
        made = make(url, queries={"flow": "flow"}, step="1min")
        made.open(None)
        until(lambda: made.read(0.1) is not None, 20)
        data = settings(tmp_path, align={"step": "1min"}, alarms={"silence_after": "10min"})
        data["model"] = {"file": str(tmp_path / "one.json")}
        data["source"] = {"kind": "prometheus", "url": url, "queries": {"flow": "flow"}}
        data["source"]["step"] = "1min"
        alarms, watch = backtest(make_config(data), 4 * 3600 * S, lambda config: FakeCore())
        with pytest.raises(InputError, match=r"asks for 1 day, and the source has only [45]"):
            backtest(make_config(data), 24 * 3600 * S, lambda config: FakeCore())
    found = [(one["entity"], one["kind"]) for one in alarms]
    assert found == [("", "no data"), ("b", "anomaly")]
    assert watch.status.counts["readings"] >= 3 * 200
