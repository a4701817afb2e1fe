import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from live.fakes import FakeCore
from live.feeds import Receiver, config, feed, settings, write
from vace_ad.cli.main import app
from vace_ad.errors import ConfigError, InputError
from vace_ad.live.service import backtest, plan

HERE = Path(__file__).parent
MINUTE, HOUR, DAY = 60 * 10**9, 3600 * 10**9, 86_400 * 10**9
SCRIPT = """
import sys
from pathlib import Path
from live.fakes import FakeCore
from vace_ad.cli.watch import _log
from vace_ad.live.config import load_config
from vace_ad.live.service import Service
_log("json")
Service(load_config(Path(sys.argv[1])), lambda config: FakeCore()).run()
"""


def toml(data):
    """The tables of a configuration as TOML."""
    lines = []
    for name, table in data.items():
        for one in table if isinstance(table, list) else [table]:
            lines.append(f"[[{name}]]" if isinstance(table, list) else f"[{name}]")
            lines += [f"{key} = {json.dumps(value)}" for key, value in one.items()]
    return "\n".join(lines)


def start(folder, data):
    path = folder / "watch.toml"
    path.write_text(toml(data))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE.parent), *sys.path])}
    command = [sys.executable, "-c", SCRIPT, str(path)]
    return subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True)


def until(condition, seconds=15):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "not in time"
        time.sleep(0.02)


@pytest.fixture
def receiver():
    one = Receiver()
    yield one
    one.close()


def test_sigterm_ends_within_five_seconds_and_sighup_reads_the_file_again(tmp_path, receiver):
    write(tmp_path, feed(n_rows=110, entities=("p1",)))
    data = settings(tmp_path, sink=[{"kind": "webhook", "url": receiver.url}])
    process = start(tmp_path, data)
    until(lambda: receiver.got)
    path = tmp_path / "watch.toml"
    path.write_text("[sourze]")
    process.send_signal(signal.SIGHUP)  # a mistake: all stays as it was
    time.sleep(0.5)
    data["sink"][0]["source"] = "/renamed"
    path.write_text(toml(data))
    process.send_signal(signal.SIGHUP)
    time.sleep(1.0)
    write(tmp_path, feed(n_rows=200, entities=("p1",))[110:], "a")
    until(lambda: receiver.got[-1]["type"] == "vace.alarm.resolve")
    assert receiver.got[0]["source"] == "/vace/watch"
    assert receiver.got[-1]["source"] == "/renamed"
    assert receiver.got[-1]["data"]["alarm"] == receiver.got[0]["data"]["alarm"]
    process.send_signal(signal.SIGTERM)
    started = time.monotonic()
    _, log = process.communicate(timeout=10)
    assert time.monotonic() - started < 5
    assert process.returncode == 0
    messages = [json.loads(line)["message"] for line in log.splitlines()]
    assert any(
        "the old configuration stays" in message and "sourze" in message for message in messages
    )
    assert messages[-1] == "stopped"


def test_the_plan_says_what_would_be_done_and_no_secret(tmp_path, monkeypatch):
    monkeypatch.setenv("HOOK", "hidden-value")
    sink = [{"kind": "webhook", "url": "http://a.b/hidden-value", "token_env": "HOOK"}]
    words = "\n".join(plan(config(tmp_path, sink=sink), lambda config: FakeCore()))
    assert "reads   jsonl" in words
    assert "3 channels: flow, level, power" in words
    assert "url http://a.b," in words
    assert "hidden-value" not in words
    assert "new" in words
    assert not (tmp_path / "watch.state").exists()


def test_a_backtest_tells_the_alarms_and_touches_nothing(tmp_path):
    write(tmp_path, feed())
    sink = [{"kind": "webhook", "url": "http://127.0.0.1:1/none"}]
    alarms, watch = backtest(config(tmp_path, sink=sink), HOUR, lambda config: FakeCore())
    assert len(alarms) == 4
    assert [alarm["channels"][0]["name"] for alarm in alarms] == ["level"] * 2 + ["power"] * 2
    assert watch.status.counts["rows"] == 800
    assert not (tmp_path / "watch.state").exists()
    late, _ = backtest(config(tmp_path, sink=sink), 20 * 60 * 10**9, lambda config: FakeCore())
    assert len(late) == 2  # of the last twenty minutes


def test_a_backtest_of_a_past_that_is_not_there_is_refused(tmp_path):
    write(tmp_path, feed())
    made = config(tmp_path)
    with pytest.raises(InputError, match=r"asks for 1 day, .* only 1 h 6 min .* --backtest 66min"):
        backtest(made, DAY, lambda config: FakeCore())
    write(tmp_path, [])
    with pytest.raises(InputError, match="the source has no rows"):
        backtest(made, DAY, lambda config: FakeCore())
    write(tmp_path, [{"time": 1_767_614_400, "entity": "p1", "wrong": 1.0}])
    with pytest.raises(InputError, match="1 reading of channels that the model does not know"):
        backtest(made, DAY, lambda config: FakeCore())


def test_one_outage_is_one_event_of_a_backtest_as_it_is_live(tmp_path):
    everyone = tuple(f"p{i}" for i in range(5))
    lines = feed(entities=everyone, faults=())
    lost = [line for i, line in enumerate(lines) if not 150 <= i // 5 < 300]
    write(tmp_path, lost)
    made = config(tmp_path, alarms={"silence_after": "10min"})
    alarms, _ = backtest(made, HOUR, lambda config: FakeCore())
    (alarm,) = alarms
    assert (alarm["entity"], alarm["kind"]) == ("", "no data")
    assert alarm["onset"] == "2026-01-05T12:24:50.000Z"  # the last row before it
    assert alarm["resolved"] == "2026-01-05T12:50:00.000Z"  # the first one after it
    write(tmp_path, [x for x in lost if x["entity"] != "p3" or x["time"] < lines[500]["time"]])
    alarms, _ = backtest(made, HOUR, lambda config: FakeCore())
    assert [(one["entity"], one["kind"]) for one in alarms] == [("p3", "no data"), ("", "no data")]


def test_a_backtest_of_records_in_another_order_tells_no_silence(tmp_path):
    lines = feed(faults=())
    write(tmp_path, sorted(lines, key=lambda line: line["entity"]))
    made = config(tmp_path, alarms={"silence_after": "10min"})
    alarms, watch = backtest(made, HOUR, lambda config: FakeCore())
    assert [(one["entity"], one["kind"]) for one in alarms] == []
    assert watch.status.counts["rows"] == 800


def test_a_source_without_a_past_says_so(tmp_path):
    data = settings(tmp_path)
    data["source"], data["server"] = {"kind": "http"}, {"address": "127.0.0.1:8490"}
    from vace_ad.live.config import make_config

    with pytest.raises(ConfigError, match="keeps no past"):
        backtest(make_config(data), DAY, lambda config: FakeCore())


def test_init_writes_a_file_once(tmp_path):
    path = tmp_path / "plant.toml"
    run = CliRunner().invoke(app, ["watch", str(path), "--init"])
    assert run.exit_code == 0
    assert "--dry-run" in run.output
    assert path.stat().st_mode & 0o077 == 0  # it may hold addresses that are nobody's business
    again = CliRunner().invoke(app, ["watch", str(path), "--init"])
    assert isinstance(again.exception, ConfigError)
    assert "is there already" in str(again.exception)


def test_init_takes_the_kind_of_the_source(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for arguments, path in (
        (["service.toml", "--init", "prometheus"], "service.toml"),
        (["--init", "prometheus"], "watch.toml"),
    ):
        run = CliRunner().invoke(app, ["watch", *arguments])
        assert run.exit_code == 0, run.exception
        assert 'kind = "prometheus"' in Path(path).read_text()
    run = CliRunner().invoke(app, ["watch", "a.toml", "--init", "prometeus"])
    assert "did you mean 'prometheus'?" in str(run.exception)
    run = CliRunner().invoke(app, ["watch", "a.toml", "prometheus"])
    assert "needs --init" in str(run.exception)


def test_standard_input_needs_a_model():
    run = CliRunner().invoke(app, ["watch", "-"])
    assert "--model" in str(run.exception)
