from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from vace_ad.app.loading import Reading, load_table
from vace_ad.app.training import choose_training, fit_detector
from vace_ad.config import VACEConfig
from vace_ad.progress import silent

CONFIG = VACEConfig.from_preset(None, patch_length=16, stride=4, encoders=1, widths=(8, 8, 8, 8))


def test_training_is_cut_where_time_jumps(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    minutes = np.arange(1200)
    minutes[300:] += 60
    minutes[800:] += 60
    time = np.datetime64("2026-01-01", "ms") + minutes * np.timedelta64(60_000, "ms")
    waves = np.sin(np.arange(1200)[:, None] / [5, 7]) + 0.1 * rng.normal(size=(1200, 2))
    path = tmp_path / "plant.parquet"
    pl.DataFrame({"time": time, "a": waves[:, 0], "b": waves[:, 1]}).write_parquet(path)
    how = Reading()
    loaded = load_table(str(path), how)
    chosen = {"share": None, "until": None, "file": None, "how": how}
    training = choose_training(loaded, CONFIG, rows=700, **chosen)
    detector, _ = fit_detector(CONFIG, training, silent)
    assert detector.facts_["rows"] == 700
    assert detector.facts_["patches"] == (300 - 15) + (400 - 15)
