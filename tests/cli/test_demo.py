import json
import re
import sys
from functools import partial

import polars as pl
import pytest

from vace_ad import load
from vace_ad.cli.main import main
from vace_ad.demo import simulate


def vace(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["vace", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Half the days."""
    monkeypatch.setattr("vace_ad.demo.simulate", partial(simulate, days=15, train_days=5))


def test_the_demo_finds_its_faults_as_detect_does_from_its_table(tmp_path, monkeypatch, capsys):
    out = tmp_path / "results"
    vace(monkeypatch, "demo", "--out", out)
    said = capsys.readouterr().out
    found, false = map(int, re.search(r"(\d) of 6 faults found, (\d+) false", said).groups())
    assert found >= 5
    assert false <= 3
    assert "VUS-PR" in said
    scores, events = pl.read_csv(out / "scores.csv"), pl.read_csv(out / "events.csv")
    assert len(scores) == 15 * 288
    assert load(out / "model.vace").channels_[0] == "pump_speed"
    assert (out / "picture.png").stat().st_size > 20_000
    assert "plant.csv" in (out / "report.html").read_text()

    run = json.loads((out / "run.json").read_text())
    again = tmp_path / "again"
    vace(monkeypatch, *run["command"].split()[1:], "--out", again, "--format", "csv")
    assert pl.read_csv(again / "scores.csv").equals(scores)
    assert pl.read_csv(again / "events.csv").equals(events)


def test_the_demo_needs_no_extra(tmp_path, monkeypatch, capsys):
    for name in ("matplotlib", "scipy", "sklearn", "torch"):
        for loaded in [m for m in sys.modules if m == name or m.startswith(f"{name}.")]:
            monkeypatch.delitem(sys.modules, loaded)
        monkeypatch.setitem(sys.modules, name, None)
    out = tmp_path / "results"
    vace(monkeypatch, "demo", "--out", out)
    assert "report.html" in capsys.readouterr().out
    assert (out / "report.html").exists()
    assert not (out / "picture.png").exists()
