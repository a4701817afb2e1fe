"""Progress callbacks: a callable that takes a stage's name, done and total.

Who passes `progress=True` sees bars: in a notebook as part of the cell, on a terminal by rich.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

Progress = Callable[[str, int, int], None]


def silent(stage: str, done: int, total: int) -> None:
    """Say nothing."""


@contextmanager
def shown(progress: Progress | bool) -> Iterator[Progress]:
    """Where to report to: what the caller gave, bars for True, nobody for False."""
    if callable(progress):
        yield progress
    elif progress and _in_notebook():
        with notebook_bars() as bars:
            yield bars
    elif progress and sys.stderr.isatty():
        with terminal_bars() as bars:
            yield bars
    else:
        yield silent


@contextmanager
def terminal_bars() -> Iterator[Progress]:
    """Bars with the time left, one a stage, on standard error; they vanish at the end."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description:>12}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, Any] = {}

        def show(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total)
            bars.update(tasks[stage], completed=done, total=total)

        yield show


@contextmanager
def notebook_bars() -> Iterator[Progress]:
    """Bars in the output of a notebook's cell, which needs no widgets; they vanish at the end."""
    display = sys.modules["IPython.display"]
    handle = display.display(display.HTML(""), display_id=True)
    stages: dict[str, tuple[int, int]] = {}

    def show(stage: str, done: int, total: int) -> None:
        before, _ = stages.get(stage, (-1, total))
        # A hundred pictures are enough; each goes through the browser.
        if before >= 0 and done < total and (done - before) * 100 < total:
            return
        stages[stage] = done, total
        handle.update(display.HTML(_html(stages)))

    try:
        yield show
    finally:
        handle.update(display.HTML(""))


def _html(stages: dict[str, tuple[int, int]]) -> str:
    return "".join(
        f'<div><progress value="{done}" max="{max(total, 1)}"></progress> '
        f"{escape(stage)} {done:,} of {total:,}</div>"
        for stage, (done, total) in stages.items()
    )


def _in_notebook() -> bool:
    """Whether this runs in a Jupyter kernel; IPython is asked only where it is loaded already."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell" and "IPython.display" in sys.modules
