import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from toys import make_folder
from vace_study.local import run_local
from vace_study.tasks import Task


@pytest.fixture
def paths(tmp_path):
    return sorted(make_folder(tmp_path).iterdir())


def tasks(paths, detector):
    return [Task(f"toys:{detector}", str(path), "eval", 0, ("tsb-ad",)) for path in paths]


def test_every_task_ends_once_with_the_limits_in_place(paths):
    before = dict(os.environ)
    ended = list(run_local(tasks(paths, "Threads"), jobs=2, threads=1))
    assert sorted(task.path for task, _ in ended) == [str(path) for path in paths]
    assert {results[0].row.error for _, results in ended} == {None}
    assert dict(os.environ) == before


def test_a_process_that_dies_fails_its_own_task_only(paths):
    ended = {task.path: results[0].row for task, results in run_local(tasks(paths, "Dies"), 1, 1)}
    first, *others = (ended[str(path)] for path in paths)
    assert first.status == "failed"
    assert "ended by signal 9" in first.error
    assert [row.status for row in others] == ["ok"] * 3


def test_no_task_starts_after_the_time_is_up(paths):
    assert list(run_local(tasks(paths, "Distance"), 1, 1, stop_after=0)) == []


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks up processes in /proc")
def test_workers_end_with_a_killed_parent(paths):
    code = (
        "import os, sys\n"
        "from vace_study.tasks import compute\n"
        "from vace_ad.executors.local import _Worker\n"
        "if __name__ == '__main__':\n"
        "    worker = _Worker('m', 1, compute)\n"
        "    print(worker.process.pid, flush=True); sys.stdin.read()"
    )
    script = paths[0].parent / "parent.py"
    script.write_text(code)
    parent = subprocess.Popen(
        [sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    worker = int(parent.stdout.readline())
    os.kill(parent.pid, signal.SIGKILL)
    parent.communicate()
    deadline = time.monotonic() + 20
    while Path(f"/proc/{worker}").is_dir() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{worker}").is_dir()
