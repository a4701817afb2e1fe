import io

import pytest
from rich.console import Console

from made_runs import STEMS, made_row
from vace_study.progress import LiveProgress, PlainProgress, progress_for
from vace_study.tasks import Task


def screen(terminal):
    return Console(file=io.StringIO(), force_terminal=terminal, width=110)


def play(progress):
    """Three tasks, one of them done before, one that fails."""
    tasks = [Task("pca", f"{stem}.csv", "eval", 0, ("tsb-ad",), size=100) for stem in STEMS[:3]]
    before = made_row("pca", STEMS[0], vus_pr=0.2)
    progress.start(tasks, tasks[1:], {before.key: before})
    progress.update(tasks[1], [made_row("pca", STEMS[1], vus_pr=0.4, score_seconds=2.0)])
    failed = made_row("pca", STEMS[2], status="failed", error="ValueError: no", measures={})
    progress.update(tasks[2], [failed])
    progress.stop()


def test_plain_lines_where_there_is_no_terminal():
    console = screen(False)
    progress = progress_for(console)
    assert isinstance(progress, PlainProgress)
    play(progress)
    lines = console.file.getvalue().splitlines()
    assert lines[0] == "2 tasks to do, 1 done before"
    assert lines[1].startswith(f"[1/2] {STEMS[1]} pca seed 0: tsb-ad 0.400, left 0:00:")
    assert "tsb-ad failed (ValueError: no)" in lines[2]


def test_a_live_table_on_a_terminal():
    console = screen(True)
    progress = progress_for(console)
    assert isinstance(progress, LiveProgress)
    play(progress)
    shown = console.file.getvalue()
    assert "3/3" in shown
    assert "0.300" in shown  # the running mean of 0.2 and 0.4
    assert "2 of 2 tasks" in shown
    assert "ValueError: no" in shown


def tally(tasks):
    progress = PlainProgress(screen(False))
    progress.start(tasks, tasks, {})
    return progress


def test_time_left_follows_the_work_not_the_count():
    tasks = [
        Task(method, f"{STEMS[i]}.csv", "eval", 0, ("tsb-ad",), size=100)
        for method in ("quick", "slow")
        for i in range(2)
    ]
    progress = tally(tasks)
    progress.update(tasks[0], [made_row("quick", STEMS[0], fit_seconds=0.0, score_seconds=1.0)])
    progress.update(tasks[2], [made_row("slow", STEMS[0], fit_seconds=0.0, score_seconds=9.0)])
    assert progress.tally.weights.share_done() == pytest.approx(0.5)
    progress.update(tasks[3], [made_row("slow", STEMS[1], fit_seconds=0.0, score_seconds=9.0)])
    assert progress.tally.weights.share_done() == pytest.approx(0.95)


def test_time_left_knows_that_a_fit_has_a_price_of_its_own():
    sizes = (900, 500, 100, 100)
    tasks = [
        Task("vace", f"{stem}.csv", "eval", 0, ("tsb-ad",), size=size)
        for stem, size in zip(STEMS, sizes, strict=False)
    ]
    progress = tally(tasks)
    for task, seconds in zip(tasks[:2], (19.0, 15.0), strict=True):  # 10 s and 0.01 s a byte
        row = made_row("vace", task.name.stem, fit_seconds=10.0, score_seconds=seconds - 10)
        progress.update(task, [row])
    assert progress.tally.weights.share_done() == pytest.approx(34 / (34 + 22))
