"""One task: fit a method on a series with a seed, then score and measure it by each protocol.

A task runs in a process of its own making (see `local` and `cluster`) and never raises: whatever
goes wrong becomes the status of its rows.
"""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any, NamedTuple

from vace_ad import __version__
from vace_ad.errors import InputError, VaceWarning
from vace_study.baselines import Detector, Method, resolve
from vace_study.memory import peak_mb, reset_peak
from vace_study.rows import GEOMETRY, Key, Row
from vace_study.series import SeriesName

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vace_study.protocols import Exam
    from vace_study.series import Series


@dataclass(frozen=True)
class Task:
    """What one worker does in one go; the fit is shared by the protocols."""

    method: str
    path: str
    split: str
    seed: int
    protocols: tuple[str, ...]
    size: int = 0  # bytes of the file
    keep_scores: bool = False
    budget: str | None = None  # at which alarms are judged, of a detector that has some
    causes: str | None = None  # file or folder of root causes

    @property
    def name(self) -> SeriesName:
        """The series."""
        return SeriesName.parse(self.path)

    @property
    def keys(self) -> tuple[Key, ...]:
        """The rows that come of it."""
        return tuple(Key(self.method, self.name.stem, self.seed, each) for each in self.protocols)


class Result(NamedTuple):
    """A row, and the scores behind it where they are to be kept."""

    row: Row
    scores: NDArray[np.float64] | None = None


def compute(task: Task) -> list[Result]:
    """Do the task; a failure is a row that says what happened."""
    reset_peak()
    results: list[Result] = []
    with _caught_warnings() as notes:
        try:
            for result in _compute(task):
                results.append(result)
        except Exception as error:  # every kind: the run goes on, the row tells
            done = {result.row.key for result in results}
            left = tuple(key.protocol for key in task.keys if key not in done)
            results += failures(replace(task, protocols=left), error)
    memory, heard = peak_mb(), tuple(dict.fromkeys(notes))
    return [
        Result(replace(row, peak_memory_mb=memory, notes=(*row.notes, *heard)), scores)
        for row, scores in results
    ]


def failures(task: Task, error: Exception | str) -> list[Result]:
    """The rows of a task that failed."""
    if isinstance(error, str):
        text, trace = error, None
    else:
        text = f"{type(error).__name__}: {error}"
        trace = "".join(traceback.format_exception(error))
    return [
        Result(replace(_blank(task, protocol), status="failed", error=text, traceback=trace))
        for protocol in task.protocols
    ]


def _compute(task: Task) -> Iterator[Result]:
    from vace_study.protocols import exam
    from vace_study.series import load

    series = load(task.path)
    method = resolve(task.method)
    fitted: _Fitted | None = None
    alarms: dict[str, Any] | None = None  # the same for every protocol: test rows alone
    for protocol in task.protocols:
        paper = exam(series, protocol)
        row = replace(_blank(task, protocol), **facts(series, paper))
        if not paper.labels.any():
            yield Result(replace(row, status="no-anomaly"))
            continue
        if fitted is None:
            fitted = _fit(method, task.seed, paper)
        detector = fitted.detector
        started, cpu_started = perf_counter(), process_time()
        scores = _checked(detector.score(paper.scored), paper)
        scored, cpu_scored = perf_counter(), process_time()
        measures = _measures(paper, scores)
        evaluated = perf_counter()
        if alarms is None:
            alarms = _operating(task, series, detector)
        yield Result(
            replace(
                row,
                status="ok",
                measures=measures,
                notes=(*row.notes, *getattr(detector, "notes_", ())),
                geometry=_geometry(detector),
                operating=alarms,
                fit_seconds=round(fitted.seconds, 4),
                score_seconds=round(scored - started, 4),
                evaluate_seconds=round(evaluated - scored, 4),
                cpu_seconds=round(fitted.cpu_seconds + cpu_scored - cpu_started, 4),
            ),
            scores if task.keep_scores else None,
        )


class _Fitted(NamedTuple):
    """A detector that the protocols share, and what fitting it took."""

    detector: Detector
    seconds: float
    cpu_seconds: float


def _fit(method: Method, seed: int, paper: Exam) -> _Fitted:
    started, cpu_started = perf_counter(), process_time()
    detector = method.make(seed)
    detector.fit(paper.train)
    return _Fitted(detector, perf_counter() - started, process_time() - cpu_started)


def _checked(scores: Any, paper: Exam) -> NDArray[np.float64]:
    """The scores as float64, or what is wrong with them."""
    import numpy as np

    array = np.asarray(scores, dtype=np.float64)
    expected = (len(paper.scored),)
    if array.shape != expected:
        raise InputError(f"the detector returned scores of shape {array.shape}, not {expected}")
    strange = int((~np.isfinite(array)).sum())
    if strange:
        raise InputError(f"{strange} of {len(array)} scores are not finite numbers")
    return array


def _measures(paper: Exam, scores: NDArray[np.float64]) -> dict[str, float]:
    """All measures; one that is not defined for these scores is left out, with a warning."""
    from vace_ad.metrics import dqe, evaluate, pate

    found = {
        **evaluate(paper.labels, scores, window=paper.window),
        "PATE": pate(paper.labels, scores, early=paper.window, late=paper.window),
        "DQE": dqe(paper.labels, scores, near=paper.window),
    }
    undefined = [name for name, value in found.items() if not isfinite(value)]
    if undefined:
        warnings.warn(f"{', '.join(undefined)} is not defined here", VaceWarning, stacklevel=2)
    return {name: float(value) for name, value in found.items() if isfinite(value)}


def _operating(task: Task, series: Series, detector: Detector) -> dict[str, Any]:
    """What alarms at the budget are worth on the rows after the training part."""
    from vace_ad.metrics.backtest import Alarms, operate, positioned, read_causes

    if task.budget is None or not isinstance(detector, Alarms):
        return {}
    train = series.name.train_rows
    causes: list[dict[str, Any]] = []
    if task.causes is not None:
        known = read_causes(task.causes)
        mine = known.get(Path(task.path).name, known.get(series.name.stem, []))
        causes = positioned(mine, series.channels)
    rows, labels = series.values[train:], series.labels[train:]
    counted = operate(detector, rows, labels, task.budget, causes=causes, first=train)
    return {"budget": task.budget, **counted.to_plain()}


def _geometry(detector: Detector) -> dict[str, float | str]:
    """The diagnostics of a detector that has them."""
    geometry = getattr(detector, "geometry_", None)
    if geometry is None:
        return {}
    values = {name: float(getattr(geometry, name)) for name in GEOMETRY}
    finite: dict[str, float | str] = {name: x for name, x in values.items() if isfinite(x)}
    return {**finite, "verdict": str(geometry.verdict)}


def facts(series: Series, paper: Exam) -> dict[str, Any]:
    """What a row tells of its series."""
    return {
        "rows": len(series.values),
        "channels": series.values.shape[1],
        "train_rows": len(paper.train),
        "evaluated_rows": len(paper.labels),
        "anomalous_rows": int(paper.labels.sum()),
        "window": paper.window,
        "notes": series.notes,
    }


def _blank(task: Task, protocol: str) -> Row:
    """A row with what is known before any work."""
    name = task.name
    return Row(
        method=task.method,
        series=name.stem,
        seed=task.seed,
        protocol=protocol,
        status="failed",
        family=name.family,
        split=task.split,
        config=resolve(task.method).config_hash,
        version=__version__,
    )


@contextmanager
def _caught_warnings() -> Iterator[list[str]]:
    """Warnings as notes of the row, instead of lines across the progress view."""
    notes: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = lambda message, kind, *_: notes.append(f"{kind.__name__}: {message}")
        yield notes
