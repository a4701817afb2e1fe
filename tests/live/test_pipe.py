"""Line protocol in and out, as Telegraf's execd runs `vace watch -`."""

import os
import subprocess
import sys

import pytest

from live import real
from live.feeds import CHANNELS, feed
from vace_ad.cli.main import main
from vace_ad.live.records import Names, from_influx
from vace_ad.live.settings import read_settings
from vace_ad.live.sinks import Scored
from vace_ad.live.sinks.influx import InfluxSink
from vace_ad.live.sources.files import InfluxSource

MESSAGE = {
    "id": "a.1", "what": "open", "alarm": "a", "kind": "no data", "entity": "pump 1,x=\\",
    "channel": "flow", "time": "2026-01-05T12:00:10.500Z", "severity": None, "score": None,
    "channels": [], "summary": 'pump "1": no data',
}  # fmt: skip


def sink(**more):
    return InfluxSink(read_settings(InfluxSink.SETTINGS, more, "sink"))


def test_what_is_written_can_be_read_again(capsys):
    made = sink()
    name = MESSAGE["entity"]
    made.rows(
        Scored(name, CHANNELS, [10**18, 10**18 + 5], None, [2.5, float("nan")], [True, False])
    )
    assert made.flush()
    assert not made.flush()
    made.send([MESSAGE])
    lines = capsys.readouterr().out.splitlines()
    first, second, alarm = from_influx("\n".join(lines), Names(entity="host"), 0)
    assert first == (name, 10**18, {"score": 2.5, "alarm": 1.0})
    assert second.values == {"alarm": 0.0}
    assert (alarm.entity, alarm.values) == (name, {"no data.open": 1.0})
    assert 'channels="flow"' in lines[2]
    assert r'summary="pump \"1\": no data"' in lines[2]


def test_a_file_of_points(tmp_path, capsys):
    path = tmp_path / "points.influx"
    path.write_text('cpu,host=a,cpu=0 idle=3i,words="x" 1000000000000000000\n\nnonsense\n')
    settings = {"path": str(path), "follow": False, "echo": True}
    made = InfluxSource(read_settings(InfluxSource.SETTINGS, settings, "source"))
    made.open(None)
    batch = made.read(0.0)
    made.close()
    assert [(one.entity, one.values) for one in batch.records] == [("a", {"0.idle": 3.0})]
    assert batch.bad == 1
    assert capsys.readouterr().out.startswith("cpu,host=a")


def run(arguments, text="", **more):
    command = [sys.executable, "-c", "from vace_ad.cli.main import main; main()", "watch", "-"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run([*command, *arguments], input=text, capture_output=True, text=True,
                          timeout=240, env=env, check=False, **more)  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--model", "x.vace", "--format", "influx"], "needs --step"),
        (["--model", "x.vace", "--format", "xml"], "must be csv, jsonl or influx"),
        (["--model", "x.vace", "--echo"], "--echo goes with"),
    ],
)
def test_what_does_not_go_together_is_said(arguments, words, monkeypatch, capsys):
    """In this process: what a pipe has beyond it is in the test below."""
    monkeypatch.setattr(sys, "argv", ["vace", "watch", "-", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


def test_a_pipe_from_points_to_scores_and_an_alarm(tmp_path):
    real.save_model(tmp_path / "plant.vace")
    lines = feed(n_rows=340, faults=((150, 160, 1),), entities=("pump",))
    cells = [",".join(f"{name}={line[name]!r}" for name in CHANNELS) for line in lines]
    pairs = zip(cells, lines, strict=True)
    text = "".join(f"plant,host=pump {cell} {line['time']}\n" for cell, line in pairs)
    arguments = ["--model", str(tmp_path / "plant.vace"), "--format", "influx", "--step", "10s"]
    found = run([*arguments, "--echo"], text)
    assert found.returncode == 0, found.stderr
    told = found.stdout.splitlines()
    assert [line for line in told if line.startswith("plant,")] == text.splitlines()
    scored = [line for line in told if line.startswith("vace,")]
    assert len(scored) == 340
    assert len({line.rsplit(" ", 1)[1] for line in scored}) == 340
    alarms = [line for line in told if line.startswith("vace_alarm,host=pump,kind=anomaly")]
    assert any("open=1i" in line and "level" in line for line in alarms)
    assert any("open=0i" in line for line in alarms)
