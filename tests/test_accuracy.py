"""Accuracy on short real series: no worse than the committed figures, within a tolerance."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from vace_ad import VACE
from vace_ad.metrics import sliding_window, vus

pytestmark = [
    pytest.mark.data,
    pytest.mark.filterwarnings("ignore::vace_ad.errors.VaceWarning"),  # constant channels
]
FIGURES = Path(__file__).parents[1] / "benchmarks" / "results" / "shape-ablation.csv"
TOLERANCE = 0.03  # of VUS-PR: what a change of constants may cost one series


@pytest.mark.parametrize("name", ["MSL_id_15", "SMAP_id_23", "SMAP_id_26"])
def test_a_real_series_scores_as_well_as_published(data_folder: Path, name: str) -> None:
    path = next(data_folder.glob(f"*_{name}_*.parquet"), None)
    if path is None:
        pytest.skip(f"{name} is not among the series in {data_folder.name}")
    with FIGURES.open(newline="") as file:
        (wanted,) = (float(x["vus_pr"]) for x in csv.DictReader(file) if x["series"] == path.stem)
    train = int(path.stem.split("_tr_")[1].split("_")[0])
    table = pl.read_parquet(path)
    label = table["Label"].to_numpy().astype(int)[train:]
    rows = table.drop("Label")
    detection = VACE(random_state=0).fit(rows[:train]).detect(rows[train:])
    score = np.nan_to_num(detection.scores, nan=float(np.nanmin(detection.scores)))
    window = sliding_window(rows.to_numpy()[train:, 0])
    assert vus(label, score, window=window).vus_pr >= wanted - TOLERANCE
    if name != "SMAP_id_26":  # its score rises, but not above the limit of a short training
        assert any(label[event.start : event.end].any() for event in detection.anomalies)
