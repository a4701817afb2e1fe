import json
import threading
from contextlib import closing
from urllib.parse import quote

import pytest

from live.feeds import CHANNELS, START, STEP, config, feed, model, write
from live.running import ask, running, until
from vace_ad.errors import ConfigError
from vace_ad.live.server.auth import BURST, SECONDS, Attempts
from vace_ad.live.server.serve import Server

SERVER = {"address": "127.0.0.1:0"}


@pytest.fixture
def pushed(tmp_path):
    """A watch that rows are pushed to."""
    data = config(tmp_path, server=SERVER, sink=[{"kind": "prometheus"}])
    from vace_ad.live.config import PluginSection
    from vace_ad.live.sources.push import HttpSource

    source = PluginSection("http", HttpSource.SETTINGS())
    object.__setattr__(data, "source", source)
    with running(data) as (watch, url):
        yield watch, url


def test_rows_in_an_alarm_out(pushed):
    watch, url = pushed
    lines = feed(n_rows=110, entities=("p1",))
    for part in range(0, len(lines), 40):
        status, _, answer = ask(f"{url}/api/rows", lines[part : part + 40])
        assert (status, answer) == (200, {"records": len(lines[part : part + 40])})
    assert watch.store.path.exists()
    _, _, (alarm,) = ask(f"{url}/api/alarms?state=open")
    assert (alarm["entity"], alarm["channels"][0]["name"]) == ("p1", "level")
    status, _, _ = ask(f"{url}/api/alarms/{alarm['alarm']}/acknowledge", {})
    assert status == 200
    _, _, entity = ask(f"{url}/api/entity?name=p1")
    assert len(entity["scores"]) == 109  # the last row is still open
    assert entity["channels"][0] == {"name": "flow", "value": entity["channels"][0]["value"],
                                     "low": -3.0, "high": 3.0}  # fmt: skip
    assert entity["curves"][0]["name"] == "level"  # the suspect comes first
    assert entity["curves"][0]["suspect"]
    time, _, low, high = entity["curves"][0]["points"][-1]
    assert (low, high) == (-3.0, 3.0)
    assert entity["evidence"][-1][0] == time
    ask(f"{url}/api/alarms/{alarm['alarm']}/normal", {})
    _, _, (alarm,) = ask(f"{url}/api/alarms?state=all")
    assert alarm["acknowledged"]
    assert alarm["normal"]
    ask(f"{url}/api/alarms/{alarm['alarm']}/fault", {})
    (marked,) = [one for one in ask(f"{url}/api/alarms")[2] if one["alarm"] == alarm["alarm"]]
    assert marked["fault"]
    assert marked["normal"] is None  # one verdict: the last one counts
    assert ask(f"{url}/api/alarms/none/acknowledge", {})[0] == 404


def test_csv_and_influx_lines(pushed):
    watch, url = pushed
    body = f"time,entity,flow\n{START},p1,1.5\n".encode()
    assert ask(f"{url}/api/rows", body, {"Content-Type": "text/csv"})[0] == 200
    line = f"pumps,entity=p2 flow=1.5 {START // 10**9}".encode()
    assert ask(f"{url}/api/v2/write?precision=s", line)[0] == 204
    until(lambda: set(watch.known) == {"p1", "p2"})


def test_a_bad_request_is_refused_whole_and_says_why(pushed):
    watch, url = pushed
    status, _, answer = ask(
        f"{url}/api/rows", [{"time": START, "entity": "p1", "flow": 1}, {"flow": 1}]
    )
    assert status == 422
    assert "no field 'entity'" in answer["error"]
    assert watch.known == {}
    assert ask(f"{url}/api/rows", b"\xff\xff")[0] == 422
    assert ask(f"{url}/api/rows")[0] == 405
    assert ask(f"{url}/nowhere")[0] == 404


def test_bodies_are_bounded(tmp_path):
    write(tmp_path, [])
    with running(config(tmp_path, server={**SERVER, "body": 1000})) as (_, url):
        assert ask(f"{url}/score", b"x" * 2000)[0] == 413


def test_scores_of_rows_that_a_program_brings(pushed):
    _, url = pushed
    rows = [[0.0, 1.0, 2.0], [5.0, 0.0, 0.0], [0.0, 0.0, None], [1.0, 0.0, 0.0]]
    _, _, answer = ask(f"{url}/score", {"rows": rows})
    stream = model().stream()
    import numpy as np

    wanted = stream.add(np.array(rows, float)).scores.tolist() + stream.finish().scores.tolist()
    assert answer["scores"] == wanted
    names = ["power", "flow", "level"]
    turned = [[row[CHANNELS.index(name)] for name in names] for row in rows]
    assert ask(f"{url}/score", {"rows": turned, "channels": names})[2]["scores"] == wanted
    assert ask(f"{url}/score", {"rows": [[1.0]]})[0] == 422
    assert ask(f"{url}/score", {"rows": "x"})[0] == 422
    assert ask(f"{url}/score", {"rows": rows, "channels": ["a", "b", "c"]})[0] == 422


def test_health_metrics_and_description(pushed):
    watch, url = pushed
    assert ask(f"{url}/healthz")[0] == 200
    assert ask(f"{url}/readyz")[::2] == (200, {"ready": True, "problems": {}})
    watch.status.problem("source", "the broker is gone")
    assert ask(f"{url}/readyz")[0] == 503
    watch.status.problem("source", None)
    ask(f"{url}/api/rows", feed(n_rows=110, entities=("p1",)))
    until(lambda: watch.status.n_open == 1 and watch.status.phases["watching"] == 1)
    until(lambda: "vace_alarm{" in ask(f"{url}/metrics")[2])
    text = ask(f"{url}/metrics")[2]
    for series in (
        "vace_rows_total 109.0", 'vace_dropped_total{why="late"} 0.0',
        "vace_alert_seconds_bucket",
        'vace_entities{phase="watching"} 1.0', "vace_checkpoint_age_seconds",
        "vace_alarms_open 1.0",
        'entity="p1"',
    ):  # fmt: skip
        assert series in text, series


def test_the_description_knows_every_route(pushed):
    watch, url = pushed
    from vace_ad.live.server.app import application

    paths = {route.path for route in application(watch, Attempts()).routes}
    described = ask(f"{url}/openapi.json")[2]["paths"]
    pages = {"/", "/docs", "/static/{name}", "/login", "/openapi.json"}
    assert paths - pages == set(described)
    assert set(described["/api/entity"]) == {"get", "delete"}
    assert set(described["/api/v2/write"]["post"]["responses"]) == {
        "204",
        "409",
        "413",
        "422",
        "429",
    }
    marks = described["/api/alarms/{alarm}/{mark}"]["post"]["parameters"][1]["schema"]["enum"]
    assert marks == ["acknowledge", "normal", "fault", "undo"]
    assert all(one["summary"] for path in described.values() for one in path.values())


def test_other_sites_cannot_ask(pushed):
    _, url = pushed
    assert ask(f"{url}/api/status", headers={"Host": "evil.example"})[0] == 421
    status, _, _ = ask(f"{url}/api/rows", [], {"Origin": "http://evil.example"})
    assert status == 403
    assert ask(f"{url}/api/rows", [], {"Origin": "http://[evil"})[0] == 400
    assert ask(f"{url}/api/alarms?limit={quote('²')}")[0] == 200
    assert ask(f"{url}/api/entities?limit={'9' * 5000}")[0] == 200
    headers = ask(f"{url}/")[1]
    assert "script-src 'self'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert ask(f"{url}/static/{quote('../page.html', safe='')}")[0] == 404


def test_a_token_is_needed_and_never_shown(tmp_path, monkeypatch):
    monkeypatch.setenv("TOKEN", "s3cret-token")
    write(tmp_path, [])
    with running(config(tmp_path, server={"address": "0.0.0.0:0", "token_env": "TOKEN"})) as (
        _,
        url,
    ):
        assert ask(f"{url}/healthz")[0] == 200
        for path in ("/", "/metrics", "/api/status", "/readyz", "/static/live.js"):
            assert ask(f"{url}{path}")[0] == 401
        assert ask(f"{url}/api/status", headers={"Authorization": "Bearer wrong"})[0] == 401
        good = {"Authorization": "Bearer s3cret-token"}
        status, _, answer = ask(f"{url}/api/status", headers=good)
        assert status == 200
        assert "s3cret" not in json.dumps(answer)
        form = ask(f"{url}/", headers={"Accept": "text/html"})
        assert (form[0], "password" in form[2]) == (401, True)
        import http.client

        connection = http.client.HTTPConnection(url.removeprefix("http://"))
        connection.request("POST", "/login", "token=s3cret-token")
        cookie = connection.getresponse().headers["set-cookie"]
        connection.close()
        assert "HttpOnly" in cookie
        assert "s3cret" not in cookie
        assert ask(f"{url}/api/status", headers={"Cookie": cookie.partition(";")[0]})[0] == 200


def test_guessing_the_token_is_slow(tmp_path, monkeypatch):
    monkeypatch.setenv("TOKEN", "s3cret-token")
    write(tmp_path, [])
    server = {"address": "0.0.0.0:0", "token_env": "TOKEN"}
    with running(config(tmp_path, server=server)) as (_, url):
        cookie = ask_login(url, "s3cret-token")[1]["set-cookie"].partition(";")[0]
        answers = [
            ask(f"{url}/api/status", headers={"Authorization": f"Bearer {i}"}) for i in range(40)
        ]
        assert [answer[0] for answer in answers[:BURST]] == [401] * BURST
        assert {answer[0] for answer in answers[BURST:]} == {429}
        assert int(answers[-1][1]["retry-after"]) >= 1
        good = {"Authorization": "Bearer s3cret-token"}
        assert ask(f"{url}/api/status", headers=good)[0] == 429  # else guessing would go on
        status, _, words = ask_login(url, "s3cret-token")
        assert status == 429
        assert "too many wrong tokens" in words
        assert ask(f"{url}/healthz")[0] == 200
        assert ask(f"{url}/api/status", headers={"Cookie": cookie})[0] == 200


def ask_login(url, token):
    import http.client

    connection = http.client.HTTPConnection(url.removeprefix("http://"))
    connection.request("POST", "/login", f"token={token}")
    answer = connection.getresponse()
    result = answer.status, answer.headers, answer.read().decode()
    connection.close()
    return result


def test_attempts_come_back_with_time_and_by_address(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    attempts = Attempts()
    for _ in range(BURST):
        assert attempts.wait("10.0.0.1") == 0
        attempts.failed("10.0.0.1")
    assert attempts.wait("10.0.0.1") == SECONDS
    assert attempts.wait("::ffff:10.0.0.1") == SECONDS  # the same address
    assert attempts.wait("10.0.0.2") == 0
    now[0] += SECONDS
    assert attempts.wait("10.0.0.1") == 0
    attempts.failed("2001:db8::1")
    for _ in range(BURST - 1):
        attempts.failed("2001:db8::ffff")
    assert attempts.wait("2001:db8::2") > 0
    assert attempts.wait("2001:db8:0:1::2") == 0
    for i in range(30_000):
        attempts.failed(f"10.{i // 65536}.{i // 256 % 256}.{i % 256}")
    assert len(attempts._until) <= 10_000


def test_idle_connections_hold_nobody_up(tmp_path, monkeypatch):
    import socket

    monkeypatch.setattr("vace_ad.live.server.serve.HEADER_SECONDS", 1.0)
    write(tmp_path, [])
    with running(config(tmp_path, server={**SERVER, "connections": 20})) as (_, url):
        host, port = url.removeprefix("http://").split(":")
        idle = [socket.create_connection((host, int(port))) for _ in range(60)]
        try:
            assert [ask(f"{url}/healthz")[0] for _ in range(5)] == [200] * 5
            idle[-1].sendall(b"GET /healthz HTTP/1.1\r\n")  # a request that never comes whole
            for one in idle:
                one.settimeout(5)
                assert one.recv(1) == b""  # closed, after a second at most
        finally:
            for one in idle:
                one.close()


def test_an_address_that_is_taken_is_said(pushed):
    watch, url = pushed
    address = "127.0.0.1", int(url.rsplit(":", 1)[1])
    taken = watch.config.server.model_copy(update={"address": address})
    object.__setattr__(watch.config, "server", taken)
    with pytest.raises(ConfigError, match="cannot listen"):
        Server(watch).start()


def test_many_push_at_once_and_everything_is_kept(pushed):
    watch, url = pushed
    answers = []

    def send(name):
        for i in range(20):
            answers.append(
                ask(f"{url}/api/rows", [{"time": START + i * STEP, "entity": name, "flow": 0.5}])[0]
            )

    threads = [threading.Thread(target=send, args=(f"e{k}",)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert answers == [200] * 120
    assert watch.status.counts["rows"] == 6 * 19


def test_an_entity_is_forgotten_with_its_alarms_and_its_state(pushed):
    watch, url = pushed
    assert ask(f"{url}/api/rows", feed(n_rows=110, entities=("p1", "p2")))[0] == 200
    assert len(ask(f"{url}/api/alarms?state=open")[2]) == 2
    assert ask(f"{url}/api/entity?name=none", method="DELETE")[0] == 404
    answer = ask(f"{url}/api/entity?name=p1", method="DELETE")
    assert (answer[0], answer[2]) == (200, {"forgotten": "p1"})
    assert [one["name"] for one in ask(f"{url}/api/entities")[2]["entities"]] == ["p2"]
    assert [one["entity"] for one in ask(f"{url}/api/alarms?state=open")[2]] == ["p2"]
    with closing(watch.store.reopen()) as store:
        assert store.entity("p1") is None
        assert store.journal("p1") == []
        assert store.entity("p2") is not None
    again = feed(n_rows=120, entities=("p1",))[110:]
    assert ask(f"{url}/api/rows", again)[0] == 200  # it comes back as a new one
    until(lambda: watch.entities["p1"].n_rows == 9)


def test_a_deploy_is_told(pushed):
    watch, url = pushed
    assert ask(f"{url}/api/rows", feed(n_rows=1, entities=("p1",)))[0] == 200
    answer = ask(f"{url}/api/deploy?entity=p1&time=2026-01-05T12:00:00Z", method="POST")
    assert answer[0] == 200
    assert answer[2] == {"deploy": "2026-01-05T12:00:00.000Z", "entity": "p1"}
    assert watch.deploys.newest("p1", 0, 2**62) == 1_767_614_400 * 10**9
    assert ask(f"{url}/api/deploy", method="POST")[2]["entity"] is None
    assert ask(f"{url}/api/deploy?entity=none", method="POST")[0] == 404
    assert ask(f"{url}/api/deploy?time=soon", method="POST")[0] == 422
