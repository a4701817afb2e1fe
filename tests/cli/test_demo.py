import sys

import polars as pl
import pytest

from vace_ad import load
from vace_ad.cli.main import main


def test_the_demo_finds_faults_and_writes_what_it_says(tmp_path, monkeypatch, capsys):
    out = tmp_path / "results"
    monkeypatch.setattr(sys, "argv", ["vace", "demo", "--out", str(out)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert "of 6 faults found" in said
    assert "VUS-PR" in said
    scores = pl.read_csv(out / "scores.csv")
    assert len(scores) == 18 * 288
    assert len(pl.read_csv(out / "events.csv")) >= 3
    assert load(out / "model.vace").channels_[0] == "pump_speed"
    assert (out / "picture.png").stat().st_size > 20_000
    assert "A simulated plant" in (out / "report.html").read_text()


def test_the_demo_needs_no_extra(tmp_path, monkeypatch, capsys):
    for name in ("matplotlib", "scipy", "sklearn", "torch"):
        for loaded in [m for m in sys.modules if m == name or m.startswith(f"{name}.")]:
            monkeypatch.delitem(sys.modules, loaded)
        monkeypatch.setitem(sys.modules, name, None)
    out = tmp_path / "results"
    monkeypatch.setattr(sys, "argv", ["vace", "demo", "--out", str(out)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert "report.html" in capsys.readouterr().out
    assert (out / "report.html").exists()
    assert not (out / "picture.png").exists()
