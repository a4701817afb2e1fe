import json
import math
import re
import time
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import urlopen

import numpy as np
import pytest

from live import real
from live.feeds import CHANNELS, START, settings
from live.running import ask, running, until
from live.servers import exporter, free_port, prometheus
from vace_ad.live import remote_write_codec
from vace_ad.live.config import make_config
from vace_ad.live.records import BadRecordError
from vace_ad.live.settings import read_settings
from vace_ad.live.sources.push import FullError
from vace_ad.live.sources.remote_write import RemoteWriteSource

pytest.importorskip("cramjam", reason="pip install 'vace-ad[prometheus]'")
S = 10**9
DEPLOY = Path(__file__).parents[3] / "deploy"


def make(**more):
    return RemoteWriteSource(read_settings(RemoteWriteSource.SETTINGS, more, "source"))


def request(*series, types=None):
    """A request; series are (name, labels, samples in seconds)."""
    return remote_write_codec.encode(
        ({"__name__": name, **labels}, [(int(at * 1000), value) for at, value in samples])
        for name, labels, samples in series
    )


def taken(source, *series):
    source.push(source.parse(request(*series)))
    return source.read(0.0).records


def test_a_series_is_a_channel_of_its_instance():
    made = make()
    load = ("node_load1", {"instance": "a", "job": "node"}, [(100, 3.5)])
    disk = ("free", {"instance": "a", "job": "node", "disk": "sda"}, [(100, 7.0)])
    other = ("node_load1", {"instance": "b", "job": "node"}, [(101.5, 4.0)])
    records = taken(made, load, disk, other)
    assert [(one.entity, one.time) for one in records] == [("a", 100 * S), ("b", 101_500 * 10**6)]
    assert records[0].values == {"node_load1": 3.5, 'free{disk="sda"}': 7.0}


def test_counters_are_rated_over_resets_and_gaps():
    made = make()
    samples = [(0, 10.0), (10, 30.0), (20, 5.0), (40, 45.0)]
    records = taken(made, ("requests_total", {"instance": "a"}, samples))
    rates = [record.values["requests_total"] for record in records]
    assert math.isnan(rates[0])
    assert rates[1:] == [2.0, 0.5, 2.0]  # from zero after a reset
    again = taken(made, ("requests_total", {"instance": "a"}, [(40, 45.0), (30, 25.0), (50, 55.0)]))
    assert [(one.time // S, one.values["requests_total"]) for one in again] == [(50, 1.0)]


def test_metadata_and_settings_name_further_counters(tmp_path):
    made = make(counters="bytes_*")
    message = remote_write_codec._request()()
    message.metadata.add(type=1, metric_family_name="odd_counter")
    message.metadata.add(type=2, metric_family_name="seats_total")  # a gauge by any name
    body = bytes(remote_write_codec._snappy().compress_raw(message.SerializeToString()))
    assert made.parse(body) == []
    names = ("odd_counter", "seats_total", "bytes_in", "plain")
    series = [(name, {"instance": "a"}, [(0, 10.0), (10, 30.0)]) for name in names]
    last = taken(made, *series)[-1].values
    assert last == {"odd_counter": 2.0, "seats_total": 30.0, "bytes_in": 2.0, "plain": 30.0}
    after = make(counters="bytes_*")  # a restart knows them from the position
    after.open(made._position())
    assert taken(after, *series)[-1].values == last


def test_what_cannot_be_used_is_left_out_and_said_once():
    made = make(metrics=["node_*", "h_*"])
    series = [
        ("node_a", {"job": "x"}, [(0, 1.0)]),
        ("node_a", {"instance": ""}, [(0, 1.0)]),
        ("h_bucket", {"instance": "a", "le": "1"}, [(0, 1.0)]),
        ("other", {"instance": "a"}, [(0, 1.0)]),
    ]
    assert made.parse(request(*series)) == []
    assert made.parse(request(*series)) == []
    assert len(made.notes) == 3
    assert "no label 'instance'" in made.notes[0]
    assert "buckets" in made.notes[2]


def test_chosen_labels_and_several_series_of_a_cell():
    made = make(labels="mode")
    cpus = [
        ("cpu_total", {"instance": "a", "cpu": str(i), "mode": "idle"}, [(0, 0.0), (10, 10.0 * i)])
        for i in range(3)
    ]
    assert taken(made, *cpus)[-1].values == {'cpu_total{mode="idle"}': 3.0}  # the sum of rates


def test_a_stale_marker_is_a_missing_cell():
    (record,) = taken(make(), ("load", {"instance": "a"}, [(5, math.nan)]))
    assert math.isnan(record.values["load"])


@pytest.mark.parametrize("body", [b"", b"\x05hello", b"\xff\xff\xff\xff\x0f", b"\x80" * 9])
def test_a_body_of_something_else_is_refused(body):
    with pytest.raises(BadRecordError, match=r"remote write request|bytes unpacked"):
        make().parse(body)


def test_too_much_at_once_is_refused_and_comes_again():
    made = make(pending=2)
    body = request(("load", {"instance": "a"}, [(1, 1.0), (2, 2.0)]))
    made.push(made.parse(body))
    with pytest.raises(FullError, match="send again"):
        made.push(made.parse(body))
    made.read(0.0)
    made.push(made.parse(body))


def test_the_server_answers_when_rows_are_kept_and_503_while_it_is_full(tmp_path):
    data = settings(tmp_path, source={"kind": "remote-write", "pending": 1})
    del data["source"]["path"]
    data["server"] = {"address": "127.0.0.1:0"}
    body = request(*((name, {"instance": "p"}, [(START / S, 1.0)]) for name in CHANNELS))
    with running(make_config(data)) as (watch, url):
        assert ask(f"{url}/api/v1/write", body)[0] == 204
        assert watch.status.counts["readings"] == 3
        assert ask(f"{url}/api/v1/write", b"nonsense")[0] == 400
        assert ask(f"{url}/v1/metrics", body)[0] == 409
        source, watch.source.read = watch.source, lambda timeout: time.sleep(timeout)
        time.sleep(0.5)  # a read is under way
        source.push(source.parse(body))
        status, headers, words = ask(f"{url}/api/v1/write", body)
        assert (status, headers["Retry-After"]) == (503, "1")
        assert "wait already" in words["error"]


def query(url, words):
    with urlopen(f"{url}/api/v1/query?{urlencode({'query': words})}", timeout=10) as answer:
        return {
            tuple(sorted(one["metric"].items())): float(one["value"][1])
            for one in json.load(answer)["data"]["result"]
        }


def check_board(url, entity):
    """Every query of the board finds series, those of open alarms too: one is open now."""
    board = json.loads((DEPLOY / "grafana-bands.json").read_text())
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    assert {name for words in asked for name in re.findall(r"vace_\w+", words)} == {
        "vace_value", "vace_expected", "vace_lower", "vace_upper", "vace_score",
        "vace_alarm_state",
    }  # fmt: skip
    asked += [one["expr"] for one in board["annotations"]["list"]]
    for words in asked:
        found = query(url, words.replace("$entity", entity).replace("$channel", "flow|level"))
        assert found, words
    for variable in board["templating"]["list"][1:]:
        series, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]).groups()
        values = {dict(one)[label] for one in query(url, series.replace("$entity", entity))}
        assert values in ({entity}, set(CHANNELS))


def test_a_real_prometheus_writes_and_is_written_to(tmp_path):
    here, there, rng, fault = free_port(), free_port(), np.random.default_rng(5), {"flow": 0.0}

    def scraped():  # other values at each scrape: those that stand still would be an anomaly
        rows = zip(CHANNELS, rng.normal(size=3).tolist(), strict=True)
        return "".join(f"{name} {value + fault.get(name, 0.0)}\n" for name, value in rows)

    real.save_model(tmp_path / "model.json", step=S)
    data = settings(tmp_path, align={"step": "1s", "fill": "hold"})
    data["source"] = {"kind": "remote-write", "metrics": [*CHANNELS]}
    data["server"] = {"address": f"127.0.0.1:{here}"}
    data["sink"] = [{"kind": "remote-write", "url": f"http://127.0.0.1:{there}"}]
    queue = "queue_config: {batch_send_deadline: 100ms}"
    write_to = f"{{url: 'http://127.0.0.1:{here}/api/v1/write', {queue}}}"
    with (
        exporter(lambda: scraped() + "work_total 3\n") as port,
        running(make_config(data), real.core) as (watch, own),
    ):
        entity, now = f"127.0.0.1:{port}", int(time.time())
        before = rng.normal(size=(80, 3)).T.tolist()  # averages of the past are filled by these
        past = [
            (name, {"instance": entity}, list(enumerate(values, now - 80)))
            for name, values in zip(CHANNELS, before, strict=True)
        ]
        assert ask(f"{own}/api/v1/write", request(*past))[0] == 204
        with prometheus(tmp_path, port, write_to=write_to, port=there) as url:

            def state():
                return list(query(url, 'vace_alarm_state{kind="anomaly"}').values())

            until(lambda: watch.status.counts["rows"] >= 82 and state() == [0.0], 60)
            assert set(query(url, "vace_alarm_state > 0")) == set()
            low, high = (query(url, f'vace_{one}{{channel="flow"}}') for one in ("lower", "upper"))
            assert 2 < high.popitem()[1] - low.popitem()[1] < 12
            assert len(query(url, "vace_expected")) == len(query(url, "vace_value")) == 3
            fault["flow"] = 20.0
            until(lambda: state() == [1.0], 60)
            ((labels, value),) = query(url, "vace_value > vace_upper").items()
            assert {("entity", entity), ("channel", "flow")} <= set(labels)
            assert value > 15
            assert not watch.status.problems
            check_board(url, entity)
