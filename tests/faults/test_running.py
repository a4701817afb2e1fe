"""A worker that is killed in a fleet, and a clock that goes back under a watch."""

from __future__ import annotations

import multiprocessing
import threading
import time
from pathlib import Path

import pytest

from fleet.machines import fleet
from fleet.test_runner import job, signature
from live.fakes import FakeCore
from live.feeds import START, STEP, config, feed, write
from vace_ad.fleet.executor import Executor
from vace_ad.fleet.runner import run_fleet
from vace_ad.live.runner import Watch


def test_a_worker_killed_in_a_fleet_costs_its_machine_alone(tmp_path: Path) -> None:
    table = tmp_path / "fleet.parquet"
    fleet(4).write_parquet(table)
    killed: list[int] = []

    def kill() -> None:
        end = time.monotonic() + 60
        while not killed and time.monotonic() < end:
            for child in multiprocessing.active_children():
                child.kill()
                killed.append(child.pid or 0)
                return
            time.sleep(0.01)

    killer = threading.Thread(target=kill)
    killer.start()
    out = tmp_path / "out"
    run = run_fleet([table], job(out), out, executor=Executor(jobs=2))
    killer.join()
    assert killed
    failed = [row for row in run.rows if row.status == "failed"]
    assert [row.status for row in run.rows].count("ok") == 3
    assert len(failed) == 1
    assert "signal 9" in (failed[0].error or "")
    whole = run_fleet([table], job(tmp_path / "whole"), tmp_path / "whole")
    fine = {row.machine for row in run.rows if row.status == "ok"}
    assert signature([row for row in whole.rows if row.machine in fine]) == signature(
        [row for row in run.rows if row.machine in fine]
    )


def watched(folder: Path, lines: list[dict[str, object]]) -> Watch:
    folder.mkdir(exist_ok=True)
    write(folder, lines)
    watch = Watch(config(folder), FakeCore())
    watch.start()
    for _ in range(4):
        watch.step()
    watch.checkpoint()
    return watch


def test_readings_whose_clock_went_back_are_counted_and_change_nothing(tmp_path: Path) -> None:
    lines = feed(n_rows=150, entities=("p1",))
    back = [{**line, "time": START + i * STEP} for i, line in enumerate(lines[60:90])]
    calm = watched(tmp_path / "calm", lines)
    odd = watched(tmp_path / "odd", [*lines[:140], *back, *lines[140:]])
    try:
        assert odd.store.alarms() == calm.store.alarms() != []
        assert odd.status.counts["rows"] == calm.status.counts["rows"]
        dropped = sum(n for why, n in odd.status.counts.items() if why != "rows")
        assert dropped - sum(n for why, n in calm.status.counts.items() if why != "rows") > 0
    finally:
        calm.close()
        odd.close()


def test_a_system_clock_that_goes_back_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, true = feed(n_rows=150, entities=("p1",)), time.time_ns
    calm = watched(tmp_path / "calm", lines)
    shift = iter(range(0, 10**9, 7))
    monkeypatch.setattr(time, "time_ns", lambda: true() - next(shift) * 10**9)
    odd = watched(tmp_path / "odd", lines)
    try:
        assert odd.store.alarms() == calm.store.alarms() != []
        assert odd.status.ready == calm.status.ready
    finally:
        calm.close()
        odd.close()
