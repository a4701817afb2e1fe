"""How a run is getting on: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import timedelta
from statistics import fmean
from time import monotonic
from typing import Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from vace_study.rows import Key, Row
from vace_study.tasks import Task


class Progress(Protocol):
    """Someone who is told what happens."""

    def start(
        self, tasks: Sequence[Task], remaining: Sequence[Task], rows: Mapping[Key, Row]
    ) -> None:
        """Work begins: all tasks of the plan, those still to do, and the rows already there."""

    def update(self, task: Task, rows: Sequence[Row]) -> None:
        """A task has ended."""

    def stop(self) -> None:
        """Work has ended, or was broken off."""


class _Tally:
    """Rows so far by method and protocol, and a guess at the time left."""

    def __init__(
        self, tasks: Sequence[Task], remaining: Sequence[Task], rows: Mapping[Key, Row]
    ) -> None:
        self.expected: dict[tuple[str, str], int] = defaultdict(int)
        self.rows: dict[tuple[str, str], list[Row]] = defaultdict(list)
        for task in tasks:
            for key in task.keys:
                self.expected[key.method, key.protocol] += 1
                if key in rows:
                    self.rows[key.method, key.protocol].append(rows[key])
        self.done, self.total = 0, len(remaining)
        self.weights = _Weights(remaining)
        self.started = monotonic()

    def add(self, task: Task, rows: Sequence[Row]) -> None:
        for row in rows:
            self.rows[row.method, row.protocol].append(row)
        self.done += 1
        self.weights.add(task, rows)

    def left(self) -> str:
        """The time left, by the speed so far."""
        elapsed = monotonic() - self.started
        share = self.weights.share_done()
        if not share:
            return "–"
        return str(timedelta(seconds=round(elapsed * (1 - share) / share)))


class _Weights:
    """What share of the work is done: each method's seconds as a line over the file's size."""

    def __init__(self, remaining: Sequence[Task]) -> None:
        self.waiting: dict[str, list[int]] = defaultdict(list)  # sizes by method
        for task in remaining:
            self.waiting[task.method].append(task.size)
        self.done: dict[str, list[tuple[int, float]]] = defaultdict(list)  # size, seconds

    def add(self, task: Task, rows: Sequence[Row]) -> None:
        fit = max((row.fit_seconds or 0.0 for row in rows), default=0.0)  # shared by the rows
        rest = sum((row.score_seconds or 0.0) + (row.evaluate_seconds or 0.0) for row in rows)
        self.waiting[task.method].remove(task.size)
        self.done[task.method].append((task.size, fit + rest))

    def share_done(self) -> float:
        spent = [seconds for each in self.done.values() for _, seconds in each]
        if not sum(spent):
            return 0.0
        left = 0.0
        for method, sizes in self.waiting.items():
            base, slope = _line_through(self.done[method]) or (fmean(spent), 0.0)
            left += sum(base + slope * size for size in sizes)
        return sum(spent) / (sum(spent) + left)


def _line_through(points: Sequence[tuple[int, float]]) -> tuple[float, float] | None:
    """Least squares, neither part below 0; None without a point."""
    if not points:
        return None
    x, y = fmean(size for size, _ in points), fmean(seconds for _, seconds in points)
    spread = sum((size - x) ** 2 for size, _ in points)
    together = sum((size - x) * (seconds - y) for size, seconds in points)
    slope = max(0.0, together / spread) if spread else 0.0
    if slope * x > y:
        return 0.0, y / x
    return y - slope * x, slope


class LiveProgress:
    """A table that is redrawn: rows, running means and failures by method, and the time left."""

    def __init__(self, console: Console) -> None:
        self.live = Live(console=console, refresh_per_second=4)

    def start(
        self, tasks: Sequence[Task], remaining: Sequence[Task], rows: Mapping[Key, Row]
    ) -> None:
        """Draw the table for the first time."""
        self.tally = _Tally(tasks, remaining, rows)
        self.last = ""
        self.live.start()
        self.live.update(self._view())

    def update(self, task: Task, rows: Sequence[Row]) -> None:
        """Count a task."""
        self.tally.add(task, rows)
        self.last = _line(rows)
        self.live.update(self._view())

    def stop(self) -> None:
        """Leave the last state on the screen."""
        self.live.stop()

    def _view(self) -> Group:
        tally = self.tally
        table = Table(box=None, pad_edge=False)
        for column in ("method", "protocol"):
            table.add_column(column)
        for column in ("rows", "failed", "VUS-PR"):
            table.add_column(column, justify="right")
        table.add_column("", width=24)
        for (method, protocol), expected in tally.expected.items():
            rows = tally.rows[method, protocol]
            failed = sum(row.status == "failed" for row in rows)
            table.add_row(
                method,
                protocol,
                f"{len(rows)}/{expected}",
                Text(str(failed), style="red" if failed else "dim"),
                _mean(rows),
                ProgressBar(total=expected, completed=len(rows)),
            )
        foot = f"{tally.done} of {tally.total} tasks, time left {tally.left()}"
        return Group(table, Text(foot), Text(self.last, style="dim"))


class PlainProgress:
    """A line for each task that ends."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def start(
        self, tasks: Sequence[Task], remaining: Sequence[Task], rows: Mapping[Key, Row]
    ) -> None:
        """Say what is to be done."""
        self.tally = _Tally(tasks, remaining, rows)
        self._print(f"{len(remaining)} tasks to do, {len(tasks) - len(remaining)} done before")

    def update(self, task: Task, rows: Sequence[Row]) -> None:
        """Say what a task came to."""
        self.tally.add(task, rows)
        self._print(
            f"[{self.tally.done}/{self.tally.total}] {_line(rows)}, left {self.tally.left()}"
        )

    def stop(self) -> None:
        """Nothing is left to clear up."""

    def _print(self, line: str) -> None:
        self.console.print(line, highlight=False, markup=False, soft_wrap=True)


def progress_for(console: Console) -> Progress:
    """The live view on a terminal, plain lines elsewhere."""
    return LiveProgress(console) if console.is_terminal else PlainProgress(console)


def _line(rows: Sequence[Row]) -> str:
    """What a task came to, in one line."""
    first = rows[0]
    outcomes = [
        f"{row.protocol} {row.measures['VUS-PR']:.3f}"
        if row.status == "ok"
        else f"{row.protocol} {row.status}" + (f" ({row.error})" if row.error else "")
        for row in rows
    ]
    return f"{first.series} {first.method} seed {first.seed}: {', '.join(outcomes)}"


def _mean(rows: Sequence[Row]) -> str:
    values = [row.measures["VUS-PR"] for row in rows if row.status == "ok"]
    return f"{sum(values) / len(values):.3f}" if values else "–"
