import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import toys
from toys import Here, make_folder
from vace_ad.errors import ConfigError
from vace_ad.executors.store import BusyError
from vace_study import runner
from vace_study.baselines import resolve
from vace_study.catalog import find_series
from vace_study.rows import Key
from vace_study.runner import Engine, Plan, run, scores_path
from vace_study.store import Store, read_rows

PROTOCOLS = ("tsb-ad", "test-only")


@pytest.fixture
def series(tmp_path):
    return find_series(make_folder(tmp_path / "data"))


def plan(series, *methods, seeds=2, **changes):
    specs = [f"toys:{name}" for name in methods]
    return Plan(series, specs, PROTOCOLS, seeds, **changes)


def essence(rows):
    """What must not depend on how often, where and when a run was computed."""
    seconds = ("fit_seconds", "score_seconds", "evaluate_seconds", "cpu_seconds")
    timing = (*seconds, "peak_memory_mb")
    plain = [replace(row, **dict.fromkeys(timing)) for row in rows]
    return {row.key: row for row in plain}


def test_a_run_holds_one_row_a_method_series_seed_and_protocol(series, tmp_path):
    rows = run(plan(series[:2], "Distance", "Fixed"), tmp_path / "run")
    assert len(rows) == 2 * 2 * (2 + 1)  # Fixed has no randomness: one seed is enough
    assert {row.status for row in rows} == {"ok"}
    assert essence(read_rows(tmp_path / "run")) == essence(rows)


def test_the_same_command_recomputes_nothing(series, tmp_path, monkeypatch):
    before = run(plan(series, "Distance"), tmp_path / "run", Here())
    content = (tmp_path / "run" / "rows.jsonl").read_bytes()
    monkeypatch.setattr(Engine, "run", lambda *_: pytest.fail("nothing was left to do"))
    assert run(plan(series, "Distance"), tmp_path / "run") == before
    assert (tmp_path / "run" / "rows.jsonl").read_bytes() == content


def test_more_series_seeds_and_protocols_add_to_a_run(series, tmp_path):
    small = replace(plan(series[:2], "Distance", seeds=1), protocols=("tsb-ad",))
    first = run(small, tmp_path / "run", Here())
    rows = run(plan(series, "Distance"), tmp_path / "run", Here())
    assert len(rows) == 16
    assert all(row in rows for row in first)  # the very same seconds: not computed again
    assert essence(rows) == essence(run(plan(series, "Distance"), tmp_path / "other", Here()))


def test_a_failure_is_a_row_and_can_be_retried(series, tmp_path, monkeypatch):
    rows = run(plan(series, "Broken", "Distance", seeds=1), tmp_path / "run", Here())
    assert {row.status for row in rows if row.method.endswith("Broken")} == {"failed"}
    assert {row.status for row in rows if row.method.endswith("Distance")} == {"ok"}
    again = run(plan(series, "Broken", seeds=1), tmp_path / "run")
    assert again == rows[: len(again)]
    retried = run(plan(series, "Broken", seeds=1), tmp_path / "run", Here(), retry_failed=True)
    assert len(retried) == 8
    assert len(read_rows(tmp_path / "run")) == len(rows)


def test_other_settings_need_another_folder(series, tmp_path):
    rows = run(plan(series[:1], "Distance", seeds=1), tmp_path / "run", Here())
    changed = [replace(row, config="000000000000") for row in rows]
    with Store(tmp_path / "run") as store:
        store.append(changed, replace=True)
    with pytest.raises(ConfigError, match="use another folder"):
        run(plan(series, "Distance"), tmp_path / "run")


def test_new_code_behind_the_same_settings_needs_another_folder(series, tmp_path, monkeypatch):
    run(plan(series[:1], "Distance", seeds=1), tmp_path / "run", Here())

    def newer(name):
        return replace(resolve(name), version=2)

    monkeypatch.setattr(runner, "resolve", newer)
    with pytest.raises(ConfigError, match="version of its code has changed"):
        run(plan(series, "Distance"), tmp_path / "run")


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"seeds": 0}, "seeds=0"), ({"protocols": ("all",)}, "protocol='all'")],
)
def test_plans_that_make_no_sense(series, tmp_path, changes, message):
    with pytest.raises(ConfigError, match=message):
        run(replace(plan(series, "Distance"), **changes), tmp_path / "run")
    with pytest.raises(ConfigError, match="jobs=0"):
        run(plan(series, "Distance"), tmp_path / "run", Engine(jobs=0))


def test_scores_are_kept_on_request(series, tmp_path):
    rows = run(plan(series[:1], "Distance", seeds=1, keep_scores=True), tmp_path / "run", Here())
    for row in rows:
        scores = np.load(scores_path(tmp_path / "run", row.key))
        assert scores.shape == (row.evaluated_rows,)
    assert ":" not in scores_path(tmp_path, Key("a.b:C", "s", 0, "tsb-ad")).name


SCRIPT = """
import sys
from vace_study.baselines import resolve
from vace_study import runner
from vace_study.catalog import find_series
from vace_study.runner import Engine, Plan, run
if __name__ == "__main__":
    data, out = sys.argv[1:]
    plan = Plan(find_series(data), ["toys:Slow"], ("tsb-ad", "test-only"), 2)
    run(plan, out, Engine(jobs=1, threads=1))
"""


def start(tmp_path, out):
    script = tmp_path / "go.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": str(Path(toys.__file__).parent)}
    arguments = [sys.executable, script, tmp_path / "data", out]
    return subprocess.Popen(arguments, env=environment, stderr=subprocess.PIPE, text=True)


def test_killed_again_and_again_a_run_equals_an_undisturbed_one(series, tmp_path):
    out = tmp_path / "killed"
    chance = random.Random(0)
    for kill in range(3):
        goal = lines(out) + 1
        process = start(tmp_path, out)
        if kill % 2:  # in the thick of it: a moment after another row has arrived
            wait_for_lines(out, goal, process)
            time.sleep(chance.uniform(0, 0.2))
        else:  # anywhere, the start included
            time.sleep(chance.uniform(0, 1.0))
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert lines(out) > 0
    last = start(tmp_path, out)
    assert last.communicate()[1] == ""
    assert last.returncode == 0
    undisturbed = run(plan(series, "Slow"), tmp_path / "calm", Here())
    assert essence(read_rows(out)) == essence(undisturbed)
    keys = [json.loads(line)["series"] for line in (out / "rows.jsonl").read_text().splitlines()]
    assert len(keys) == len(undisturbed)  # every row exactly once, no line half-written


def lines(out):
    path = out / "rows.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def wait_for_lines(out, goal, process):
    deadline = time.monotonic() + 60
    while lines(out) < goal and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)


def test_two_processes_on_one_folder_the_second_refuses(series, tmp_path):
    out = tmp_path / "shared"
    first = start(tmp_path, out)
    wait_for_lines(out, 1, first)
    with pytest.raises(BusyError):
        run(plan(series, "Slow"), out)
    assert first.communicate()[1] == ""
    rows = run(plan(series, "Slow"), out)
    assert len(rows) == lines(out) == 16
