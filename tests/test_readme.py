"""The README's code runs as it stands, and the README stays short."""

import re
from pathlib import Path

import numpy as np
import polars as pl

README = Path(__file__).parents[1] / "README.md"


def test_short():
    assert len(README.read_bytes()) < 5000


def test_the_code_runs(tmp_path, monkeypatch):
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.S)
    rng = np.random.default_rng(0)
    time = np.datetime64("2026-01-01", "ms") + np.arange(3000) * np.timedelta64(60_000, "ms")
    waves = np.sin(np.arange(3000)[:, None] / [7, 11, 13]) + 0.1 * rng.normal(size=(3000, 3))
    waves[2400:2440, 1] += 5
    table = pl.DataFrame(
        {"time": time, "flow": waves[:, 0], "speed": waves[:, 1], "power": waves[:, 2]}
    )
    monkeypatch.chdir(tmp_path)
    table.write_parquet("plant.parquet")
    names: dict[str, object] = {}
    exec(code, names)
    assert names["found"].scores.shape == (1000,)
    assert len(names["events"]) >= 1


def test_its_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", README.read_text()):
        assert target.startswith("http") or (README.parent / target).exists(), target
