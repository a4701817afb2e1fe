"""The report of a run: the content of its page, and the events at other limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import zip_longest
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vace_ad import __version__
from vace_ad.alarms import Event, Rules
from vace_ad.alarms.scan import WORDS
from vace_ad.batch import expected_cells, explain_rows
from vace_ad.engine.patches import PatchSet, embed
from vace_ad.frames.segments import missing_cells, runs_above
from vace_ad.frames.table import Table, as_table
from vace_ad.frames.timestamps import offsets, zone_words
from vace_ad.model import Model
from vace_ad.report import ReportData, write_report
from vace_ad.report.data import Curve, WhatIf
from vace_ad.views.diagnostics import trust

if TYPE_CHECKING:
    from vace_ad.detection import Detection

_POINTS = 600  # of the trajectory at most: it is folded away, and costs a pass of the encoder

VERDICTS = {
    "healthy": "The embedding spreads over several directions, as the score assumes.",
    "collapsed": "The embedding has collapsed onto nearly one direction: shape evidence is weak "
    "here, trust the other signals more.",
    "isotropic": "The embedding spreads over all directions alike, like noise: there may be "
    "little structure to learn.",
}


def report_data(
    title: str,
    found: Detection,
    *,
    training: tuple[int, int] | None = None,
    notes: Sequence[str] | None = None,
    facts: Mapping[str, str] | None = None,
    command: str = "",
    rules: Rules | None = None,
    units: Mapping[str, str] | None = None,
) -> ReportData:
    """Everything the page shows; without the model it shows what the detection alone can."""
    model, table = found.model, as_table(found.data)
    if model is not None:
        table = model.table(table)
    first = 0 if training is None else training[1]
    nearly = _near_misses(model, table, found)
    rows = np.array([[e.start, e.end] for e in found.anomalies], np.intp).reshape(-1, 2)
    units = {name: unit for name, unit in (units or {}).items() if name in table.names and unit}
    expected = expected_curves(model, table, (*found.events, *nearly))
    shown = table if model is None else table.first(len(model.inputs))  # without the calendar
    return ReportData(
        title=title,
        channels=shown.names,
        values=shown.values,
        scores=found.evidence,
        threshold=found.limits,
        time=table.time,
        time_zone=zone_words(table.zone) or None,
        offsets=offsets(table.time, table.zone),
        signals=found.signals,
        expected=expected,
        units=units,
        events=found.events,
        near_misses=nearly,
        what_if=what_if(found.evidence, found.limits, rules or Rules(), rows, first=first),
        training=training,
        idle=found.idle,
        alarm_words=found.threshold.words,
        notes=found.notes if notes is None else notes,
        facts=facts or {},
        command=command,
        **({} if model is None else _of_model(model, table, found)),
    )


def _of_model(model: Model, table: Table, found: Detection) -> dict[str, Any]:
    """The parts of the page that need the model."""
    points, rows = trajectory(model, table)
    shape = model.shape
    geometry = {} if shape is None else asdict(shape.geometry)
    verdict = geometry.pop("verdict", None)
    return {
        "signal_words": {**model.lines, **WORDS},
        "trust": trust(model, table, found),
        "trajectory": points,
        "trajectory_rows": rows,
        "geometry": geometry,
        "verdict": VERDICTS.get(verdict, ""),
    }


def trajectory(
    model: Model, table: Table
) -> tuple[NDArray[np.float64], NDArray[np.intp]] | tuple[None, None]:
    """The first encoder's embeddings in their two main directions, and each one's middle row."""
    shape = model.shape
    if shape is None:
        return None, None
    length = shape.config.length
    stride = max(shape.config.grid_stride, -(-len(table) // _POINTS))  # no denser than scores
    patches = PatchSet([table.block(0, len(table))], length, shape.scale)
    broken = np.cumsum(np.insert(missing_cells(table.values).any(axis=1), 0, False))
    index = patches.grid(stride)
    index = index[broken[index + length] == broken[index]]  # without a missing value
    if len(index) < 2:
        return None, None
    blocks = [block[:, 0] for block in embed(shape.engine.engine, patches, index)]
    z = np.concatenate(blocks).astype(np.float64)  # (k, d_z)
    z -= np.median(z, axis=0)
    _, _, directions = np.linalg.svd(z, full_matrices=False)
    if len(directions) < 2:
        return None, None
    return z @ directions[:2].T, index + length // 2


def write_detection(found: Detection, path: str | PathLike[str], *, first: int = 0) -> None:
    """Write the report of a detection; the title is the file's name.

    Rows before `first` are those of the training.
    """
    facts = {"vace-ad": __version__}
    if found.model is not None:
        facts = {"seed": str(found.model.config.random_state), **facts}
    training = (0, first) if first else None
    write_report(report_data(Path(path).stem, found, training=training, facts=facts), path)


def _near_misses(model: Model | None, table: Table, found: Detection) -> list[Event]:
    """The near misses in order of row, with their suspects where the model is at hand."""
    nearly = sorted(found.near_misses, key=lambda event: event.start)
    if model is None:
        return nearly
    blamed = []
    for event in nearly:
        who = explain_rows(model, table, event.start, event.end, model.period)
        blamed.append(event.with_blame(who.top(len(who.names)), who.signal))
    return blamed


Array = NDArray[np.float64]

STEPS = 40  # limits that are tried above, and as many below


def what_if(
    evidence: Array,
    limit: float | Array,
    rules: Rules,
    events: NDArray[np.intp],
    *,
    first: int = 0,
) -> list[WhatIf]:
    """How many events higher and lower limits would give, by rising shift.

    `events` (k, 2) are the rows [start, end) of those that there are: a higher limit keeps those
    whose evidence rises above it, a lower one adds stretches away from them.
    """
    above = np.asarray(evidence, dtype=np.float64) - limit  # (n,)
    above[:first] = np.nan
    known = above[np.isfinite(above)]
    if not len(known):
        return []
    low, high = min(float(np.median(known)), 0.0), max(float(known.max()), 0.0)
    if not high > low:
        return []
    peaks = [float(np.nanmax(above[a:b], initial=0.0)) for a, b in events.tolist()]
    taken = np.zeros(len(above) + 1, np.intp)  # rows of events before each
    for start, end in events.tolist():
        taken[start + 1 : end + 1] += 1
    taken = np.cumsum(taken)

    def count(shift: float) -> int:
        if shift >= 0:
            return sum(peak > shift for peak in peaks) if shift else len(peaks)
        start, end = runs_above(above, shift, rules).T
        return len(peaks) + int((taken[start] == taken[end]).sum())

    closer = np.linspace(0, 1, STEPS) ** 2  # to the limit the closer, where most depends
    shifts = np.unique([*(low * closer), *(high * closer)])
    return [WhatIf(shift, count(shift), "") for shift in shifts.tolist()]


SUSPECTS = 6  # of an event
MOST = 24  # channels
CELLS = 10_000_000  # of all curves together, beyond the first few channels
LEAD = 2_000  # rows before a stretch by which its baseline is nearly that of the whole table


def suspects(events: Sequence[Event], most: int) -> list[str]:
    """The channels to draw: the first suspect of each event, then the second of each, and so on."""
    worst = sorted(events, key=lambda event: -event.severity)
    ranks = zip_longest(*([name for name, _ in event.shares[:SUSPECTS]] for event in worst))
    names = dict.fromkeys(name for rank in ranks for name in rank if name is not None)
    return list(names)[:most]


def expected_curves(
    model: Model | None, table: Table, events: Sequence[Event], most: int = MOST
) -> dict[str, Curve]:
    """The curve around each suspect; none without the model."""
    most = max(min(most, CELLS // max(len(table), 1)), min(most, SUSPECTS))
    names = suspects(events, most)
    if model is None or not names:
        return {}
    place = [table.names.index(name) for name in names]
    nats, expected = expected_cells(model, table, place, "float32")
    return {
        name: Curve(expected.lower[:, i], expected.upper[:, i], nats[:, i])
        for i, name in enumerate(names)
    }


def curve_of(model: Model, table: Table, name: str, start: int, end: int) -> Curve:
    """The curve around one channel in rows [start, end), from these and the rows just before."""
    lead = max(0, start - LEAD)
    place = table.names.index(name)
    nats, expected = expected_cells(model, table[lead:end], [place], "float32")
    lines = expected.lower, expected.upper, nats
    return Curve(*(line[start - lead :, 0] for line in lines))
