"""The SMD machines as one keyed table give the same events as one by one."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from vace_ad.alarms import Budget
from vace_ad.app.loading import load_table
from vace_ad.app.run import Alarming, choose_training, fit_and_detect
from vace_ad.config import VACEConfig
from vace_ad.fleet.runner import per_machine, run_fleet
from vace_ad.fleet.task import Job
from vace_ad.frames.read_options import ReadOptions, TrainingOptions

ROWS = 1200


@pytest.mark.data
def test_a_keyed_table_gives_the_events_of_its_machines(data_folder: Path, tmp_path: Path) -> None:
    files = sorted(data_folder.glob("*_SMD_*"))[:2]
    if len(files) < 2 or files[0].suffix != ".parquet":
        pytest.skip("no two SMD series as Parquet")
    config = VACEConfig.from_preset(None, encoders=1, widths=(8, 8, 8, 8))
    budget = Budget(90, "rows")
    tables = [pl.read_parquet(path).head(ROWS) for path in files]
    keyed = [t.with_columns(machine=pl.lit(p.stem)) for t, p in zip(tables, files, strict=True)]
    pl.concat(keyed, how="vertical_relaxed").write_parquet(tmp_path / "fleet.parquet")
    job = Job(ReadOptions(by="machine"), config, Alarming(budget))
    run = run_fleet([tmp_path / "fleet.parquet"], job, tmp_path / "out")
    found = {row.machine: row for row in run.rows}
    for path, table in zip(files, tables, strict=True):
        table.write_parquet(tmp_path / "one.parquet")
        loaded = load_table(tmp_path / "one.parquet", ReadOptions())
        training = choose_training(loaded, config, TrainingOptions(), ReadOptions())
        alone = fit_and_detect(loaded, training, config, Alarming(per_machine(budget, 2)))
        assert found[path.stem].status == "ok", found[path.stem].error
        rows = [(event["start"], event["end"]) for event in found[path.stem].events]
        assert rows == [(event.start, event.end) for event in alone.found.events]
    assert any(row.anomalies for row in run.rows)
